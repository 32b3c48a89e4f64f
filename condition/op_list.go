package condition

import (
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// The operators that test the elements of a list.
const (
	Any  Op = "any"
	All  Op = "all"
	None Op = "none"
)

// elements holds for lists of which any, all or none of the elements pass its tests. It is unknown
// for other types, and if it depends on an element for which the tests are unknown.
type elements struct {
	name    Op
	meaning string
	named   words
}

func (e elements) op() Op { return e.name }

func (e elements) means() string { return e.meaning }

func (e elements) words() words { return e.named }

func (e elements) slips() []Op { return map[Op][]Op{Any: {All, None}, All: {Any}, None: {Any}}[e.name] }

func (e elements) operand() operand { return elementTests{} }

func (e elements) negative() bool { return false }

func (e elements) expression(string) (string, bool) { return "", false }

func (e elements) compare(t *Test, with compiling) (comparison, bool) {
	if (t.Where == nil) == (len(t.Tests) == 0) {
		return comparison{}, false
	}
	unknown := with.sem.OnMismatch.truth()
	with.sem.OnMissing, with.sem.OnMismatch = Ask, Ask
	l := &elementsTest{op: e.name, unknown: unknown}
	if t.Where == nil {
		l.tests = newTests(&Matcher{Tests: t.Tests}, with.sem, with.patterns)
		return comparison{compounds: l}, true
	}
	l.where = t.Where
	c := &Compiler{sem: with.sem, patterns: map[string]*pattern{}}
	l.program = c.Add(ToolArgs, &Expr{Groups: []Group{*t.Where}})
	l.shape, _ = c.Shapes()
	return comparison{compounds: l}, true
}

// elementsTest is a test of the elements of a list.
type elementsTest struct {
	op      Op
	tests   []test // of each element; nil if where is used
	where   *Group // of each element that is an object
	program *Program
	shape   *value.Shape
	unknown Truth // the result if it depends on an element whose truth is unknown
}

func (e *elementsTest) truth(s *value.Slot, v *View) Truth {
	list, err := s.Value()
	if err != nil {
		return Unknown
	}
	if list.Kind != value.Array {
		return e.unknown
	}
	some, every := False, True
	for i := range list.Items {
		truth := e.element(list.Items[i], v)
		some, every = max(some, truth), min(every, truth)
	}
	result := some
	switch e.op {
	case All:
		result = every
	case None:
		result = True - some
	}
	if result == Unknown {
		return e.unknown
	}
	return result
}

// element returns the truth of the tests for one element.
func (e *elementsTest) element(item value.Value, v *View) Truth {
	if e.program == nil {
		s := value.SlotOf(item)
		return all(e.tests, &s, v)
	}
	if item.Kind != value.Object {
		return Unknown
	}
	var inner View
	if err := e.shape.Fill(item, value.Limits{}, &inner.Args); err != nil {
		return Unknown
	}
	return e.program.Eval(&inner)
}

// set returns the lists that reach a level. Objects are no lists, so they are Unknown.
func (e *elementsTest) set(level Truth, q *question) *compounds {
	elements := q.elementsOf()
	c := &compounds{objects: allCounts(e.unknown >= level)}
	if e.unknown == False {
		level = True // where nothing is unknown
	}
	switch e.op {
	case Any:
		c.lists = anyOf(elements, e.elements(elements, level))
	case All:
		c.lists = []listBox{allOf(elements, e.elements(elements, level))}
	case None:
		c.lists = []listBox{allOf(elements, elements.others(e.elements(elements, Unknown+True-level)))}
	}
	return c
}

// elements returns the elements for which the tests reach a level.
func (e *elementsTest) elements(q *question, level Truth) []box {
	if e.where == nil {
		if q.comparesMoney(e.tests) {
			return nil
		}
		d := q.domainOf(e.tests, level).without(atomAbsent)
		if d.empty() {
			return nil
		}
		return []box{{{0, d}}}
	}
	object := anyObject()
	list := spread(q.group(e.where, level), []box{{{0, object}}})
	if level == Unknown {
		list = append(list, box{{0, everything().without(atomAbsent).minus(object)}})
	}
	return list
}

// comparesMoney reports whether tests of elements compare by a currency, which is no part of the
// element. The question then has no answer.
func (q *question) comparesMoney(tests []test) bool {
	for i := range tests {
		if tests[i].money != nil {
			q.vague = true
			return true
		}
	}
	return false
}

func (e *elementsTest) cost() int { return 4 * longList }

// elementTests are a value, the tests of an element, or those of the members of an element.
type elementTests struct{}

func (elementTests) schema() string { return `"$ref": "#/$defs/element"` }

func (elementTests) read(p *parser, t *Test, n *yamldoc.Node) bool {
	if p.inList {
		p.findings = append(p.findings, yamldoc.Stop(ruleOperand, n.Range,
			"tests of elements are inside of tests of elements", "one of any, all and none, or where between them"))
		return false
	}
	p.inList = true
	defer func() { p.inList = false }()
	if where := n.Get("where"); n.Kind == yamldoc.Mapping && where != nil {
		return p.where(t, n, where)
	}
	m := p.matcher(&yamldoc.Field{Key: n, Value: n})
	t.Tests = m.Tests
	if len(t.Tests) == 0 {
		p.refuse(n.Range)
		return false
	}
	return allRead(t.Tests)
}

// where reads the tests of members of an element.
func (p *parser) where(t *Test, n, where *yamldoc.Node) bool {
	if len(n.Fields) != 1 || where.Kind != yamldoc.Mapping || len(where.Fields) == 0 {
		p.findings = append(p.findings, yamldoc.Stop(ruleOperand, where.Range,
			"where stands alone, and tests members of the element", "{where: {KEY: …}}"))
		return false
	}
	p.inList = false
	t.Where = &Group{Range: where.Range}
	ok := true
	for i := range where.Fields {
		key := where.Fields[i].Key
		if _, fault := Places(ToolArgs, key.Text); fault != "" {
			p.findings = append(p.findings, yamldoc.Stop(ruleOperand, key.Range,
				"elements have no input of a parent", "a member of the element"))
			ok = false
		}
		m := p.matcher(&where.Fields[i])
		ok = ok && allRead(m.Tests)
		t.Where.Matchers = append(t.Where.Matchers, m)
	}
	return ok
}

// allRead reports whether all tests could be read.
func allRead(tests []Test) bool {
	for i := range tests {
		if tests[i].Op == Unreadable {
			return false
		}
	}
	return true
}

func (elementTests) of(*Test) []Scalar { return nil }

func (elementTests) text(t *Test, most int) string {
	if t.Where == nil {
		return "(" + textsOfTests(t.Tests, most) + ")"
	}
	var all []string
	for i := range t.Where.Matchers {
		m := &t.Where.Matchers[i]
		text := textsOfTests(m.Tests, most)
		if text == "" {
			text = "anything"
		}
		all = append(all, strings.TrimSpace(nameOf([]string{m.Key})+" "+text))
	}
	return "(where " + strings.Join(all, " and ") + ")"
}
