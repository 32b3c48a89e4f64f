package subject

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/bench/internal/model"
)

// slotPlan has the code that a person would write for one tool: the arguments to read, and the
// tests on them.
type slotPlan struct {
	root  *node
	slots []slot
	rules []slotRule
}

type slotRule struct {
	index  int32
	groups [][]slotTest
}

// slotTest is one matcher on one slot. A pattern that fixes only the beginning or the end
// becomes prefix and suffix.
type slotTest struct {
	slot           int
	path           []string // of the slot
	op             model.Op
	text           bool // Eq and Ne compare text
	num            float64
	str            string
	list           []string
	prefix, suffix string
	re             *regexp.Regexp
}

// Slots is the floor from raw JSON. It reads the bytes in one pass, fills only the slots that
// the rules of the tool read, and refuses malformed JSON everywhere. Cheap tests run first, and
// patterns that are fixed at one end become a prefix or suffix. In contrast to assent, it does
// not refuse duplicate keys, does not check UTF-8, and keeps only the index of a rule as its
// reason.
func Slots(w *model.Workload) *Subject {
	plans := slotPlans(w)
	calls, reasons := w.Calls, make([]int32, 0, 64)
	return &Subject{
		Engine: "slots",
		Input:  Raw,
		Scope:  Floor,
		Decide: func(i int) int {
			c := &calls[i]
			reasons = plans[c.Tool].decide(c.Raw, reasons[:0])
			return len(reasons)
		},
		Reasons: func() []string { return idsAt(w.Rules, reasons) },
	}
}

// slotPlans returns the plans of all tools.
func slotPlans(w *model.Workload) map[string]*slotPlan {
	plans := map[string]*slotPlan{}
	for _, tool := range w.Agent.Tools {
		plans[tool] = compileSlots(w, tool)
	}
	return plans
}

func compileSlots(w *model.Workload, tool string) *slotPlan {
	p := &slotPlan{root: &node{}}
	for i := range w.Rules {
		if !w.Rules[i].Admits(&w.Agent, tool) {
			continue
		}
		rule := slotRule{index: int32(i)}
		for _, g := range w.Rules[i].Groups {
			rule.groups = append(rule.groups, p.compileGroup(g))
		}
		p.rules = append(p.rules, rule)
	}

	return p
}

func (p *slotPlan) compileGroup(g model.Group) []slotTest {
	tests := make([]slotTest, len(g))
	for i, m := range cheapFirst(g) {
		path := strings.Split(m.Key, ".")
		t := slotTest{
			slot:   p.slot(path),
			path:   path,
			op:     m.Op,
			num:    float64(m.Num),
			str:    m.Text,
			text:   m.Text != "",
			list:   m.List,
			prefix: m.Regexp.Prefix,
			suffix: m.Regexp.Suffix,
		}
		if m.Op == model.Pattern && !m.Regexp.Literal {
			t.re = regexp.MustCompile(m.Regexp.Source)
		}
		tests[i] = t
	}

	return tests
}

func (p *slotPlan) slot(path []string) int {
	n := p.root
	for _, s := range path[:len(path)-1] {
		n = n.child(s).inner()
	}
	e := n.child(path[len(path)-1])
	if e.slot < 0 {
		e.slot = len(p.slots)
		p.slots = append(p.slots, slot{})
	}
	return e.slot
}

// decide appends the indexes of the rules that match. Malformed arguments match nothing, and
// the benchmark has none.
func (p *slotPlan) decide(raw []byte, reasons []int32) []int32 {
	clear(p.slots)
	s := scanner{src: raw, slots: p.slots}
	if !s.document(p.root) {
		return reasons
	}
	for i := range p.rules {
		if p.rules[i].matches(p.slots) {
			reasons = append(reasons, p.rules[i].index)
		}
	}
	return reasons
}

func (r *slotRule) matches(slots []slot) bool {
next:
	for _, g := range r.groups {
		for i := range g {
			if !g[i].holds(&slots[g[i].slot]) {
				continue next
			}
		}
		return true
	}
	return false
}

// holds reports whether the test is true for the value in the slot.
func (t *slotTest) holds(s *slot) bool {
	if s.kind == 0 {
		return false
	}
	switch t.op {
	case model.Gt:
		return s.num > t.num
	case model.Gte:
		return s.num >= t.num
	case model.Lt:
		return s.num < t.num
	case model.Lte:
		return s.num <= t.num
	case model.Eq:
		return t.equal(s)
	case model.Ne:
		return !t.equal(s)
	case model.In:
		return slices.Contains(t.list, s.text)
	case model.NotIn:
		return !slices.Contains(t.list, s.text)
	default:
		return t.pattern(s.text)
	}
}

func (t *slotTest) equal(s *slot) bool {
	if t.text {
		return s.text == t.str
	}
	return s.num == t.num
}

func (t *slotTest) pattern(text string) bool {
	if t.re != nil {
		return t.re.MatchString(text)
	}
	return strings.HasPrefix(text, t.prefix) && strings.HasSuffix(text, t.suffix)
}

func idsAt(rules []model.Rule, indexes []int32) []string {
	ids := make([]string, len(indexes))
	for i, x := range indexes {
		ids[i] = rules[x].ID
	}
	return ids
}

// cheapFirst orders a conjunction by cost: numbers, then text, then lists, then regular
// expressions.
func cheapFirst(g model.Group) model.Group {
	cost := func(m model.Matcher) int {
		switch {
		case m.Op == model.Pattern && !m.Regexp.Literal:
			return 3
		case m.Op == model.In || m.Op == model.NotIn:
			return 2
		case m.Op == model.Pattern || m.Text != "":
			return 1
		default:
			return 0
		}
	}
	return slices.SortedStableFunc(slices.Values(g), func(a, b model.Matcher) int {
		return cmp.Compare(cost(a), cost(b))
	})
}
