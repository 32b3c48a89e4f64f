package diag

import (
	"io"
	"strconv"
	"strings"
)

// NewGitHub prints workflow commands, which GitHub Actions shows beside
// the lines of a change:
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

// place prints the range; an end column means something only on the
// line of the start.
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

// Close has nothing to add.
func (g *githubWriter) Close(Summary) error { return g.done() }

func githubCommand(s Severity) string {
	if s == Info {
		return "notice"
	}
	return s.String()
}

// githubData escapes what ends a command; the text is Printable
// already, so line breaks cannot occur.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// githubProperty escapes what ends a property, too.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(Printable(s)))
}
