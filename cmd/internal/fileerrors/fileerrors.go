// Package fileerrors tells whoever starts a command which errors
// agf-validate has about the files that the command decides by. Errors
// that stop a load are told by whoever loads; these leave a file usable,
// and docs/reference/errors-at-run-time.md says what each does to calls.
package fileerrors

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Agent is the file of an agent. Text is read from it if it is nil.
type Agent struct {
	// Dir holds the sub-agents, and Path is the file below it. Without
	// Dir, Path names the file alone, and no sub-agent is read.
	Dir, Path string
	Text      []byte
}

// name is how the file is called in findings.
func (a Agent) name() string {
	if a.Dir == "" {
		return a.Path
	}
	return filepath.Join(a.Dir, filepath.FromSlash(a.Path))
}

// Find runs all rules of agf-validate, and returns the errors that leave
// the files usable. Policies are directories. A file that can't be read
// any more is left out: whoever loads it tells.
func Find(agents []Agent, policies []string, owner resolve.Options) []diag.Finding {
	worker := lint.New(rules.All(), lint.Options{Semantics: owner.Semantics, Owner: owner}).Worker()
	var out []diag.Finding
	for _, a := range agents {
		text := a.Text
		if text == nil {
			var err error
			if text, err = os.ReadFile(a.name()); err != nil {
				continue
			}
		}
		var below *lint.Files
		if a.Dir != "" {
			below = &lint.Files{FS: os.DirFS(a.Dir), Path: a.Path}
		}
		out = append(out, Usable(worker.Agent(a.name(), text, below).Findings)...)
	}
	for _, dir := range policies {
		files, _ := policy.ReadFS(os.DirFS(dir), dir)
		for _, f := range files {
			out = append(out, Usable(worker.Policy(f.Name, f.Text).Findings)...)
		}
	}
	return out
}

// Usable returns the errors among findings that stop nothing.
func Usable(findings []diag.Finding) (out []diag.Finding) {
	for _, f := range findings {
		if f.Severity == diag.Error && !f.Stops {
			out = append(out, f)
		}
	}
	return out
}

// Merge adds those findings of more that are not in all yet. A comment in
// a file may silence what agf-validate reports, and not what reading the
// file for decisions found.
func Merge(all, more []diag.Finding) []diag.Finding {
	for _, f := range more {
		if !slices.ContainsFunc(all, func(g diag.Finding) bool {
			return f.Rule == g.Rule && f.File == g.File && f.Range.Start == g.Range.Start
		}) {
			all = append(all, f)
		}
	}
	diag.Sort(all)
	return all
}

// Line is one error as a line: its place, what is wrong and what to do.
func Line(f diag.Finding) string {
	text := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Range.Start.Line, f.Range.Start.Column, f.Message)
	if f.Nearest != "" {
		text += fmt.Sprintf("; did you mean %q?", f.Nearest)
	}
	if f.Expected != "" {
		text += " (expected " + f.Expected + ")"
	}
	return safetext.Line(text + " [" + f.Rule + "]")
}

// Print writes errors, a line each. The stream is for people: when it
// can't be written nobody is left to tell.
func Print(w io.Writer, findings []diag.Finding) {
	for _, f := range findings {
		_, _ = fmt.Fprintln(w, Line(f))
	}
}

// Refuse is the error of --strict; nil if there are no findings.
func Refuse(findings []diag.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	more := ""
	if n := len(findings) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Errorf("--strict: a file has an error: %s%s", Line(findings[0]), more)
}
