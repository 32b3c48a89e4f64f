package condition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/value"
)

// View is one call in the form for conditions: the results of scanning its documents with
// Compiler.Shapes. If a document is missing or not an object (see its Top), every matcher that
// reads it is Unknown.
type View struct {
	At     time.Time     // the moment of the call; the zero time if it is not known
	Past   Past          // of the past calls; nil if they are not known
	Args   value.Scratch // the arguments; for LoopExit and Route their document
	Parent value.Scratch // the input of the agent that makes the call
	// Declared are the arguments that the schema of the called tool declares, for Takes.
	Declared []string
}

// Compiler compiles conditions that are evaluated on the same view to Programs, and collects
// the places that they read.
type Compiler struct {
	sem      Semantics
	args     value.ShapeBuilder
	parent   value.ShapeBuilder
	patterns map[string]*pattern
}

// NewCompiler returns a compiler without conditions.
func NewCompiler(sem Semantics) *Compiler {
	return &Compiler{sem: sem, patterns: map[string]*pattern{}}
}

// Add compiles a condition, which must not change afterwards. The use determines what its keys
// mean, see Places. A nil condition is always true.
func (c *Compiler) Add(use Use, e *Expr) *Program {
	p := &Program{src: e}
	if e == nil {
		return p
	}
	p.groups = make([]group, len(e.Groups))
	for i := range e.Groups {
		p.groups[i] = c.group(use, &e.Groups[i])
	}
	return p
}

// Shapes returns the shapes for scanning the arguments and the parent's input of a View. Call
// it after all Adds.
func (c *Compiler) Shapes() (args, parent *value.Shape) { return c.args.Build(), c.parent.Build() }

// group is an AND of matchers, with cheap ones first for speed.
type group []matcher

func (c *Compiler) group(use Use, src *Group) group {
	g := make(group, len(src.Matchers))
	for i := range g {
		g[i] = c.matcher(use, &src.Matchers[i])
		g[i].src = i
	}
	slices.SortStableFunc(g, func(a, b matcher) int { return cmp.Compare(a.cost(), b.cost()) })
	return g
}

// matcher is the AND of its tests on one slot, or on the slots of a literal key and a nested
// path.
type matcher struct {
	tests  []test // cheap ones first
	parent bool   // the slots are those of the parent's input
	slot   int    // -1: the key is not valid, and the matcher is always Unknown
	nested int    // -1: none; never 0, because the literal key's slot precedes it
	fault  string // why the key is not valid
	shown  string // the tests, for observations
	src    int    // index in Group.Matchers
	takes  string // the argument of Matcher.Takes; otherwise empty
	time   *TimeTest
	past   *PastTest
}

func (c *Compiler) matcher(use Use, src *Matcher) matcher {
	m := matcher{slot: -1, nested: -1, shown: describe(src), time: src.Time}
	if src.Time != nil {
		return m
	}
	if src.History != nil {
		m.past = newPastTest(src.History, c.sem)
		return m
	}
	if src.Takes {
		m.slot, m.takes = c.args.Add(src.Key), src.Key
		return m
	}
	m.slot, m.nested, m.parent, m.fault = c.locate(use, src.Key)
	m.tests = newTests(src, c.sem, c.pattern)
	c.findCurrencies(use, m.tests)
	return m
}

// locate adds the slots that a key may mean: the literal key, and its path, or -1. parent reports
// whether they are in the document of the parent.
func (c *Compiler) locate(use Use, key string) (slot, nested int, parent bool, fault string) {
	slot, nested = -1, -1
	places, fault := Places(use, key)
	for i, place := range places {
		shape := &c.args
		if place, parent = inParent(use, place); parent {
			shape = &c.parent
		}
		if i == 0 {
			slot = shape.Add(place...)
		} else {
			nested = shape.Add(place...)
		}
	}

	return slot, nested, parent, fault
}

// findCurrencies adds the slots of the currencies that tests compare by. Elements of lists are
// compared by a currency of the arguments, too.
func (c *Compiler) findCurrencies(use Use, tests []test) {
	for i := range tests {
		if money := tests[i].money; money != nil {
			money.find(use, c)
		}
		if list, ok := tests[i].compounds.(*elementsTest); ok {
			c.findCurrencies(use, list.tests)
		}
	}
}

