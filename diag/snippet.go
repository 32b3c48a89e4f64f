package diag

import (
	"github.com/assent-dev/assent/internal/safetext"
	"strings"
	"unicode/utf8"
)

const (
	maxWindow = 120 // maximum of cells of a source line that are shown
	minWindow = 30  // cells shown even if the terminal is narrower
	tabStop   = 4
)

// snippet renders a source line and the underline of a range in it. Both are safe for
// terminals, and the underline fits: wide characters, tabs and escapes are counted as drawn.
// Long lines are cut to width cells around the range.
func snippet(line string, r Range, width int) (shown, underline string) {
	line, skipped, more := excerpt(line, r.Start.Column)
	cells := layout(line)
	from := max(0, min(max(r.Start.Column, 1)-1-skipped, len(cells)))
	to := from + 1
	switch {
	case r.End.Line > r.Start.Line:
		to = len(cells)
	case r.End.Column-1-skipped > from:
		to = r.End.Column - 1 - skipped
	}

	to = max(min(to, len(cells)), from)
	first, last := window(cells, from, width)
	var b strings.Builder
	lead := 0
	if first+skipped > 0 {
		b.WriteString("…")
		lead = 1
	}
	for _, c := range cells[first:last] {
		b.WriteString(c.text)
	}
	if more || last < len(cells) {
		b.WriteString("…")
	}
	lead += total(cells[first:from])
	under := max(1, total(cells[from:min(to, last)]))
	return strings.TrimRight(b.String(), " "), strings.Repeat(" ", lead) + "^" + strings.Repeat("~", under-1)
}

// excerpt cuts a huge line to the part around a column, to limit the cost of drawing it.
func excerpt(line string, column int) (part string, skipped int, more bool) {
	const before, after = 300, 600
	if len(line) <= before+after {
		return line, 0, false
	}
	start := 0
	for ; skipped < column-before && start < len(line); skipped++ {
		_, size := utf8.DecodeRuneInString(line[start:])
		start += size
	}
	end := start
	for n := 0; n < before+after && end < len(line); n++ {
		_, size := utf8.DecodeRuneInString(line[end:])
		end += size
	}
	return line[start:end], skipped, end < len(line)
}

// cell is one code point (or one invalid byte) in the form that is drawn.
type cell struct {
	text  string
	width int
}

// layout returns the cells of a line, one per code point, so that index i is column i+1.
func layout(line string) []cell {
	cells := make([]cell, 0, len(line))
	at := 0
	for raw, shown := range safetext.Characters(line) {
		c := cell{text: shown, width: len(shown)}
		switch {
		case raw == "\t":
			c.width = tabStop - at%tabStop
			c.text = strings.Repeat(" ", c.width)
		case shown == raw:
			r, _ := utf8.DecodeRuneInString(raw)
			c.width = safetext.Width(r)
		}

		cells = append(cells, c)
		at += c.width
	}

	return cells
}

// window chooses the cells to show: all if they fit, otherwise those around a column, with a
// third of them before it.
func window(cells []cell, at, width int) (first, last int) {
	first = at
	for used := 0; first > 0 && used+cells[first-1].width <= width/3; first-- {
		used += cells[first-1].width
	}
	if first > 0 && total(cells) <= width {
		first = 0
	}
	last = first
	for used := 0; last < len(cells) && used+cells[last].width <= width; last++ {
		used += cells[last].width
	}
	return first, last
}

func total(cells []cell) int {
	n := 0
	for _, c := range cells {
		n += c.width
	}
	return n
}
