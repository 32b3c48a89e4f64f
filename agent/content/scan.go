package content

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
)

// The functions here walk over text that is known to be JSON, so they check nothing. Each takes the offset where something begins and
// returns the one behind it.

func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// skip steps over one value.
func skip(s string, i int) int {
	switch s[i] {
	case '"':
		return skipString(s, i)
	case '{', '[':
		return skipNested(s, i)
	}
	for i < len(s) && strings.IndexByte(",]} \n\t\r", s[i]) < 0 {
		i++
	}
	return i
}

func skipNested(s string, i int) int {
	for depth := 0; ; i++ {
		switch s[i] {
		case '"':
			i = skipString(s, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

func skipString(s string, i int) int {
	for i++; ; {
		end := i + strings.IndexByte(s[i:], '"')
		if s[end-1] != '\\' || !escaped(s, i, end) {
			return end + 1
		}
		i = end + 1
	}
}

// escaped tells whether the quote at end stands behind an odd number of backslashes, of which none is before from.
func escaped(s string, from, end int) bool {
	n := 0
	for end-n > from && s[end-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// next steps from behind a value to the next one, or behind the closing bracket.
func next(s string, i int) (int, bool) {
	i = space(s, i)
	if s[i] == ',' {
		return space(s, i+1), true
	}
	return i + 1, false
}

// first steps from an opening bracket to the first value, or behind the closing bracket.
func first(s string, i int) (int, bool) {
	i = space(s, i+1)
	if s[i] == '}' || s[i] == ']' {
		return i + 1, false
	}
	return i, true
}

// key reads a key and steps to its value.
func key(s string, i int) (string, int) {
	end := skipString(s, i)
	name := unquote(s[i:end])
	return name, space(s, space(s, end)+1)
}

// unquote returns what a JSON string says. Without escapes it shares the text.
func unquote(s string) string {
	s = s[1 : len(s)-1]
	at := strings.IndexByte(s, '\\')
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for ; at >= 0; at = strings.IndexByte(s, '\\') {
		b.WriteString(s[:at])
		s = unescape(&b, s[at+1:])
	}
	b.WriteString(s)
	return b.String()
}

// unescape writes the character of an escape and returns what follows it.
func unescape(b *strings.Builder, s string) string {
	if s[0] != 'u' {
		b.WriteByte(unescaped(s[0]))
		return s[1:]
	}
	r, rest := hex4(s[1:])
	if utf16.IsSurrogate(r) {
		var low rune
		low, rest = hex4(rest[2:])
		r = utf16.DecodeRune(r, low)
	}
	b.WriteRune(r)
	return rest
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func hex4(s string) (rune, string) {
	var r rune
	for _, c := range []byte(s[:4]) {
		digit := rune(c - '0')
		if digit > 9 {
			digit = rune(c|0x20-'a') + 10
		}
		r = r<<4 | digit
	}
	return r, s[4:]
}

// each calls f for every member of a JSON object, until it returns false.
func each(object json.RawMessage, f func(key string, raw json.RawMessage) bool) {
	s := string(object)
	i, more := first(s, space(s, 0))
	for more {
		name, at := key(s, i)
		end := skip(s, at)
		if !f(name, object[at:end:end]) {
			return
		}
		i, more = next(s, end)
	}
}

// isObject tells whether a JSON text is an object.
func isObject(raw json.RawMessage) bool { return kindOf(raw) == "an object" }

// kindOf names what a JSON text is, "nothing" when there is none.
func kindOf[T []byte | json.RawMessage | string](raw T) string {
	i := 0
	for i < len(raw) && raw[i] <= ' ' {
		i++
	}
	if i == len(raw) {
		return "nothing"
	}
	switch raw[i] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
