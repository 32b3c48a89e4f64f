package inbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assent-dev/assent/template"
)

// shown is a text from outside, ready to be looked at: what could hide, reorder or pass for something else is spelled out.
type shown struct {
	Pieces []piece
	Flags  flags
	Cut    bool // something was left out, and a piece says how much
}

// spoken is the shown text without its looks, for attributes.
func (s shown) spoken() string {
	var b strings.Builder
	for _, p := range s.Pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// piece is a run of shown text. Class "" is the text as it is; the others are the page's own spelling of it.
type piece struct {
	Class   string // "", or one of the classes below
	Text    string
	Note    string // what an escape stands for
	Break   bool   // a line break of the text follows
	Isolate bool   // the template isolated this value: it must not reorder what stands around
}

// Classes of pieces, which the style sheet knows.
const (
	classEscape = "esc"   // spelled out: \u{202e}
	classMark   = "mark"  // spelled out, and ordinary: a line break or a tab of the text
	classAlike  = "alike" // a word that passes for another
	classNote   = "note"  // words of the page about the text before
	classGap    = "gap"   // counted white space
	classCut    = "cut"   // how much was left out
)

// flags are the kinds of trouble found in a text.
type flags map[string]bool

func (f flags) add(other flags) {
	for k := range other {
		f[k] = true
	}
}

// hides reports whether characters were found that nobody sees.
func (f flags) hides() bool {
	return f["bidi"] || f["tag"] || f["invisible"] || f["control"] || f["invalid"]
}

// deceives reports whether characters were found that pass for others.
func (f flags) deceives() bool { return f["alike"] || f["mixed"] || f["digits"] }

// Words explains the flags, the worst first.
func (f flags) Words() []string {
	var out []string
	for _, w := range flagWords() {
		if f[w.flag] {
			out = append(out, w.words)
		}
	}
	return out
}

type flagWord struct{ flag, words string }

func flagWords() []flagWord {
	return []flagWord{
		{"bidi", "Characters that reorder text are spelled out."},
		{"tag", "Invisible tag characters are spelled out."},
		{"control", "Control characters are spelled out."},
		{"invisible", "Invisible or unassigned characters are spelled out."},
		{"invalid", "Bytes that are no UTF-8 are spelled out."},
		{"marks", "Marks that could cover other text are spelled out."},
		{"alike", "Some characters pass for others: see the notes beside them."},
		{"mixed", "Some words mix alphabets: see the notes beside them."},
		{"digits", "Some digits are not 0 to 9: see the notes beside them."},
		{"spaces", "Long runs of white space are counted instead of drawn."},
		{"rtl", "Some letters run from right to left."},
	}
}

// form says how a text is shown.
type form struct {
	quoted bool // as a JSON string: backslashes doubled, line breaks spelled out
	block  bool // line breaks are drawn; the text is a message, in which values are escaped already
	lines  bool // line breaks are drawn
	limit  int  // characters; more are cut out of the middle, with their number. 0: no limit
	budget *budget
}

const (
	longSpaces = 8 // spaces in a row that are still drawn
	longBreaks = 2 // line breaks within white space that are still drawn
	longMarks  = 4 // combining marks on one letter that are still drawn
	longEscape = 2 // equal escapes in a row that are written one by one
)

// inspect makes a text from outside safe and honest to look at. It loses nothing without saying so, and different texts
// never look the same: what is drawn otherwise stands in pieces of a class. Time and memory are linear in the text, and
// end with the budget.
func inspect(s string, f form) shown {
	d := display{form: f, flags: flags{}}
	if total := utf8.RuneCountInString(s); f.limit > 0 && total > f.limit {
		d.ends(s, total)
	} else {
		d.text(s)
		d.leftOut(total)
	}
	d.join()
	return shown{Pieces: d.pieces, Flags: d.flags, Cut: d.cut}
}

// ends shows head and tail of a text, and says how much stands between.
func (d *display) ends(s string, total int) {
	tail := d.limit / 3
	head := d.limit - tail
	d.text(s[:offset(s, head)])
	d.unshown += total - head - tail
	if d.stopped {
		d.unshown += tail
	} else {
		d.leftOut(total)
		d.text(s[offset(s, total-tail):])
	}
	d.leftOut(total)
}

// offset is the byte at which character n begins.
func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

type display struct {
	form
	pieces  []piece
	last    []byte // the text of the last piece, which may still grow
	flags   flags
	isolate bool
	stopped bool // the budget is spent
	unshown int  // characters since the last that was shown
	cut     bool
}

// put appends a piece, joined to the one before when they are of one kind.
func (d *display) put(p piece) {
	p.Isolate = d.isolate
	if n := len(d.pieces); n > 0 {
		if last := &d.pieces[n-1]; last.Class == p.Class && last.Note == p.Note && !last.Break && last.Isolate == p.Isolate && p.Class != classNote {
			d.last = append(d.last, p.Text...)
			last.Break = p.Break
			return
		}
	}
	d.join()
	d.stopped = !d.budget.spend(1)
	d.last = append(d.last, p.Text...)
	d.pieces = append(d.pieces, p)
}

// join gives the last piece its text.
func (d *display) join() {
	if n := len(d.pieces); n > 0 {
		d.pieces[n-1].Text = string(d.last)
	}
	d.last = d.last[:0]
}

// leftOut says how many characters of all stand here and are not shown.
func (d *display) leftOut(total int) {
	if d.unshown > 0 {
		d.cut = true
		words := fmt.Sprintf("… %s of %s characters not shown here …", count(d.unshown), count(total))
		d.put(piece{Class: classCut, Text: words})
	}
	d.unshown = 0
}

func (d *display) text(s string) {
	isolates := strings.LastIndex(s, isolateEnd)
	for whole := len(s); len(s) > 0; {
		if d.stopped {
			d.unshown += utf8.RuneCountInString(s)
			return
		}
		if n := plainRun(s); n > 0 {
			d.put(piece{Text: s[:n]})
			s = s[n:]
			continue
		}
		s = s[d.next(s, whole-len(s) < isolates):]
	}
}

// plainRun is how many bytes from the start need no thought: ASCII that is neither space, quote, backslash nor the start of a word with
// letters beyond ASCII.
func plainRun(s string) int {
	word := 0 // where the current word began
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			return word
		case c < ' ' || c == 0x7f || c == '\\' || c == '"':
			return i
		case c == ' ':
			if n := spaces(s[i:]); n > longSpaces {
				return i
			}
			word = i + 1
		case !alphanumeric(c):
			word = i + 1
		}
	}
	return len(s)
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func spaces(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// next shows what stands at the start of s and returns its length in bytes. closes says whether the end of an isolate
// follows.
func (d *display) next(s string, closes bool) int {
	r, w := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && w == 1:
		return d.invalid(s)
	case r == isolateStart && d.block && closes && !d.isolate:
		return d.isolated(s)
	case r == '\n':
		return d.breaks(s)
	case r == ' ':
		return d.gap(s)
	case r == '\\' || r == '"':
		return d.backslash(s)
	case tag(r):
		return d.tags(s)
	case hidden(r):
		return d.escape(s, r)
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		return d.word(s)
	case unicode.Is(unicode.M, r):
		return d.marks(s)
	}
	return d.sign(s, r, w)
}

