// Package fileerrors reports the errors that agf-validate finds in the files with which a command
// decides. Errors that prevent loading are reported by the code that loads the files. The errors
// here leave a file usable, and docs/reference/errors-at-run-time.md describes what each of them
// does to calls.
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
	// Dir contains the sub-agents, and Path is the file below it. Without Dir, only the file at
	// Path is read, and no sub-agents.
	Dir, Path string
	Text      []byte
}

// name returns the name of the file for findings.
func (a Agent) name() string {
	if a.Dir == "" {
		return a.Path
	}
	return filepath.Join(a.Dir, filepath.FromSlash(a.Path))
}

// Find runs all rules of agf-validate, and returns the errors that leave the files usable. policies
// are directories. A file that can't be read is left out, because the code that loads it reports
// that.
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

// Usable returns the errors among findings that don't prevent loading.
func Usable(findings []diag.Finding) (out []diag.Finding) {
	for _, f := range findings {
		if f.Severity == diag.Error && !f.Stops {
			out = append(out, f)
		}
	}
	return out
}

// Merge adds the findings of more that are not in all yet. A comment in a file may silence findings
// of agf-validate, but not those from loading the file for decisions.
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

// Line formats an error on one line: its place, the problem and the fix.
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

// Print writes errors, one per line. Write errors are ignored, because there is no other stream to
// report them on.
func Print(w io.Writer, findings []diag.Finding) {
	for _, f := range findings {
		_, _ = fmt.Fprintln(w, Line(f))
	}
}

// Refuse returns the error of --strict, or nil if there are no findings.
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
