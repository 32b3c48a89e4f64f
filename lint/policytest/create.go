package policytest

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/assent-dev/assent/resolve"
)

// Header lists the files that a created test file names. Paths are as they appear in the file.
type Header struct {
	Agent     string
	Parents   []string
	Policies  []string
	Decisions string
}

// Build compiles the files that a test file in a directory would name.
func (h *Header) Build(dir string, files Files) (*Built, error) {
	f, findings := Parse(path.Join(dir, "created"+Suffix), h.text("calls: []\n"))
	if f == nil {
		return nil, refused(findings)
	}
	w, err := Load(f, files)
	if err != nil {
		return nil, err
	}

	return w.Build()
}

// text returns a test file with the given text below the header.
func (h *Header) text(rest string) []byte {
	var out strings.Builder
	out.WriteString("schema_version: \"1.0.0\"\nagent: " + plain(h.Agent) + "\n")
	list(&out, "parents", h.Parents)
	if h.Decisions != "" {
		out.WriteString("decisions: " + plain(h.Decisions) + "\n")
	}
	list(&out, "policies", h.Policies)

	return []byte(out.String() + rest)
}

// Create returns a test file with the boundary calls of every rule. Each call expects the current
// decision: its outcome, all of its reasons, and its requirements.
func Create(h Header, b *Built) ([]byte, error) {
	var out strings.Builder
	out.WriteString("# Made by `agf-validate create-tests`: the calls on both sides of every edge, and what they come to now.\n" +
		"# Read them before you rely on them.\n")
	out.Write(h.text("\ncalls:\n"))
	taken := map[string]int{}
	for _, x := range Boundaries(b) {
		text, err := x.Call.JSON()
		if err != nil {
			return nil, fmt.Errorf("write a call: %w", err)
		}
		name := x.Call.Target() + ": " + x.Name
		if taken[name]++; taken[name] > 1 {
			name += fmt.Sprintf(" (%d)", taken[name])
		}
		d := b.Plan.Decide(&x.Call)
		fmt.Fprintf(&out, "  - name: %s\n    call: %s\n", plain(name), flow(readTree(text)))
		out.WriteString("    expect: " + expectation(d, x.Words) + "\n")
	}

	return []byte(out.String()), proveCreated(out.String(), b)
}

func list(out *strings.Builder, field string, paths []string) {
	if len(paths) == 0 {
		return
	}
	items := make([]string, len(paths))
	for i, p := range paths {
		items[i] = plain(p)
	}
	out.WriteString(field + ": [" + strings.Join(items, ", ") + "]\n")
}

// expectation returns a decision in the form that a test expects.
func expectation(d resolve.Decision, message bool) string {
	text := "{outcome: " + d.Outcome.String()
	if message {
		text += ", message: " + plain(d.Message)
	}
	if len(d.Reasons) > 0 {
		text += ", all_reasons: " + listReasons(d.Reasons)
	}
	if d.Outcome == resolve.Ask {
		text += ", require: "
		if demanded := (&check{decision: d}).demanded(); demanded != nil {
			text += flow(demanded)
		} else {
			text += nothing
		}
	}

	return text + "}"
}

// proveCreated checks that the created file can be read and passes.
func proveCreated(text string, b *Built) error {
	f, findings := Parse("created"+Suffix, []byte(text))
	if f == nil {
		return fmt.Errorf("the tests can't be written: %w", refused(findings))
	}
	for _, r := range f.Run(b, func(string) bool { return true }) {
		if !r.Passed() {
			return errors.New("the tests can't be written: " + r.Name + " does not pass: " + r.Failures[0].Expected +
				" came as " + r.Failures[0].Got)
		}
	}

	return nil
}
