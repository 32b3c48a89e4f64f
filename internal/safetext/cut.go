package safetext

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Every cut keeps two thirds of what is shown for the beginning of a
// text and one third for its end, counts characters, and says between
// them how many it left out. These are the words of each channel.

// cutInMessage begins with a backslash: an escaped text can't forge it.
func cutInMessage(left int) string { return `\…(` + strconv.Itoa(left) + ` characters not shown)…` }

func cutInSlack(left int) string {
	return " … (" + strconv.Itoa(left) + " characters are not shown here) … "
}

func cutOnPage(left, total int) string {
	return "… " + Count(left) + " of " + Count(total) + " characters not shown here …"
}

// Count writes a number with separators of thousands.
func Count(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}

	return digits
}

// Head is the beginning of a text, at most n characters of it.
func Head(s string, n int) (head string, cut bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}

	return s, false
}

// ends returns the beginning and the end of a text that together fit within a
// limit, as offsets in bytes, and how many characters lie between them.
func ends(s string, limit int, cost func(run) int) (head, tail, left int) {
	head = fit(s, limit*2/3, cost, firstRun)
	tail = len(s) - fit(s[head:], limit-limit*2/3, cost, lastRun)

	return head, tail, utf8.RuneCountInString(s[head:tail])
}

// fit returns how many bytes of s, taken run by run from one end, can
// be shown within a budget. A run that is written with its number is
// taken whole or not at all.
func fit(s string, budget int, cost func(run) int, next func(string) (run, string)) int {
	left := s
	for len(left) > 0 {
		x, rest := next(left)
		whole := cost(x)
		if whole > budget {
			if each := cost(run{x.unit, x.r, 1}); each*x.n == whole {
				return len(s) - len(left) + budget/each*len(x.unit)
			}
			break
		}

		budget -= whole
		left = rest
	}

	return len(s) - len(left)
}

// Value is a text that a message shows in the place of a variable.
type Value struct {
	Text string
	JSON bool // each string within it is isolated by itself
}

// Show escapes a value and cuts it if it takes more than limit characters.
func (v Value) Show(limit int) (shown string, cut bool) {
	s := v.Text
	if ordinary(s) && len(s) <= limit {
		return s, false
	}
	if fit(s, limit, run.cost, firstRun) == len(s) {
		return v.isolated(Escape(s), "", "", len(s)), false
	}
	head, tail, left := ends(s, limit, run.cost)

	return v.isolated(Escape(s[:head]), cutInMessage(left), Escape(s[tail:]), tail), true
}

// isolated puts the shown pieces together. If they hold right-to-left
// letters it isolates them from the text around: the whole of a string,
// each string of JSON. The tail begins at byte tailAt of the value.
func (v Value) isolated(head, mark, tail string, tailAt int) string {
	all := head + mark + tail
	switch {
	case !strings.ContainsFunc(all, RightToLeft):
		return all
	case v.JSON:
		var before quotes
		before.skim(v.Text[:tailAt])
		return (&quotes{}).isolate(head) + mark + before.isolate(tail)
	}

	return Isolate + all + PopIsolate
}

// quotes follows JSON text from quote to quote. Escapes of JSON and of
// ours both begin with a backslash inside a string.
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

// isolate puts isolates inside the quotes of each string in a piece of
// shown JSON, and of those that the piece cuts.
func (q *quotes) isolate(shown string) string {
	var b strings.Builder
	if q.open {
		b.WriteString(Isolate)
	}
	for i := range len(shown) {
		switch quote := q.step(shown[i]); {
		case quote && q.open:
			b.WriteString(`"` + Isolate)
		case quote:
			b.WriteString(PopIsolate + `"`)
		default:
			b.WriteByte(shown[i])
		}
	}

	if q.open {
		b.WriteString(PopIsolate)
	}

	return b.String()
}
