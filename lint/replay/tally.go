package replay

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Limits of the data that is kept, because callers choose names. Everything beyond them is
// counted together.
const (
	mostTargets = 10_000
	mostRules   = 10_000
	mostGroups  = 10_000
	longestName = 1 << 10 // bytes of a target's name
)

// HiddenValue replaces a value that a policy hides.
const HiddenValue = "(hidden by policy)"

// tally counts entries in the order of the records.
type tally struct {
	opt     Options
	out     Printer
	figures Report
	inputs  []Input
	targets map[targetKey]*target
	rules   map[ruleKey]*Rule
	groups  map[string]*Group
	days    map[int]*day // by days since 1970
	open    map[string]*request
	order   order // of the current ledger
	last    int   // line of the last entry

	mostTargets int
}

// day counts the questions of one day.
type day struct{ old, new int }

// request is a request of a ledger that has been opened and has not ended yet.
type request struct {
	unasked bool // no approval would be needed now
	found   Found
}

// target contains the counts of one target, and its gates on both sides.
type target struct {
	Target
	old, new []gate
	hides    policy.Arguments
}

// gate is a rule of a target, with the groups that it asks.
type gate struct {
	*Rule
	groups []string
}

func newTally(opt Options, out Printer) *tally {
	return &tally{
		opt:     opt,
		out:     out,
		targets: map[targetKey]*target{},
		rules:   map[ruleKey]*Rule{},
		groups:  map[string]*Group{},
		days:    map[int]*day{},

		mostTargets: mostTargets,
	}
}

// begin starts the next input.
func (t *tally) begin(name string, form Form) {
	t.inputs = append(t.inputs, Input{File: name, Form: form})
	t.order = order{}
	t.open = map[string]*request{}
	t.last = 0
}

func (t *tally) input() *Input { return &t.inputs[len(t.inputs)-1] }

// end closes an input. A ledger without its last line is truncated.
func (t *tally) end() {
	if t.input().Form == Ledger && !t.order.done {
		t.bad(t.last+1, errors.New("the export is truncated: its last line is missing"))
	}
	t.open = nil
}

func (t *tally) bad(line int, err error) {
	t.figures.Bad++
	t.input().Bad++
	if t.opt.Bad != nil {
		t.opt.Bad(t.input().File, line, lineError{err, t.input().Form})
	}
}

// lineError is an error in an entry. If an entry is a single line, its place is given by the
// column alone.
type lineError struct {
	err  error
	form Form
}

func (e lineError) Error() string {
	if e.form == OTel {
		return e.err.Error()
	}
	return strings.Replace(e.err.Error(), "line 1, column", "column", 1)
}

func (e lineError) Unwrap() error { return e.err }

