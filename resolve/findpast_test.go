package resolve_test

import (
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// FindHistory gives a test the truth that is asked for, and says so if it finds no past calls.
func TestFindHistory(t *testing.T) {
	const pay = `{"kind":"tool","tool":"pay"}`
	for _, test := range []struct {
		entry, call  string
		holds, fails bool // whether past calls are found with which it holds, or not
	}{
		{`within: 1h, count: {gt: 3}`, pay, true, true},
		{`within: 1h, count: {lt: 3}`, pay, true, true},
		{`within: 1h, count: {lte: 0}`, pay, false, true},
		{`within: 1h, of: {}, count: {gt: 3}`, `{"kind":"delegation","agent":"clerk","remote":false}`, true, true},
		{`within: 1h, of: {kinds: [skill], targets: ["au*"]}, exists: true`, pay, true, true},
		{`within: 1h, of: {kinds: [delegation]}, exists: false`, pay, true, true},
		{`within: 1h, of: {server_refs: ["mcp.*"]}, by: [principal, session, agent], exists: true`, pay, true, true},
		{`since: day, zone: UTC, by: [args.to], count: {gt: 2}`, pay, true, true},
		{`within: 1h, sum: {of: n, gt: 7.5}, currency: c`, pay, true, true},
		{`within: 1h, sum: {of: n, lt: 7.5}`, `{"kind":"tool","tool":"pay","args":{"n":8}}`, true, true},
		{`within: 1h, distinct: {of: to, gte: 3}`, pay, true, true},
		{`within: 1h, where: {n: {gt: 1}}, count: {gt: 3}`, pay, true, true},
		{`within: 1h, state: failed, count: {gt: 100000}`, pay, false, true},
		{`within: 1h, sum: {of: n, gt: 1}`, `{"kind":"delegation","agent":"clerk","remote":false}`, false, false},
		// One test holds already, and past calls are added for the other.
		{`within: 1h, count: {gte: 1}}, {within: 1h, of: {targets: [buy]}, count: {gt: 2}`, pay, true, false},
		// The search ends although there are many past calls to try.
		{`within: 1h, of: {}, where: {a: 1}, count: {gt: 2, lt: 1}}, {within: 2h, of: {}, where: {b: 1}, ` +
			`count: {gt: 2, lt: 1}}, {within: 3h, of: {}, where: {c: 1}, count: {gt: 2, lt: 1}`, pay, false, true},
	} {
		p := historyPlan(t, "{"+test.entry+"}")
		for _, wanted := range []bool{true, false} {
			c, err := resolve.ParseCall([]byte(test.call), p.Options().Limits)
			if err != nil {
				t.Fatal(err)
			}
			target := p.Target(c)
			holds := map[string]bool{}
			for _, g := range target.Gates {
				if g.When == nil {
					continue
				}
				for _, m := range g.When.Groups[0].Matchers {
					yes := m.History.Measure != condition.Existing || m.History.Exists
					holds[condition.HistoryPlace(m.History, condition.Semantics{})[1]] = wanted == yes
				}
			}
			found := resolve.FindHistory(c, holds, target, nil)
			want := map[bool]bool{true: test.holds, false: test.fails}[wanted]
			d := p.Decide(c)
			asks := len(d.Reasons) > 0 && d.Reasons[len(d.Reasons)-1].Code == resolve.ConditionTrue
			if found != want || found && asks != wanted {
				t.Errorf("%s is %v: found %v, %v %+v", test.entry, wanted, found, d.Outcome, c.History)
			}
		}
		c, _ := resolve.ParseCall([]byte(test.call), p.Options().Limits)
		resolve.EmptyHistory(c, p.Target(c))
		if !c.HistoryKnown || len(c.History) > 0 || c.At.IsZero() {
			t.Errorf("%s: %+v", test.entry, c)
		}
	}
}

// Arguments of Go values, calls without arguments, and past calls that can't be read.
func TestHistoryOfOtherArguments(t *testing.T) {
	p := historyPlan(t, `{within: 1h, of: {}, by: [args.to], count: {gt: 1}}`)
	at, _ := resolve.ParseCall([]byte(`{"kind":"tool","tool":"pay","at":"`+historyNow+`"}`), p.Options().Limits)
	past := func(args string) []resolve.PastCall {
		return []resolve.PastCall{
			{At: at.At, States: []condition.PastState{"ran"}, Kind: resolve.Tool, Tool: "x", Args: resolve.Raw(args)},
		}
	}
	call := func(values map[string]any, args string) resolve.Decision {
		return p.Decide(&resolve.Call{
			Kind: resolve.Tool, Tool: "pay", At: at.At, Values: values, History: past(args), HistoryKnown: true,
		})
	}
	for args, want := range map[string]resolve.Code{
		`{"to":1}`: resolve.ConditionTrue, `{`: resolve.ConditionUnknown, `[]`: resolve.ConditionUnknown,
	} {
		if d := call(map[string]any{"to": 1}, args); len(d.Reasons) != 1 || d.Reasons[0].Code != want {
			t.Errorf("%s: %+v", args, d)
		}
	}
	if d := call(map[string]any{"to": make(chan int)}, `{"to":1}`); d.Outcome != resolve.Deny {
		t.Errorf("%+v", d)
	}
	for _, line := range []string{
		`{"kind":"skill","agent":"clerk","skill":"audit"}`, `{"kind":"delegation","agent":"clerk","remote":true}`,
		`{"kind":"mcp_tool","server":"desk","tool":"x"}`, `{"kind":"tool","tool":"pay"}`,
	} {
		c, _ := resolve.ParseCall([]byte(line), p.Options().Limits)
		c.At = at.At
		past := p.Past(c)
		if key, found := past.Key("target"); found != condition.True || !p.Recorded(&past) || key == "" {
			t.Errorf("%s: %q", line, key)
		}
		if q := p.Histories(c); len(q) > 0 {
			t.Errorf("%s lacks the group: %+v", line, q)
		}
	}
	if q := p.Histories(&resolve.Call{}); q != nil {
		t.Errorf("%+v", q)
	}
}

// A test that the document leaves open is unknown if some past calls make it so. Rules without tests of
// past calls are left alone.
func TestFindHistoryWithUnknownTests(t *testing.T) {
	p := plan(t, resolve.Options{}, space11, `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - {id: always, approval: true}
  - {id: a, approval: true, when: {history: [{within: 1h, sum: {of: n, gt: 1}}]}}
`)
	for _, args := range []string{`{"n":1}`, `{}`} {
		c := &resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: resolve.Raw(args)}
		target := p.Target(c)
		if !resolve.FindHistory(c, nil, target) {
			t.Fatalf("%s: no past calls are found", args)
		}
		d := p.Decide(c)
		if got := codes(d); got != "ask always,condition_unknown" || string(c.Args) != args {
			t.Errorf("%s: %s with %s after %+v", args, got, c.Args, c.History)
		}
		if resolve.EmptyHistory(c, target); string(c.Args) == "{}" || len(c.History) > 0 {
			t.Errorf("%s lacks what the test reads: %s", args, c.Args)
		}
		if q := p.Histories(c); len(q) != 1 || q[0].Test.Path != "n" {
			t.Errorf("%+v", q)
		}
		if past := p.Past(c); !p.Recorded(&past) {
			t.Error("the call is not recorded")
		}
	}
}
