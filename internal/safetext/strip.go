package safetext

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Stripped is a text without what is never drawn, and how many
// characters were taken out, by class. A sequence that acts on a
// terminal counts once, as Control.
type Stripped struct {
	Text string
	Out  [Invisible + 1]int
}

// Any reports whether anything was taken out.
func (s *Stripped) Any() bool { return s.Out != [Invisible + 1]int{} }

// Strip takes hidden characters out of a text that goes to a reader who
// needs no proof of what stood there, such as a model. Line breaks stay
// as line feeds, tabs stay, any space is a space, one selector stays
// behind a symbol whose picture it chooses, and so do four combining
// marks in a row. The rest is in NFC. Strip of its own result changes
// nothing.
func Strip(s string) Stripped {
	if plain(s) {
		return Stripped{Text: s}
	}
	var x stripper
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for range 2 { // NFC spells some marks as two
		s = norm.NFC.String(x.pass(s))
	}
	x.done.Text = s
	return x.done
}

// plain reports whether a text is printable ASCII with line feeds and
// tabs.
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
	last  rune // that was written
	marks int  // in a row, up to here
	done  Stripped
}

// pass goes once through a text.
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

// mark writes a combining mark. More of them than any script has would
// cover the text beside them.
func (x *stripper) mark(r rune, class Class) {
	if x.marks == maxMarks {
		x.done.Out[class]++
		return
	}
	n := x.marks + 1
	x.write(r)
	x.marks = n
}

// next reads one character, or one sequence, and returns what is left.
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

// chooses reports whether a character says how the symbol before it is
// drawn, as text or as a picture. Behind letters it would say nothing.
func (x *stripper) chooses(r rune) bool {
	return (r == '\ufe0e' || r == '\ufe0f') &&
		(unicode.IsSymbol(x.last) || unicode.IsPunct(x.last) || unicode.IsDigit(x.last))
}

// longSequence is how far the end of a sequence with a text is looked
// for, in bytes.
const longSequence = 1000

// sequence is how many bytes at the beginning of a text act on a
// terminal; 0: it begins with something else.
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

// control is the length of the parameters of a control sequence and of
// the character that ends it; 0 where it has no end.
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

// titled is the length of a sequence that holds a text, from its second
// character on, with its end; 1 where it has no end.
func titled(s string) int {
	near := s[:min(len(s), longSequence)]
	for _, end := range []string{"\x07", "\x1b\\", "\u009c"} {
		if i := strings.Index(near, end); i >= 0 {
			return i + len(end)
		}
	}

	return 1
}

// Words says in words what was taken out: "2 bidi controls, 1 tag
// character".
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

// Fold is what a name looks like to somebody who doesn't look closely:
// letters of other alphabets are the ASCII letters that they pass for,
// and case is gone. Two names with one Fold are easily taken for each
// other.
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

// smallest returns the first of the characters that differ from r in
// case alone.
func smallest(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
