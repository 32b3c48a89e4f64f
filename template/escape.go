package template

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a text that came from elsewhere safe to show on one line of plain text. It hides nothing and loses nothing: two
// different texts never look the same afterwards.
//
//   - Every character that could be invisible, start a line or reorder text is shown as \u{202e}: the Unicode categories
//     Cc, Cf, Cs, Co and Cn, line and paragraph separators, every space but the ASCII one, variation selectors, the other
//     default-ignorable characters (U+034F, Hangul and Khmer fillers), and symbols that are blank (U+2800 and the like).
//     Joiners inside emoji are no exception. Cn follows the Unicode version of the Go release: a character too new for it is escaped.
//   - A combining mark is shown only behind a letter, at most four in a row. Others, and those that strike out or enclose a letter,
//     are escaped, so marks can't cover the text beside them.
//   - Three or more of the same escaped character are written once with their number, \u{200b*40}; so are nine or more spaces.
//     Padding can't push text out of sight.
//   - A byte that is not UTF-8 is shown as \x{ff}.
//   - A backslash stays as it is, unless it would read as the start of an escape or of a cutting mark; then it is \u{5c}.
//
// Letters of scripts that run right to left stay readable. They can't be mixed into a line without isolating them; Render does
// that. Markup is the business of the channel that understands it.
func Escape(s string) string {
	if plain(s) {
		return s
	}
	return string(appendEscaped(make([]byte, 0, len(s)+32), s))
}

const (
	// maxValue is how many characters one value may take in a message, escapes counted as they are written.
	maxValue = 2000
	// minValue is what every value gets, however many a template has.
	minValue = 200
	// maxValues is what all values of a message share.
	maxValues = 32_000

	maxMarks  = 4 // combining marks in a row
	maxSpaces = 8 // spaces in a row
	maxRepeat = 2 // same escapes in a row
)

// Unicode's isolates keep right-to-left text from reordering what stands around it (UAX #9, "first strong isolate").
const (
	isolate    = "\u2068"
	popIsolate = "\u2069"
)

// valueLimit is the number of characters for each value of a template that uses n.
func valueLimit(n int) int {
	return max(minValue, min(maxValue, maxValues/max(n, 1)))
}

// raw is the text of a value before it is made safe to show. Strings within JSON are isolated one by one.
type raw struct {
	text string
	json bool
}

// show escapes a value and cuts it if it takes more than limit characters. A cut is always announced, with the number of
// characters left out, between the head and the tail of the value.
func show(v raw, limit int) (shown string, cut bool) {
	s := v.text
	if plain(s) && len(s) <= limit {
		return s, false
	}
	head := fit(s, limit, firstRun)
	if head == len(s) {
		return v.isolated(Escape(s), "", "", len(s)), false
	}
	head = fit(s, limit*2/3, firstRun)
	tail := len(s) - fit(s[head:], limit-limit*2/3, lastRun)
	mark := `\…(` + strconv.Itoa(utf8.RuneCountInString(s[head:tail])) + ` characters not shown)…`
	return v.isolated(Escape(s[:head]), mark, Escape(s[tail:]), tail), true
}

// isolated puts the shown pieces together. If they hold right-to-left letters it isolates them from the text around: the whole
// of a string, each string of JSON. The tail begins at byte tailAt of the value.
func (v raw) isolated(head, mark, tail string, tailAt int) string {
	all := head + mark + tail
	switch {
	case !strings.ContainsFunc(all, rightToLeft):
		return all
	case v.json:
		var before quotes
		before.skim(v.text[:tailAt])
		return (&quotes{}).isolate(head) + mark + before.isolate(tail)
	}
	return isolate + all + popIsolate
}

// quotes follows JSON text from quote to quote. Escapes of JSON and of ours both begin with a backslash inside a string.
type quotes struct{ open, escape bool }

// step moves over one byte and reports whether it begins or ends a string.
func (q *quotes) step(c byte) bool {
	switch {
	case q.escape:
		q.escape = false
	case c == '\\':
		q.escape = true
	case c == '"':
		q.open = !q.open
		return true
	}
	return false
}

func (q *quotes) skim(text string) {
	for i := range len(text) {
		q.step(text[i])
	}
}

// isolate puts isolates inside the quotes of each string in a piece of shown JSON, and of those that the piece cuts.
func (q *quotes) isolate(shown string) string {
	var b strings.Builder
	if q.open {
		b.WriteString(isolate)
	}
	for i := range len(shown) {
		switch quote := q.step(shown[i]); {
		case quote && q.open:
			b.WriteString(`"` + isolate)
		case quote:
			b.WriteString(popIsolate + `"`)
		default:
			b.WriteByte(shown[i])
		}
	}
	if q.open {
		b.WriteString(popIsolate)
	}
	return b.String()
}

// plain reports whether every byte is printable ASCII that needs no thought: no backslash, no long run of spaces. A text
// that it is too careful about only takes longer.
func plain(s string) bool {
	spaces := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
		if c != ' ' {
			spaces = 0
		} else if spaces++; spaces > maxSpaces {
			return false
		}
	}
	return true
}

// appendEscaped is Escape, run by run of the same character.
func appendEscaped(dst []byte, s string) []byte {
	marks := -1 // combining marks since the last letter; -1: nothing here that a mark may stand on
	for len(s) > 0 {
		unit, n, rest := firstRun(s)
		r, _ := utf8.DecodeRuneInString(unit)
		switch {
		case mustEscape(unit, r, n):
			dst, marks = appendEscape(dst, unit, n), -1
		case !unicode.Is(unicode.M, r):
			dst, marks = appendVisible(dst, unit, n, rest), -1
			if unicode.IsLetter(r) {
				marks = 0
			}
		case marks < 0 || marks+n > maxMarks || overlays(r):
			dst, marks = appendEscape(dst, unit, n), -1
		default:
			dst, marks = appendRun(dst, unit, n), marks+n
		}
		s = rest
	}
	return dst
}

