package posture

import (
	"cmp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// comparer compares two sides, target by target.
type comparer struct {
	old, new Side
	cmp      *condition.Comparison
	keys     map[*condition.Expr]string // what of conditions makes them the same
	// templates caches the keys of templates by their text; see templateKey.
	templates map[string]string
	changes   []Change
	// configEdit is the edit of decisions.yaml, or nil if it is the same on both sides.
	configEdit *EditedRule
	// visit, if it is set, is called for each target in place of comparing it, for a query about the
	// names of asked.
	visit func(resolve.Call)
	asked resolve.Call
}

// fill sets the agent's id in every change.
func (c *comparer) fill() {
	for i := range c.changes {
		c.changes[i].AgentID = c.new.Plan.Agent().Metadata.ID
	}
}

func byTarget(a, b Change) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Server, b.Server),
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.Skill, b.Skill),
		cmp.Compare(a.Tool, b.Tool),
	)
}

// pair is one target on both sides, for a set of calls that differ only in their documents.
type pair struct {
	*comparer
	call     resolve.Call // with annotations, without documents
	which    which
	old, new side
	world    condition.Calls
	class    string // note that distinguishes the calls, besides their documents; may be empty
	parent   string // whether they carry a parent's input, where it matters
	odd      bool   // their arguments are no object
	edited   []*EditedRule
}

// These notes say whether calls have a parent's input, if that makes a difference.
const (
	withParent    = "with a parent's input"
	withoutParent = "without a parent's input"
)

// which describes the names that a target covers, and how a call refers to it.
type which struct {
	name      string // describes several names; empty for one
	container string // describes several servers or agents; empty for one
	reading   string // of a delegation, see comparer.delegation
}

func (w which) words() string { return joined(joined(w.container, w.name), w.reading) }

// side contains the decision of one plan about the calls of a pair.
type side struct {
	target *resolve.Target
	sem    condition.Semantics
	denied bool
	asks   []int // gates that ask, in target.Gates
	// denies are the gates with a condition that deny, in target.Gates. If a gate denies every call,
	// denied is set instead.
	denies []int
}

// outcome returns how the side decides a call, given whether one of its gates asks about it.
func (s side) outcome(asks bool) resolve.Outcome {
	switch {
	case s.denied:
		return resolve.Deny
	case asks:
		return resolve.Ask
	}

	return resolve.Allow
}

// gates returns the gates with the given indices, in the form in which conditions are compared.
func (s side) gates(list []int) []condition.Gate {
	out := make([]condition.Gate, len(list))
	for i, at := range list {
		g := &s.target.Gates[at]
		out[i] = condition.Gate{Use: g.Use, Sem: s.sem, When: g.When, Certain: g.Certain}
	}

	return out
}

// target compares one target. The call contains only its names.
func (c *comparer) target(call resolve.Call, which which) {
	if c.visit != nil {
		c.visit(call)
		return
	}
	old, new := c.old.Plan.Target(&call), c.new.Plan.Target(&call)
	classes, ok := classesOf(old, new)
	if !ok {
		p := pair{comparer: c, call: call, which: which}
		p.undecided(outcomeAspect, whyHints())
		return
	}

	var found []Change
	for _, class := range classes {
		p := pair{
			comparer: c,
			call:     call,
			which:    which,
			old:      sideOf(c.old, old, class),
			new:      sideOf(c.new, new, class),
		}
		p.call.Annotations = class
		if len(classes) > 1 {
			p.class = noteOf(class)
		}
		found = append(found, p.compare()...)
	}

	c.changes = append(c.changes, merged(found, len(classes))...)
}

// sideOf returns the side with the gates that match calls with these annotations.
func sideOf(s Side, t *resolve.Target, annotations map[string]bool) side {
	out := side{
		target: t,
		sem:    s.Plan.Options().Semantics.Conditions,
		denied: s.Plan.Stopped() != nil,
	}
	for i := range t.Gates {
		switch g := &t.Gates[i]; {
		case !g.Meets(annotations):
		case g.Outcome == resolve.Deny && g.When != nil:
			out.denies = append(out.denies, i)
		case g.Outcome == resolve.Deny:
			out.denied = true
		default:
			out.asks = append(out.asks, i)
		}
	}

	return out
}

// compare returns the changes for the calls of the pair.
func (p pair) compare() []Change {
	if p.old.denied && p.new.denied || p.unchanged() {
		return nil
	}
	p.edited = p.edits()
	found := p.parted()
	return append(found, p.oddOnes(found)...)
}

