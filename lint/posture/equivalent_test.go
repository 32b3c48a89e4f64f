package posture

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// TestOtherSpellingsAreEquivalent checks that a different spelling of the same rule is no change,
// and that one more letter in a value is one.
func TestOtherSpellingsAreEquivalent(t *testing.T) {
	const (
		implicit = "{id: r, match: {targets: [t]}, approval: "
		large    = "{condition: [{args_match: {n: {gt: 5}}}]}"
	)
	gate := func(groups string) string { return tools("{alias: t, approval: {condition: [" + groups + "]}}") }
	match := func(m string) string { return gate("{args_match: {" + m + "}}") }
	for name, c := range map[string]struct {
		old, new, other string // other is not the same
		policies        []string
	}{
		"regular expressions": {
			match("to: {pattern: '^(ab|ac)$'}"), match("to: {pattern: '^a[bc]$'}"),
			match("to: {pattern: '^a[bcd]$'}"), nil,
		},
		"a repetition": {
			match("to: {pattern: '^a+$'}"), match("to: {pattern: '^aa*$'}"), match("to: {pattern: '^a*$'}"), nil,
		},
		"numbers": {match("n: {gt: 10000}"), match("n: {gt: 1e4}"), match("n: {gt: 1.00001e4}"), nil},
		"numbers with a fraction of nothing": {
			match("n: {gt: 1000}"), match("n: {gt: 1000.0}"), match("n: {gt: 1000.01}"), nil,
		},
		"the same number three times": {
			match("n: 1e3"), match("n: {in: [1000, 1000.0, 1E+3]}"), match("n: \"1000\""), nil,
		},
		"groups in another order": {
			gate("{args_match: {c: EUR}}, {args_match: {n: {gt: 5}}}"),
			gate("{args_match: {n: {gt: 5}}}, {args_match: {c: EUR}}"),
			gate("{args_match: {n: {gt: 5}}}, {args_match: {c: EUR, n: 3}}"), nil,
		},
		"tests in another order": {match("c: EUR, n: {gt: 5}"), match("n: {gt: 5}, c: EUR"), match("n: {gt: 5}"), nil},
		"an allow-list in another order": {
			"{mcp_servers: [{alias: s, server_ref: s, allowed_tools: [{name: a}, {name: b, approval: true}]}]}",
			"{mcp_servers: [{alias: s, server_ref: s, allowed_tools: [{name: b, approval: true}, {name: a}]}]}",
			"{mcp_servers: [{alias: s, server_ref: s, allowed_tools: [{name: b}, {name: a, approval: true}]}]}", nil,
		},
		"tools in another order": {
			tools("{alias: t, approval: true}, {alias: u}"), tools("{alias: u}, {alias: t, approval: true}"),
			tools("{alias: u, approval: true}, {alias: t}"), nil,
		},
		"a blanket and its entries": {
			"{mcp_servers: [{alias: s, server_ref: s, approval: true, allowed_tools: [{name: a}]}]}",
			"{mcp_servers: [{alias: s, server_ref: s, allowed_tools: [{name: a, approval: true}]}]}",
			"{mcp_servers: [{alias: s, server_ref: s, approval: true, allowed_tools: [{name: a, approval: false}]}]}", nil,
		},
		"anchors of YAML": {
			tools("{alias: t, approval: &a " + large + "}, {alias: u, approval: *a}"),
			tools("{alias: t, approval: " + large + "}, {alias: u, approval: " + large + "}"),
			tools("{alias: t, approval: &a " + large + "}, {alias: u}"), nil,
		},
		"flags of expressions": {
			match("to: {pattern: '(?i)^ab$'}"), match("to: {pattern: '^[aA][bB]$'}"),
			match("to: {pattern: '^(?i:a)b$'}"), nil,
		},
		"a letter that folds to two": {
			match("to: {pattern: '(?i)^k$'}"), match("to: {pattern: '^[kK\\x{212A}]$'}"),
			match("to: {pattern: '^[kK]$'}"), nil,
		},
		"a list and single values": {
			match("c: {in: [EUR, USD]}"), gate("{args_match: {c: USD}}, {args_match: {c: EUR}}"),
			gate("{args_match: {c: USD}}, {args_match: {c: GBP}}"), nil,
		},
		"a split group": {
			match("n: {gte: 5}"), gate("{args_match: {n: {gt: 5}}}, {args_match: {n: 5}}"),
			gate("{args_match: {n: {gt: 5}}}, {args_match: {n: 6}}"), nil,
		},
		"a group inside another": {
			match("n: {gt: 5}"), gate("{args_match: {n: {gt: 5}}}, {args_match: {n: {gt: 7}, c: EUR}}"),
			gate("{args_match: {n: {gt: 5}}}, {args_match: {c: EUR}}"), nil,
		},
		"two forms of always": {
			tools("{alias: t, approval: true}"), tools("{alias: t, approval: {}}"), tools("{alias: t}"), nil,
		},
		"none and false": {
			tools("{alias: t}"), tools("{alias: t, approval: false}"), tools("{alias: t, approval: true}"), nil,
		},
		"a rule moved into a policy": {
			match("n: {gt: 5}"), tools("{alias: t}"), tools("{alias: t, approval: true}"),
			[]string{policyText("p", implicit+"{condition: [{args_match: {n: {gt: 5}}}]}}")},
		},
		"a rule with its message moved into a policy": {
			tools("{alias: t, approval: {message_template: 'Pay {{tool_args.n}}?'}}"), tools("{alias: t}"),
			"{local_tools: []}",
			[]string{policyText("p", implicit+"{message_template: 'Pay {{tool_args.n}}?'}}")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := &Side{Plan: planOf(t, resolve.Options{}, c.old)}
			report := NewReport(Compare(old, &Side{Plan: planOf(t, resolve.Options{}, c.new, c.policies...)}))
			if report.Verdict != Equivalent || len(report.Changes) > 0 {
				t.Errorf("%s\n%s", report.Verdict, told(report.Changes))
			}
			report = NewReport(Compare(old, &Side{Plan: planOf(t, resolve.Options{}, c.other, c.policies...)}))
			if report.Verdict == Equivalent {
				t.Errorf("what is not the same is %s", report.Verdict)
			}
		})
	}
}

