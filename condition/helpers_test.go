package condition

import (
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// read parses a condition written in YAML.
func read(t fataler, text string) (*Expr, []diag.Finding) {
	t.Helper()
	doc, findings := yamldoc.Parse("test.yaml", []byte(text), yamldoc.Limits{})
	if doc == nil {
		t.Fatalf("%s: %v", text, findings)
	}
	return Parse(doc.Root)
}

// sound is read of a condition without errors.
func sound(t fataler, text string) *Expr {
	t.Helper()
	e, findings := read(t, text)
	for _, f := range findings {
		if f.Severity == diag.Error {
			t.Fatalf("%s: %v", text, f)
		}
	}
	return e
}

// match writes a condition of one group: match("amount: 5") is {args_match: {amount: 5}}.
func match(matchers string) string { return "{args_match: {" + matchers + "}}" }

// scan reads a JSON document into the slots that a compiler's programs want.
func scan(t fataler, c *Compiler, doc string) []value.Slot {
	t.Helper()
	var sc value.Scratch
	if err := c.Shape().Scan([]byte(doc), value.Limits{}, &sc); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return sc.Slots
}

// eval evaluates a condition on a JSON document, by Eval and by Explain.
func eval(t fataler, use Use, sem Semantics, e *Expr, doc string) (Truth, []Observation) {
	t.Helper()
	c := NewCompiler(use, sem)
	p := c.Add(e)
	slots := scan(t, c, doc)
	truth, seen := p.Explain(slots)
	if got := p.Eval(slots); got != truth {
		t.Fatalf("%s: Eval says %v, Explain %v", doc, got, truth)
	}
	return truth, seen
}
