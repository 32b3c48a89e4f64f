package policytest

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint/posture"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// These are the fields of a test file for invariants.
const (
	never  = "never"
	always = "always"
)

// Invariant is a condition on all calls of one target for which Where is true: none of them, or all
// of them, have the outcome.
type Invariant struct {
	Name    string          `doc:"name"` // made of the rest where the file has none
	Where   string          `doc:"where"`
	Hints   map[string]bool `doc:"annotations"` // nil: whatever they are
	Call    *resolve.Call   // its target
	Outcome resolve.Outcome

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
		r.target(v)
		r.where(v)
		at := v.node.Get("outcome")
		_ = v.Outcome.UnmarshalText([]byte(at.Text)) // one of the three, by the JSON Schema
		if at = v.node.Get("name"); at == nil && v.Call != nil {
			at = v.node
			v.Name = v.title()
		}
		if at != nil {
			r.name(v.Name, at)
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

	v.Call = r.call(appendJSON(nil, line), yamldoc.Head(n))
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
func (v *Invariant) title() string { return v.field + " " + v.Outcome.String() + ": " + v.calls() }

// calls describes the calls that the invariant is about.
func (v *Invariant) calls() string {
	text := v.Call.Target()
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
		f.Range = v.node.Get("outcome").Range
		f.Expected = v.expected()
		out.Failures = []Failure{f}
	}

	return out
}

func (v *Invariant) expected() string {
	if v.field == never {
		return "outcome " + v.Outcome.String() + " for no call of " + v.calls()
	}

	return "outcome " + v.Outcome.String() + " for every call of " + v.calls()
}

// broken looks for a call that breaks the invariant. The invariant also fails if that can't be
// decided, or if no call could break it under any rules, because it would protect nothing.
func (v *Invariant) broken(b *Built) (Failure, bool) {
	plan := b.Plan
	bad, good := v.sides()
	var open posture.Answer
	for _, outcome := range bad {
		switch a := v.ask(plan, outcome); a.Found {
		case condition.Yes:
			return witnessed(plan, a), true
		case condition.Undecided:
			open = a
		}
	}

	if open.Found == condition.Undecided {
		return Failure{Got: "undecided: " + open.Why}, true
	}
	why := v.vacuous(plan, good)
	if why == "" {
		denied := v.field == always && v.Outcome == resolve.Deny
		if none := b.unoffered(v.Call, v.where, denied); none != "" {
			why = "nothing is protected: " + none
		}
	}
	if why != "" {
		return Failure{Got: why}, true
	}

	return Failure{}, false
}

// sides returns the outcomes that break the invariant, the loosest first, and those that satisfy
// it.
func (v *Invariant) sides() (bad, good []resolve.Outcome) {
	bad = []resolve.Outcome{resolve.Allow, resolve.Ask, resolve.Deny}
	one := []resolve.Outcome{v.Outcome}
	bad = slices.DeleteFunc(bad, func(o resolve.Outcome) bool { return o == v.Outcome })
	if v.field == never {
		return one, bad
	}

	return bad, one
}

func (v *Invariant) ask(plan *resolve.Plan, outcome resolve.Outcome) posture.Answer {
	return posture.Query{Call: *v.Call, Where: v.where, Outcome: outcome}.Ask(plan)
}

// vacuous explains why an invariant that no call breaks is about no call
// at all. It returns an empty string if it is about some.
func (v *Invariant) vacuous(plan *resolve.Plan, good []resolve.Outcome) string {
	for _, r := range plan.Decide(v.Call).Reasons {
		switch {
		case r.Code == resolve.PolicyUnresolved:
			return "nothing is protected: every call of the agent is denied: " + r.Detail
		case v.field == never && (r.Code == resolve.NotDeclared || r.Code == resolve.NotAllowed):
			return "nothing is protected: " + r.Detail + "; if that is meant, write always with outcome: deny"
		}
	}

	if v.where == nil {
		return ""
	}
	if why := (posture.Query{Call: *v.Call, Where: v.where}).OtherCase(plan); why != "" {
		return "nothing is protected: " + why
	}
	for _, outcome := range good {
		if v.ask(plan, outcome).Found != condition.No {
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
