package condition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// Parse reads a condition: a group, or a list of groups. It accepts what the standard's JSON Schema accepts. What it
// has to refuse it reports as findings (File is left empty), and makes tests of it that are always Unknown, so the
// Expr asks where the file cannot be read. It never returns a nil Expr.
func Parse(n *yamldoc.Node) (*Expr, []diag.Finding) {
	p := parser{}
	e := p.expr(n)
	return e, p.findings
}

type parser struct{ findings []diag.Finding }

func (p *parser) fail(at diag.Range, message, expected string) {
	p.findings = append(p.findings, diag.Finding{
		Rule: ruleShape, Severity: diag.Error, Range: at, Message: message, Expected: expected, Stops: true,
	})
}

// wrong reports a node of the wrong type.
func (p *parser) wrong(n *yamldoc.Node, what, expected string) {
	p.fail(n.Range, what+" is "+article(n), expected)
}

func article(n *yamldoc.Node) string {
	switch n.Kind {
	case yamldoc.Null:
		return "empty"
	case yamldoc.Bool:
		return "a boolean"
	case yamldoc.Number:
		return "a number"
	case yamldoc.String:
		return "a string"
	case yamldoc.Sequence:
		return "a list"
	}
	return "a mapping"
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
	case n.Kind == yamldoc.Sequence:
		p.fail(n.Range, "the list of groups is empty", "at least one group with args_match")
	case n.Kind == yamldoc.Null:
		p.wrong(n, "the condition", "a group with args_match, or no condition at all")
	default:
		e.Groups = []Group{p.group(n)}
	}
	return e
}

func (p *parser) group(n *yamldoc.Node) Group {
	g := Group{Range: n.Range}
	if n.Kind != yamldoc.Mapping {
		p.wrong(n, "a condition group", "a mapping with args_match")
		return doubtful(g)
	}
	args := n.Get("args_match")
	switch {
	case args == nil:
		g.NoArgsMatch = true
	case args.Kind != yamldoc.Mapping:
		p.wrong(args, "args_match", "a mapping from argument names to matchers")
		return doubtful(g)
	default:
		for i := range args.Fields {
			g.Matchers = append(g.Matchers, p.matcher(&args.Fields[i]))
		}
	}
	return g
}

// doubtful makes a group that could not be read ask.
func doubtful(g Group) Group {
	g.Matchers = []Matcher{{Range: g.Range, Tests: []Test{{Op: Unreadable, Range: g.Range}}}}
	return g
}

func (p *parser) matcher(f *yamldoc.Field) Matcher {
	key, n := f.Key, f.Value
	m := Matcher{Key: key.Text, KeyRange: key.Range, Range: diag.Range{Start: key.Range.Start, End: n.Range.End}}
	switch n.Kind {
	case yamldoc.Mapping:
		for i := range n.Fields {
			m.Tests = append(m.Tests, p.test(&n.Fields[i]))
		}
	case yamldoc.Null, yamldoc.Sequence:
		p.wrong(n, "the matcher of "+quoted(key.Text), "a string, number or boolean to equal, or operators; for a list write {in: [...]}")
		m.Tests = []Test{{Op: Unreadable, Range: n.Range}}
	default:
		m.Literal = true
		m.Tests = []Test{p.operand(Test{Op: Eq, Range: n.Range}, n, "the literal")}
	}
	return m
}

func quoted(key string) string { return fmt.Sprintf("%q", key) }

func (p *parser) test(f *yamldoc.Field) Test {
	name, n := f.Key.Text, f.Value
	t := Test{Range: diag.Range{Start: f.Key.Range.Start, End: n.Range.End}}
	t.Op = operator(name)
	switch t.Op {
	case Gt, Gte, Lt, Lte:
		if n.Kind != yamldoc.Number {
			p.wrong(n, "the operand of "+name, "a number")
			return unreadableTest(t)
		}
		return p.operand(t, n, "the operand of "+name)
	case Ne:
		return p.operand(t, n, "the operand of "+name)
	case Pattern:
		return p.pattern(t, n)
	case In, NotIn:
		return p.list(t, n, name)
	}
	p.unknownOperator(f.Key)
	return unreadableTest(t)
}

func unreadableTest(t Test) Test { return Test{Op: Unreadable, Range: t.Range} }

// operators are the names a matcher may hold.
func operators() []string { return opNames[Gt : NotIn+1] }

// operator returns the operator of a name, Unreadable if there is none.
func operator(name string) Op {
	if i := slices.Index(operators(), name); i >= 0 {
		return Gt + Op(i)
	}
	return Unreadable
}

func (p *parser) unknownOperator(key *yamldoc.Node) {
	p.fail(key.Range, "unknown operator "+quoted(key.Text), "one of "+strings.Join(operators(), ", "))
	f := &p.findings[len(p.findings)-1]
	f.Nearest = diag.Nearest(key.Text, operators())
	switch key.Text {
	case "eq", "equals", "==":
		f.Expected = "for equality the bare value: `key: value`"
	case "contains", "matches", "regex":
		f.Nearest = Pattern.String()
	}
}

// operand reads the scalar of a test.
func (p *parser) operand(t Test, n *yamldoc.Node, what string) Test {
	s, ok := p.scalar(n, what)
	if !ok {
		return unreadableTest(t)
	}
	t.Operand = s
	return t
}

func (p *parser) scalar(n *yamldoc.Node, what string) (Scalar, bool) {
	s := Scalar{Range: n.Range}
	switch n.Kind {
	case yamldoc.Bool:
		s.Kind, s.Bool = value.Bool, n.Bool
	case yamldoc.String:
		s.Kind, s.Text = value.String, n.Text
	case yamldoc.Number:
		s.Kind, s.Num = value.Number, n.Num
		if !n.Finite {
			p.fail(n.Range, what+" is not a finite number", "a number that arguments can be compared with")
			return s, false
		}
	default:
		p.wrong(n, what, "a string, number or boolean")
		return s, false
	}
	return s, true
}

// list reads the entries of in and not_in. One entry that cannot be read spoils the test.
func (p *parser) list(t Test, n *yamldoc.Node, name string) Test {
	if n.Kind != yamldoc.Sequence {
		p.wrong(n, "the operand of "+name, "a list of strings, numbers or booleans")
		return unreadableTest(t)
	}
	sound := true
	for _, item := range n.Items {
		s, ok := p.scalar(item, "an entry of "+name)
		sound = sound && ok
		t.List = append(t.List, s)
	}
	if !sound {
		return unreadableTest(t)
	}
	return t
}

func (p *parser) pattern(t Test, n *yamldoc.Node) Test {
	if n.Kind != yamldoc.String {
		p.wrong(n, "the operand of pattern", "a regular expression as a string, in quotes if it reads as something else")
		return unreadableTest(t)
	}
	if _, err := parsePattern(n.Text); err != nil {
		p.findings = append(p.findings, patternFault(n, err))
		return unreadableTest(t)
	}
	p.findings = append(p.findings, patternAdvice(n)...)
	t.Operand = Scalar{Kind: value.String, Text: n.Text, Range: n.Range}
	return t
}
