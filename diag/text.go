package diag

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// NewText prints findings for people: place, severity, sentence and rule on one line, then the
// source line with the range underlined, what was expected, the nearest name, and related
// places.
//
//	trade.agf.yaml:12:9: error: unknown field "aproval" [unknown-field]
//	   12 |         aproval: true
//	      |         ^~~~~~~
//	      = expected: alias, approval, description or name
//	      = did you mean: approval
//
// Suppressed findings are only counted. Text from a file is shown by Printable.
func NewText(w io.Writer, o Options) Writer { return &textWriter{newOutput(w, o)} }

type textWriter struct{ output }

func (t *textWriter) File(r Report) error {
	src := newSources(t.opt.Source)
	for _, e := range entries(r, false) {
		t.finding(e.Finding, src)
	}
	return t.done()
}

func (t *textWriter) finding(f Finding, src *sources) {
	t.print(
		t.color(bold, place(f.File, f.Range)+":"),
		" ",
		t.color(severityColor(f.Severity), f.Severity.String()+":"),
		" ",
		Printable(f.Message),
		" ",
		t.color(dim, "["+f.Rule+"]"),
		"\n",
	)
	gutter := t.snippet(f, src)
	if f.Expected != "" {
		t.print(gutter, t.color(dim, "= expected:"), " ", Printable(f.Expected), "\n")
	}
	if f.Nearest != "" {
		t.print(gutter, t.color(dim, "= did you mean:"), " ", t.color(green, Printable(f.Nearest)), "\n")
	}
	for _, r := range f.Related {
		t.print(gutter, t.color(dim, "= "+place(f.relatedFile(r), r.Range)+":"), " ", Printable(r.Message), "\n")
	}
	t.print("\n")
}

// snippet prints the source line if it is known, and returns the indentation of the notes below
// it.
func (t *textWriter) snippet(f Finding, src *sources) string {
	line, ok := src.line(f.File, f.Range.Start.Line)
	if !ok {
		return "  "
	}
	number := fmt.Sprintf("%5d", f.Range.Start.Line)
	blank := strings.Repeat(" ", len(number))
	shown, underline := snippet(line, f.Range, t.window(len(number)+len(" | ")))
	bar := strings.TrimRight(" | "+shown, " ")
	t.print(t.color(dim, number), bar, "\n", blank, " | ", t.color(severityColor(f.Severity), underline), "\n")
	return blank + " "
}

// window returns the number of cells of a source line that fit next to a gutter.
func (t *textWriter) window(gutter int) int {
	const cuts = 2 // an ellipsis at each end
	if t.opt.Width == 0 {
		return maxWindow
	}
	return min(max(t.opt.Width-gutter-cuts, minWindow), maxWindow)
}

// place returns file:line:column, without unknown parts.
func place(file string, r Range) string {
	s := Printable(file)
	if r.Start.Line > 0 {
		s += ":" + strconv.Itoa(r.Start.Line)
		if r.Start.Column > 0 {
			s += ":" + strconv.Itoa(r.Start.Column)
		}
	}

	return s
}

// Close prints the summary line.
func (t *textWriter) Close(s Summary) error {
	t.print(t.color(bold, s.String()), "\n")
	return t.done()
}

// String returns the summary on one line, such as "2 errors, 1 warning in 3 files (1
// suppressed)".
func (s Summary) String() string {
	if s.Files == 0 {
		return "nothing was checked"
	}
	var parts []string
	for _, c := range []struct {
		n    int
		unit string
	}{{s.Errors, "error"}, {s.Warnings, "warning"}, {s.Infos, "info"}} {
		if c.n > 0 {
			parts = append(parts, plural(c.n, c.unit))
		}
	}

	if len(parts) == 0 {
		parts = []string{"no findings"}
	}
	out := strings.Join(parts, ", ") + " in " + plural(s.Files, "file")
	if s.Suppressed > 0 {
		out += fmt.Sprintf(" (%d suppressed)", s.Suppressed)
	}
	return out
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// Colors, as parameters of the escape sequence that selects them.
const (
	bold   = "1"
	dim    = "2"
	red    = "1;31"
	yellow = "1;33"
	blue   = "1;34"
	green  = "32"
)

func severityColor(s Severity) string {
	switch s {
	case Info:
		return blue
	case Warning:
		return yellow
	}

	return red
}

func (t *textWriter) color(code, s string) string {
	if !t.opt.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
