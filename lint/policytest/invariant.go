package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// These are the fields of a test file for invariants.
const (
	never  = "never"
	always = "always"
)

// Invariant is a condition on all calls of the targets for which Where is true: none of them, or all
// of them, have the outcome, or require what Goal says.
type Invariant struct {
	Name    string          `doc:"name"` // made of the rest where the file has none
	Where   string          `doc:"where"`
	Hints   map[string]bool `doc:"annotations"` // nil: whatever they are
	Call    *resolve.Call   // its target; names may be globs, and without a kind all calls are meant
	Agents  []string        // a directory or files; nil: the agent of the test file
	Outcome resolve.Outcome // if Goal is nil
	Goal    *posture.Goal

	field string // never or always
	where *condition.Expr
	node  *yamldoc.Node
}

// invariants reads the entries of one field.
func (r *reader) invariants(root *yamldoc.Node, field string, list []Invariant) {
	for i := range list {
		v := &list[i]
		v.field = field
		v.node = root.Get(field).Items[i]
		r.agents(v)
		r.target(v)
		r.where(v)
		r.goal(v)
		at := v.node.Get("name")
		if at == nil && v.Call != nil {
			at = v.node
			v.Name = v.title()
		}
		if at != nil {
			r.name(v.Name, at)
		}
	}
}

// agents reads the directory or the files of the agents whose calls are meant.
func (r *reader) agents(v *Invariant) {
	n := v.node.Get("agents")
	switch {
	case n != nil && n.Kind == yamldoc.String:
		v.Agents = []string{n.Text}
	case n != nil:
		for _, item := range n.Items {
			v.Agents = append(v.Agents, item.Text)
		}
	case r.noAgent:
		r.add(yamldoc.Stop(ruleCase, yamldoc.Head(v.node), "this needs the agent that makes the calls",
			"agent at the top of the file, or agents"))
	}
}

// goal reads the outcome, or what approvals must require.
func (r *reader) goal(v *Invariant) {
	outcome, least, within := v.node.Get("outcome"), v.node.Get("at_least"), v.node.Get("within_at_most")
	if outcome != nil {
		_ = v.Outcome.UnmarshalText([]byte(outcome.Text)) // one of the three, by the JSON Schema
		if least != nil || within != nil {
			r.add(yamldoc.Stop(ruleCase, outcome.Range, "outcome excludes at_least and within_at_most", "two invariants"))
		}
		return
	}
	if least == nil && within == nil {
		r.add(yamldoc.Stop(ruleCase, yamldoc.Head(v.node), "this has no outcome, and says nothing about approvals",
			"outcome, at_least or within_at_most"))
		return
	}
	v.Goal = &posture.Goal{AtLeast: map[string]int{}, Exclude: v.field == never}
	if least != nil {
		for _, f := range least.Fields {
			v.Goal.AtLeast[f.Key.Text] = int(f.Value.Num.Float())
		}
	}
	if within != nil {
		var err error
		if v.Goal.Within, err = policy.ParseDuration(within.Text); err != nil {
			r.add(yamldoc.Stop(ruleCase, within.Range, err.Error(), "a time such as 30m or 1h"))
		}
	}
}

// target reads the target of the calls.
func (r *reader) target(v *Invariant) {
	n := v.node
	kind := ""
	switch has := func(key string) bool { return n.Get(key) != nil }; {
	case has("tool") && has("server") && !has("agent") && !has("skill"):
		kind = string(resolve.MCPTool)
	case has("tool") && !has("server") && !has("agent") && !has("skill"):
		kind = string(resolve.Tool)
	case has("agent") && has("skill") && !has("tool") && !has("server"):
		kind = string(resolve.Skill)
	case has("agent") && !has("skill") && !has("tool") && !has("server"):
		kind = string(resolve.Delegation)
	case v.Agents != nil && !has("tool") && !has("server") && !has("agent") && !has("skill") && !has("annotations"):
		v.Call = &resolve.Call{}
		r.moment(v)
		return
	default:
		r.add(yamldoc.Stop(
			ruleCase,
			yamldoc.Head(n),
			"this names no target, or several",
			"one of tool, server and tool, agent, agent and skill",
		))
		return
	}

	line := &yamldoc.Node{
		Kind:   yamldoc.Mapping,
		Fields: []yamldoc.Field{{Key: str("kind"), Value: str(kind)}},
	}
	for _, key := range []string{"tool", "server", "agent", "skill", "annotations"} {
		if value := n.Get(key); value != nil {
			line.Fields = append(line.Fields, yamldoc.Field{Key: str(key), Value: value})
		}
	}

	if v.Call = r.call(appendJSON(nil, line), yamldoc.Head(n)); v.Call != nil {
		r.moment(v)
	}
}

