package safetext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown is a text from outside, ready to be displayed: characters that could hide, reorder or
// be mistaken for others are escaped.
type Shown struct {
	Pieces []Piece
	Flags  Flags
	Cut    bool // something was left out; a piece has the number of characters
}

// Spoken returns the text without formatting, for attributes.
func (s Shown) Spoken() string {
	var b strings.Builder
	for _, p := range s.Pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Piece is a run of shown text. An empty Class means unchanged text; other classes are the
// page's own notation for it.
type Piece struct {
	Class   string // empty, or one of the classes below
	Text    string
	Note    string // explanation of an escape
	Break   bool   // a line break of the text follows
	Isolate bool   // isolate this value, so that it can't reorder the surrounding text
}

func piece(class, text, note string) Piece { return Piece{Class: class, Text: text, Note: note} }

// Classes of pieces. The style sheet uses them.
const (
	PieceEscape = "esc"   // an escape: \u{202e}
	PieceMark   = "mark"  // a harmless escape: a line break or a tab
	PieceAlike  = "alike" // a word that looks like another
	PieceNote   = "note"  // a note of the page about the text before
	PieceGap    = "gap"   // counted white space
	PieceCut    = "cut"   // the number of characters left out
)

// Flags are the kinds of problems found in a text.
type Flags map[string]bool

func (f Flags) Add(other Flags) {
	for k := range other {
		f[k] = true
	}
}

// Hides reports whether invisible characters were found.
func (f Flags) Hides() bool {
	return f["bidi"] || f["tag"] || f["invisible"] || f["control"] || f["invalid"]
}

// Deceives reports whether characters were found that look like others.
func (f Flags) Deceives() bool { return f["alike"] || f["mixed"] || f["digits"] }

// Words explains the flags, the worst first.
func (f Flags) Words() []string {
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

// Form configures how a page shows a text.
type Form struct {
	Quoted bool // as a JSON string: backslashes doubled, line breaks escaped
	Block  bool // line breaks are drawn; the text is a message whose values are already escaped
	Lines  bool // line breaks are drawn
	Limit  int  // maximum of characters; more are left out of the middle, with a note. 0: no limit
	// Spend takes pieces out of the page's budget, and reports whether any are left. If it is
	// nil, there is no budget.
	Spend func(pieces int) bool
}

// maxBreaks limits the line breaks within white space that are drawn.
const maxBreaks = 2

// Inspect makes a text from outside safe to display on a page. It leaves out nothing without a
// note, and different texts never look the same: whatever is not drawn unchanged is a piece
// with a class. Time and memory are linear in the text, and limited by the budget.
func Inspect(s string, f Form) Shown {
	d := display{Form: f, flags: Flags{}}
	if total := utf8.RuneCountInString(s); f.Limit > 0 && total > f.Limit {
		d.ends(s, total)
	} else {
		d.text(s)
		d.leftOut(total)
	}

	d.join()
	return Shown{Pieces: d.pieces, Flags: d.flags, Cut: d.cut}
}

// ends shows the beginning and the end of a text, and the number of characters between.
func (d *display) ends(s string, total int) {
	head, tail, left := ends(s, d.Limit, func(x run) int { return x.n })
	d.text(s[:head])
	d.unshown += left
	if d.stopped {
		d.unshown += utf8.RuneCountInString(s[tail:])
	} else {
		d.leftOut(total)
		d.text(s[tail:])
	}

	d.leftOut(total)
}

type display struct {
	Form
	pieces  []Piece
	last    []byte // the text of the last piece, which may still grow
	flags   Flags
	isolate bool
	stopped bool // the budget is spent
	unshown int  // characters since the last one shown
	cut     bool
}

// put appends a piece, joined to the previous one if both are of the same kind.
func (d *display) put(p Piece) {
	p.Isolate = d.isolate
	if n := len(d.pieces); n > 0 {
		if last := &d.pieces[n-1]; last.Class == p.Class && last.Note == p.Note && !last.Break &&
			last.Isolate == p.Isolate && p.Class != PieceNote {
			d.last = append(d.last, p.Text...)
			last.Break = p.Break
			return
		}
	}

	d.join()
	d.stopped = d.Spend != nil && !d.Spend(1)
	d.last = append(d.last, p.Text...)
	d.pieces = append(d.pieces, p)
}

// join stores the text of the last piece.
func (d *display) join() {
	if n := len(d.pieces); n > 0 {
		d.pieces[n-1].Text = string(d.last)
	}
	d.last = d.last[:0]
}

// leftOut adds a piece with the number of characters, of total, that are not shown here.
func (d *display) leftOut(total int) {
	if d.unshown > 0 {
		d.cut = true
		d.put(piece(PieceCut, cutOnPage(d.unshown, total), ""))
	}
	d.unshown = 0
}

func (d *display) text(s string) {
	isolates := strings.LastIndex(s, PopIsolate)
	for whole := len(s); len(s) > 0; {
		if d.stopped {
			d.unshown += utf8.RuneCountInString(s)
			return
		}
		if n := plainRun(s); n > 0 {
			d.put(Piece{Text: s[:n]})
			s = s[n:]
			continue
		}
		s = s[d.next(s, whole-len(s) < isolates):]
	}
}

// plainRun returns the number of leading bytes that need no special treatment: ASCII up to a
// long run of spaces, a quote, a backslash, a control character, or a word with non-ASCII
// letters.
func plainRun(s string) int {
	word := 0 // where the current word began
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			return word
		case c < ' ' || c == 0x7f || c == '\\' || c == '"':
			return i
		case c == ' ':
			if n := spaces(s[i:]); n > maxSpaces {
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

// next shows the start of s and returns its length in bytes. closes means that a PopIsolate
// follows.
func (d *display) next(s string, closes bool) int {
	r, w := utf8.DecodeRuneInString(s)
	class := Classify(r)
	switch {
	case broken(r, w):
		return d.invalid(s)
	case strings.HasPrefix(s, Isolate) && d.Block && closes && !d.isolate:
		return d.isolated(s)
	case r == '\n':
		return d.breaks(s)
	case r == ' ':
		return d.gap(s)
	case r == '\\' || r == '"':
		return d.backslash(s)
	case class == Tag:
		return d.tags(s)
	case class.Hidden():
		return d.escape(s, r, class)
	case class != Visible:
		return d.marks(s)
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		return d.word(s)
	}

	return d.sign(s, r, w)
}

// isolated shows a value that the renderer of messages has isolated. The value can't contain
// isolates, because they were escaped before.
func (d *display) isolated(s string) int {
	end := strings.Index(s, PopIsolate)
	d.isolate = true
	d.text(s[len(Isolate):end])
	d.isolate = false

	return end + len(PopIsolate)
}

func (d *display) invalid(s string) int {
	d.flags["invalid"] = true
	d.put(piece(PieceEscape, fmt.Sprintf(`\x{%02x}`, s[0]), "a byte that is no UTF-8"))
	return 1
}

// breaks draws line breaks. If white space has many of them, it is counted instead, so that it
// can't push text out of sight.
func (d *display) breaks(s string) int {
	white := len(s) - len(strings.TrimLeft(s, " \n\t"))
	if strings.Count(s[:white], "\n") > maxBreaks {
		return d.white(s[:white])
	}
	if d.Block || d.Lines {
		d.put(Piece{Break: true})
	} else {
		d.put(Piece{Class: PieceMark, Text: `\n`, Note: "line break", Break: true})
	}

	return 1
}

// white shows the counts of mixed white space.
func (d *display) white(s string) int {
	d.flags["spaces"] = true
	var runs []string
	for rest := s; rest != ""; {
		n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		runs = append(runs, Count(n)+map[byte]string{
			' ':  " spaces",
			'\n': " line breaks",
			'\t': " tabs",
		}[rest[0]])
		rest = rest[n:]
	}

	d.put(Piece{Class: PieceGap, Text: "[" + strings.Join(runs, ", ") + "]", Break: true})
	return len(s)
}

func (d *display) gap(s string) int {
	n := spaces(s)
	if n <= maxSpaces {
		d.put(Piece{Text: s[:n]})
		return n
	}
	d.flags["spaces"] = true
	d.put(piece(PieceGap, "["+Count(n)+" spaces]", ""))
	return n
}

// spelled returns the length of an escape that the renderer of messages has written, or 0.
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

// spelledOut returns the piece for an escape in a message. Line breaks and tabs are shown as in
// other texts.
func spelledOut(escape string) Piece {
	switch escape {
	case `\u{a}`:
		return piece(PieceMark, `\n`, "line break")
	case `\u{9}`:
		return piece(PieceMark, `\t`, "tab")
	}

	return piece(PieceEscape, escape, "a character that is spelled out")
}

// backslash makes backslashes unambiguous. In a JSON string each is doubled; elsewhere it is
// escaped only if it would look like an escape. In messages the values are already escaped, see
// template.Render.
func (d *display) backslash(s string) int {
	switch n := spelled(s); {
	case d.Block && n > 0:
		d.put(spelledOut(s[:n]))
		return n
	case d.Block:
		d.put(Piece{Text: s[:1]})
	case d.Quoted:
		d.put(Piece{Text: `\` + s[:1]})
	case strings.HasPrefix(s, `\u{`) || strings.HasPrefix(s, `\x{`):
		d.put(piece(PieceEscape, `\u{5c}`, "a backslash of the text itself"))
	default:
		d.put(Piece{Text: s[:1]})
	}

	return 1
}

// tags escapes tag characters, and adds the text that a program would read from them.
func (d *display) tags(s string) int {
	d.flags["tag"] = true
	var codes, says strings.Builder
	n := 0
	for _, r := range s {
		if Classify(r) != Tag {
			break
		}
		fmt.Fprintf(&codes, `\u{%x}`, r)
		if c := r - tagBase; c >= ' ' && c <= '~' {
			says.WriteByte(byte(c))
		}
		n += utf8.RuneLen(r)
	}

	d.put(piece(PieceEscape, codes.String(), "invisible tag characters"))
	if says.Len() > 0 {
		d.put(piece(PieceNote, "invisible text that says “"+says.String()+"”", ""))
	}
	return n
}

func (d *display) escape(s string, r rune, class Class) int {
	if r == '\t' || strings.HasPrefix(s, "\r\n") {
		return d.plainControl(s)
	}
	flag, note := trouble(class)
	d.flags[flag] = true
	x, _ := firstRun(s)
	code := codeOf(r, d.Quoted)
	shown := strings.Repeat(code, x.n)
	if x.n > maxRepeat {
		shown = code + "×" + Count(x.n)
	}
	d.put(piece(PieceEscape, shown, note))
	return x.n * len(x.unit)
}

// plainControl shows tabs, and the carriage return of a line break. They occur in ordinary
// texts and hide nothing.
func (d *display) plainControl(s string) int {
	if s[0] == '\r' {
		d.put(piece(PieceMark, `\r`, "carriage return"))
		return 1
	}

	n := len(s) - len(strings.TrimLeft(s, "\t"))
	if n > maxSpaces {
		d.flags["spaces"] = true
		d.put(piece(PieceGap, "["+Count(n)+" tabs]", ""))
		return n
	}
	d.put(piece(PieceMark, strings.Repeat(`\t`, n), "tab"))

	return n
}

func codeOf(r rune, quoted bool) string {
	if r == '\r' && quoted {
		return `\r`
	}
	return string(run{string(r), r, 1}.appendEscape(nil))
}

// trouble returns the flag and the note for an escaped character.
func trouble(class Class) (flag, note string) {
	switch class {
	case Bidi:
		return "bidi", "reorders the text around it"
	case Control:
		return "control", "control character"
	case Space:
		return "invisible", "a space that is not the ordinary one"
	case Private:
		return "invisible", "private use: it looks different everywhere"
	case ZeroWidth:
		return "invisible", "zero width"
	}

	return "invisible", "shows nothing, or nobody knows what"
}

// marks escapes combining marks that don't follow a letter.
func (d *display) marks(s string) int {
	r, w := utf8.DecodeRuneInString(s)
	d.flags["marks"] = true
	d.put(piece(PieceEscape, codeOf(r, d.Quoted), "combining mark"))
	return w
}

// word shows letters, digits and their marks, with a note if the word looks like another.
func (d *display) word(s string) int {
	n := wordLen(s)
	word := s[:n]
	note, flags := judge(word)
	d.flags.Add(flags)
	if note == "" {
		d.put(Piece{Text: word})
		return n
	}
	d.put(piece(PieceAlike, word, ""))
	d.put(piece(PieceNote, note, ""))
	return n
}

// wordLen returns the length of the word at the start of s. It stops before anything that must
// be escaped, including marks beyond the fourth.
func wordLen(s string) int {
	var following marks
	for i, r := range s {
		letter := unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl)
		if !letter || !following.draws(r, 1) {
			return i
		}
	}

	return len(s)
}

// sign shows punctuation and symbols, with a note if they look like ASCII ones.
func (d *display) sign(s string, r rune, w int) int {
	if as := alikeSign(r); as != "" {
		d.flags["alike"] = true
		d.put(piece(PieceAlike, s[:w], ""))
		d.put(piece(PieceNote, "not “"+as+"” but "+codePoint(r), ""))
		return w
	}

	d.put(Piece{Text: s[:w]})
	return w
}

func codePoint(r rune) string { return fmt.Sprintf("U+%04X", r) }
