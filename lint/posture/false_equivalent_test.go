package posture

import (
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/testtier"
	"github.com/assent-dev/assent/resolve"
)

// hardMatchers returns tests of one argument that are easily mistaken for each other.
func hardMatchers() []string {
	return []string{
		"{}", "5", `"5"`, "5.0", "-0", "0", "0.1", "9007199254740993", "9007199254740992", "1.7e308", "true",
		`"true"`, `"null"`, `""`, `" "`, `"k"`, `"K"`, `"é"`, `"e\u0301"`, "{ne: 5}", `{ne: "5"}`, "{ne: true}",
		"{gt: 5}", "{gte: 5}", "{lt: 5}", "{lte: 5}", "{gt: 0}", "{gt: -0.0}", "{in: []}", "{not_in: []}",
		`{in: [5, "5"]}`,
		`{in: ["5"]}`, "{not_in: [5]}", "{not_in: [5, 5.0]}", "{pattern: ''}", "{pattern: '5'}", "{pattern: '^5$'}",
		"{pattern: '^5\\z'}", "{pattern: '(?m)^5$'}", "{pattern: '\\A5\\z'}", "{pattern: '(?i)k'}",
		"{pattern: '[kK]'}",
		"{pattern: '(?i)^k$'}", "{pattern: '^.$'}", "{pattern: '(?s)^.$'}", "{pattern: '^[^\\n]$'}",
		"{pattern: '\\d'}",
		"{pattern: '[0-9]'}", "{pattern: '\\pN'}", "{pattern: '\\bk'}", "{pattern: '\\Bk'}", "{pattern: '^\\s*$'}",
		"{pattern: '^$'}", "{pattern: 'k|'}", "{pattern: '^k|5$'}", "{pattern: '^(k|5)$'}", "{pattern: 'é'}",
		"{gt: 3, lt: 2}", `{ne: "x", pattern: 'x'}`,
	}
}

// hardValues returns arguments that distinguish these tests. An empty string means that the
// argument is missing.
func hardValues() []string {
	return []string{
		"", "null", "true", "false", "5", "5.0", "5e0", "-0", "0", "0.0", "0.1", "0.10000000000000000001",
		"1.7e308", "5e-324",
		"9007199254740993", "9007199254740992", "-5", "6", `"5"`, `" 5 "`, `"5\n"`, `"\n5"`, `"a\n5\nb"`, `"5.0"`,
		`"true"`, `"null"`,
		`""`, `" "`, `"\n"`, `"\u00a0"`, `"k"`, `"K"`, `"\u212a"`, `" k"`, `"ak"`, `"k5"`, `"é"`, `"e\u0301"`,
		`"\u0665"`, `"x"`, "[]",
		"[5]", "{}", `{"k":5}`,
	}
}

// TestNoEquivalenceIsFalse compares each two of the tests in both directions and with the readings
// of both sides. Every argument for which the two decisions differ must be in the region of a
// change, or of an undecided one.
func TestNoEquivalenceIsFalse(t *testing.T) {
	readings := []condition.Semantics{
		{},
		{
			OnMissing:  condition.NoMatch,
			OnMismatch: condition.NoMatch,
			Anchor:     condition.Full,
			Trim:       condition.RawOnly,
		},
	}
	sides := map[string][]*Side{}
	for _, m := range hardMatchers() {
		for _, sem := range readings {
			space := tools("{alias: t, approval: {condition: [{args_match: {k: " + m + "}}]}}")
			opt := resolve.Options{Semantics: resolve.Semantics{Conditions: sem}}
			sides[m] = append(sides[m], &Side{Plan: planOf(t, opt, space)})
		}
	}

	differing, undecided, pairs := 0, 0, 0
	for i, a := range hardMatchers() {
		for j, b := range hardMatchers() {
			if !testtier.Row(a, b) {
				continue
			}
			pairs++
			old, new := sides[a][i%2], sides[b][(i+j)%2]
			found, open := heldAgainst(t, a+" and "+b, old, new)
			differing += found
			undecided += open
		}
	}

	if differing < pairs/2 || undecided > 0 {
		t.Errorf("%d values were decided otherwise, %d pairs undecided", differing, undecided)
	}
}

