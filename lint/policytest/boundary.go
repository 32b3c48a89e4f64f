package policytest

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Boundary is one call on an edge of some rule.
type Boundary struct {
	Call resolve.Call
	Name string // what is tried
	// Words: the message is tried, with all of its variables.
	Words bool
}

// Bounds of what is made for one target.
const (
	mostCalls  = 600
	mostValues = 40 // that one matcher is tried with
)

// Boundaries returns calls on both sides of every edge of the rules. For each group it returns a
// call about which only this group asks. From there it varies each matcher: values at and next to
// its bounds, no value, and a value of another type.
func Boundaries(b *Built) []Boundary {
	out, _ := boundaries(b, func(*resolve.Call) bool { return true })
	return out
}

// boundaries returns the calls for some targets. open is the reason why some edges were not tried,
// so that differences there were not searched for.
func boundaries(b *Built, of func(target *resolve.Call) bool) (out []Boundary, open string) {
	for _, target := range targets(b) {
		if _, why := b.Catalogs.Called(&b.Plan.Agent().ActionSpace, &target); why != "" || !of(&target) {
			continue
		}
		for _, annotations := range hints(b, &target) {
			target.Annotations = annotations
			g := &maker{
				built:  b,
				target: target,
				seen:   map[string]bool{},
			}
			if t := b.Plan.Target(&target); t != nil {
				g.derived = t.Derived()
			}
			g.make()
			out = append(out, g.out...)
			open = cmp.Or(open, g.open)
		}
	}

	return out, open
}

// Why edges were not tried.
const (
	openLine = "no command line was found that has the facts which the rule reads"
	openMany = "there are more edges than are tried"
	openHard = "the condition is too hard to tell which calls it meets"
)

// maker makes the calls of one target.
type maker struct {
	built    *Built
	target   resolve.Call
	use      condition.Use
	analyzer *condition.Analyzer
	rules    []*condition.Expr
	seen     map[string]bool
	out      []Boundary
	derived  *resolve.Derived // nil: no facts are read out of arguments
	open     string           // see boundaries
}

// make writes the calls of all gates, one after another, until there
// are enough.
func (g *maker) make() {
	g.use = condition.Governance
	if g.target.Kind == resolve.Delegation {
		g.use = condition.Delegation
	}
	g.analyzer = condition.NewAnalyzer(g.use, g.built.Semantics, 0)
	traces := g.built.Plan.Trace(&g.target)
	for _, t := range traces {
		if t.Condition != nil {
			g.rules = append(g.rules, t.Condition)
		}
	}
	for _, t := range traces {
		g.words(&t)
	}
	g.add(value.Value{Kind: value.Object}, "no arguments")
	g.lines()
	if all := g.except(nil); len(all.Groups) > 0 {
		can, doc := g.analyzer.CanBeFalse(all)
		g.hard(can)
		if can == condition.Yes {
			g.add(doc, "nothing that a rule asks about")
			g.vary(doc, all.Groups)
		}
	}

	for _, e := range g.rules {
		for i := range e.Groups {
			if doc, ok := g.base(e, i); ok {
				g.add(doc, "one group alone")
				g.vary(doc, e.Groups[i:i+1])
			}
		}
	}
}

// hard notes a question that was too hard.
func (g *maker) hard(v condition.Verdict) {
	if v == condition.Undecided {
		g.open = cmp.Or(g.open, openHard)
	}
}

// lines adds command lines of every sort, if facts are read out of them.
func (g *maker) lines() {
	if g.derived == nil || !g.readsFacts() {
		return
	}
	for _, line := range g.derived.Lines(value.Value{}) {
		doc := value.Value{Kind: value.Object}
		set(&doc, []string{g.derived.Source()}, textOf(line))
		g.add(doc, g.derived.Source()+" "+shown(textOf(line)))
	}
}

// readsFacts reports whether a rule of the target reads derived facts.
func (g *maker) readsFacts() bool {
	return slices.ContainsFunc(g.rules, func(e *condition.Expr) bool {
		return slices.ContainsFunc(e.Groups, func(group condition.Group) bool {
			return slices.ContainsFunc(group.Matchers, func(m condition.Matcher) bool {
				return strings.HasPrefix(m.Key, g.derived.As+".")
			})
		})
	})
}

