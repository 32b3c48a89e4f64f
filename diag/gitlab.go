package diag

import (
	"io"
	"path/filepath"
)

// NewGitLab prints a Code Quality report, an array that GitLab shows next to the lines of a
// merge request. Suppressed findings are left out.
func NewGitLab(w io.Writer, o Options) Writer { return &gitlabWriter{output: newOutput(w, o)} }

type gitlabWriter struct {
	output
	any bool // a finding was written
}

type gitlabFinding struct {
	Rule        string      `json:"check_name"`
	Description string      `json:"description"`
	Severity    string      `json:"severity"`
	Fingerprint string      `json:"fingerprint"`
	Location    gitlabPlace `json:"location"`
}

type gitlabPlace struct {
	Path  string      `json:"path"`
	Lines gitlabLines `json:"lines"`
}

type gitlabLines struct {
	Begin int `json:"begin"`
}

func (g *gitlabWriter) File(r Report) error {
	seen := map[string]int{}
	src := newSources(g.opt.Source)
	for _, e := range entries(r, false) {
		if g.any {
			g.print(",\n")
		} else {
			g.print("[\n")
		}
		g.any = true
		g.print(g.encode(gitlabFinding{
			Rule:        e.Rule,
			Description: e.sentence(),
			Severity:    gitlabSeverity(e.Finding),
			Fingerprint: fingerprint(e, src, seen),
			Location: gitlabPlace{
				Path:  filepath.ToSlash(filepath.Clean(e.File)),
				Lines: gitlabLines{Begin: max(1, e.Range.Start.Line)},
			},
		}))
	}

	return g.done()
}

// Close ends the array.
func (g *gitlabWriter) Close(Summary) error {
	if g.any {
		g.print("\n]\n")
	} else {
		g.print("[]\n")
	}
	return g.done()
}

// gitlabSeverity returns one of GitLab's severities. A finding that stops the load is a
// blocker.
func gitlabSeverity(f Finding) string {
	switch {
	case f.Stops:
		return "blocker"
	case f.Severity == Error:
		return "major"
	case f.Severity == Warning:
		return "minor"
	}

	return "info"
}