// TestAReferenceMayCarryAMovedRule moves a rule from the agent to a policy that the agent then
// names. The reference is reported but changes no outcome.
func TestAReferenceMayCarryAMovedRule(t *testing.T) {
	const named = "constraints: {governance_policies: [{policy_ref: p}]}\n"
	rule := strings.Replace(
		policyText("p", "{id: r, match: {targets: [t]}, approval: {condition: [{args_match: {n: {gt: 5}}}]}}"),
		"implicit", "referenced", 1)
	own := sideText(
		t,
		resolve.Options{},
		agentText(tools("{alias: t, approval: {condition: [{args_match: {n: {gt: 5}}}]}}")),
	)
	moved := sideText(t, resolve.Options{}, agentText(tools("{alias: t}"))+named, rule)
	there := NewReport(Compare(own, moved))
	if want := "agent: policy_ref changes: p: absent → p: required\n"; there.Verdict != Equivalent ||
		told(there.Changes) != want {
		t.Errorf("%s\n%s", there.Verdict, told(there.Changes))
	}
	back := NewReport(Compare(moved, own))
	if want := "agent: policy_ref loosens: p: required → p: absent\n"; back.Verdict != VerdictLoosens ||
		told(back.Changes) != want {
		t.Errorf("%s\n%s", back.Verdict, told(back.Changes))
	}
}

