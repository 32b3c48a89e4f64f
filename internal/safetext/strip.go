package safetext

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Stripped is a text without hidden characters, with the number of removed characters by class.
// A terminal control sequence counts once, as Control.
type Stripped struct {
	Text string
	Out  [Invisible + 1]int
}

// Any reports whether anything was removed.
func (s *Stripped) Any() bool { return s.Out != [Invisible + 1]int{} }

// Strip removes hidden characters from a text for a reader that does not need to know they were
// there, such as a model. Line breaks become line feeds, tabs stay, and every kind of space
// becomes a space. One variation selector stays after a symbol that has two forms, and so do up
// to four combining marks in a row. The result is in NFC. Applying Strip again changes nothing.
func Strip(s string) Stripped {
	if plain(s) {
		return Stripped{Text: s}
	}
	var x stripper
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for range 2 { // twice, because NFC decomposes some marks into two
		s = norm.NFC.String(x.pass(s))
	}
	x.done.Text = s
	return x.done
}

// plain reports whether a text is printable ASCII with line feeds and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}

	return true
}

type stripper struct {
	out   strings.Builder
	last  rune // last rune written
	marks int  // number of preceding marks in a row
	done  Stripped
}

// pass processes a text once.
func (x *stripper) pass(s string) string {
	x.out.Reset()
	x.last = 0
	x.marks = 0
	for len(s) > 0 {
		s = x.next(s)
	}
	return x.out.String()
}

func (x *stripper) write(r rune) {
	x.out.WriteRune(r)
	x.last = r
	x.marks = 0
}

// mark writes a combining mark, unless there are more than any script uses: they would cover
// the text next to them.
func (x *stripper) mark(r rune, class Class) {
	if x.marks == maxMarks {
		x.done.Out[class]++
		return
	}
	n := x.marks + 1
	x.write(r)
	x.marks = n
}

// next processes one character or one control sequence, and returns the rest.
func (x *stripper) next(s string) string {
	if n := sequence(s); n > 0 {
		x.done.Out[Control]++
		return s[n:]
	}
	for i, r := range s {
		if i > 0 {
			return s[i:]
		}
		x.rune(r)
	}

	return ""
}

func (x *stripper) rune(r rune) {
	class := Classify(r)
	switch {
	case r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
		x.write('\n')
	case class == Mark, class == Overlay:
		x.mark(r, class)
	case !class.Hidden(), r == '\n', r == '\t', x.chooses(r):
		x.write(r)
	case class == Space:
		x.write(' ')
	default:
		x.done.Out[class]++
	}
}

// chooses reports whether a variation selector decides how the symbol before it is drawn, as
// text or as a picture. After letters it has no effect.
func (x *stripper) chooses(r rune) bool {
	return (r == '\ufe0e' || r == '\ufe0f') &&
		(unicode.IsSymbol(x.last) || unicode.IsPunct(x.last) || unicode.IsDigit(x.last))
}

// longSequence limits the search for the end of a sequence that contains a text, in bytes.
const longSequence = 1000

// sequence returns the length in bytes of the terminal control sequence at the beginning of a
// text, or 0 if there is none.
func sequence(s string) int {
	rest, found := strings.CutPrefix(s, "\x1b")
	switch {
	case found && strings.HasPrefix(rest, "["):
		return 2 + control(rest[1:])
	case found && rest != "" && strings.IndexByte("]P_^X", rest[0]) >= 0:
		return 1 + titled(rest)
	case found:
		return 1
	case strings.HasPrefix(s, "\u009b"):
		return len("\u009b") + control(s[len("\u009b"):])
	}

	return 0
}

// control returns the length of the parameters and the final character of a control sequence,
// or 0 if it has no end.
func control(s string) int {
	for i := range min(len(s), longSequence) {
		switch c := s[i]; {
		case c >= '@' && c <= '~':
			return i + 1
		case c < ' ' || c > '?':
			return 0
		}
	}

	return 0
}

// titled returns the length, from its second character on, of a sequence that contains a text,
// including its terminator. It returns 1 if there is no terminator.
func titled(s string) int {
	near := s[:min(len(s), longSequence)]
	for _, end := range []string{"\x07", "\x1b\\", "\u009c"} {
		if i := strings.Index(near, end); i >= 0 {
			return i + len(end)
		}
	}

	return 1
}

// Words describes what was removed: "2 bidi controls, 1 tag character".
func (s *Stripped) Words() string {
	var words []string
	for class, n := range s.Out {
		if n == 0 {
			continue
		}
		word := Class(class).word()
		if n > 1 {
			word += "s"
		}
		words = append(words, Count(n)+" "+word)
	}

	return strings.Join(words, ", ")
}

func (c Class) word() string {
	switch c {
	case Bidi:
		return "bidi control"
	case Tag:
		return "tag character"
	case Control:
		return "control character"
	case Private:
		return "private-use character"
	case ZeroWidth:
		return "zero-width character"
	case Mark, Overlay:
		return "combining mark"
	}

	return "invisible character"
}

// Fold returns a normal form of a name: letters of other alphabets are replaced by the ASCII
// letters they look like, and case is folded. Two names with the same Fold are easily mistaken
// for each other.
func Fold(name string) string {
	as := name
	if !ascii(name) {
		as = norm.NFKC.String(name)
		if alike := skeleton(name); alike != "" {
			as = alike
		}
	}

	return strings.Map(smallest, as)
}

// smallest returns the smallest of the characters that differ from r only in case.
func smallest(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
