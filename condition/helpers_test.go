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
	return Parse(nodes(t, text), Policy11)
}

// nodes reads YAML.
func nodes(t fataler, text string) *yamldoc.Node {
	t.Helper()
	doc, findings := yamldoc.Parse("test.yaml", []byte(text), yamldoc.Limits{})
	if doc == nil {
		t.Fatalf("%s: %v", text, findings)
	}
	return doc.Root
}

// sound parses a condition without errors.
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

// match returns a condition of one group: match("amount: 5") is {args_match: {amount: 5}}.
func match(matchers string) string { return "{args_match: {" + matchers + "}}" }

// scan reads a JSON document in the form of Places into a view for a compiler's programs.
func scan(t fataler, c *Compiler, use Use, doc string) *View {
	t.Helper()
	v, err := tryScan(c, use, doc)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

func tryScan(c *Compiler, use Use, doc string) (*View, error) {
	v := &View{}
	args, parent := c.Shapes()
	switch use {
	case Delegation:
		return v, parent.Scan([]byte(doc), value.Limits{}, &v.Parent)
	case Governance:
		whole, err := value.Parse([]byte(doc), value.Limits{})
		if err != nil {
			return v, err
		}
		input, given := whole.Get(parentInput)
		if !given {
			input = value.Value{Kind: value.Object}
		}
		if err := parent.Scan(input.AppendJSON(nil), value.Limits{}, &v.Parent); err != nil {
			return v, err
		}
	}

	return v, args.Scan([]byte(doc), value.Limits{}, &v.Args)
}

// eval evaluates a condition on a JSON document with Eval and Explain.
func eval(t fataler, use Use, sem Semantics, e *Expr, doc string) (Truth, []Observation) {
	t.Helper()
	c := NewCompiler(sem)
	p := c.Add(use, e)
	v := scan(t, c, use, doc)
	truth, seen := p.Explain(v)
	if got := p.Eval(v); got != truth {
		t.Fatalf("%s: Eval says %v, Explain %v", doc, got, truth)
	}
	parsed, err := value.Parse([]byte(doc), value.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	if got, err := Evaluate(use, sem, e, parsed); err != nil || got != truth {
		t.Fatalf("%s: Evaluate says %v, %v, Explain %v", doc, got, err, truth)
	}
	return truth, seen
}

// vacuous reports whether the condition is True for all arguments. With No it returns arguments
// for which it is not.
func vacuous(a *Analyzer, e *Expr) (Verdict, value.Value) {
	q := a.ask()
	falsifiable, witness := q.difference(q.within([]box{nil}), q.boxes(e, True))
	return falsifiable.not(), witness
}

// equivalent reports whether x and y have the same truth for all arguments. With No it returns
// arguments for which they differ.
func equivalent(a *Analyzer, x, y *Expr) (Verdict, value.Value) {
	there, witness := a.Implies(x, y)
	if there == No {
		return No, witness
	}
	back, witness := a.Implies(y, x)
	if back == No {
		return No, witness
	}
	return max(there, back), value.Value{} // Yes < Undecided
}

func alone(g *Group) *Expr { return &Expr{Groups: []Group{*g}, Range: g.Range} }
