package condition

import (
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// Language says which operators a file may use.
type Language uint8

// AgentFormat has the operators of the standard, which agents and policies 1.0 may use. Policy11
// also has those of policies 1.1 (docs/contracts/policy.md).
const (
	AgentFormat Language = iota
	Policy11
)

// Newer returns the keys of operators that only Policy11 has in a node of any form, which is meant
// to be a condition.
func Newer(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	groups := n.Items
	if n.Kind == yamldoc.Mapping {
		groups = []*yamldoc.Node{n}
	}
	var keys []*yamldoc.Node
	for _, g := range groups {
		match := g.Get("args_match")
		if match == nil {
			continue
		}
		for _, m := range match.Fields {
			for _, f := range m.Value.Fields {
				if op := Op(f.Key.Text); Policy11.Has(op) && !AgentFormat.Has(op) {
					keys = append(keys, f.Key)
				}
			}
		}
	}

	return keys
}

// Parse reads a condition: a group, or a list of groups. It accepts what the JSON Schema of the
// language accepts. Invalid parts are reported as findings (without File) and become tests that
// are always Unknown, so that the Expr asks. It never returns a nil Expr.
func Parse(n *yamldoc.Node, operators Language) (*Expr, []diag.Finding) {
	p := parser{operators: operators}
	e := p.expr(n)
	return e, p.findings
}

// ParseWhen reads the `when` of a rule of a policy 1.1: like Parse, but a group without args_match
// is empty, and so true.
func ParseWhen(n *yamldoc.Node) (*Expr, []diag.Finding) {
	p := parser{operators: Policy11, when: true}
	e := p.expr(n)
	return e, p.findings
}

type parser struct {
	operators Language
	when      bool // it reads the `when` of a rule
	inList    bool // tests of elements are being read, outside of where
	findings  []diag.Finding
}

// refuse reports a value that has the wrong form. Files don't get here, because the JSON
// Schemas of agents and policies refuse them first, with better messages. It protects callers
// that don't use the schemas.
func (p *parser) refuse(at diag.Range) {
	p.findings = append(p.findings, yamldoc.Stop(
		ruleShape,
		at,
		"this is not built like a condition",
		"args_match, or a list of groups with args_match",
	))
}

func (p *parser) expr(n *yamldoc.Node) *Expr {
	if n == nil {
		return &Expr{}
	}

	e := &Expr{Range: n.Range}
	switch {
	case n.Kind == yamldoc.Sequence && len(n.Items) > 0:
		for _, item := range n.Items {
			e.Groups = append(e.Groups, p.group(item))
		}
	case n.Kind == yamldoc.Sequence, n.Kind == yamldoc.Null:
		p.refuse(n.Range)
	default:
		e.Groups = []Group{p.group(n)}
	}

	return e
}

func (p *parser) group(n *yamldoc.Node) Group {
	g := Group{Range: n.Range}
	if n.Kind != yamldoc.Mapping {
		return p.doubtful(n, g)
	}

	args := n.Get("args_match")
	switch {
	case args == nil:
		g.NoArgsMatch = !p.when
	case args.Kind != yamldoc.Mapping:
		return p.doubtful(args, g)
	default:
		for i := range args.Fields {
			g.Matchers = append(g.Matchers, p.matcher(&args.Fields[i]))
		}
	}
	if at := n.Field("time"); at != nil && p.when {
		g.Matchers = append(g.Matchers, p.timeTests(at)...)
	}
	if past := n.Field("history"); past != nil && p.when {
		g.Matchers = append(g.Matchers, p.histories(past)...)
	}

	return g
}

// doubtful returns a group that always asks, for one that could not be read.
func (p *parser) doubtful(n *yamldoc.Node, g Group) Group {
	p.refuse(n.Range)
	g.Matchers = []Matcher{{Range: g.Range, Tests: []Test{unreadableTest(g.Range)}}}
	return g
}

func unreadableTest(at diag.Range) Test { return Test{Op: Unreadable, Range: at} }

func (p *parser) matcher(f *yamldoc.Field) Matcher {
	key, n := f.Key, f.Value
	m := Matcher{
		Key:      key.Text,
		KeyRange: key.Range,
		Range:    diag.Range{Start: key.Range.Start, End: n.Range.End},
	}
	if n.Kind != yamldoc.Mapping {
		t := p.test(Eq, n, n.Range)
		m.Tests, m.Literal = []Test{t}, t.Op == Eq
		return m
	}

	for i := range n.Fields {
		name, operand := n.Fields[i].Key, n.Fields[i].Value
		at := diag.Range{Start: name.Range.Start, End: operand.Range.End}
		m.Tests = append(m.Tests, p.named(name, operand, at))
	}
	return m
}

// named reads a test with an operator that the file names.
func (p *parser) named(name, operand *yamldoc.Node, at diag.Range) Test {
	op := Op(name.Text)
	if !p.operators.Has(op) {
		p.refuse(name.Range)
		return unreadableTest(at)
	}
	return p.test(op, operand, at)
}

func (p *parser) test(op Op, operand *yamldoc.Node, at diag.Range) Test {
	t := Test{Op: op, Range: at}
	if o, _ := find(op); !o.operand().read(p, &t, operand) {
		return unreadableTest(at)
	}
	return t
}

func (p *parser) scalar(n *yamldoc.Node) (Scalar, bool) {
	s := Scalar{Range: n.Range}
	switch {
	case n.Kind == yamldoc.Bool:
		s.Kind, s.Bool = value.Bool, n.Bool
	case n.Kind == yamldoc.String:
		s.Kind, s.Text = value.String, n.Text
	case n.Kind == yamldoc.Number && n.Finite:
		s.Kind, s.Num = value.Number, n.Num
	default:
		p.refuse(n.Range)
		return s, false
	}

	return s, true
}