// real replaces derived facts, which a call can't contain itself, by a command line that has them.
// It returns false if there is none.
func (g *maker) real(args value.Value) (value.Value, bool) {
	if g.derived == nil || args.Kind != value.Object {
		return args, true
	}
	facts, rest, has := g.derived.Split(args)
	if !has {
		return args, true
	}
	unmade := func(m value.Member) bool { return m.Value.Kind != value.String }
	if facts.Kind != value.Object || slices.ContainsFunc(facts.Members, unmade) {
		return args, false // facts are texts, so no call has these
	}
	for _, line := range g.derived.Lines(facts) {
		if g.derived.Holds(line, facts) {
			set(&rest, []string{g.derived.Source()}, textOf(line))
			return rest, true
		}
	}
	g.open = cmp.Or(g.open, openLine)

	return args, false
}

// except returns every group of every rule of the target but one.
func (g *maker) except(one *condition.Group) *condition.Expr {
	all := &condition.Expr{}
	for _, e := range g.rules {
		for i := range e.Groups {
			if &e.Groups[i] != one {
				all.Groups = append(all.Groups, e.Groups[i])
			}
		}
	}

	return all
}

// base returns arguments for which one group is true: if possible, no other group of any rule, or
// else no other group of its own rule.
func (g *maker) base(e *condition.Expr, at int) (value.Value, bool) {
	one := &condition.Expr{Groups: e.Groups[at : at+1]}
	own := &condition.Expr{Groups: slices.Delete(slices.Clone(e.Groups), at, at+1)}
	for _, others := range []*condition.Expr{g.except(&e.Groups[at]), own} {
		if len(others.Groups) == 0 {
			break
		}
		if can, doc := g.analyzer.TrueWithout(one, others); can == condition.Yes {
			return doc, true
		}
	}

	can, doc := g.analyzer.Satisfiable(one)
	g.hard(can)

	return doc, can == condition.Yes
}

// vary tries each matcher with the values around its edges, and leaves all others unchanged.
func (g *maker) vary(doc value.Value, groups []condition.Group) {
	for i := range groups {
		for j := range groups[i].Matchers {
			m := &groups[i].Matchers[j]
			if m.Time != nil {
				for _, v := range []value.Value{{Kind: value.Bool, Bool: true}, {Kind: value.Bool}, {}} {
					next := without(clone(doc), "parent.time")
					if v.Kind != value.Absent {
						set(&next, condition.TimePlace(m.Time), v)
					}
					g.add(next, m.Time.String()+" "+shown(v))
				}
				continue
			}
			if m.History != nil {
				for _, v := range []value.Value{{Kind: value.Bool, Bool: true}, {Kind: value.Bool}, {}} {
					next := without(clone(doc), "parent.history")
					if v.Kind != value.Absent {
						set(&next, condition.HistoryPlace(m.History, g.built.Semantics), v)
					}
					g.add(next, "history "+shown(v))
				}
				continue
			}
			places, values := g.places(m), g.values(m)
			if len(places) == 0 {
				continue
			}
			for _, v := range values {
				next := clone(doc)
				for _, place := range places[:len(places)-1] {
					set(&next, place, value.Value{})
				}
				set(&next, places[len(places)-1], v)
				g.add(next, m.Key+" "+shown(v))
			}
			g.varyMoney(doc, m.Key, m.Tests)
		}
	}
}

// varyMoney tries amounts around the number of each currency.
func (g *maker) varyMoney(doc value.Value, key string, tests []condition.Test) {
	for _, t := range tests {
		if t.Money == nil {
			continue
		}
		amount, _ := condition.Places(g.use, key)
		currency, _ := condition.Places(g.use, t.Money.Currency)
		for i := range t.Money.Bounds {
			for j, code := range t.Money.Bounds[i].Codes {
				n, ok := t.Money.Amount(i, j)
				if !ok || len(currency) == 0 {
					continue
				}
				for _, v := range around(&condition.Scalar{Kind: value.Number, Num: n}) {
					next := clone(doc)
					set(&next, currency[len(currency)-1], textOf(code))
					set(&next, amount[len(amount)-1], v)
					g.add(next, key+" "+shown(v)+" "+code)
				}
			}
		}
	}
}

// places returns the places that a matcher reads.
func (g *maker) places(m *condition.Matcher) [][]string {
	if m.Takes {
		return [][]string{{m.Key}}
	}
	places, _ := condition.Places(g.use, m.Key)
	return places
}

// shown returns a value as the name of a test has it.
func shown(v value.Value) string {
	if v.Kind == value.Absent {
		return "missing"
	}
	text := string(v.AppendJSON(nil))
	if len(text) > 40 {
		text = text[:strings.LastIndexFunc(text[:40], func(r rune) bool { return r < 0x80 })] + "…"
	}

	return text
}

