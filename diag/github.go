package diag

import (
	"io"
	"strconv"
	"strings"
)

// NewGitHub prints workflow commands, which GitHub Actions shows next to the lines of a change:
//
//	::error file=a.agf.yaml,line=3,col=5,endLine=3,endColumn=12,title=unknown-field::unknown field "aproval"
//
// Infos are notices. Suppressed findings are left out.
func NewGitHub(w io.Writer, o Options) Writer { return &githubWriter{newOutput(w, o)} }

type githubWriter struct{ output }

func (g *githubWriter) File(r Report) error {
	for _, e := range entries(r, false) {
		g.print("::", githubCommand(e.Severity), " file=", githubProperty(e.File))
		g.place(e.Range)
		g.print(",title=", githubProperty(e.Rule), "::", githubData(e.sentence()), "\n")
	}
	return g.done()
}

// place prints the range. An end column is printed only for a range on a single line.
func (g *githubWriter) place(r Range) {
	for _, p := range []struct {
		name string
		n    int
	}{{"line", r.Start.Line}, {"col", r.Start.Column}, {"endLine", r.End.Line}, {"endColumn", r.End.Column}} {
		if p.n > 0 && (p.name != "endColumn" || r.End.Line == r.Start.Line) {
			g.print(",", p.name, "=", strconv.Itoa(p.n))
		}
	}
}

// Close flushes the output.
func (g *githubWriter) Close(Summary) error { return g.done() }

func githubCommand(s Severity) string {
	if s == Info {
		return "notice"
	}
	return s.String()
}

// githubData escapes characters that end a command. The text is Printable already, so it has no
// line breaks.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// githubProperty also escapes characters that end a property.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(Printable(s)))
}
