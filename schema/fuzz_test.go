package schema

import (
	"slices"
	"testing"

	"github.com/assent-dev/assent/diag"
)

// FuzzParse checks that no text panics, that an agent is returned unless a finding stops the load,
// that the JSON Schema's verdict is respected, and that positions are within the file.
func FuzzParse(f *testing.F) {
	for _, file := range append(agents(f, "good"), agents(f, "bad")...) {
		f.Add(readFile(f, file))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		agent, findings := Parse("fuzz.agf.yaml", src)
		stopped := slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Stops })
		if parts, again := ParseParts("fuzz.agf.yaml", src); len(again) != len(findings) ||
			agent != nil && parts == nil {
			t.Fatalf("ParseParts has %d findings, Parse %d", len(again), len(findings))
		}
		if stopped == (agent != nil) {
			t.Fatalf("a finding stops: %v, agent read: %v", stopped, agent != nil)
		}
		if agent != nil && compiled().Validate(agent.Doc.Root.Any()) != nil {
			t.Fatal("an agent was read that the JSON Schema rejects")
		}
		for _, f := range findings {
			if f.Rule == "" || f.Message == "" || f.File == "" || f.Stops && f.Severity != diag.Error {
				t.Fatalf("finding %+v is incomplete", f)
			}
			if s, e := f.Range.Start, f.Range.End; s.Line < 1 || s.Column < 1 || e.Line < s.Line ||
				e.Line == s.Line && e.Column < s.Column {
				t.Fatalf("finding %s %q at %s", f.Rule, f.Message, span(f.Range))
			}
		}
	})
}

// FuzzPath checks that no path expression panics, and that flaws are positions in the text.
func FuzzPath(f *testing.F) {
	f.Add("parent.input.items.[].value")
	f.Add("a.output.")
	f.Fuzz(func(t *testing.T, text string) {
		path, bad := parsePath(text)
		if bad != nil && (bad.offset < 0 || bad.offset+bad.length > len(text)) {
			t.Fatalf("%q: %d+%d is outside", text, bad.offset, bad.length)
		}
		if bad == nil && len(path.Fields) == 0 {
			t.Fatalf("%q has no field", text)
		}
	})
}
