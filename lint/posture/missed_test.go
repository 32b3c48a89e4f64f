package posture

import (
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// missed is a pair of sides that a comparison could mistake for equal.
type missed struct {
	old, new *Side
	verdict  Verdict // from old to new
}

// rule returns a policy with one rule.
func rule(match, rest string) string {
	return policyText("p", "{id: r, match: {"+match+"}, "+rest+"}")
}

// TestWhatIsEasilyMissed checks that each row loosens or has no order, and that the reverse of a
// loosening tightens.
func TestWhatIsEasilyMissed(t *testing.T) {
	for name, c := range missedByPolicies(t) {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
	for name, c := range missedByAgents(t) {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

func (m missed) check(t *testing.T) {
	t.Helper()
	there, back := NewReport(Compare(m.old, m.new)), NewReport(Compare(m.new, m.old))
	if there.Verdict != m.verdict {
		t.Errorf("%s, want %s\n%s", there.Verdict, m.verdict, told(there.Changes))
	}
	want := map[Verdict]Verdict{VerdictLoosens: VerdictTightens, Mixed: Mixed, VerdictUndecided: VerdictUndecided}
	if back.Verdict != want[m.verdict] {
		t.Errorf("back: %s, want %s\n%s", back.Verdict, want[m.verdict], told(back.Changes))
	}
}

// missedByPolicies returns rows that differ in a policy.
func missedByPolicies(t *testing.T) map[string]missed {
	asks := func(match string) string { return rule(match, "approval: true") }
	demands := func(require string) string { return rule("targets: [t]", "approval: true, require: {"+require+"}") }
	chosen := func(ids string) string {
		return strings.Replace(asks("targets: [t]"), "rules:", "agents: {ids: ["+ids+"]}\nrules:", 1)
	}
	out := map[string]missed{}
	row := func(name, old, new string, v Verdict) {
		space := "{local_tools: [{alias: t}], mcp_servers: [{alias: s, server_ref: s}]}"
		opt := resolve.Options{AllowTimeoutApprove: true}
		out[name] = missed{
			&Side{Plan: planOf(t, opt, space, old)}, &Side{Plan: planOf(t, opt, space, new)}, v,
		}
	}
	row("a redaction", demands("arguments: {redact: [a, b]}"), demands("arguments: {redact: [a]}"), VerdictLoosens)
	row("a redaction elsewhere", demands("arguments: {redact: [a.b]}"), demands("arguments: {redact: [a.c]}"),
		VerdictUndecided)
	row("what is hidden may be approved", demands("arguments: {redact: [a], approve_hidden: false}"),
		demands("arguments: {redact: [a]}"), VerdictLoosens)
	row("a bound", demands("grants: {max_uses: 3}"),
		demands("grants: {max_uses: 3, bounds: [{path: k, kind: at_most}]}"), VerdictLoosens)
	row("a bound of a key in another case", demands("grants: {bounds: [{path: k, kind: at_most}]}"),
		demands("grants: {bounds: [{path: K, kind: at_most}]}"), VerdictUndecided)
	row("a bound to the other side", demands("grants: {bounds: [{path: k, kind: at_most}]}"),
		demands("grants: {bounds: [{path: k, kind: at_least}]}"), VerdictUndecided)
	row("approval by timeout", demands("within: 1h, on_timeout: deny"), demands("within: 1h, on_timeout: approve"),
		VerdictLoosens)
	row("who is called in may approve", demands("stages: [{group: g}], escalate: [{after: 5m, to: h, may: look}]"),
		demands("stages: [{group: g}], escalate: [{after: 5m, to: h}]"), VerdictLoosens)
	row("a hint", asks("annotations: {destructiveHint: true}"),
		asks("annotations: {destructiveHint: true, openWorldHint: true}"), VerdictLoosens)
	row("another hint", asks("annotations: {destructiveHint: true}"), asks("annotations: {openWorldHint: true}"),
		Mixed)
	row("the other value of a hint", asks("annotations: {x: true}"), asks("annotations: {x: false}"), Mixed)
	row("a target in capitals", asks("targets: [Pay]"), asks("targets: [pay]"), Mixed)
	row("letters that look the same", asks("targets: [\"\\u00e9\"]"), asks("targets: [\"e\\u0301\"]"), Mixed)
	row("a glob", asks("targets: ['pay*']"), asks("targets: ['pay_*']"), VerdictLoosens)
	row("a glob in the middle", asks("targets: ['*pay*']"), asks("targets: ['pay*', '*pay']"), VerdictLoosens)
	row("the servers of a rule", asks("targets: [x]"), asks("targets: [x], servers: [other]"), VerdictLoosens)
	row("the kinds of a rule", asks("targets: [x]"), asks("targets: [x], kinds: [tool]"), VerdictLoosens)
	row("which agents are selected", chosen("'d*'"), chosen("'D*'"), VerdictLoosens)
	row("a denial", rule("targets: [t]", "deny: no"), rule("targets: [t]", "approval: true"), VerdictLoosens)

	return out
}

// missedByAgents returns rows that differ in the agent or in decisions.yaml.
func missedByAgents(t *testing.T) map[string]missed {
	silent := resolve.Options{Semantics: resolve.Semantics{Conditions: condition.Semantics{
		OnMissing:  condition.NoMatch,
		OnMismatch: condition.NoMatch,
	}}}
	gated := func(groups string) *Side {
		return &Side{Plan: planOf(t, silent, tools("{alias: t, approval: {condition: ["+groups+"]}}"))}
	}
	owned := func(names string) *Side {
		text := strings.Replace(agentText(tools("{alias: t}")), "description: D",
			"description: D, labels: {owner: '"+names+"'}", 1)
		return sideText(t, resolve.Options{}, text)
	}
	free := &Side{Plan: planOf(t, silent, tools("{alias: t}"))}
	waits := func(age time.Duration) *Side { return &Side{Plan: free.Plan, PermitAge: age} }

	return map[string]missed{
		"a rule that asks about lists alone": {gated("{args_match: {n: {in: []}}}"), free, VerdictLoosens},
		"null is no text": {gated("{args_match: {n: {}}}"), gated("{args_match: {n: {ne: x}}}"),
			VerdictLoosens},
		"text that looks like a number": {gated("{args_match: {n: 5}}"), gated("{args_match: {n: \"5\"}}"),
			Mixed},
		"text that looks like a truth": {gated("{args_match: {n: true}}"),
			gated("{args_match: {n: \"true\"}}"), Mixed},
		"a number that a double rounds": {
			gated("{args_match: {n: {ne: 9007199254740992}}}"), gated("{args_match: {n: {ne: 9007199254740993}}}"), Mixed,
		},
		"a key in another case":  {gated("{args_match: {n: 5}}"), gated("{args_match: {N: 5}}"), Mixed},
		"a name and a path":      {gated("{args_match: {a.b: 5}}"), gated("{args_match: {a.c: 5}}"), Mixed},
		"an element of a list":   {gated("{args_match: {l.0: 5}}"), gated("{args_match: {l.1: 5}}"), Mixed},
		"an owner less":          {owned("bo, al"), owned("al"), VerdictLoosens},
		"an age of permits":      {waits(time.Minute), waits(time.Hour), VerdictLoosens},
		"an age of permits anew": {waits(time.Minute), waits(0), VerdictLoosens},
		"a list without a list":  missedLists(t, "allowed_tools: []", "approval: false"),
		"an entry's own approval": missedLists(t, "approval: true, allowed_tools: [{name: a}]",
			"approval: true, allowed_tools: [{name: a, approval: false}]"),
		"a name in another case": {missedLists(t, "allowed_tools: [{name: a}]", "x: 1").old,
			missedLists(t, "allowed_tools: [{name: A}]", "x: 1").old, Mixed},
		"a parent that demands it": missedParents(t),
	}
}

// missedLists returns a pair with two spellings of a server.
func missedLists(t *testing.T, old, new string) missed {
	side := func(text string) *Side {
		return &Side{Plan: planOf(t, resolve.Options{}, "{mcp_servers: [{alias: s, server_ref: s, "+text+"}]}")}
	}
	return missed{side(old), side(new), VerdictLoosens}
}

// missedParents returns two versions of a parent of the same child. The child's own tools don't
// show what the parent requires of it.
func missedParents(t *testing.T) missed {
	above := func(require string) *Side {
		demand := rule("targets: [t]", "approval: true, require: {stages: [{group: g, people: "+require+"}]}")
		parent := planOf(t, resolve.Options{}, "{local_agents: [{alias: c, source: c.agf.yaml}]}", demand)
		own := planOf(t, resolve.Options{}, tools("{alias: t}"))
		below, err := resolve.Compile(own.Agent(), nil, resolve.Options{Parent: parent})
		if err != nil {
			t.Fatal(err)
		}
		return &Side{Plan: own, Below: below, Parents: "desk"}
	}
	return missed{above("2"), above("1"), VerdictLoosens}
}
