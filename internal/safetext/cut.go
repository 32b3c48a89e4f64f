package safetext

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Every cut text keeps two thirds of the limit for the beginning and one third for the end,
// counts characters, and says in between how many are missing. The following functions return
// that note for each channel.

// cutInMessage begins with a backslash, so that an escaped text can't forge it.
func cutInMessage(left int) string { return `\…(` + strconv.Itoa(left) + ` characters not shown)…` }

func cutInSlack(left int) string {
	return " … (" + strconv.Itoa(left) + " characters are not shown here) … "
}

func cutOnPage(left, total int) string {
	return "… " + Count(left) + " of " + Count(total) + " characters not shown here …"
}

// Count formats a number with thousands separators.
func Count(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}

	return digits
}

// Head returns at most the first n characters of a text, and whether that cut it.
func Head(s string, n int) (head string, cut bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}

	return s, false
}

// ends returns byte offsets of a beginning and an end of a text that fit into a limit together,
// and the number of characters between them.
func ends(s string, limit int, cost func(run) int) (head, tail, left int) {
	head = fit(s, limit*2/3, cost, firstRun)
	tail = len(s) - fit(s[head:], limit-limit*2/3, cost, lastRun)

	return head, tail, utf8.RuneCountInString(s[head:tail])
}

// fit returns how many bytes of s, taken run by run from one end, can be shown within a budget.
// A run that is written with its count is taken completely or not at all.
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

// Value is a text that a message shows in place of a variable.
type Value struct {
	Text string
	JSON bool // isolate each string in it separately
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

// isolated joins the shown parts. If they contain right-to-left letters, it isolates them from
// the surrounding text: a plain string as a whole, JSON string by string. The tail begins at
// byte tailAt of the value.
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

// quotes tracks whether a position in JSON text is inside a string. Escapes of JSON and our own
// both begin with a backslash there.
type quotes struct{ open, escape bool }

// step processes one byte and reports whether it begins or ends a string.
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

// isolate inserts isolates inside the quotes of each string in a part of shown JSON, including
// strings that the part cuts.
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
