package hookfile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/fileerrors"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
)

// The states of a file.
const (
	stateAbsent       = "absent"        // there is no file
	stateNotInstalled = "not_installed" // no hook of assent in it
	stateInstalled    = "installed"
	stateUnreadable   = "unreadable"
)

// status is the status of one settings file.
type status struct {
	Product string `json:"product"`
	Scope   string `json:"scope"`
	File    string `json:"file"`
	State   string `json:"state"`
	Program string `json:"program,omitempty"` // as the file names it
	Line    int    `json:"line,omitempty"`    // line of the hook in the file
	// Open describes calls that run without the hook. It is empty if there are none.
	Open     string   `json:"open,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// statuses returns the status of all files of a product.
func (a Commands) statuses(p *product, at edits.Place) ([]status, error) {
	var out []status
	installed := 0
	for _, scope := range p.scopes {
		s, err := p.spotOf(at, scope)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o status) bool { return o.File == s.path }) {
			continue // the project is the home directory
		}
		next := a.statusOf(s)
		if next.State == stateInstalled {
			installed++
		}
		out = append(out, next)
	}

	for i := range out {
		if installed > 1 && out[i].State == stateInstalled {
			out[i].problem("%s runs %d hooks of assent for each call: uninstall all but one", p.title, installed)
		}
	}

	return out, nil
}

func (o *status) problem(format string, args ...any) {
	o.Problems = append(o.Problems, fmt.Sprintf(format, args...))
}

// statusOf returns the status of a file.
func (a Commands) statusOf(s spot) status {
	out := status{Product: s.name, Scope: s.scope, File: s.path, State: stateNotInstalled}
	c, err := s.look()
	switch {
	case err != nil:
		out.State = stateUnreadable
		out.problem("%s", err)
		return out
	case !c.file.Exists:
		out.State = stateAbsent
		return out
	case len(c.ours) == 0:
		return out
	}

	e := c.ours[0]
	out.State = stateInstalled
	out.Program = e.program
	out.Line = e.line
	out.Open = s.product.open
	gentle := c.gentle(s)
	if gentle {
		out.Open = s.ungated() + "; " + out.Open
	}
	if observes(e.args) {
		out.Open = "--observe holds nothing up: every call runs"
	}
	out.events(s, c, gentle)
	out.program(s, e)
	for _, e := range c.ours {
		if !slices.Contains(s.reports, e.event) {
			out.fields(s, e)
			out.time(a, s, e)
		}
	}

	out.files(a, e)
	switch text, err := s.off(s.place, c.root); {
	case err != nil:
		out.problem("nobody can tell whether hooks are switched off: %s", err)
	case text != "":
		out.problem("%s runs no hooks at all: %s", s.title, text)
	}

	return out
}

// gentle reports whether the hook answers only when the product would ask its user.
func (c *content) gentle(s spot) bool { return len(c.at(s.dialog)) > 0 && len(c.at(s.events[0])) == 0 }

// events adds problems for events that have no hook, or several.
func (o *status) events(s spot, c *content, gentle bool) {
	if !gentle && len(c.at(s.dialog)) > 0 {
		o.problem("the hook is at %s, too, so that people are asked about one call twice: run install again", s.dialog)
	}
	for i, event := range slices.Concat(s.deciding(gentle), s.reports) {
		switch n := len(c.at(event)); {
		case n > 1:
			o.problem("the file has %d hooks of assent at %s: run install again, which leaves one", n, event)
		case n == 0 && i == 0:
			o.problem("the hook is not at %s, so that every call runs: run install again", event)
		case n == 0:
			o.problem("the hook is not at %s: run install again, which writes it there", event)
		}
	}
}

// program checks the program that the file names.
func (o *status) program(s spot, e entry) {
	path, err := exec.LookPath(o.Program)
	if err != nil {
		then := "every call is blocked"
		if s.failsOpen(e) {
			then = "every call runs"
		}
		o.problem("%s can't be run, so that %s: run install again", o.Program, then)
		return
	}

	if self, err := os.Executable(); err == nil && !same(path, self) {
		o.problem("%s is another assent than this one, %s: run install again, or remove one", path, self)
	}
}

// same reports whether two paths lead to one file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)

	return err == nil && err2 == nil && os.SameFile(one, other)
}

// fields checks the fields that make the product run the hook for every call, and block if it
// fails.
func (o *status) fields(s spot, e entry) {
	o.shut(s, e)
	for _, name := range []string{"async", "asyncRewake"} {
		if e.fields[name] == true {
			o.problem("%s is true: calls don't wait for the hook", name)
		}
	}
	if kind, there := e.fields["type"]; kind != "command" && (there || s.groups) {
		o.problem("type is not command: %s doesn't run the line", s.title)
	}
	matcher := e.fields["matcher"]
	if group, ok := e.item.(map[string]any); ok && s.groups {
		matcher = group["matcher"]
	}
	if matcher != nil && matcher != "*" && matcher != "" && matcher != ".*" {
		o.problem("matcher is %q: other tools run without the hook", matcher)
	}
	if condition, there := e.fields["if"]; there {
		o.problem("if is %q: other calls run without the hook", condition)
	}
}

// failsOpen reports whether calls run when a hook is killed or can't
// start.
func (s spot) failsOpen(e entry) bool {
	switch {
	case s.closed != nil:
		return e.fields[s.closed.Name] != s.closed.Value
	case s.guarded:
		return !e.guarded
	}

	return false
}

// shut reports a problem if calls run when the hook fails. An observing hook is exempt.
func (o *status) shut(s spot, e entry) {
	if observes(e.args) || !s.failsOpen(e) {
		return
	}
	const then = "calls run when the hook is killed or can't start"
	if s.closed != nil {
		o.problem("%s is not %v: %s", s.closed.Name, s.closed.Value, then)
		return
	}
	o.problem("the line has no shell that blocks when the hook fails: %s; run install again", then)
}

// files checks the files that the command line names.
func (o *status) files(a Commands, e entry) {
	for _, path := range hook.Paths(e.args) {
		if !filepath.IsAbs(path) {
			o.problem("%s is found from some directories only: run install again", path)
		}
		if _, err := os.Stat(path); err != nil {
			o.problem("every call is blocked: %s", err)
			return
		}
	}

	line, err := hook.ReadLine(a.Reader, e.args)
	if err == nil && line.Alone != nil {
		var found []diag.Finding
		found, err = a.Check(*line.Alone)
		for _, f := range found {
			o.problem("a file has an error: %s", fileerrors.Line(f))
		}
	}
	if err != nil {
		o.problem("every call is blocked: %s", err)
	}
}

// time compares the product's time limit with the time that the hook needs.
func (o *status) time(a Commands, s spot, e entry) {
	line, err := hook.ReadLine(a.Reader, e.args)
	if err != nil {
		return // files has reported it
	}
	given := s.timeLimit(e.fields)
	if given <= line.Limit {
		o.problem("%s gives the hook %s, and it may need %s: calls may run without an answer, so raise it, or lower --wait",
			s.limit, given, line.Limit)
	}
}

func showStatus(p *term.Printer, found []status) {
	for _, s := range found {
		p.Printf("%s (%s): %s\n  %s\n", s.Product, s.Scope, s.sentence(), s.File)
		if s.Program != "" {
			p.Printf("  line %d runs %s\n", s.Line, s.Program)
		}
		if s.Open != "" {
			p.Printf("  even so: %s\n", s.Open)
		}
		for _, problem := range s.Problems {
			p.Printf("  problem: %s\n", strings.ReplaceAll(problem, "\n", " "))
		}
	}
}

// sentence describes the state.
func (o *status) sentence() string {
	switch o.State {
	case stateAbsent:
		return "not installed, there is no file"
	case stateInstalled:
		return "installed"
	case stateUnreadable:
		return "the file can't be read"
	}

	return "not installed"
}