// moment reads the moment of the calls.
func (r *reader) moment(v *Invariant) {
	at := v.node.Get("at")
	if at == nil {
		return
	}
	var err error
	if v.Call.At, err = resolve.ParseMoment(at.Text); err != nil {
		r.add(yamldoc.Stop(ruleCase, at.Range, "at can't be read", err.Error()))
	}
}

// where reads the condition on the calls.
func (r *reader) where(v *Invariant) {
	var err error
	if v.where, err = posture.ParseWhere(v.Where); err != nil {
		r.add(yamldoc.Stop(
			ruleCase,
			v.node.Get("where").Range,
			"where can't be read: "+err.Error(),
			"tests with commas between them, such as amount>50000,currency=USD",
		))
	}
}

// title returns the name of an invariant that has none in the file.
func (v *Invariant) title() string { return v.field + " " + v.what() + ": " + v.calls() }

// what describes the outcome, or the goal.
func (v *Invariant) what() string {
	if v.Goal == nil {
		return v.Outcome.String()
	}
	var all []string
	for _, group := range slices.Sorted(maps.Keys(v.Goal.AtLeast)) {
		all = append(all, fmt.Sprintf("at least %d of %s", v.Goal.AtLeast[group], group))
	}
	if v.Goal.Within > 0 {
		all = append(all, "within "+policy.FormatDuration(v.Goal.Within))
	}
	return strings.Join(all, ", ")
}

// calls describes the calls that the invariant is about.
func (v *Invariant) calls() string {
	text := "every target"
	if v.Call.Kind != "" {
		text = v.Call.Target()
	}
	if v.Agents != nil {
		text += " of " + strings.Join(v.Agents, ", ")
	}
	if !v.Call.At.IsZero() {
		text += " at " + v.node.Get("at").Text
	}
	if len(v.Hints) > 0 {
		text += " " + string(appendFlow(nil, v.node.Get("annotations")))
	}
	if v.Where != "" {
		text += " where " + v.Where
	}

	return text
}

func (v *Invariant) run(b *Built) Result {
	out := Result{Name: v.Name, Range: yamldoc.Head(v.node)}
	if n := v.node.Get("name"); n != nil {
		out.Range = n.Range
	}
	if f, failed := v.broken(b); failed {
		f.What = v.field
		for _, key := range []string{"within_at_most", "at_least", "outcome"} {
			if n := v.node.Get(key); n != nil {
				f.Range = n.Range
			}
		}
		f.Expected = v.expected()
		out.Failures = []Failure{f}
	}

	return out
}

func (v *Invariant) expected() string {
	what := "outcome " + v.what()
	if v.Goal != nil {
		what = v.what()
	}
	if v.field == never {
		return what + " for no call of " + v.calls()
	}

	return what + " for every call of " + v.calls()
}

// broken looks for a call that breaks the invariant. The invariant also fails if that can't be
// decided, or if no call could break it under any rules, because it would protect nothing.
func (v *Invariant) broken(b *Built) (Failure, bool) {
	plans := []*resolve.Plan{b.Plan}
	if v.Agents != nil {
		plans = nil
		for _, name := range v.Agents {
			plans = append(plans, b.Fleet[name]...)
		}
	}
	idle, open, protects := "nothing is protected: no agent has such a target", "", false
	for _, plan := range plans {
		side := &posture.Side{Plan: plan, Offered: b.Catalogs.Offered(&plan.Agent().ActionSpace)}
		queries, ok := posture.Query{Call: *v.Call}.Over(side)
		if !ok {
			open = "undecided: the names that rules have are too many to tell apart"
		}
		for i := range queries {
			one := *v
			one.Call = &queries[i].Call
			if v.Agents != nil && undeclared(plan, one.Call) {
				continue
			}
			f, undecided, vacuous := one.brokenBy(b, plan)
			switch {
			case f != nil:
				if len(plans) > 1 {
					f.Got = plan.Agent().File + ": " + f.Got
				}
				return *f, true
			case undecided != "":
				open = undecided
			case vacuous != "":
				idle = vacuous
			default:
				protects = true
			}
		}
	}
	switch {
	case open != "":
		return Failure{Got: open}, true
	case !protects:
		return Failure{Got: idle}, true
	}
	return Failure{}, false
}