func newTests(src *Matcher, sem Semantics, patterns patterns) []test {
	tests := make([]test, len(src.Tests))
	for i := range tests {
		tests[i] = newTest(&src.Tests[i], sem, patterns)
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.cost(), b.cost()) })
	return tests
}

// pattern compiles each pattern once.
func (c *Compiler) pattern(text string) (*pattern, error) {
	if p, ok := c.patterns[text]; ok {
		return p, nil
	}
	p, err := newPattern(text, c.sem)
	if err != nil {
		return nil, err
	}
	p.compile()
	c.patterns[text] = p
	return p, nil
}

func (m *matcher) cost() int {
	if m.past != nil {
		return longList + 1
	}
	n := 0
	for i := range m.tests {
		n = max(n, m.tests[i].cost())
	}
	return n
}

// Program is a compiled condition. It is immutable and safe for concurrent use.
type Program struct {
	src    *Expr
	groups []group
}

// Eval evaluates the condition without allocating.
func (p *Program) Eval(v *View) Truth {
	if len(p.groups) == 0 {
		return True
	}
	result := False
	for _, g := range p.groups {
		if result = max(result, g.truth(v)); result == True {
			break // the result can't change any more
		}
	}
	return result
}

func (g group) truth(v *View) Truth {
	result := True
	for i := range g {
		if result = min(result, g[i].truth(v)); result == False {
			break // the result can't change any more
		}
	}
	return result
}

// document returns the document that the matcher reads.
func (m *matcher) document(v *View) *value.Scratch {
	if m.parent {
		return &v.Parent
	}
	return &v.Args
}

// readable reports whether a document has the matcher's slots. A View of other shapes may not
// have them.
func (m *matcher) readable(doc *value.Scratch) bool {
	return m.slot >= 0 && doc.Top == value.Object && max(m.slot, m.nested) < len(doc.Slots)
}

// truth evaluates a matcher. With two places the greater truth counts, so that it asks if
// either does (docs/design/001-semantics.md).
func (m *matcher) truth(v *View) Truth {
	if m.time != nil {
		return m.time.truth(v.At)
	}
	if m.past != nil {
		return m.past.look(v).Truth
	}
	doc := m.document(v)
	if !m.readable(doc) {
		return Unknown
	}
	s := &doc.Slots[m.slot]
	switch {
	case m.takes != "":
		return truthOf(s.Kind != value.Absent && s.Kind != value.Null || slices.Contains(v.Declared, m.takes))
	case m.nested < 0:
		return all(m.tests, s, v)
	}
	n := &doc.Slots[m.nested]
	switch {
	case n.Kind == value.Absent:
		return all(m.tests, s, v)
	case s.Kind == value.Absent:
		return all(m.tests, n, v)
	}

	return max(all(m.tests, s, v), all(m.tests, n, v))
}

func all(tests []test, s *value.Slot, v *View) Truth {
	result := True
	for i := range tests {
		if result = min(result, tests[i].truth(s, v)); result == False {
			break
		}
	}
	return result
}

// Evaluate evaluates a condition on one document in the form of Places, such as a witness of an
// Analyzer: for Governance the arguments, with the parent's input as the member `parent.input`.
// To evaluate many documents, compile a Program once.
func Evaluate(use Use, sem Semantics, e *Expr, doc value.Value) (Truth, error) {
	c := NewCompiler(sem)
	program := c.Add(use, e)
	args, parent := c.Shapes()
	input := doc
	if use == Governance {
		given := false
		if input, given = doc.Get(parentInput); !given {
			input = value.Value{Kind: value.Object}
		}
	}

	var v View
	if err := errors.Join(
		args.Fill(doc, value.Limits{}, &v.Args),
		parent.Fill(input, value.Limits{}, &v.Parent),
	); err != nil {
		return Unknown, fmt.Errorf("read the document: %w", err)
	}

	return program.Eval(&v), nil
}