// parted returns the changes for the calls of the pair. If a gate reads the parent's input, calls
// with and without it are compared separately.
func (p pair) parted() []Change {
	base := condition.Calls{CaseSensitive: p.old.target.CaseSensitive && p.new.target.CaseSensitive}
	if !p.readsParent() {
		base.NoParent = true
		p.world = base
		return p.all()
	}
	p.world, p.parent = base, withoutParent
	p.world.NoParent = true
	without := p.all()
	p.world, p.parent = base, withParent

	return append(without, p.all()...)
}

func (p pair) all() []Change { return append(p.outcomes(), p.demands()...) }

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// readsParent reports whether a gate reads the parent's input.
func (p pair) readsParent() bool {
	reads := func(s side) bool {
		return slices.ContainsFunc(slices.Concat(s.asks, s.denies), func(i int) bool {
			return readsParent(&s.target.Gates[i])
		})
	}
	return reads(p.old) || reads(p.new)
}

func readsParent(g *resolve.Gate) bool {
	if g.When == nil {
		return false
	}
	for i := range g.When.Groups {
		for _, m := range g.When.Groups[i].Matchers {
			if !m.Takes && parentTest(g.Use, m.Key) {
				return true
			}
		}
	}

	return false
}

// parentTest reports whether a key names the parent's input.
func parentTest(use condition.Use, key string) bool {
	return (use == condition.Delegation || use == condition.Governance) && strings.HasPrefix(key, "parent.")
}

// outcomes returns the changes for calls whose outcome differs.
func (p pair) outcomes() []Change {
	old, new := p.old.gates(p.old.asks), p.new.gates(p.new.asks)
	switch {
	case len(p.old.denies)+len(p.new.denies) > 0:
		return p.conditionalDenials()
	case p.old.denied:
		return p.denials(new, p.new, func(asks bool) (from, to resolve.Outcome) {
			return resolve.Deny, p.new.outcome(asks)
		})
	case p.new.denied:
		return p.denials(old, p.old, func(asks bool) (from, to resolve.Outcome) {
			return p.old.outcome(asks), resolve.Deny
		})
	}

	var found []Change
	found = append(found, p.gap(p.old, p.new, new, resolve.Ask, resolve.Allow)...)
	return append(found, p.gap(p.new, p.old, old, resolve.Allow, resolve.Ask)...)
}

// conditionalDenials returns the changes for calls whose outcome differs, if a side denies calls
// under conditions. Only calls about which a gate speaks that the other side lacks can differ.
func (p pair) conditionalDenials() []Change {
	within := append(p.old.gates(p.lacking(p.old, p.new)), p.new.gates(p.lacking(p.new, p.old))...)
	switch {
	case p.old.denied != p.new.denied,
		slices.ContainsFunc(within, func(g condition.Gate) bool { return g.When == nil }):
		within = nil
	case len(within) == 0:
		return nil
	}
	cells, ok := p.cmp.Cells(p.world, within, p.old.gates(p.old.denies), p.old.gates(p.old.asks),
		p.new.gates(p.new.denies), p.new.gates(p.new.asks))
	if !ok {
		return []Change{p.unknown(resolve.Ask, resolve.Allow, condition.WhyTooLarge)}
	}

	var found []Change
	for _, cell := range cells {
		from, to := p.old.decided(cell.Asks[0], cell.Asks[1]), p.new.decided(cell.Asks[2], cell.Asks[3])
		if from != to {
			found = p.gather(found, p.outcome(cell, from, to))
		}
	}
	return found
}

// decided returns how the side decides a call, given whether one of its conditional gates denies it
// and whether one asks about it.
func (s side) decided(denies, asks bool) resolve.Outcome {
	if denies {
		return resolve.Deny
	}
	return s.outcome(asks)
}

// lacking returns the gates of side a, those that ask and those that deny, that side b lacks.
func (p pair) lacking(a, b side) []int {
	list := p.only(a, b)
	known := map[string]bool{}
	for _, i := range b.denies {
		known[p.gateKey(b, i)] = true
	}
	for _, i := range a.denies {
		if !known[p.gateKey(a, i)] {
			list = append(list, i)
		}
	}

	return list
}

