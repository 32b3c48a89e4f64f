package posture

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
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
		{pay, `amount~"'x'"`, resolve.Allow, condition.No, ""},
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

// wide returns a condition with more dotted keys than a comparison distinguishes.
func wide() string {
	var keys []string
	for _, c := range "bcdefghijklmn" {
		keys = append(keys, "a."+string(c)+"=1")
	}
	return strings.Join(keys, ",")
}

// TestQueriesAgreeWithBruteForce checks that a call of the domain with that outcome is found, and
// that there is none if the answer is no.
func TestQueriesAgreeWithBruteForce(t *testing.T) {
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 23))}
		plan, call := planOf(t, d.options(t), d.space(), d.policies()...), pick(d, calls()...)
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

// FuzzParseWhere checks that any text is parsed or refused, and that a parsed text has a name and a
// test for each part.
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
		"a>1":                        "a gt 1",
		"a >= 1.50, b<2":             "a gte 1.50; b lt 2",
		"a<=1e3":                     "a lte 1e3",
		`a="1"`:                      `a equals "1"`,
		"a=true,b!=false":            "a equals true; b ne false",
		`a="x,y" ,b="z w"`:           `a equals "x,y"; b equals "z w"`,
		`a=EUR , b="/etc/x"`:         `a equals "EUR"; b equals "/etc/x"`,
		`"a b"=1`:                    "a b equals 1",
		`a~"^(x|y)$",b=-1`:           `a pattern "^(x|y)$"; b equals -1`,
		`größe="Straße"`:             `größe equals "Straße"`,
		`a=""`:                       `a equals ""`,
		`a~""`:                       `a pattern ""`,
		`a.b~"^x"`:                   `a.b pattern "^x"`,
		"a exists, b missing":        "a exists true; b exists false",
		`"a b"exists,exists missing`: "a b exists true; exists exists false",
		`a!~x,b !~ "^y z"`:           `a not_pattern "x"; b not_pattern "^y z"`,
		"a:b[0]=_x.y@z/+-,c=-0.5E+2": `a:b[0] equals "_x.y@z/+-"; c equals -0.5E+2`,
		"":                           "",
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
		"amount":           "column 7: expected one of = != < <= > >= ~ !~, exists or missing, found the end",
		">1":               "column 1: expected a test such as amount>50000, found >1",
		" =1":              "column 2: expected a test",
		"a!1":              "column 2: expected one of = != < <= > >= ~ !~, exists or missing, found !1",
		"a>x":              `column 3: "x" is not a number`,
		`a>"5"`:            `column 3: "5" is not a number, and only numbers have an order; write 5`,
		"a=":               "column 3: expected a value",
		"a=1,,b=2":         "column 5: expected a test",
		"a=1,":             "column 5: expected a test such as amount>50000, found the end; leave out the last comma",
		`a="x" y`:          "column 7: expected a comma or the end, found y",
		`a~"("`:            "missing closing",
		"a EXISTS":         "column 3: EXISTS is no operator; write exists",
		"a existsb":        "column 3: expected one of",
		"a exists b":       "column 10: expected a comma",
		"a=/etc/x":         `column 3: a text that is not a plain word needs double quotes, found /etc/x; write "/etc/x"`,
		"url=https://x":    `write "https://x"`,
		"path~^/etc":       `column 6: this pattern needs double quotes, found ^/etc; write "^/etc"`,
		"a~5":              `write "5"`,
		"a~true":           `write "true"`,
		"a!~(":             `write "("`,
		"id=5a":            `if it is a text, write "5a"`,
		"a=01":             "write 1; ",
		"a=+5":             "write 5; ",
		"a=-.5":            "write -0.5; ",
		"a>01":             "write 1",
		"a&&b=1":           "column 1: && does not join tests; write a comma",
		"a||b=1":           "|| does not join",
		"a=1 || b=2":       "|| does not join",
		"a='new york'":     `column 3: a text needs double quotes; write "new york"`,
		"a=größe":          `write "größe"`,
		"amount==500":      `column 7: "==" is not an operator; write "="`,
		"amount=５":         "a text that is not a plain word needs double quotes",
		"amount=NaN":       `NaN is neither a number`,
		"amount=-Infinity": `-Infinity is neither a number`,
		"tool_args.a=5":    `arguments are named without tool_args.; write a, or "tool_args.a" in quotes`,
		"$.a=5":            "arguments are named without $.",
		"amount===500":     `"===" is not an operator; write "="`,
		"amount=>500":      `"=>" is not an operator; write ">="`,
		"amount=<500":      `"=<" is not an operator; write "<="`,
		"amount<>500":      `"<>" is not an operator; write "!="`,
		"amount≥500":       `"≥" is not an operator; write ">="`,
		"amount=!500":      `"=!" is not an operator; write "!="`,
		"to=~x":            `"=~" is not an operator; write "~"`,
		"amount= =500":     "column 9: a text that is not a plain word needs double quotes, found =500",
		"amount==500&&b=1": `"==" is not an operator`,
		"a=1 && b=2":       "column 5: && does not join tests; write a comma",
		"a=1&&b=2":         "column 3: 1&&b=2 is neither a number",
		"a=EUR&&b=2":       "column 3: a text that is not a plain word needs double quotes, found EUR&&b=2",
		"a=500 AND b=EUR":  "column 7: AND does not join tests; write a comma",
		"a=500 or b=EUR":   "column 7: or does not join tests: all tests have to hold",
		"a=new york":       "column 7: expected a comma or the end, found york; a text with spaces needs double quotes",
		"a='EUR'":          "column 3: a text needs double quotes; write " + `"EUR"`,
		"a=True":           `column 3: True is neither a number nor true or false; if it is a text, write "True"`,
		"a=null":           `no test compares with null; write missing`,
		"a=5_000":          `5_000 is neither a number`,
		"a=5k":             `5k is neither a number`,
		"a=1,000":          "column 8: expected one of = != < <= > >= ~ !~, exists or missing, found the end",
		"a=2026-11-28":     "2026-11-28 is neither a number",
		`a="x`:             "column 3: the closing quote is missing",
		`a="\x41"`:         "column 3: this text is not a JSON string",
		"a=`x`":            "needs double quotes",
		"a~=x":             `"~=" is not an operator; write "~"`,
		"a~x&&b=1":         "this pattern needs double quotes",
		"amount:500":       "column 11: expected one of",
		"a=1;b=2":          "neither a number",
		"amount (EUR)>5":   "column 8: expected one of",
		"a=b\u200b,c=1":    "a text that is not a plain word needs double quotes",
		"ａmount\u00a0>5":   "expected one of",
		`""=1`:             "found an empty text",
		"päckchen==1":      `column 9: "==" is not`,
	} {
		if _, err := ParseWhere(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestDelegationIsAskedInBothReadings declares one alias as a local agent,
// which is allowed, and as a remote agent, which asks.
func TestDelegationIsAskedInBothReadings(t *testing.T) {
	plan := planOf(t, resolve.Options{}, `{local_agents: [{alias: clerk, source: c.agf.yaml}],
    remote_agents: [{alias: clerk, url: "https://x/", approval: true}]}`)
	clerk := resolve.Call{Kind: resolve.Delegation, Agent: "clerk"}
	for outcome, witness := range map[resolve.Outcome]string{
		resolve.Allow: `{"kind":"delegation","agent":"clerk","args":{},"remote":false}`,
		resolve.Ask:   `{"kind":"delegation","agent":"clerk","args":{}}`,
		resolve.Deny:  "",
	} {
		a := Query{Call: clerk, Outcome: outcome}.Ask(plan)
		if string(a.Witness) != witness || (a.Found == condition.Yes) != (witness != "") {
			t.Errorf("%v: %v %s %s", outcome, a.Found, a.Witness, a.Why)
		}
	}

	local := clerk
	local.Remote = resolve.RemoteNo
	if a := (Query{Call: local, Outcome: resolve.Ask}).Ask(plan); a.Found != condition.No {
		t.Errorf("the local agent: %v %s", a.Found, a.Witness)
	}
}

// TestVacuousQuestions checks that Vacuous finds the queries that are about no call, so that their
// answer No would prove nothing.
func TestVacuousQuestions(t *testing.T) {
	plan := planOf(t, resolve.Options{}, `{local_tools: [{alias: pay}, {alias: buy, approval: {condition: [{args_match: {amount: {gt: 5}}}]}}],
    mcp_servers: [{alias: s, server_ref: x, allowed_tools: [a]}], local_agents: [{alias: clerk, source: c.agf.yaml}]}`)
	for _, c := range []struct {
		call    resolve.Call
		where   string
		outcome resolve.Outcome
		vacuous bool
	}{
		{resolve.Call{Kind: resolve.Tool, Tool: "pay"}, "", resolve.Ask, false},
		{resolve.Call{Kind: resolve.Tool, Tool: "pay"}, "a>1,a<5", resolve.Ask, false},
		{resolve.Call{Kind: resolve.Tool, Tool: "pay"}, "a>5,a<1", resolve.Ask, true},
		{resolve.Call{Kind: resolve.Tool, Tool: "pay"}, "a>5,a<1", resolve.Deny, true},
		{resolve.Call{Kind: resolve.Tool, Tool: "pay"}, "a=x,a~y", resolve.Allow, true},
		{resolve.Call{Kind: resolve.Tool, Tool: "buy"}, "amount=1", resolve.Allow, false},
		{resolve.Call{Kind: resolve.Tool, Tool: "buy"}, "other=1", resolve.Allow, false},
		{resolve.Call{Kind: resolve.Tool, Tool: "buy"}, "Amount=1", resolve.Allow, true},
		{resolve.Call{Kind: resolve.Tool, Tool: "pya"}, "", resolve.Allow, true},
		{resolve.Call{Kind: resolve.Tool, Tool: "pya"}, "", resolve.Deny, true},
		{resolve.Call{Kind: resolve.MCPTool, Server: "s", Tool: "a"}, "", resolve.Ask, false},
		{resolve.Call{Kind: resolve.MCPTool, Server: "s", Tool: "b"}, "", resolve.Allow, true},
		{resolve.Call{Kind: resolve.MCPTool, Server: "s", Tool: "b"}, "", resolve.Deny, false},
		{resolve.Call{Kind: resolve.MCPTool, Server: "z", Tool: "a"}, "", resolve.Deny, true},
		{resolve.Call{Kind: resolve.Delegation, Agent: "clark"}, "", resolve.Ask, true},
		{resolve.Call{Kind: resolve.Skill, Agent: "clerk", Skill: "x"}, "", resolve.Ask, true},
	} {
		where, err := ParseWhere(c.where)
		if err != nil {
			t.Fatal(err)
		}
		q := Query{Call: c.call, Where: where, Outcome: c.outcome}
		if why := q.Vacuous(plan); (why != "") != c.vacuous {
			t.Errorf("%s where %q, outcome %v: %q", c.call.Target(), c.where, c.outcome, why)
		}
	}
}

// TestGoals: how an approval is possible without what a goal requires.
func TestGoals(t *testing.T) {
	const hour = time.Hour
	stage := func(group string, people int, standIns ...string) policy.Stage {
		s := policy.Stage{Group: group, People: people}
		for _, g := range standIns {
			s.StandIns = append(s.StandIns, policy.StandIn{Group: g, After: time.Minute})
		}
		return s
	}
	two := Goal{AtLeast: map[string]int{"f": 2}}
	for i, c := range []struct {
		goal Goal
		r    *policy.Require
		want string
	}{
		{two, nil, "one person of any group is enough, at any time"},
		{two, &policy.Require{Within: hour}, "one person of any group is enough"},
		{two, &policy.Require{Stages: []policy.Stage{stage("f", 2)}}, ""},
		{two, &policy.Require{Stages: []policy.Stage{stage("f", 1), stage("g", 1)}}, "1 of f and 1 of g are enough"},
		{two, &policy.Require{Stages: []policy.Stage{stage("f", 2, "g")}}, "2 of f or g are enough"},
		{two, &policy.Require{Stages: []policy.Stage{stage("f", 1), stage("g", 2, "f")}},
			"1 of f and 2 of g or f are enough"},
		{two, &policy.Require{OnTimeout: policy.TimeoutApprove, Stages: []policy.Stage{stage("f", 2)}},
			"it is approved if nobody answers"},
		{two, &policy.Require{AnyOf: []policy.AnyOf{{{stage("f", 2)}, {stage("f", 3), stage("g", 1)}}}}, ""},
		{two, &policy.Require{AnyOf: []policy.AnyOf{{{stage("f", 2)}, {stage("c", 1)}}}}, "1 of c are enough"},
		{two, &policy.Require{Stages: []policy.Stage{stage("f", 2)},
			AnyOf: []policy.AnyOf{{{stage("f", 1)}, {stage("c", 1)}}}}, ""},
		{Goal{Within: hour}, &policy.Require{Within: hour}, ""},
		{Goal{Within: hour}, &policy.Require{}, "it has no deadline"},
		{Goal{Within: hour}, &policy.Require{Within: 2 * hour}, "it may stay open for 2h"},
		{Goal{Within: hour}, &policy.Require{Within: hour, OnTimeout: policy.TimeoutEscalate,
			Escalate: []policy.Escalation{{After: time.Minute, To: "g"}}}, "it may stay open for 2h"},
	} {
		if got := c.goal.Unmet(c.r); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}

// TestQueriesAtAMoment: windows of time are those of the moment, and the witness carries it.
func TestQueriesAtAMoment(t *testing.T) {
	plan := planOf(t, resolve.Options{}, `{local_tools: [{alias: pay}]}`, strings.Replace(policyText("p",
		`{id: night, when: [{time: {outside: {zone: UTC, hours: ["08:00-18:00"]}}}, {time: {during: {zone: UTC, `+
			`days: [sun]}}, args_match: {a: {gt: 5}}}], deny: "no"}`), "1.0.0", "1.1.0", 1))
	pay := resolve.Call{Kind: resolve.Tool, Tool: "pay"}
	for _, c := range []struct {
		at      string
		outcome resolve.Outcome
		found   condition.Verdict
	}{
		{"2026-11-28T12:00:00Z", resolve.Allow, condition.Yes},
		{"2026-11-28T12:00:00Z", resolve.Deny, condition.No},
		{"2026-11-28T20:00:00Z", resolve.Allow, condition.No},
		{"2026-11-29T12:00:00Z", resolve.Deny, condition.Yes},
		{"2026-11-29T12:00:00Z", resolve.Allow, condition.Yes},
	} {
		var err error
		pay.At, err = resolve.ParseMoment(c.at)
		must.Do(t, err)
		a := Query{Call: pay, Outcome: c.outcome}.Ask(plan)
		if a.Found != c.found || c.found == condition.Yes && plan.Decide(callOf(t, a.Witness)).Outcome != c.outcome {
			t.Errorf("%s %s: %v %s", c.at, c.outcome, a.Found, a.Witness)
		}
		if c.found == condition.Yes && !strings.Contains(string(a.Witness), c.at) {
			t.Errorf("%s is no call at %s", a.Witness, c.at)
		}
	}
}

func callOf(t *testing.T, line []byte) *resolve.Call {
	t.Helper()
	c, err := resolve.ParseCall(line, value.Limits{})
	must.Do(t, err)
	return c
}