// heldAgainst checks each value. It returns the number of values for which the decisions differ and
// the number of undecided changes.
func heldAgainst(t *testing.T, what string, old, new *Side) (differing, undecided int) {
	t.Helper()
	changes := Compare(old, new)
	for _, c := range changes {
		if c.Effect == Undecided {
			t.Logf("%s: %s", what, told(changes))
			undecided++
		}
	}

	for _, v := range hardValues() {
		text := "{}"
		if v != "" {
			text = `{"k":` + v + "}"
		}
		call := resolve.Call{Kind: resolve.Tool, Tool: "t", Args: resolve.Raw(text)}
		was, is := old.Plan.Decide(&call).Outcome, new.Plan.Decide(&call).Outcome
		doc := parsed(t, text)
		there := slices.ContainsFunc(changes, func(c Change) bool {
			return c.region != nil && c.From == was.String() && c.To == is.String() && c.region.Has(doc)
		})
		if there != (was != is) {
			t.Fatalf("%s: %s: %s → %s, and the changes are\n%s", what, text, was, is, told(changes))
		}
		if was != is {
			differing++
		}
	}

	return differing, undecided
}

// TestNamesBehindAliases checks aliases with and without a name. Without one, the alias is the name
// of the tool or server, so adding or removing a name may select another one.
func TestNamesBehindAliases(t *testing.T) {
	side := func(space, rest string) *Side { return sideText(t, resolve.Options{}, agentText(space)+rest) }
	wire := policyText("acme.wire", "{id: r, match: {targets: [wire]}, approval: true}")
	naming := func(required string) *Side {
		ref := "constraints: {governance_policies: [{policy_ref: acme.wire" + required + "}]}\n"
		return sideText(t, resolve.Options{}, agentText(tools("{alias: wire}"))+ref, wire)
	}
	for name, c := range map[string]struct {
		old, new   *Side
		there, way Verdict
	}{
		"a server's reference": {
			side("{mcp_servers: [{alias: s, server_ref: a.example}]}", ""),
			side("{mcp_servers: [{alias: s}]}", ""), VerdictUndecided, VerdictUndecided,
		},
		"a tool's name": {
			side(tools("{alias: t, name: pay}"), ""), side(tools("{alias: t}"), ""), VerdictUndecided, VerdictUndecided,
		},
		"a path": {
			side("{local_agents: [{alias: a, source: ./agents/sub.agf.yaml}]}", ""),
			side("{local_agents: [{alias: a, source: agents/sub.agf.yaml}]}", ""), Equivalent, Equivalent,
		},
		"another path": {
			side("{local_agents: [{alias: a, source: ./agents/sub.agf.yaml}]}", ""),
			side("{local_agents: [{alias: a, source: sub.agf.yaml}]}", ""), VerdictUndecided, VerdictUndecided,
		},
		"a policy that becomes required": {
			naming(", required: false"), naming(", required: true"), VerdictTightens, VerdictLoosens,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewReport(Compare(c.old, c.new)); got.Verdict != c.there {
				t.Errorf("%s\n%s", got.Verdict, told(got.Changes))
			}
			if got := NewReport(Compare(c.new, c.old)); got.Verdict != c.way {
				t.Errorf("back: %s\n%s", got.Verdict, told(got.Changes))
			}
		})
	}
}