func undeclared(plan *resolve.Plan, call *resolve.Call) bool {
	return slices.ContainsFunc(plan.Decide(call).Reasons,
		func(r resolve.Reason) bool { return r.Code == resolve.NotDeclared })
}

// brokenBy does the same for one target of one agent. It returns the failure with a call, or why it is
// undecided, or why no call is protected, or nothing of these.
func (v *Invariant) brokenBy(b *Built, plan *resolve.Plan) (f *Failure, undecided, vacuous string) {
	bad, good := v.sides()
	for _, outcome := range bad {
		switch a := v.ask(plan, outcome); a.Found {
		case condition.Yes:
			shown := witnessed(plan, a)
			return &shown, "", ""
		case condition.Undecided:
			undecided = "undecided: " + a.Why
		}
	}
	if undecided != "" {
		return nil, undecided, ""
	}
	if vacuous = v.vacuous(plan, good); vacuous == "" {
		denied := v.Goal == nil && v.field == always && v.Outcome == resolve.Deny
		if none := b.unoffered(plan, v.Call, v.where, denied); none != "" {
			vacuous = "nothing is protected: " + none
		}
	}
	return nil, "", vacuous
}

// sides returns the outcomes that break the invariant, the loosest first, and those that satisfy
// it.
func (v *Invariant) sides() (bad, good []resolve.Outcome) {
	bad = []resolve.Outcome{resolve.Allow, resolve.Ask, resolve.Deny}
	if v.Goal != nil {
		return bad[:1], bad // the goal is asked for, in place of an outcome
	}
	one := []resolve.Outcome{v.Outcome}
	bad = slices.DeleteFunc(bad, func(o resolve.Outcome) bool { return o == v.Outcome })
	if v.field == never {
		return one, bad
	}

	return bad, one
}

func (v *Invariant) ask(plan *resolve.Plan, outcome resolve.Outcome) posture.Answer {
	return posture.Query{Call: *v.Call, Where: v.where, Outcome: outcome, Goal: v.Goal}.Ask(plan)
}

// vacuous explains why an invariant that no call breaks is about no call
// at all. It returns an empty string if it is about some.
func (v *Invariant) vacuous(plan *resolve.Plan, good []resolve.Outcome) string {
	for _, r := range plan.Decide(v.Call).Reasons {
		switch {
		case r.Code == resolve.PolicyUnresolved:
			return "nothing is protected: every call of the agent is denied: " + r.Detail
		case (v.field == never || v.Goal != nil) && (r.Code == resolve.NotDeclared || r.Code == resolve.NotAllowed):
			return "nothing is protected: " + r.Detail + "; if that is meant, write always with outcome: deny"
		}
	}

	if v.where == nil {
		return ""
	}
	if why := (posture.Query{Call: *v.Call, Where: v.where}).OtherCase(plan); why != "" {
		return "nothing is protected: " + why
	}
	one := *v
	one.Goal = nil
	for _, outcome := range good {
		if one.ask(plan, outcome).Found != condition.No {
			return ""
		}
	}

	return "nothing is protected: no call can meet " + v.Where
}

// witnessed returns a failure with the call that shows it and the rules that decided: those that
// asked or denied, or, if none did, those that were evaluated.
func witnessed(plan *resolve.Plan, a posture.Answer) Failure {
	call, err := resolve.ParseCall(a.Witness, value.Limits{})
	if err != nil { // the plan has decided it
		return Failure{Got: string(a.Witness)}
	}
	d := plan.Decide(call)
	f := Failure{
		Got:     "outcome " + d.Outcome.String() + " for " + string(a.Witness),
		Witness: string(a.Witness),
		Rules:   rules(d.Reasons),
	}
	if a.Instead != "" {
		f.Got += ": " + a.Instead
	}
	if d.Outcome == resolve.Allow {
		f.Rules = silent(plan.Trace(call))
	}

	return f
}

// silent explains for each rule that was evaluated why it does not apply.
func silent(traces []resolve.Trace) []string {
	var out []string
	for _, t := range traces {
		who := ruleAt(t.File, t.Range.Start, string(t.Source), t.Policy, t.Rule)
		out = append(out, who+": does not apply: "+strings.Join(untrue(&t), "; "))
	}
	if out == nil {
		return []string{"no rule is about such a call"}
	}

	return out
}

// untrue returns the matchers that keep a rule from asking.
func untrue(t *resolve.Trace) []string {
	var out []string
	for i, g := range t.Groups {
		for j, truth := range g.Matchers {
			if truth == condition.False {
				out = append(out, describe(&t.Condition.Groups[i].Matchers[j])+" is false")
			}
		}
	}

	return out
}
