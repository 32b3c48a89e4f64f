package yamldoc

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// check refuses texts that are not UTF-8, and characters that YAML forbids or that two readers
// treat differently. It warns about characters that make a line look different from its
// content. It stops at the first error.
func (s *source) check(f *findings) {
	if name := otherEncoding(s.text); name != "" {
		f.fail(ruleEncoding, start(), "the file is "+name, "UTF-8")
		return
	}
	for i := 0; i < len(s.text); {
		c := s.text[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(s.text[i:])
		if r == utf8.RuneError && size == 1 {
			f.fail(
				ruleEncoding,
				s.span(i, i),
				fmt.Sprintf("byte 0x%02X is not UTF-8", c),
				"a file saved as UTF-8",
			)
			return
		}

		if what := forbidden(r); what != "" {
			f.fail(ruleCharacter, s.span(i, i+size), fmt.Sprintf("%s U+%04X", what, r),
				fmt.Sprintf(`the escape "\u%04x" in double quotes`, r))
			return
		}
		if isBidi(r) {
			f.warn(
				ruleHidden,
				s.span(i, i+size),
				fmt.Sprintf("invisible U+%04X changes the order in which the line is shown", r),
				fmt.Sprintf(`the escape "\u%04x" in double quotes, or nothing`, r),
			)
		}

		i += size
	}
}

// otherEncoding recognizes UTF-16 and UTF-32 by their byte order marks, and UTF-16 without one
// by the zero bytes of ASCII text.
func otherEncoding(text []byte) string {
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe, 0, 0}), bytes.HasPrefix(text, []byte{0, 0, 0xfe, 0xff}):
		return "UTF-32"
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return "UTF-16"
	case len(text) >= 2 && (text[0] == 0) != (text[1] == 0):
		return "UTF-16"
	}

	return ""
}

// forbidden describes characters that YAML 1.2 forbids, and the three line breaks that only
// YAML 1.1 has. It returns an empty string for all others.
func forbidden(r rune) string {
	switch {
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return "line break that readers disagree about:"
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return "control character"
	case r == 0xfeff:
		return "byte order mark inside the text:"
	case r == 0xfffe || r == 0xffff:
		return "forbidden character"
	}

	return ""
}

// isBidi recognizes the explicit marks that reorder a line.
func isBidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