// add makes a call of a document of the use.
func (g *maker) add(doc value.Value, name string) {
	c := g.target
	at, _, known := condition.Moment(doc)
	if !known {
		g.open = cmp.Or(g.open, openHard)
		return
	}
	c.At = at
	pasts, past := condition.Pasts(doc)
	doc = without(without(doc, "parent.time"), "parent.history")
	args, parent := doc, value.Value{Kind: value.Object}
	if g.use == condition.Delegation {
		args = value.Value{}
		parent = doc
	} else if input, ok := doc.Get("parent.input"); ok {
		parent = input
		args = without(doc, "parent.input")
	}

	args, made := g.real(args)
	if !made {
		return
	}
	if args.Kind == value.Object && len(args.Members) > 0 {
		c.Args = args.AppendJSON(nil)
	}
	if (c.Kind == resolve.Delegation || c.Kind == resolve.Skill) && len(parent.Members) > 0 {
		c.ParentInput = parent.AppendJSON(nil)
	}

	if past && !resolve.FindHistory(&c, pasts, g.built.Plan.Target(&c)) {
		g.open = cmp.Or(g.open, openHard)
		return
	}
	if g.built.unoffered(g.built.Plan, &c, nil, false) != "" {
		return
	}
	key := string(c.Args) + "\x00" + string(c.ParentInput) + "\x00" + c.At.String() +
		fmt.Sprint(c.HistoryKnown, c.History)
	switch {
	case g.seen[key]:
	case len(g.out) == mostCalls:
		g.open = cmp.Or(g.open, openMany)
	default:
		g.seen[key] = true
		g.out = append(g.out, Boundary{Call: c, Name: name, Words: name == theMessage})
	}
}

// values returns the values with which a matcher is tried.
func (g *maker) values(m *condition.Matcher) []value.Value {
	var out []value.Value
	for i := range m.Tests {
		t := &m.Tests[i]
		if re, ok := expression(t); ok {
			out = append(out, g.texts(m.Key, re)...)
			continue
		}
		out = append(out, g.structured(m.Key, t)...)
		for _, operand := range t.Operands() {
			out = append(out, around(&operand)...)
			switch t.Op {
			case condition.Host, condition.NotHost:
				host := strings.Replace(operand.Text, "*.", "www.", 1)
				out = append(out, textOf("https://"+host+"/"), textOf("https://"+host+"x/"))
			case condition.PathInside, condition.NotPathInside:
				out = append(out, textOf(strings.TrimSuffix(operand.Text, "/")+"/x"))
			}
		}
	}

	one := alone(*m)
	for _, find := range []func(*condition.Expr) (condition.Verdict, value.Value){
		g.analyzer.Satisfiable, g.analyzer.CanBeFalse,
	} {
		if can, doc := find(one); can == condition.Yes {
			out = append(out, found(doc, g.places(m)))
		}
	}

	out = append(out, value.Value{}, value.Value{Kind: value.Null}, value.Value{Kind: value.Array})
	if len(out) > mostValues {
		g.open = cmp.Or(g.open, openMany)
		out = append(out[:mostValues-3], out[len(out)-3:]...)
	}

	return out
}

// texts are strings on both sides of a pattern: one that it matches,
// alone and inside another text, on a line of its own, and in the other
// case.
func (g *maker) texts(key, re string) []value.Value {
	places, _ := condition.Places(g.use, key)
	operand := condition.Scalar{Kind: value.String, Text: re}
	one := condition.Matcher{Key: key, Tests: []condition.Test{{Op: condition.Pattern, Operand: operand}}}
	can, doc := g.analyzer.Satisfiable(alone(one))
	if can != condition.Yes {
		return nil
	}
	text := found(doc, places).Text
	var out []value.Value
	for _, s := range []string{text, "x" + text, text + "x", text + "\n", "x" + text + "x", strings.ToUpper(text)} {
		out = append(out, textOf(s))
	}
	return out
}

// expression returns the regular expression of a test, also of one that no match may be found of.
func expression(t *condition.Test) (re string, ok bool) {
	if t.Op == condition.NotPattern {
		return t.Operand.Text, true
	}
	return t.Expression()
}

// longest is the length of the longest text that is tried for a length.
const longest = 1_000