// only returns the gates of side a that side b lacks.
func (p pair) only(a, b side) []int {
	known := map[string]bool{}
	for _, i := range b.asks {
		known[p.gateKey(b, i)] = true
	}
	var list []int
	for _, i := range a.asks {
		if !known[p.gateKey(a, i)] {
			list = append(list, i)
		}
	}

	return list
}

// gap returns the changes for calls about which gates of side s ask and the gates in silent, which
// are of the other side, don't.
func (p pair) gap(s, other side, silent []condition.Gate, from, to resolve.Outcome) []Change {
	asking := p.only(s, other)
	if len(asking) == 0 {
		return nil
	}
	cell, ok := p.cmp.Gap(p.world, s.gates(asking), silent)
	switch {
	case !ok:
		return []Change{p.unknown(from, to, condition.WhyTooLarge)}
	case cell == nil:
		return nil
	}

	change := p.outcome(*cell, from, to)
	change.Asks = p.asks()
	if parts := p.apportioned(s, other, asking, silent); len(parts) > 0 {
		change.edited = parts
	}

	return []Change{change}
}

// asks describes the calls about which the new side certainly asks.
func (p pair) asks() string {
	gates := p.new.gates(p.new.asks)
	if len(gates) == 0 || p.odd || len(p.new.denies) > 0 {
		return ""
	}
	for i := range gates {
		gates[i].Certain = true
	}
	parts, ok := p.cmp.Cells(p.world, nil, gates)
	at := slices.IndexFunc(parts, func(c condition.Cell) bool { return c.Asks[0] && c.Found == condition.Yes })
	if !ok || at < 0 {
		return ""
	}

	return parts[at].Region.String()
}

// denials returns the changes for calls that one side always denies.
func (p pair) denials(
	gates []condition.Gate, s side, outcomes func(asks bool) (from, to resolve.Outcome),
) []Change {
	parts, ok := p.cmp.Cells(p.world, nil, gates)
	if !ok {
		from, to := outcomes(false)
		return []Change{p.unknown(from, to, condition.WhyTooLarge)}
	}
	var found []Change
	for _, cell := range parts {
		from, to := outcomes(cell.Asks[0])
		found = append(found, p.outcome(cell, from, to))
	}

	return found
}

// outcome returns the change for a cell. Both sides decide its witness before it is reported.
func (p pair) outcome(cell condition.Cell, from, to resolve.Outcome) Change {
	if cell.Found != condition.Yes {
		return p.unknown(from, to, condition.WhyTooHard)
	}
	change := p.change(outcomeAspect, from.String(), to.String())
	change.region = cell.Region
	change.Effect = Tightens
	if to > from { // the smaller outcome is the stricter one
		change.Effect = Loosens
	}
	p.witness(&change, cell, func(old, new resolve.Decision) bool {
		return old.Outcome == from && new.Outcome == to
	})

	return change
}

// change returns a change of this pair.
func (p pair) change(aspect, from, to string) Change {
	c := Change{
		Kind:   string(p.call.Kind),
		Tool:   p.call.Tool,
		Server: p.call.Server,
		Agent:  p.call.Agent,
		Skill:  p.call.Skill,
		Aspect: aspect,
		From:   from,
		To:     to,
		world:  p.world,
		note:   p.which.words(),
		parent: p.parent,
		class:  p.class,
		odd:    p.odd,
		edited: p.edited,
	}
	if p.odd {
		c.note = joined(c.note, oddArguments)
	}
	if p.which.container != "" && p.call.Kind == resolve.MCPTool {
		c.Server = everyOther
	}
	if p.which.container != "" && p.call.Kind == resolve.Skill {
		c.Agent = everyOther
	}
	if p.which.name == "" {
		return c
	}
	switch p.call.Kind {
	case resolve.Skill:
		c.Skill = everyOther
	case resolve.Delegation:
		c.Agent = everyOther
	default:
		c.Tool = everyOther
	}

	return c
}

// unknown returns an undecided change: the outcome may or may not differ.
func (p pair) unknown(from, to resolve.Outcome, why string) Change {
	c := p.change(outcomeAspect, from.String(), to.String())
	c.Effect, c.Why = Undecided, why
	return c
}

func (p pair) undecided(aspect, why string) {
	c := p.change(aspect, "", "")
	c.Effect, c.Why = Undecided, why
	p.changes = append(p.changes, c)
}

