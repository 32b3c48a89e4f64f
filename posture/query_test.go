package posture

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

func TestQueries(t *testing.T) {
	plan := planOf(t, resolve.Options{}, `{local_tools: [{alias: pay, approval: {condition: [{args_match: {amount: {gt: 10}}}]}}],
    local_agents: [{alias: clerk, source: c.agf.yaml, approval: {condition: [{args_match: {parent.input.risk: high}}]}}]}`,
		policyText("p", "{id: r, match: {targets: [pay], annotations: {readOnlyHint: true}}, deny: \"no\"}"))
	pay, clerk := resolve.Call{
		Kind: resolve.Tool,
		Tool: "pay",
	}, resolve.Call{Kind: resolve.Delegation, Agent: "clerk"}
	for _, c := range []struct {
		call    resolve.Call
		where   string
		outcome resolve.Outcome
		found   condition.Verdict
		witness string
	}{
		{pay, "amount>10", resolve.Allow, condition.No, ""},
		{pay, "amount>9,currency=USD", resolve.Allow, condition.Yes,
			`{"kind":"tool","tool":"pay","args":{"amount":10,"currency":"USD"}}`},
		{pay, "amount<=10", resolve.Ask, condition.No, ""},
		{pay, "amount=3", resolve.Deny, condition.Yes,
			`{"kind":"tool","tool":"pay","args":{"amount":3},"annotations":{"readOnlyHint":true}}`},
		{pay, "amount~'x'", resolve.Allow, condition.No, ""},
		{clerk, "parent.input.risk=low", resolve.Ask, condition.No, ""},
		{clerk, "", resolve.Allow, condition.Yes,
			`{"kind":"delegation","agent":"clerk","args":{},"parent":{"input":{"risk":"x"}}}`},
		{resolve.Call{Kind: resolve.Tool, Tool: "other"}, "", resolve.Allow, condition.No, ""},
		{resolve.Call{Kind: "none"}, "", resolve.Allow, condition.Undecided, ""},
		{pay, strings.Repeat("a.a=1,", 1) + wide(), resolve.Allow, condition.Undecided, ""},
	} {
		where, err := ParseWhere(c.where)
		must.Do(t, err)
		a := Query{Call: c.call, Where: where, Outcome: c.outcome}.Ask(plan)
		if a.Found != c.found || string(a.Witness) != c.witness || (a.Why != "") != (c.found == condition.Undecided) {
			t.Errorf("%s %s %s: %v %s %s", c.call.Target(), c.where, c.outcome, a.Found, a.Witness, a.Why)
		}
	}

	given := pay
	given.Annotations = map[string]bool{"readOnlyHint": false}
	if a := (Query{Call: given, Outcome: resolve.Deny}).Ask(plan); a.Found != condition.No {
		t.Errorf("annotations are given, and the answer is %v %s", a.Found, a.Witness)
	}
}

// wide is more dotted keys than are told apart.
func wide() string {
	var keys []string
	for _, c := range "bcdefghijklmn" {
		keys = append(keys, "a."+string(c)+"=1")
	}
	return strings.Join(keys, ",")
}

// TestQueriesAgreeWithBruteForce: a call of the domain with that
// outcome is found, and no means that there is none.
func TestQueriesAgreeWithBruteForce(t *testing.T) {
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 23))}
		plan, call := planOf(t, d.options(), d.space(), d.policies()...), pick(d, calls()...)
		where, _ := ParseWhere(pick(d, "", "k>1", "l=x", "k!=1,l=true"))
		for _, outcome := range []resolve.Outcome{resolve.Deny, resolve.Ask, resolve.Allow} {
			a := Query{Call: call, Where: where, Outcome: outcome}.Ask(plan)
			if a.Found == condition.Yes {
				continue // the plan has decided it
			}
			for _, args := range domain() {
				one := call
				one.Args = resolve.Raw(args)
				fits := where == nil || asksAt(t, where, args)
				if got := plan.Decide(&one).Outcome; fits && got == outcome {
					t.Fatalf("seed %d: %s: %v %s, but %s gives %s", seed, call.Target(), a.Found, a.Why, args, got)
				}
			}
		}
	}
}

func asksAt(t *testing.T, where *condition.Expr, args string) bool {
	t.Helper()
	doc := parsed(t, args)
	truth, err := condition.Evaluate(condition.Governance, condition.Semantics{}, where, doc)
	must.Do(t, err)
	return truth == condition.True
}

// FuzzParseWhere: any text is read or refused; what is read has a name
// and a test for each part.
func FuzzParseWhere(f *testing.F) {
	for _, text := range []string{"amount>50000,currency=USD", `a="x,y" , b!=true`, "a~^x", `a="`, "=", "a=,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseWhere(text)
		if err != nil || e == nil {
			return
		}
		for _, m := range e.Groups[0].Matchers {
			if m.Key == "" || len(m.Tests) != 1 || m.Tests[0].Op == condition.Unreadable {
				t.Errorf("%q: %+v", text, m)
			}
		}
		if _, err := condition.Evaluate(condition.Governance, condition.Semantics{}, e, parsed(t, "{}")); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestParseWhere(t *testing.T) {
	for text, want := range map[string]string{
		"a>1":             "a gt 1",
		"a >= 1.50, b<2":  "a gte 1.50; b lt 2",
		"a<=1e3":          "a lte 1e3",
		`a="1"`:           `a equals "1"`,
		"a=true,b!=false": "a equals true; b ne false",
		`a="x,y" ,b=z w`:  `a equals "x,y"; b equals "z w"`,
		`a=""`:            `a equals ""`,
		"a.b~^x":          `a.b pattern "^x"`,
		"":                "",
	} {
		e, err := ParseWhere(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		if e != nil {
			for _, m := range e.Groups[0].Matchers {
				got = append(got, m.Key+" "+m.Tests[0].String())
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}

	for text, want := range map[string]string{
		"amount":   "expected a test",
		">1":       "expected a test",
		" =1":      "expected a name",
		"a!1":      "expected a name",
		"a>x":      `"x" is no number`,
		"a=":       "expected a value",
		"a=1,,b=2": "expected a test",
		`a="x" y`:  "expected a comma",
		"a~(":      "missing closing",
	} {
		if _, err := ParseWhere(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