// appendVisible writes a run as it is, but for a backslash that would read as the start of an escape.
func appendVisible(dst []byte, unit string, n int, rest string) []byte {
	if unit != `\` || !startsEscape(rest) {
		return appendRun(dst, unit, n)
	}
	return appendEscape(appendRun(dst, unit, n-1), unit, 1)
}

func appendRun(dst []byte, unit string, n int) []byte {
	for range n {
		dst = append(dst, unit...)
	}
	return dst
}

func appendEscape(dst []byte, unit string, n int) []byte {
	times := n
	if n > maxRepeat {
		times = 1
	}
	for range times {
		dst = appendCode(dst, unit)
		if n > maxRepeat {
			dst = strconv.AppendInt(append(dst, '*'), int64(n), 10)
		}
		dst = append(dst, '}')
	}
	return dst
}

// appendCode writes an escape up to its closing brace.
func appendCode(dst []byte, unit string) []byte {
	r, w := utf8.DecodeRuneInString(unit)
	if broken(r, w) {
		return strconv.AppendUint(append(dst, `\x{`...), uint64(unit[0]), 16)
	}
	return strconv.AppendUint(append(dst, `\u{`...), uint64(r), 16)
}

// firstRun splits off the first character of s with its repetitions.
func firstRun(s string) (unit string, n int, rest string) {
	_, w := utf8.DecodeRuneInString(s)
	unit, rest = s[:w], s[w:]
	for n = 1; strings.HasPrefix(rest, unit); n++ {
		rest = rest[w:]
	}
	return unit, n, rest
}

// lastRun is firstRun from the end.
func lastRun(s string) (unit string, n int, rest string) {
	_, w := utf8.DecodeLastRuneInString(s)
	unit, rest = s[len(s)-w:], s[:len(s)-w]
	for n = 1; strings.HasSuffix(rest, unit); n++ {
		rest = rest[:len(rest)-w]
	}
	return unit, n, rest
}

// fit returns how many bytes of s, taken run by run from one end, can be shown in budget characters. A run that is written with
// its number is taken whole or not at all.
func fit(s string, budget int, next func(string) (string, int, string)) int {
	left := s
	for len(left) > 0 {
		unit, n, rest := next(left)
		c := cost(unit, n)
		if c > budget {
			if c == n {
				return len(s) - len(left) + budget*len(unit)
			}
			break
		}
		budget -= c
		left = rest
	}
	return len(s) - len(left)
}

// cost is the number of characters that a run takes when it is shown; for marks and backslashes the most that it could take. Two
// halves of a run never cost less than the whole, so what show cuts out is never empty.
func cost(unit string, n int) int {
	r, _ := utf8.DecodeRuneInString(unit)
	switch {
	case mustEscape(unit, r, n), unicode.Is(unicode.M, r):
		return len(appendEscape(nil, unit, n))
	case unit == `\`:
		return n - 1 + len(`\u{5c}`)
	}
	return n
}

func mustEscape(unit string, r rune, n int) bool {
	return hidden(r) || broken(r, len(unit)) || r == ' ' && n > maxSpaces
}

// broken reports whether a decoded rune stands for a byte that is not UTF-8.
func broken(r rune, width int) bool { return r == utf8.RuneError && width == 1 }

// hidden reports whether a character of a value must not be shown as it is.
func hidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r) || blank(r)
}

// blank lists the characters that Unicode calls symbols or letters and fonts draw as nothing.
func blank(r rune) bool {
	switch r {
	case '\u2800', // braille pattern without dots
		'\ufffc',                   // placeholder of an object
		'\U00013441', '\U00013442', // hieroglyphs "full blank" and "half blank"
		'\U00016fe4', // Khitan filler
		'\U0001d159': // musical null notehead
		return true
	}
	return false
}

// overlays reports whether a mark strikes out, encloses or spans letters.
func overlays(r rune) bool {
	return r >= 0x334 && r <= 0x338 || r >= 0x35c && r <= 0x362 || r >= 0x20d0 && r <= 0x20ff || unicode.Is(unicode.Me, r)
}

// rightToLeft reports whether a character belongs to the blocks that Unicode reserves for right-to-left scripts (the default
// ranges of classes R and AL in DerivedBidiClass.txt).
func rightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

func startsEscape(rest string) bool {
	return strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{") || strings.HasPrefix(rest, "…")
}

// escapeAuthor shows the author's own text: line breaks and tabs stay, and so does everything visible with the joiners and
// selectors that emoji and several scripts need. Controls and bidi controls become escapes; CR LF becomes a line feed.
func escapeAuthor(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var dst []byte
	for len(s) > 0 {
		r, w := utf8.DecodeRuneInString(s)
		if authorMay(r, w) {
			dst = append(dst, s[:w]...)
		} else {
			dst = appendEscape(dst, s[:w], 1)
		}
		s = s[w:]
	}
	return string(dst)
}

func authorMay(r rune, width int) bool {
	const zwnj, zwj = '\u200c', '\u200d'
	return r == '\n' || r == '\t' || r == zwnj || r == zwj || unicode.IsGraphic(r) && !broken(r, width)
}

// escaped is the escape of one character.
func escaped(unit string) string { return string(appendEscape(nil, unit, 1)) }