// witness sets the witness of a change, if both plans decide that call as the change claims. If it
// depends on past calls that are not found, other calls of the cell are tried.
func (p pair) witness(c *Change, cell condition.Cell, holds func(old, new resolve.Decision) bool) {
	was := *c
	p.tryWitness(c, cell.Witness, holds)
	if c.Witness != nil {
		return
	}
	for _, doc := range cell.Region.Histories(maxHistories) {
		other := was
		if p.tryWitness(&other, doc, holds); other.Witness != nil {
			*c = other
			return
		}
	}
}

// maxHistories limits the calls of a cell that are tried with different past calls.
const maxHistories = 16

func (p pair) tryWitness(c *Change, doc value.Value, holds func(old, new resolve.Decision) bool) {
	call := p.call
	args, parent, given := condition.SplitDocument(doc)
	at, _, found := condition.Moment(doc)
	if call.At.IsZero() {
		call.At = at
	}
	if !found {
		c.Effect, c.Why = Undecided, "no moment was found at which the windows of time are like that"
		return
	}
	call.Args = args.AppendJSON(nil)
	if p.odd {
		call.Args = resolve.Raw("[]")
	}
	if p.world.NoPast {
		resolve.EmptyHistory(&call, p.old.target)
		args, _ = value.Parse(call.Args, value.Limits{MaxBytes: 1 << 30})
	} else if pasts, given := condition.Pasts(doc); given {
		if !resolve.FindHistory(&call, pasts, p.old.target, p.new.target) {
			c.Effect, c.Why = Undecided, "no past calls were found for which the tests of history are like that"
			return
		}
		args, _ = value.Parse(call.Args, value.Limits{MaxBytes: 1 << 30})
	}
	switch {
	case given:
		call.ParentInput = parent.AppendJSON(nil)
	case !p.world.NoParent:
		call.ParentInput = resolve.Raw("{}")
	}

	var d *resolve.Derived
	for _, s := range []side{p.new, p.old} {
		if d == nil && s.target != nil {
			d = s.target.Derived()
		}
	}
	tried := p.decided(&call, args, d, holds)
	old, new := p.comparer.old.Plan.Decide(&call), p.comparer.new.Plan.Decide(&call)
	c.edited = p.causing(old, new)
	c.Old, c.New = positionOf(old, p.comparer.old), positionOf(new, p.comparer.new)
	if text, err := call.JSON(); err == nil {
		c.Witness = text
	}
	if c.Witness == nil || !holds(old, new) {
		c.Effect, c.Witness = Undecided, nil
		c.Why = "the call that should show it was decided otherwise: " + old.Outcome.String() + " before, " +
			new.Outcome.String() + " now"
		if tried {
			c.Why = "it depends on facts that are read out of " + d.Source() + ", and no command line was found that has them"
		}
	}
}

// decided replaces facts, which a call can't contain itself, by a command line from which they are
// derived and that both plans decide as the change claims. It returns false if the arguments
// contain no facts.
func (p pair) decided(
	call *resolve.Call, args value.Value, d *resolve.Derived, holds func(old, new resolve.Decision) bool,
) bool {
	if d == nil {
		return false
	}
	facts, rest, has := d.Split(args)
	if !has {
		return false
	}
	rest.Members = slices.DeleteFunc(rest.Members, func(m value.Member) bool { return m.Key == d.Source() })
	for _, line := range d.Lines(facts) {
		if !d.Holds(line, facts) {
			continue
		}
		made := value.Value{Kind: value.Object, Members: append(slices.Clip(rest.Members), value.Member{
			Key: d.Source(), Value: value.Value{Kind: value.String, Text: line},
		})}
		one := *call
		one.Args = made.AppendJSON(nil)
		if holds(p.comparer.old.Plan.Decide(&one), p.comparer.new.Plan.Decide(&one)) {
			*call = one
			return true
		}
	}

	return true
}

// positionOf returns the position of the first rule among the reasons, or that of the agent's file
// if there is none.
func positionOf(d resolve.Decision, s Side) *Position {
	for _, r := range d.Reasons {
		if r.File != "" && r.Line > 0 {
			return &Position{File: r.File, Line: r.Line, Column: r.Column}
		}
	}
	return agentPosition(s)
}

func agentPosition(s Side) *Position {
	at := s.Plan.Agent().Doc.Root.Range.Start
	if n := s.Plan.Agent().Doc.Root.Get("action_space"); n != nil {
		at = n.Range.Start
	}
	return &Position{File: s.Plan.Agent().File, Line: at.Line, Column: at.Column}
}
