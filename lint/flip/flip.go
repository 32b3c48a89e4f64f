// Package flip finds the smallest change to a call's arguments that changes the decision about
// the call. The change would have let the call run without approval, or would have made it ask
// (docs/contracts/decide.md).
package flip

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Answer is a change, or the reason why there is none.
type Answer struct {
	To      resolve.Outcome // the decision about the changed call
	Changes []Change        // every one is needed; nil if there is a Why
	Why     string
}

// Change is a change to one argument. In a delegation it is a change to one field of the
// parent's input. An absent value is a missing field.
type Change struct {
	Key      string // as the condition names it
	Old, New value.Value
}

// Of looks for a change. It also decides the changed call before it answers. sem has the
// semantics that the plan was compiled with.
//
// If a change of a single argument is enough, Of finds one, unless the patterns need too many
// states. Otherwise it changes several arguments, and each of these changes is needed.
func Of(plan *resolve.Plan, sem condition.Semantics, c *resolve.Call) Answer {
	d := plan.Decide(c)
	if slices.ContainsFunc(d.Reasons, func(r resolve.Reason) bool { return r.Source == resolve.FromArguments }) {
		return Answer{Why: "what can't be read is always denied"}
	}
	if d.Outcome == resolve.Deny {
		return Answer{Why: "no other arguments would change that"}
	}
	s := &search{
		plan: plan,
		sem:  sem,
		call: c,
		to:   resolve.Allow,
		use:  condition.ToolArgs,
	}
	if d.Outcome == resolve.Allow {
		s.to = resolve.Ask
	}
	if c.Kind == resolve.Delegation {
		s.use = condition.Delegation
	}
	if err := s.read(); err != nil {
		return Answer{To: s.to, Why: err.Error()}
	}
	return s.answer()
}

// search is the state of the work on one call.
type search struct {
	plan         *resolve.Plan
	sem          condition.Semantics
	call         *resolve.Call
	to           resolve.Outcome
	use          condition.Use // of the document that may change
	args, parent value.Value
	groups       []conjunction
	keys         []string // keys that may change, in the order of the rules
	vague        bool
}

// conjunction is one group of a condition, without the matchers that can't change.
type conjunction struct {
	matchers []condition.Matcher
	held     condition.Truth // the truth of the matchers that can't change
}

// doc returns the document that may change.
func (s *search) doc() value.Value {
	if s.use == condition.Delegation {
		return s.parent
	}
	return s.args
}

// read parses the documents of the call and collects the conditions of the rules.
func (s *search) read() error {
	s.args, s.parent = value.Value{Kind: value.Object}, value.Value{Kind: value.Object}
	var err error
	if s.call.Args != nil {
		s.args, err = value.Parse(s.call.Args, value.Limits{})
	}
	if err == nil && s.call.ParentInput != nil {
		s.parent, err = value.Parse(s.call.ParentInput, value.Limits{})
	}
	if err != nil || s.doc().Kind != value.Object {
		return errors.New("its arguments are no object")
	}
	at := s.plan.Target(s.call)
	for i := range at.Gates {
		g := &at.Gates[i]
		switch {
		case g.When == nil && s.to == resolve.Allow && s.speaks(i):
			return fmt.Errorf("no other arguments would change that: %s asks about every call", ruleOf(g))
		case g.When != nil && (g.Annotations() == nil || s.to == resolve.Ask || s.speaks(i)):
			s.condition(g)
		}
	}

	if len(s.keys) == 0 {
		return errors.New("no rule looks at its arguments")
	}
	return nil
}

// speaks reports whether a gate applied to the original call.
func (s *search) speaks(gate int) bool {
	_, spoke := s.plan.Weigh(s.call, nil)
	return slices.Contains(spoke, gate)
}

func ruleOf(g *resolve.Gate) string {
	if g.Policy != "" {
		return g.Policy + "/" + g.Rule
	}
	return g.Rule
}