// Unicode's isolates, with which the message renderer keeps a value from reordering the author's words. Values can't contain them
// there: they are escaped before.
const (
	isolateStart = '\u2068'
	isolateEnd   = "\u2069"
)

func (d *display) isolated(s string) int {
	w, end := utf8.RuneLen(isolateStart), strings.Index(s, isolateEnd)
	d.isolate = true
	d.text(s[w:end])
	d.isolate = false
	return end + len(isolateEnd)
}

func (d *display) invalid(s string) int {
	d.flags["invalid"] = true
	d.put(piece{Class: classEscape, Text: fmt.Sprintf(`\x{%02x}`, s[0]), Note: "a byte that is no UTF-8"})
	return 1
}

// breaks draws line breaks. Where white space holds many of them it is counted, so that nothing is pushed out of sight.
func (d *display) breaks(s string) int {
	white := len(s) - len(strings.TrimLeft(s, " \n\t"))
	if strings.Count(s[:white], "\n") > longBreaks {
		return d.white(s[:white])
	}
	if d.block || d.lines {
		d.put(piece{Break: true})
	} else {
		d.put(piece{Class: classMark, Text: `\n`, Note: "line break", Break: true})
	}
	return 1
}

// white counts mixed white space, run by run.
func (d *display) white(s string) int {
	d.flags["spaces"] = true
	var runs []string
	for rest := s; rest != ""; {
		n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		runs = append(runs, count(n)+map[byte]string{' ': " spaces", '\n': " line breaks", '\t': " tabs"}[rest[0]])
		rest = rest[n:]
	}
	d.put(piece{Class: classGap, Text: "[" + strings.Join(runs, ", ") + "]", Break: true})
	return len(s)
}