// add counts the entries of a batch.
func (t *tally) add(b *batch) error {
	for i := range b.entries {
		if err := t.entry(&b.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// entry counts one entry.
func (t *tally) entry(e *entry) error {
	t.last = e.line
	if e.ledger != nil {
		if err := t.order.check(e); err != nil {
			t.bad(e.line, err)
		}
	}
	switch {
	case e.err != nil:
		t.bad(e.line, e.err)
	case e.call == nil:
		t.figures.Others++
		t.input().Others++
	case e.ledger == nil || e.ledger.step != edited: // an edit is an approver's call, not the agent's
		return t.call(e)
	}

	return t.life(e, nil)
}

// call counts one call.
func (t *tally) call(e *entry) error {
	t.figures.Calls++
	t.input().Calls++
	at := t.target(e.call)
	at.Calls++
	at.Matrix.add(e)
	t.figures.Matrix.add(e)
	t.spoke(e, at)
	t.ask(e)
	if e.known && e.old != resolve.Allow && e.new == resolve.Allow {
		t.figures.Unasked++
		if t.full() && (e.ledger == nil || e.ledger.step == noStep) {
			return nil // the call is not needed later
		}
		found := t.found(e, Unasked, at)
		if err := t.list(found); err != nil {
			return err
		}
		return t.life(e, &found)
	}

	return t.life(e, nil)
}

// ask counts a question and its day.
func (t *tally) ask(e *entry) {
	q := &t.figures.Questions
	asked := func(r *Rate, outcome resolve.Outcome, known bool) int {
		if !known || outcome != resolve.Ask {
			return 0
		}
		r.Total++
		if !e.when.IsZero() {
			r.timed++
		}
		return 1
	}
	old := asked(&q.Old, e.old, e.known)
	now := asked(&q.New, e.new, true)
	if e.when.IsZero() {
		return
	}
	q.Timed++
	number := int(e.when.Unix() / secondsOfDay)
	on := t.days[number]
	if on == nil {
		on = &day{}
		t.days[number] = on
	}
	on.old += old
	on.new += now
}

// life follows a request of a ledger to its end.
func (t *tally) life(e *entry, found *Found) error {
	if e.ledger == nil || e.ledger.step == noStep {
		return nil
	}
	id := e.ledger.subject
	switch e.ledger.step {
	case opened, edited:
		if e.call != nil && e.err == nil {
			t.open[id] = t.request(e, found)
		}
	case finished:
		delete(t.open, id)
	case refused:
		return t.denied(e, id)
	}

	return nil
}

func (t *tally) request(e *entry, found *Found) *request {
	r := &request{unasked: e.new == resolve.Allow}
	if !r.unasked {
		return r
	}
	if found == nil { // edited, or allowed before too
		f := t.found(e, Unasked, t.target(e.call))
		found = &f
	}
	r.found = *found
	return r
}

// denied counts a request that a person denied. A request that is not open belongs to another
// agent, or could not be read and was counted as such.
func (t *tally) denied(e *entry, id string) error {
	r := t.open[id]
	if r == nil {
		return nil
	}
	delete(t.open, id)
	t.figures.Denials++
	if !r.unasked {
		return nil
	}
	t.figures.DenialsUnasked++
	r.found.Kind, r.found.Request = Denied, id
	r.found.Line = e.line
	return t.list(r.found)
}

// full reports whether no further call is listed.
func (t *tally) full() bool { return t.opt.List > 0 && t.figures.Listed == t.opt.List }

// list writes a call unless the limit is reached.
func (t *tally) list(f Found) error {
	if t.full() {
		return nil
	}
	t.figures.Listed++
	return t.out.Found(f)
}

// found returns the listed form of a call.
func (t *tally) found(e *entry, kind string, at *target) Found {
	f := Found{
		Kind:   kind,
		File:   t.input().File,
		Line:   e.line,
		Target: e.call.Target(),
		New:    e.new.String(),
	}
	if e.known {
		f.Old = e.old.String()
	}
	if !e.when.IsZero() {
		f.Time = e.when.Format(time.RFC3339)
	}
	if e.ledger != nil {
		f.Request = e.ledger.subject
	}
	shown := *e.call
	var more int
	shown.Args, f.Hidden = hide(e.call.Args, at.hides.Redaction())
	shown.ParentInput, more = hide(e.call.ParentInput, at.hides.ParentRedaction())
	f.Hidden += more
	line, err := shown.JSON()
	if err != nil { // can't happen: a call of an unknown kind is never allowed
		line = strconv.AppendQuote(nil, err.Error())
	}
	f.Call = JSON(line)
	return f
}

// hide returns a JSON text on one line, without hidden values. If the text can't be parsed and
// values must be hidden, it hides everything.
func hide(text resolve.Raw, at policy.Redaction) (resolve.Raw, int) {
	if len(text) == 0 || !at.Hides() && bytes.IndexByte(text, '\n') < 0 {
		return text, 0
	}
	doc, err := value.Parse(text, value.Limits{})
	if err != nil {
		return strconv.AppendQuote(nil, HiddenValue), 1
	}
	hidden := hideIn(&doc, at)
	return doc.AppendJSON(nil), hidden
}

func hideIn(v *value.Value, at policy.Redaction) int {
	if !at.Hides() {
		return 0
	}
	hidden := 0
	step := func(segment string, v *value.Value) {
		below, hides := at.Step(segment)
		if !hides {
			hidden += hideIn(v, below)
			return
		}
		*v = value.Value{Kind: value.String, Text: HiddenValue}
		hidden++
	}
	for i := range v.Members {
		step(v.Members[i].Key, &v.Members[i].Value)
	}
	for i := range v.Items {
		step(strconv.Itoa(i), &v.Items[i])
	}

	return hidden
}

// target returns the data of a call's target.
func (t *tally) target(c *resolve.Call) *target {
	key := keyOf(c)
	at := t.targets[key]
	if at != nil {
		return at
	}
	at = &target{Target: Target{Target: c.Target()}}
	if len(t.targets) >= t.mostTargets || len(at.Target.Target) > longestName {
		rest := t.targets[targetKey{}]
		if rest == nil {
			rest = &target{}
			t.targets[targetKey{}] = rest
		}
		at = rest
	} else {
		t.targets[key] = at
	}

	at.hides = policy.Arguments{}
	at.new = t.gates(t.opt.New, c, at)
	if t.opt.Old != nil {
		at.old = t.gates(t.opt.Old, c, at)
	}
	return at
}

// gates returns the rules of a target on one side. A value that any of them hides is hidden.
func (t *tally) gates(p *resolve.Plan, c *resolve.Call, at *target) []gate {
	var out []gate
	for _, g := range gatesOf(p, c) {
		rule := t.rule(newRuleKey(g.Source, g.Policy, g.Rule, g.Code))
		rule.File, rule.Line = g.File, g.Range.Start.Line
		one := gate{Rule: rule}
		if g.Require != nil {
			stages := slices.Clone(g.Require.Stages)
			for _, alternatives := range g.Require.AnyOf {
				stages = append(stages, slices.Concat(alternatives...)...)
			}
			for _, s := range stages {
				one.groups = append(one.groups, s.Group)
			}
			at.hides.Redact = distinct(append(at.hides.Redact, g.Require.Arguments.Redact...))
		}

		one.groups = distinct(one.groups)
		out = append(out, one)
	}

	return out
}

// gatesOf returns the gates of a call, or none for an unknown kind of call.
func gatesOf(p *resolve.Plan, c *resolve.Call) []resolve.Gate {
	if at := p.Target(c); at != nil {
		return at.Gates
	}
	return nil
}

func (t *tally) rule(key ruleKey) *Rule {
	r := t.rules[key]
	if r == nil && len(t.rules) >= mostRules {
		key = ruleKey{}
		r = t.rules[key]
	}
	if r == nil {
		r = &Rule{Source: string(key.source), Policy: key.policy, Rule: key.rule}
		t.rules[key] = r
	}

	return r
}

func (t *tally) group(name string) *Group {
	g := t.groups[name]
	if g == nil && len(t.groups) >= mostGroups {
		name = "(other groups)"
		g = t.groups[name]
	}
	if g == nil {
		g = &Group{Group: name}
		t.groups[name] = g
	}
	return g
}

// spoke counts the rules that applied to a call, and the groups that are asked.
func (t *tally) spoke(e *entry, at *target) {
	var now, old []*Rule
	for _, i := range e.spokeNew {
		now = once(now, at.new[i].Rule)
	}
	for _, i := range e.spokeOld {
		old = once(old, at.old[i].Rule)
	}
	if e.ledger != nil && t.opt.Old == nil {
		for _, key := range e.ledger.rules {
			old = once(old, t.rule(key))
		}
	}
	for _, r := range now {
		r.New++
		r.Matrix.add(e)
	}
	for _, r := range old {
		r.Old++
		if !slices.Contains(now, r) {
			r.Matrix.add(e)
		}
	}

	t.asked(e, at)
}

// once adds a rule unless it is already there, because a rule may appear in a file twice.
func once(rules []*Rule, r *Rule) []*Rule {
	if slices.Contains(rules, r) {
		return rules
	}
	return append(rules, r)
}

// asked counts a question that the old rules, the new ones, or both require.
func (t *tally) asked(e *entry, at *target) {
	var seen []string
	count := func(names []string, side func(*Group) *Rate) {
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			g := t.group(name)
			r := side(g)
			r.Total++
			if !e.when.IsZero() {
				r.timed++
			}
			if !slices.Contains(seen, name) {
				seen = append(seen, name)
				g.Matrix.add(e)
			}
		}
	}
	if e.new == resolve.Ask {
		count(groupsOf(at.new, e.spokeNew), func(g *Group) *Rate { return &g.New })
	}
	switch {
	case !e.known || e.old != resolve.Ask:
	case t.opt.Old != nil:
		count(groupsOf(at.old, e.spokeOld), func(g *Group) *Rate { return &g.Old })
	case e.ledger != nil:
		count(e.ledger.groups, func(g *Group) *Rate { return &g.Old })
	}
}

// groupsOf lists the groups of the gates that applied.
func groupsOf(gates []gate, spoke []int) []string {
	if len(spoke) == 1 {
		return gates[spoke[0]].groups
	}
	var out []string
	for _, i := range spoke {
		out = append(out, gates[i].groups...)
	}
	return distinct(out)
}