// condition adds the groups of a gate. A matcher that reads another document than the one that
// may change keeps its truth.
func (s *search) condition(g *resolve.Gate) {
	for i := range g.When.Groups {
		var one conjunction
		var held []condition.Matcher
		one.held = condition.True
		for _, m := range g.When.Groups[i].Matchers {
			if m.Time != nil {
				one.held = min(one.held, m.Time.Truth(s.call.At))
				continue
			}
			if m.History != nil { // it is not known here, so the tried calls are decided with it
				one.held = min(one.held, condition.Unknown)
				continue
			}
			places, _ := condition.Places(s.use, m.Key)
			if len(places) == 0 || s.use != condition.Delegation && g.Use == condition.Delegation {
				held = append(held, m)
				continue
			}
			one.matchers = append(one.matchers, m)
			if !slices.Contains(s.keys, m.Key) {
				s.keys = append(s.keys, m.Key)
			}
		}

		one.held = min(one.held, s.truth(g.Use, held))
		s.groups = append(s.groups, one)
	}
}

// truth evaluates matchers on the original call.
func (s *search) truth(use condition.Use, matchers []condition.Matcher) condition.Truth {
	if len(matchers) == 0 {
		return condition.True
	}
	doc := s.args
	switch use {
	case condition.Delegation:
		doc = s.parent
	case condition.Governance:
		doc = value.Value{Kind: value.Object, Members: slices.Clone(s.args.Members)}
		if s.call.ParentInput != nil {
			doc.Members = append(doc.Members, value.Member{Key: "parent.input", Value: s.parent})
		}
	}

	e := &condition.Expr{Groups: []condition.Group{{Matchers: matchers}}}
	truth, err := condition.Evaluate(use, s.sem, e, doc)
	if err != nil {
		return condition.Unknown
	}
	return truth
}

// reduced returns the part of all conditions that is still undecided if only some keys may
// change. always is true if a group is satisfied without them.
func (s *search) reduced(free func(key string) bool) (e *condition.Expr, always bool) {
	e = &condition.Expr{}
	for _, g := range s.groups {
		var open, held []condition.Matcher
		for _, m := range g.matchers {
			if free(m.Key) {
				open = append(open, m)
			} else {
				held = append(held, m)
			}
		}

		truth := min(g.held, s.truth(s.use, held))
		if truth == condition.False {
			continue
		}
		if len(open) == 0 {
			return nil, true
		}
		e.Groups = append(e.Groups, condition.Group{Matchers: open})
	}

	return e, false
}

// witness asks the analyzer for a document that has the wanted outcome.
func (s *search) witness(free func(key string) bool) (value.Value, bool) {
	e, always := s.reduced(free)
	if always || len(e.Groups) == 0 {
		return value.Value{}, false
	}
	a := condition.NewAnalyzer(s.use, s.sem, 0)
	ask := a.Satisfiable
	if s.to == resolve.Allow {
		ask = a.CanBeFalse
	}
	verdict, found := ask(e)
	s.vague = s.vague || verdict == condition.Undecided
	return found, verdict == condition.Yes
}

func (s *search) answer() Answer {
	for _, key := range s.keys {
		found, ok := s.witness(func(k string) bool { return k == key })
		if !ok {
			continue
		}
		if change := s.nearest(key, found); s.flips(change) {
			return Answer{To: s.to, Changes: []Change{change}}
		}
	}

	if found, ok := s.witness(func(string) bool { return true }); ok {
		if changes := s.several(found); changes != nil {
			return Answer{To: s.to, Changes: changes}
		}
	}
	if s.vague {
		return Answer{To: s.to, Why: "whether other arguments would change that is more than could be analysed"}
	}
	return Answer{To: s.to, Why: "no other arguments would change that"}
}

// several takes a witness and keeps as few and as small changes of it as possible.
func (s *search) several(found value.Value) []Change {
	var all []Change
	for _, key := range s.keys {
		c := s.change(key, found)
		if string(c.Old.AppendCanonical(nil)) != string(c.New.AppendCanonical(nil)) || c.Old.Kind != c.New.Kind {
			all = append(all, c)
		}
	}

	if !s.flips(all...) {
		return nil
	}
	for {
		all = s.fewer(all)
		for i := range all {
			all[i] = s.closer(all, i)
		}

		// With a closer number, another change may no longer be needed.
		if len(s.fewer(all)) == len(all) {
			return all
		}
	}
}

// fewer removes changes until each remaining change is needed.
func (s *search) fewer(all []Change) []Change {
	for i := 0; i < len(all); {
		rest := slices.Delete(slices.Clone(all), i, i+1)
		if len(rest) == 0 || !s.flips(rest...) {
			i++
			continue
		}
		all, i = rest, 0
	}

	return all
}