func (d *display) gap(s string) int {
	n := spaces(s)
	if n <= longSpaces {
		d.put(piece{Text: s[:n]})
		return n
	}
	d.flags["spaces"] = true
	d.put(piece{Class: classGap, Text: "[" + count(n) + " spaces]"})
	return n
}

// spelled finds an escape that the renderer of messages has written.
func spelled(s string) int {
	if !strings.HasPrefix(s, `\u{`) && !strings.HasPrefix(s, `\x{`) {
		return 0
	}
	digits := strings.TrimLeft(s[3:], "0123456789abcdef*")
	if n := len(s) - len(digits); n > 3 && strings.HasPrefix(digits, "}") {
		return n + 1
	}
	return 0
}

// spelledOut is an escape of a message. Line breaks and tabs are spelled here as everywhere.
func spelledOut(escape string) piece {
	switch escape {
	case `\u{a}`:
		return piece{Class: classMark, Text: `\n`, Note: "line break"}
	case `\u{9}`:
		return piece{Class: classMark, Text: `\t`, Note: "tab"}
	}

	return piece{Class: classEscape, Text: escape, Note: "a character that is spelled out"}
}

// backslash keeps spellings apart: in a JSON string it is doubled, elsewhere only where it would read as an escape. Messages come with
// their values escaped already, see template.Render.
func (d *display) backslash(s string) int {
	switch n := spelled(s); {
	case d.block && n > 0:
		d.put(spelledOut(s[:n]))
		return n
	case d.block:
		d.put(piece{Text: s[:1]})
	case d.quoted:
		d.put(piece{Text: `\` + s[:1]})
	case strings.HasPrefix(s, `\u{`) || strings.HasPrefix(s, `\x{`):
		d.put(piece{Class: classEscape, Text: `\u{5c}`, Note: "a backslash of the text itself"})
	default:
		d.put(piece{Text: s[:1]})
	}
	return 1
}

// tags spells out tag characters, and what they say to a machine that reads them as letters.
func (d *display) tags(s string) int {
	d.flags["tag"] = true
	var codes, says strings.Builder
	n := 0
	for _, r := range s {
		if !tag(r) {
			break
		}
		fmt.Fprintf(&codes, `\u{%x}`, r)
		if c := r - tagBase; c >= ' ' && c <= '~' {
			says.WriteByte(byte(c))
		}
		n += utf8.RuneLen(r)
	}
	d.put(piece{Class: classEscape, Text: codes.String(), Note: "invisible tag characters"})
	if says.Len() > 0 {
		d.put(piece{Class: classNote, Text: "invisible text that says “" + says.String() + "”"})
	}
	return n
}

const tagBase = 0xe0000

func tag(r rune) bool { return r >= tagBase && r <= tagBase+0x7f }

// hidden asks the escaper of messages, so that every channel agrees on what can't be shown as it is. Marks are judged by what they
// stand on.
func hidden(r rune) bool {
	return !unicode.Is(unicode.M, r) && r != '\\' && template.Escape(string(r)) != string(r) || variation(r)
}

func variation(r rune) bool { return r == 0x34f || unicode.Is(unicode.Variation_Selector, r) }

func (d *display) escape(s string, r rune) int {
	if r == '\t' || strings.HasPrefix(s, "\r\n") {
		return d.ordinary(s)
	}
	flag, note := trouble(r)
	d.flags[flag] = true
	unit, n := string(r), 0
	for strings.HasPrefix(s[n*len(unit):], unit) {
		n++
	}
	code := codeOf(r, d.quoted)
	if n > longEscape {
		d.put(piece{Class: classEscape, Text: code + "×" + count(n), Note: note})
	} else {
		d.put(piece{Class: classEscape, Text: strings.Repeat(code, n), Note: note})
	}
	return n * len(unit)
}

// ordinary shows tabs, and the carriage return of a line break: they are part of any text, and hide nothing.
func (d *display) ordinary(s string) int {
	if s[0] == '\r' {
		d.put(piece{Class: classMark, Text: `\r`, Note: "carriage return"})
		return 1
	}
	n := len(s) - len(strings.TrimLeft(s, "\t"))
	if n > longSpaces {
		d.flags["spaces"] = true
		d.put(piece{Class: classGap, Text: "[" + count(n) + " tabs]"})
		return n
	}
	d.put(piece{Class: classMark, Text: strings.Repeat(`\t`, n), Note: "tab"})

	return n
}

func codeOf(r rune, quoted bool) string {
	if r == '\r' && quoted {
		return `\r`
	}
	return `\u{` + strconv.FormatInt(int64(r), 16) + `}`
}

// trouble names what an escaped character is.
func trouble(r rune) (flag, note string) {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x61c:
		return "bidi", "reorders the text around it"
	case unicode.Is(unicode.Cc, r):
		return "control", "control character"
	case unicode.Is(unicode.Zs, r):
		return "invisible", "a space that is not the ordinary one"
	case unicode.Is(unicode.Co, r):
		return "invisible", "private use: it looks different everywhere"
	case r == 0x200b || r == 0x200c || r == 0x200d || r == 0x2060 || r == 0xfeff:
		return "invisible", "zero width"
	}
	return "invisible", "shows nothing, or nobody knows what"
}

// marks spells out combining marks that stand on no letter.
func (d *display) marks(s string) int {
	r, w := utf8.DecodeRuneInString(s)
	d.flags["marks"] = true
	d.put(piece{Class: classEscape, Text: codeOf(r, d.quoted), Note: "combining mark"})
	return w
}

// word shows letters, digits and their marks, with a note when they pass for something else.
func (d *display) word(s string) int {
	n := wordLen(s)
	word := s[:n]
	v := judge(word)
	d.flags.add(v.flags)
	class := ""
	if v.note != "" {
		class = classAlike
	}
	d.put(piece{Class: class, Text: word})
	if v.note != "" {
		d.put(piece{Class: classNote, Text: v.note})
	}
	return n
}

// wordLen stops before anything that must be spelled out, marks beyond the fourth among it.
func wordLen(s string) int {
	marks := 0
	for i, r := range s {
		switch {
		case unicode.Is(unicode.M, r) && !variation(r):
			if marks++; marks > longMarks || overlays(r) {
				return i
			}
		case (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Nl, r)) && !hidden(r):
			marks = 0
		default:
			return i
		}
	}
	return len(s)
}

// overlays reports whether a mark strikes out or encloses its letter, or spans two.
func overlays(r rune) bool {
	return r >= 0x334 && r <= 0x338 || r >= 0x35c && r <= 0x362 || r >= 0x20d0 && r <= 0x20ff || unicode.Is(unicode.Me, r)
}

// sign shows punctuation and symbols; those that pass for ASCII ones get a note.
func (d *display) sign(s string, r rune, w int) int {
	if as := alikeSign(r); as != "" {
		d.flags["alike"] = true
		d.put(piece{Class: classAlike, Text: s[:w]})
		d.put(piece{Class: classNote, Text: "not “" + as + "” but " + codePoint(r)})
		return w
	}
	d.put(piece{Text: s[:w]})
	return w
}

func codePoint(r rune) string { return fmt.Sprintf("U+%04X", r) }

// count writes a number with separators of thousands.
func count(n int) string {
	digits := []byte(strconv.Itoa(n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = slices.Insert(digits, i, ',')
	}
	return string(digits)
}
