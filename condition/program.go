package condition

import (
	"cmp"
	"slices"

	"github.com/assent-dev/assent/value"
)

// Compiler turns conditions that are evaluated on the same document into Programs and collects the places they read.
type Compiler struct {
	use      Use
	sem      Semantics
	shape    value.ShapeBuilder
	patterns map[string]*pattern
}

// NewCompiler starts a compilation. The document that the programs read depends on the use, see Places.
func NewCompiler(use Use, sem Semantics) *Compiler {
	return &Compiler{use: use, sem: sem, patterns: map[string]*pattern{}}
}

// Add compiles a condition, which must not change afterwards. A nil one is always true.
func (c *Compiler) Add(e *Expr) *Program {
	p := &Program{src: e}
	if e == nil {
		return p
	}
	p.groups = make([]group, len(e.Groups))
	for i := range e.Groups {
		p.groups[i] = c.group(&e.Groups[i])
		for _, m := range p.groups[i] {
			p.slots = max(p.slots, m.slot+1, m.nested+1)
		}
	}
	return p
}

// Shape returns what Program.Eval wants scanned. Call it after all Adds.
func (c *Compiler) Shape() *value.Shape { return c.shape.Build() }

// group is an AND of matchers, cheap ones first.
type group []matcher

func (c *Compiler) group(src *Group) group {
	g := make(group, len(src.Matchers))
	for i := range g {
		g[i] = c.matcher(&src.Matchers[i])
		g[i].src = i
	}
	slices.SortStableFunc(g, func(a, b matcher) int { return cmp.Compare(a.cost(), b.cost()) })
	return g
}

// matcher is the AND of its tests on one slot, or on a literal key's slot and a nested path's.
type matcher struct {
	tests  []test // cheap ones first
	slot   int    // -1: the key names nothing, always Unknown
	nested int    // -1: none
	fault  string // why the key names nothing
	shown  string // the tests, for observations
	src    int    // in Group.Matchers
}

func (c *Compiler) matcher(src *Matcher) matcher {
	m := matcher{slot: -1, nested: -1, shown: describe(src)}
	var places [][]string
	places, m.fault = Places(c.use, src.Key)
	for i, place := range places {
		if slot := c.shape.Add(place...); i == 0 {
			m.slot = slot
		} else {
			m.nested = slot
		}
	}
	m.tests = newTests(src, c.sem, c.pattern)
	return m
}

func newTests(src *Matcher, sem Semantics, patterns func(string) (*pattern, error)) []test {
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
	n := 0
	for i := range m.tests {
		n = max(n, m.tests[i].cost())
	}
	return n
}

// Program is a compiled condition: immutable and safe for concurrent use.
type Program struct {
	src    *Expr
	groups []group
	slots  int // that it reads at most
}

// Eval evaluates the condition on what a scan of Compiler.Shape found. It allocates nothing. Slots of another shape
// that are too few give Unknown.
func (p *Program) Eval(slots []value.Slot) Truth {
	if len(p.groups) == 0 {
		return True
	}
	if len(slots) < p.slots {
		return Unknown
	}
	result := False
	for _, g := range p.groups {
		if result = max(result, g.truth(slots)); result == True {
			break
		}
	}
	return result
}

func (g group) truth(slots []value.Slot) Truth {
	result := True
	for i := range g {
		if result = min(result, g[i].truth(slots)); result == False {
			break
		}
	}
	return result
}

// truth evaluates a matcher. With two places it asks if either does, so the larger truth counts (docs/design/001-semantics.md).
func (m *matcher) truth(slots []value.Slot) Truth {
	if m.slot < 0 {
		return Unknown
	}
	s := &slots[m.slot]
	if m.nested < 0 {
		return all(m.tests, s)
	}
	n := &slots[m.nested]
	switch {
	case n.Kind == value.Absent:
		return all(m.tests, s)
	case s.Kind == value.Absent:
		return all(m.tests, n)
	}
	return max(all(m.tests, s), all(m.tests, n))
}

func all(tests []test, s *value.Slot) Truth {
	result := True
	for i := range tests {
		if result = min(result, tests[i].truth(s)); result == False {
			break
		}
	}
	return result
}
