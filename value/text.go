package value

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// restOfString reads the rest of a string that begins at start, from i, the end of its plain
// ASCII prefix, to the closing quote. It checks every escape and all UTF-8.
func (p *scanner) restOfString(start, i int) (end int, escaped bool) {
	for i >= 0 {
		if i = plainEnd(p.src, i); i >= len(p.src) {
			return p.fail(Syntax, start-1, "the string has no closing quote"), false
		}
		switch c := p.src[i]; {
		case c == '"':
			return i, escaped
		case c == '\\':
			escaped = true
			i = p.escape(i)
		case c < ' ':
			return p.fail(
				Syntax,
				i,
				"control character "+found(p.text, i)+" in a string, write it as an escape",
			), false
		default:
			i = p.utf8Run(i)
		}
	}

	return failed, false
}

// utf8Run reads text up to the next escape, control character or quote.
func (p *scanner) utf8Run(i int) int {
	end := textEnd(p.src, i)
	if utf8.Valid(p.src[i:end]) {
		return end
	}
	for {
		r, size := utf8.DecodeRune(p.src[i:end])
		if r == utf8.RuneError && size == 1 {
			return p.fail(InvalidUTF8, i, found(p.text, i)+" is not valid UTF-8 here")
		}
		i += size
	}
}

// escape reads one escape. It reads both halves of a surrogate pair together.
func (p *scanner) escape(i int) int {
	rest := p.text[i+1:]
	if rest == "" || strings.IndexByte(`"\/bfnrtu`, rest[0]) < 0 {
		return p.fail(Syntax, i, `after \ one of "\/bfnrtu is expected, found `+found(p.text, i+1))
	}
	if rest[0] != 'u' {
		return i + 2
	}
	r, ok := hex4(rest[1:])
	if !ok {
		return p.fail(Syntax, i, `four hexadecimal digits are expected after \u`)
	}
	if !utf16.IsSurrogate(r) {
		return i + 6
	}
	low := rest[5:]
	if strings.HasPrefix(low, `\u`) {
		if r2, ok := hex4(low[2:]); ok && utf16.DecodeRune(r, r2) != utf8.RuneError {
			return i + 12
		}
	}
	return p.fail(LoneSurrogate, i, p.text[i:i+6]+" is half of a surrogate pair and stands alone")
}

// hex4 reads the four hexadecimal digits at the start of s.
func hex4(s string) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range []byte(s[:4]) {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20-'a' <= 5:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}

		r = r<<4 | rune(c)
	}

	return r, true
}

// unescape appends the unescaped content of s, which must be valid.
func unescape(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		c := s[i+1]
		s = s[i+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(s)
			s = s[4:]
			if utf16.IsSurrogate(r) {
				low, _ := hex4(s[2:])
				r = utf16.DecodeRune(r, low)
				s = s[6:]
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}

		dst = append(dst, c)
	}
}
