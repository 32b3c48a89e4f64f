package safetext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a text safe to show on one line of plain text. It is lossless: the output of two
// different texts always looks different.
//
//   - Every hidden character is shown as \u{202e}. So are combining marks that don't follow a
//     letter, exceed four in a row, or strike out or enclose a letter, because marks can cover
//     the text next to them.
//   - Three or more of the same escaped character are written once with their count,
//     \u{200b*40}. So are nine or more spaces, because padding can push text out of sight.
//   - A byte that is not UTF-8 is shown as \x{ff}.
//   - A backslash is unchanged, unless it would look like the start of an escape or of the
//     note at a cut; then it is \u{5c}.
//
// Letters of right-to-left scripts stay readable. Line isolates them from the surrounding text.
func Escape(s string) string {
	if ordinary(s) {
		return s
	}

	return string(appendEscaped(make([]byte, 0, len(s)+32), s))
}

// Line is like Escape, for a text that is shown within other text. If it contains right-to-left
// letters, it is isolated so that it can't reorder the surrounding text.
func Line(s string) string {
	shown := Escape(s)
	if !strings.ContainsFunc(shown, RightToLeft) {
		return shown
	}

	return Isolate + shown + PopIsolate
}

// Unicode isolates keep right-to-left text from reordering the surrounding text (UAX #9, "first
// strong isolate").
const (
	Isolate    = "\u2068"
	PopIsolate = "\u2069"
)

const (
	maxSpaces = 8 // spaces in a row
	maxRepeat = 2 // same escapes in a row
)

// ordinary reports whether a text certainly needs no escapes: printable ASCII without
// backslashes and long runs of spaces. False negatives only cost time.
func ordinary(s string) bool {
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

// appendEscaped implements Escape, one run of equal characters at a time.
func appendEscaped(dst []byte, s string) []byte {
	var following marks
	for len(s) > 0 {
		var x run
		x, s = firstRun(s)
		switch {
		case x.escaped():
			dst, following = x.appendEscape(dst), 0
		case !following.draws(x.r, x.n):
			dst, following = x.appendEscape(dst), 0
		case x.unit == `\` && startsEscape(s):
			dst = run{x.unit, x.r, x.n - 1}.appendPlain(dst)
			dst = run{x.unit, x.r, 1}.appendEscape(dst)
		default:
			dst = x.appendPlain(dst)
		}
	}

	return dst
}

func startsEscape(rest string) bool {
	return strings.HasPrefix(rest, "u{") || strings.HasPrefix(rest, "x{") || strings.HasPrefix(rest, "…")
}

// run is one character, or one byte that is not UTF-8, with its repetitions.
type run struct {
	unit string
	r    rune
	n    int
}

// firstRun splits off the first character of s with its repetitions.
func firstRun(s string) (x run, rest string) {
	r, w := utf8.DecodeRuneInString(s)
	x, rest = run{s[:w], r, 1}, s[w:]
	for ; strings.HasPrefix(rest, x.unit); x.n++ {
		rest = rest[w:]
	}

	return x, rest
}

// lastRun is like firstRun, from the end.
func lastRun(s string) (x run, rest string) {
	r, w := utf8.DecodeLastRuneInString(s)
	x, rest = run{s[len(s)-w:], r, 1}, s[:len(s)-w]
	for ; strings.HasSuffix(rest, x.unit); x.n++ {
		rest = rest[:len(rest)-w]
	}

	return x, rest
}

// escaped reports whether a run is escaped in any context.
func (x run) escaped() bool {
	return Classify(x.r).Hidden() || broken(x.r, len(x.unit)) || x.r == ' ' && x.n > maxSpaces
}

func (x run) appendPlain(dst []byte) []byte {
	for range x.n {
		dst = append(dst, x.unit...)
	}

	return dst
}

func (x run) appendEscape(dst []byte) []byte {
	if x.n > maxRepeat {
		dst = strconv.AppendInt(append(x.appendCode(dst), '*'), int64(x.n), 10)
		return append(dst, '}')
	}
	for range x.n {
		dst = append(x.appendCode(dst), '}')
	}

	return dst
}

// appendCode appends an escape without its closing brace.
func (x run) appendCode(dst []byte) []byte {
	if broken(x.r, len(x.unit)) {
		return strconv.AppendUint(append(dst, `\x{`...), uint64(x.unit[0]), 16)
	}

	return strconv.AppendUint(append(dst, `\u{`...), uint64(x.r), 16)
}

// cost returns the number of characters of a run when it is shown. For marks and backslashes it
// is the maximum.
func (x run) cost() int {
	switch {
	case x.escaped(), unicode.Is(unicode.M, x.r):
		return len(x.appendEscape(nil))
	case x.unit == `\`:
		return x.n - 1 + len(`\u{5c}`)
	}

	return x.n
}

// Author shows the text of an author, who may use line breaks and tabs. Everything visible is
// unchanged, with the joiners and selectors that emoji and several scripts need. Controls and
// bidi controls are escaped, and CR LF becomes LF.
func Author(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var dst []byte
	for len(s) > 0 {
		r, w := utf8.DecodeRuneInString(s)
		if AuthorMay(r, w) {
			dst = append(dst, s[:w]...)
		} else {
			dst = run{s[:w], r, 1}.appendEscape(dst)
		}
		s = s[w:]
	}

	return string(dst)
}

// AuthorMay reports whether a character, decoded from width bytes, is unchanged in the text of
// an author.
func AuthorMay(r rune, width int) bool {
	const zwnj, zwj = '\u200c', '\u200d'
	return r == '\n' || r == '\t' || r == zwnj || r == zwj || unicode.IsGraphic(r) && !broken(r, width)
}
