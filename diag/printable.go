package diag

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns s with everything that could act on a terminal or hide in it shown as an escape: control
// characters, format characters (bidirectional marks, zero-width ones, tags), private-use ones, line and
// paragraph separators as \u{202e}, bytes that are not UTF-8 as \x80.
func Printable(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		b.WriteString(printableRune(r, s[i:i+size]))
		i += size
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// printableRune shows one code point, or one byte that is none.
func printableRune(r rune, raw string) string {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp), isInvisible(r), !assigned(r):
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return raw
}

// isInvisible recognises letters and marks that show nothing though their category does not say so: fillers,
// variation selectors, the grapheme joiner.
func isInvisible(r rune) bool {
	return r == 0x34f || r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r == 0x3164 || r == 0xffa0 ||
		r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef || r >= 0x180b && r <= 0x180f
}

// assigned reports whether a code point means anything: what is unassigned today may be invisible tomorrow.
func assigned(r rune) bool {
	return r < utf8.RuneSelf || r == utf8.RuneError || unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs)
}

// width is the number of terminal cells that a printable code point takes.
func width(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && isWide(r):
		return 2
	}
	return 1
}

// isWide recognises the scripts and signs that terminals draw two cells wide (Unicode's East Asian Width W, F).
func isWide(r rune) bool {
	switch {
	case r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0x4dbf, r >= 0x4e00 && r <= 0xa4cf,
		r >= 0xa960 && r <= 0xa97f, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff01 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6:
		return true
	case r >= 0x16fe0 && r <= 0x18cff, r >= 0x1b000 && r <= 0x1b2ff, r >= 0x1f300 && r <= 0x1f64f,
		r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f7e0 && r <= 0x1f7eb, r >= 0x1f900 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	switch r {
	case 0x231a, 0x231b, 0x23e9, 0x23ea, 0x23eb, 0x23ec, 0x23f0, 0x23f3, 0x25fd, 0x25fe, 0x2614, 0x2615, 0x267f, 0x2693,
		0x26a1, 0x26aa, 0x26ab, 0x26bd, 0x26be, 0x26c4, 0x26c5, 0x26ce, 0x26d4, 0x26ea, 0x26f2, 0x26f3, 0x26f5, 0x26fa,
		0x26fd, 0x2705, 0x270a, 0x270b, 0x2728, 0x274c, 0x274e, 0x2753, 0x2754, 0x2755, 0x2757, 0x2795, 0x2796, 0x2797,
		0x27b0, 0x27bf, 0x2b1b, 0x2b1c, 0x2b50, 0x2b55, 0x1f004, 0x1f0cf, 0x1f18e:
		return true
	}
	return r >= 0x2648 && r <= 0x2653 || r >= 0x1f191 && r <= 0x1f19a || r >= 0x1f200 && r <= 0x1f265
}