func (s *search) change(key string, found value.Value) Change {
	at := s.path(key)
	old, _ := s.doc().Lookup(at)
	now, _ := found.Lookup(at)
	return Change{Key: key, Old: old, New: now}
}

// path returns a key without the prefix that names the document.
func (s *search) path(key string) string {
	if s.use == condition.Delegation {
		return strings.TrimPrefix(key, "parent.input.")
	}
	return key
}

// nearest returns the change of one key. It changes a number as little as possible.
func (s *search) nearest(key string, found value.Value) Change {
	return s.closer([]Change{s.change(key, found)}, 0)
}

// closer moves the number of one change closer to the old number. It tries the bounds in the
// rules and the next numbers on both sides of them.
func (s *search) closer(all []Change, i int) Change {
	best := all[i]
	if best.Old.Kind != value.Number {
		return best
	}
	for _, n := range s.bounds(best.Key) {
		next := best
		next.New = value.Value{Kind: value.Number, Num: n}
		trial := slices.Clone(all)
		trial[i] = next
		if (best.New.Kind != value.Number || distance(n, best.Old.Num).Cmp(distance(best.New.Num, best.Old.Num)) < 0) &&
			s.flips(trial...) {
			best = next
		}
	}

	return best
}

// bounds lists the numbers that rules compare a key with, and the next numbers on both sides.
// The distance is one unit of the last digit, so it is 1 for whole numbers.
func (s *search) bounds(key string) []value.Num {
	var out []value.Num
	for _, g := range s.groups {
		for _, m := range g.matchers {
			if m.Key != key {
				continue
			}
			for i := range m.Tests {
				for _, operand := range m.Tests[i].Operands() {
					if operand.Kind == value.Number {
						out = append(out, around(operand.Num)...)
					}
				}
			}
		}
	}

	return out
}

// around returns a number and its two neighbours.
func around(n value.Num) []value.Num {
	out := []value.Num{n}
	text := n.Canonical()
	exact, ok := new(big.Rat).SetString(text)
	if !ok || strings.Contains(text, "e") {
		return out // numbers that people rarely write
	}
	_, fraction, _ := strings.Cut(text, ".")
	step := new(big.Rat).SetFrac(
		big.NewInt(1),
		new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil),
	)
	for _, near := range []*big.Rat{new(big.Rat).Sub(exact, step), new(big.Rat).Add(exact, step)} {
		if n, err := value.ParseNum(near.FloatString(len(fraction))); err == nil {
			out = append(out, n)
		}
	}

	return out
}

func distance(a, b value.Num) *big.Rat {
	x, _ := new(big.Rat).SetString(a.Canonical())
	y, _ := new(big.Rat).SetString(b.Canonical())
	if x == nil || y == nil {
		return new(big.Rat)
	}
	return x.Abs(x.Sub(x, y))
}

// flips reports whether the call with these changes has the wanted outcome.
func (s *search) flips(changes ...Change) bool {
	doc := s.doc()
	for _, c := range changes {
		set(&doc, s.path(c.Key), c.New)
	}
	call := *s.call
	if s.use == condition.Delegation {
		call.ParentInput = doc.AppendJSON(nil)
	} else {
		call.Args, call.Values = doc.AppendJSON(nil), nil
	}
	outcome, _ := s.plan.Weigh(&call, nil)
	return outcome == s.to
}

// set sets the value of a key: in the member of that name, or else along the path. An absent
// value removes the member.
func set(v *value.Value, key string, now value.Value) {
	v.Members = slices.Clone(v.Members)
	at := func(name string) int {
		return slices.IndexFunc(v.Members, func(m value.Member) bool { return m.Key == name })
	}
	first, rest, nested := strings.Cut(key, ".")
	if i := at(key); i >= 0 {
		if v.Members[i].Value = now; now.Kind == value.Absent {
			v.Members = slices.Delete(v.Members, i, i+1)
		}
		return
	}

	i := at(first)
	switch {
	case i < 0 && now.Kind == value.Absent:
	case i < 0 && nested:
		inside := value.Value{Kind: value.Object}
		set(&inside, rest, now)
		v.Members = append(v.Members, value.Member{Key: first, Value: inside})
	case i < 0:
		v.Members = append(v.Members, value.Member{Key: key, Value: now})
	case v.Members[i].Value.Kind == value.Object:
		set(&v.Members[i].Value, rest, now)
	}
}