// TestOwnersChoicesAreCompared changes the facts derived from arguments and the sources of the
// files that decide.
func TestOwnersChoicesAreCompared(t *testing.T) {
	const hour = time.Hour
	shell := tools("{alias: shell, approval: {condition: [{args_match: {sh.programs: {ne: ls}}}]}}")
	derived := func(listed ...string) *Side {
		d := resolve.Derived{Target: "tool shell", From: "command", As: "sh", Listed: listed}
		return &Side{Plan: planOf(t, resolve.Options{Derived: []resolve.Derived{d}}, shell)}
	}
	with := func(change func(s *Side)) *Side {
		s := derived("ls")
		change(s)
		return s
	}
	from := func(file string) *Side {
		return with(func(s *Side) { s.Sources = map[string]string{"decisions.yaml": file} })
	}
	registry := func(url string, keep time.Duration) *Side {
		return with(func(s *Side) { s.PolicyRegistry, s.RegistryKeep = url, keep })
	}
	for name, c := range map[string]struct {
		old, new *Side
		want     Verdict
	}{
		"the same facts":          {derived("ls", "cat"), derived("cat", "ls"), Equivalent},
		"no facts":                {derived("ls"), &Side{Plan: planOf(t, resolve.Options{}, shell)}, VerdictUndecided},
		"facts":                   {&Side{Plan: planOf(t, resolve.Options{}, shell)}, derived("ls"), VerdictUndecided},
		"another list":            {derived("ls"), derived("ls", "rm"), VerdictUndecided},
		"another file":            {from("decisions.yaml"), from("agents/decisions.yaml"), VerdictUndecided},
		"a file that is new":      {derived("ls"), from("decisions.yaml"), Equivalent},
		"another registry":        {registry("https://a", hour), registry("https://b", hour), VerdictUndecided},
		"no registry":             {registry("https://a", hour), registry("", hour), VerdictLoosens},
		"a registry":              {registry("", hour), registry("https://a", hour), VerdictTightens},
		"copies that last longer": {registry("https://a", hour), registry("https://a", 2*hour), VerdictLoosens},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewReport(Compare(c.old, c.new)); got.Verdict != c.want {
				t.Errorf("%s\n%s", got.Verdict, told(got.Changes))
			}
		})
	}
}

// TestSpacesInATagChangeNothing checks that spaces in a template's tag are no change, because the
// message is the same.
func TestSpacesInATagChangeNothing(t *testing.T) {
	plan := func(message string) *Side {
		return &Side{Plan: planOf(t, resolve.Options{}, tools(
			`{alias: t, approval: {message_template: "`+message+`", condition: {args_match: {a: 1}}}}`,
		))}
	}
	old := plan("Pay {{tool_args.a}}?")
	for message, want := range map[string]int{
		"Pay {{ tool_args.a }}?": 0,
		"Pay {{{tool_args.a}}}?": 0,
		"Pay {{tool_args.a}} ?":  1,
		"Pay {{tool_args.b}}?":   1,
		"Pay tool_args.a?":       1,
	} {
		if got := Compare(old, plan(message)); len(got) != want {
			t.Errorf("%s: %s", message, told(got))
		}
	}
}

// TestATighterRuleThatRemovesAnEscalationSaysSo joins a rule with one that does not escalate, so
// that the group is no longer called in.
func TestATighterRuleThatRemovesAnEscalationSaysSo(t *testing.T) {
	space := tools("{alias: t}")
	rule := func(id, rest string) string {
		return "{id: " + id + ", match: {targets: [t]}, approval: true, " +
			"require: {stages: [{group: sre, people: 2}]" + rest + "}}"
	}
	calls := rule("calls", ", within: 20m, on_timeout: escalate, escalate: [{after: 10m, to: leads}]")
	side := func(rules ...string) *Side {
		return &Side{Plan: planOf(t, resolve.Options{}, space, policyText("p", rules...))}
	}
	notes := func(old, new *Side) string {
		out := ""
		for _, c := range Compare(old, new) {
			out += c.Note
		}
		return out
	}
	const want = "no longer escalates to leads: they are not called in any more"
	if got := notes(side(calls), side(calls, rule("plain", ""))); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if got := notes(side(calls, rule("plain", "")), side(calls)); got != "" {
		t.Errorf("back: %q", got)
	}
}