// structured returns values around the edges of a length, and lists with one element around those of
// the tests of elements.
func (g *maker) structured(key string, t *condition.Test) []value.Value {
	var out []value.Value
	switch {
	case t.Op == condition.Length:
		for _, bound := range t.Tests {
			for _, n := range append(neighbours(bound.Operand.Num), bound.Operand.Num) {
				if length, err := strconv.Atoi(n.String()); err == nil && length >= 0 && length <= longest {
					out = append(out, textOf(strings.Repeat("x", length)))
				}
			}
		}
	case t.Where != nil:
		one := []condition.Test{{Op: condition.Any, Where: t.Where}}
		can, doc := g.analyzer.Satisfiable(alone(condition.Matcher{Key: key, Tests: one}))
		places, _ := condition.Places(g.use, key)
		list := found(doc, places).Items
		if can != condition.Yes || len(list) == 0 {
			return nil
		}
		element := list[0]
		for i := range t.Where.Matchers {
			m := &t.Where.Matchers[i]
			inside, _ := condition.Places(condition.ToolArgs, m.Key)
			for _, v := range g.values(m) {
				next := clone(element)
				set(&next, inside[len(inside)-1], v)
				out = append(out, value.Value{Kind: value.Array, Items: []value.Value{next}})
			}
		}
	case len(t.Tests) > 0:
		for _, v := range g.values(&condition.Matcher{Key: key, Tests: t.Tests}) {
			if v.Kind != value.Absent {
				out = append(out, value.Value{Kind: value.Array, Items: []value.Value{v}})
			}
		}
	}

	return out
}

// found returns the value at the first of the places that has one.
func found(doc value.Value, places [][]string) value.Value {
	for _, place := range places {
		if v, ok := doc.Get(place...); ok {
			return v
		}
	}

	return value.Value{}
}

func textOf(s string) value.Value {
	return value.Value{Kind: value.String, Text: s}
}

func numberOf(n value.Num) value.Value {
	return value.Value{Kind: value.Number, Num: n}
}

// alone returns a condition of one matcher.
func alone(m condition.Matcher) *condition.Expr {
	one := condition.Group{Matchers: []condition.Matcher{m}}

	return &condition.Expr{Groups: []condition.Group{one}}
}

// around are an operand, its neighbours, and the same as text.
func around(s *condition.Scalar) []value.Value {
	switch s.Kind {
	case value.Bool:
		return []value.Value{
			{Kind: value.Bool, Bool: s.Bool},
			{Kind: value.Bool, Bool: !s.Bool},
		}
	case value.Number:
		out := []value.Value{numberOf(s.Num), textOf(s.Num.String())}
		for _, n := range neighbours(s.Num) {
			out = append(out, numberOf(n))
		}
		return out
	}

	return []value.Value{textOf(s.Text), textOf(s.Text + "x"), numberOf(value.IntNum(1))}
}

// neighbours are a number with its last digit one down and one up.
func neighbours(n value.Num) []value.Num {
	text := n.String()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	places := 0
	if _, fraction, ok := strings.Cut(text, "."); ok && !strings.ContainsAny(fraction, "eE") {
		places = len(fraction)
	}
	step := new(big.Rat).SetFrac(
		big.NewInt(1),
		new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil),
	)
	var out []value.Num
	for _, x := range []*big.Rat{new(big.Rat).Sub(r, step), new(big.Rat).Add(r, step)} {
		if next, err := value.ParseNum(x.FloatString(places)); err == nil {
			out = append(out, next)
		}
	}

	return out
}

// clone copies the objects of a document.
func clone(v value.Value) value.Value {
	v.Members = slices.Clone(v.Members)
	for i := range v.Members {
		v.Members[i].Value = clone(v.Members[i].Value)
	}

	return v
}

// set sets the value at a path and creates the objects on the way. An absent value removes the
// member.
func set(doc *value.Value, place []string, v value.Value) {
	i := slices.IndexFunc(doc.Members, func(m value.Member) bool { return m.Key == place[0] })
	switch {
	case i < 0 && v.Kind == value.Absent:
		return
	case i < 0:
		i = len(doc.Members)
		doc.Members = append(doc.Members, value.Member{Key: place[0], Value: value.Value{Kind: value.Object}})
	case len(place) == 1 && v.Kind == value.Absent:
		doc.Members = slices.Delete(doc.Members, i, i+1)
		return
	}

	member := &doc.Members[i].Value
	if len(place) == 1 {
		*member = v
		return
	}
	if member.Kind != value.Object {
		*member = value.Value{Kind: value.Object}
	}
	set(member, place[1:], v)
}

// without returns an object without one member.
func without(doc value.Value, key string) value.Value {
	doc.Members = slices.DeleteFunc(slices.Clone(doc.Members), func(m value.Member) bool { return m.Key == key })

	return doc
}