// TestWhatIsAboutTheWholeAgent compares each pair in both directions.
func TestWhatIsAboutTheWholeAgent(t *testing.T) {
	plain := agentText(tools("{alias: t}"))
	limit := func(n string) string { return plain + "constraints: {limits: {max_tool_calls: " + n + "}}\n" }
	servers := func(list string) string { return agentText("{mcp_servers: [{alias: s, server_ref: one" + list + "}]}") }
	side := func(opt resolve.Options, text string) *Side { return sideText(t, opt, text) }
	silent := side(resolve.Options{}, plain)
	silent.Suppressed = []Suppression{{
		File: "the agent's file",
		Rule: "x",
		At:   Position{File: "a.agf.yaml", Line: 3},
	}}
	reads := func(s condition.Semantics) resolve.Options {
		return resolve.Options{Semantics: resolve.Semantics{Conditions: s}}
	}
	for name, c := range map[string]struct {
		old, new *Side
		loosens  string
	}{
		"a limit": {side(resolve.Options{}, limit("3")), side(resolve.Options{}, limit("4")),
			"agent: limit loosens: max_tool_calls: 3 → max_tool_calls: 4\n"},
		"a limit less": {side(resolve.Options{}, limit("3")), side(resolve.Options{}, plain),
			"agent: limit loosens: max_tool_calls: 3 → max_tool_calls: none\n"},
		"children that may loosen": {side(resolve.Options{}, plain),
			side(resolve.Options{}, plain+"constraints: {tighten_only_invariant: false}\n"),
			"agent: tighten_only loosens: true → false\n"},
		"a suppression": {side(resolve.Options{}, plain), silent,
			"agent: suppression loosens: x in the agent's file: none → x in the agent's file: silenced\n"},
		"a reading of what is missing": {side(resolve.Options{}, plain), side(
			reads(condition.Semantics{OnMissing: condition.NoMatch}),
			plain,
		),
			"agent: semantics loosens: on_missing: ask → on_missing: no_match\n"},
		"a trusted server": {side(resolve.Options{}, plain), side(
			resolve.Options{TrustedServers: []string{"s"}},
			plain,
		),
			"agent: trusted_servers loosens: none → s\n"},
		"keys that differ in case": {side(resolve.Options{}, plain), side(
			resolve.Options{CaseSensitive: []string{"tool t"}},
			plain,
		),
			"agent: case_sensitive_arguments loosens: none → tool t\n"},
		"a list without a tool": {side(resolve.Options{}, servers(", allowed_tools: [{name: a}]")),
			side(resolve.Options{}, servers(", allowed_tools: [{name: a}, {name: b}]")),
			"mcp_tool s: allow_list loosens: mcp_tool s: a → mcp_tool s: a, b\n" +
				"mcp_tool s b: outcome loosens: deny → allow: every call\n"},
		"an agent": {
			nil,
			side(resolve.Options{}, plain),
			"agent: agent loosens: absent → present: every call that it may make\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			there := NewReport(Compare(c.old, c.new))
			if there.Verdict != VerdictLoosens || told(there.Changes) != c.loosens {
				t.Errorf("%s\n%s", there.Verdict, told(there.Changes))
			}
			if back := NewReport(Compare(c.new, c.old)); back.Verdict != VerdictTightens {
				t.Errorf("back: %s\n%s", back.Verdict, told(back.Changes))
			}
		})
	}

	if got := Compare(nil, nil); got != nil {
		t.Errorf("no agent, and %v", got)
	}
}

// TestReadingsAreComparedWithTheirOwn changes a reading on one side. It must have an effect if a
// condition depends on it.
func TestReadingsAreComparedWithTheirOwn(t *testing.T) {
	space := tools("{alias: t, approval: {condition: [{args_match: {to: {pattern: '^a'}}}]}}")
	full := resolve.Options{Semantics: resolve.Semantics{Conditions: condition.Semantics{Anchor: condition.Full}}}
	report := NewReport(Compare(&Side{Plan: planOf(t, resolve.Options{}, space)}, &Side{Plan: planOf(t, full, space)}))
	want := "agent: semantics loosens: anchor: unanchored → anchor: full\n" +
		`tool t: outcome loosens: ask → allow: to matches "^a" and to is a text that does not match "^a" as a whole` + "\n"
	if got := told(report.Changes); report.Verdict != VerdictLoosens || got != want {
		t.Errorf("%s\ngot:\n%swant:\n%s", report.Verdict, got, want)
	}
}
