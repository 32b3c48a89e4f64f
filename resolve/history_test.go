package resolve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// historyPlan compiles a policy with one rule that tests past calls.
func historyPlan(t *testing.T, entry string) *resolve.Plan {
	t.Helper()
	return plan(t, resolve.Options{}, space11, `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - {id: a, approval: true, when: {history: [`+entry+`]}}
`)
}

const historyNow = "2026-11-25T12:00:00Z" // a Wednesday

// Each row is an entry of history, the call's other fields, the past calls, and the outcome with a
// part of the detail. Past calls are written as the hours before now, then other fields.
func TestHistory(t *testing.T) {
	const (
		day   = `within: 24h, `
		pay10 = `"args":{"amount":10}`
		ran   = `"states":["ran"],"kind":"tool","tool":"pay"`
	)
	past := func(hours float64, fields string) string {
		at, _ := time.Parse(time.RFC3339, historyNow)
		at = at.Add(-time.Duration(hours * float64(time.Hour)))
		return `{"at":"` + at.Format(time.RFC3339) + `",` + fields + `}`
	}
	list := func(entries ...string) string {
		return `"at":"` + historyNow + `","history":[` + strings.Join(entries, ",") + `]`
	}
	for _, test := range []struct{ entry, call, want string }{
		// Counts include this call and those of the same target in the interval.
		{day + `count: {gt: 2}`,
			list(past(1, ran), past(2, ran)), "ask condition_true history count over ran in 24h gt 2 is true (2 in 24h, this call 1)"},
		{day + `count: {gt: 3}`, list(past(1, ran), past(2, ran)), "allow"},
		{day + `count: {gt: 1}`, list(past(24, ran)), "allow"},
		{day + `count: {gt: 1}`, list(past(-1, ran)), "allow"},
		{day + `count: {gt: 1}`, list(past(0, ran)), "ask"},
		{day + `count: {gt: 1}`, list(past(1, `"states":["asked"],"kind":"tool","tool":"pay"`)), "allow"},
		{day + `count: {gt: 1}`, list(past(1, `"states":["ran"],"kind":"tool","tool":"buy"`)), "allow"},
		{day + `state: denied, count: {gte: 1}`,
			list(past(1, `"states":["asked","denied"],"kind":"tool","tool":"pay"`)), "ask"},
		{day + `state: denied, count: {gte: 1}`, list(), "allow"},
		{day + `state: asked, count: {gte: 1}`, list(), "ask"},
		{day + `of: {targets: [buy]}, count: {gte: 1}`, list(), "allow"},
		{day + `of: {}, count: {gte: 2}`,
			list(past(1, `"states":["ran"],"kind":"skill","agent":"x","skill":"y"`)), "ask"},
		{day + `of: {kinds: [delegation]}, count: {gte: 1}`,
			list(past(1, `"states":["ran"],"kind":"skill","agent":"x","skill":"y"`)), "ask"},
		{day + `of: {server_refs: ["mcp.stripe.*"]}, count: {gte: 1}`,
			list(past(1, `"states":["ran"],"kind":"mcp_tool","server":"desk","tool":"y"`)), "ask"},
		{day + `of: {server_refs: ["mcp.stripe.*"]}, count: {gte: 1}`,
			list(past(1, `"agent_id":"z","states":["ran"],"kind":"mcp_tool","server":"desk","tool":"y"`)), "allow"},
		// Exact sums.
		{day + `sum: {of: amount, gt: 20000}`, `"args":{"amount":2500},` +
			list(past(1, ran+`,"args":{"amount":18400}`)), "ask condition_true history sum of amount over ran in 24h gt 20000 is " +
			"true (18400 in 24h, this call 2500)"},
		{day + `sum: {of: amount, gt: 0.3}`, `"args":{"amount":0.1},` +
			list(past(1, ran+`,"args":{"amount":0.1}`), past(2, ran+`,"args":{"amount":0.1}`)), "allow"},
		{day + `sum: {of: amount, gt: 5}`, list(), "ask condition_unknown"},
		{day + `sum: {of: amount, gt: 5}`, pay10 + `,` + list(past(1, ran)), "ask condition_unknown"},
		{day + `sum: {of: amount, gt: 50}, currency: cur`, `"args":{"amount":10,"cur":"eur"},` +
			list(past(1, ran+`,"args":{"amount":45,"cur":"EUR"}`), past(1, ran+`,"args":{"amount":900,"cur":"USD"}`)),
			"ask condition_true history sum of amount in the same cur over ran in 24h gt 50 is true (45 EUR in 24h, this call 10)"},
		{day + `sum: {of: amount, gt: 50}, currency: cur`, pay10 + `,` + list(), "ask condition_unknown"},
		// Different values.
		{day + `distinct: {of: to, gt: 1}`, `"args":{"to":"a"},` + list(past(1, ran+`,"args":{"to":"a"}`)), "allow"},
		{day + `distinct: {of: to, gt: 1}`,
			`"args":{"to":1},` + list(past(1, ran+`,"args":{"to":"1"}`)), "ask condition_true"},
		{day + `distinct: {of: to, gt: 1}`, `"args":{"to":1},` + list(past(1, ran+`,"args":{"to":1.0}`)), "allow"},
		{day + `distinct: {of: to, gt: 1}`, `"args":{"to":null},` + list(), "ask condition_unknown"},
		// Groups.
		{day + `by: [principal], count: {gt: 1}`,
			`"principal":"p",` + list(past(1, ran+`,"principal":"p"`)), "ask condition_true"},
		{day + `by: [principal], count: {gt: 1}`,
			`"principal":"p",` + list(past(1, ran+`,"principal":"q"`), past(1, ran)), "allow"},
		{day + `by: [principal], count: {gt: 1}`, list(), "ask condition_unknown"},
		{day + `by: [agent], count: {gt: 1}`, list(past(1, ran)), "ask condition_true"},
		{day + `by: [args.a.b], count: {gt: 1}`,
			`"args":{"a":{"b":1}},` + list(past(1, ran+`,"args":{"a.b":1}`)), "ask condition_true"},
		{day + `by: [args.a.b], count: {gt: 1}`, `"args":{"a":{"b":1}},` +
			list(past(1, ran+`,"args":{"a.b":1,"a":{"b":2}}`)), "ask condition_unknown"},
		{day + `by: [args.a.b], count: {gt: 1}`, `"args":{"a.b":1,"a":{"b":2}},` + list(), "ask condition_unknown"},
		// What is not known may or may not count.
		{day + `where: {amount: {gt: 5}}, count: {gt: 1}`, pay10 + `,` + list(past(1, ran)), "ask condition_unknown"},
		{day + `where: {amount: {gt: 5}}, count: {gt: 2}`, pay10 + `,` + list(past(1, ran)), "allow"},
		{day + `where: {amount: {gt: 5}}, count: {gt: 0}`, pay10 + `,` + list(past(1, ran)), "ask condition_true"},
		{day + `where: {amount: {gt: 5}}, sum: {of: fee, gt: 0}`, `"args":{"amount":1},` +
			list(past(1, ran+`,"args":{"amount":9,"fee":-1}`)), "allow"},
		// Existence does not include this call.
		{day + `exists: true`, list(), "allow"},
		{day + `exists: false`, list(), "ask condition_true history no call over ran in 24h is true (0 in 24h)"},
		{day + `exists: true`, list(past(1, ran)), "ask condition_true"},
		// Periods of the calendar.
		{`since: day, zone: Europe/Berlin, count: {gt: 1}`, list(past(13, ran)), "ask condition_true"},
		{`since: day, zone: Europe/Berlin, count: {gt: 1}`, list(past(13.01, ran)), "allow"},
		{`since: week, zone: UTC, count: {gt: 1}`, list(past(60, ran)), "ask condition_true"},
		{`since: week, zone: UTC, count: {gt: 1}`, list(past(60.01, ran)), "allow"},
		{`since: month, zone: UTC, count: {gt: 1}`, list(past(24*24+12, ran)), "ask condition_true"},
		{`since: month, zone: UTC, count: {gt: 1}`, list(past(24*24+12.01, ran)), "allow"},
		{`since: hour, zone: Asia/Kolkata, count: {gt: 1}`, list(past(0.5, ran)), "ask condition_true"},
		{`since: hour, zone: Asia/Kolkata, count: {gt: 1}`, list(past(0.51, ran)), "allow"},
		// Neither the moment nor the past calls are ever assumed.
		{day + `count: {gt: 1}`,
			`"history":[]`, "ask condition_unknown history count over ran in 24h gt 1 can't be told: missing time"},
		{day + `count: {gt: 1}`,
			`"at":"` + historyNow + `"`, "ask condition_unknown history count over ran in 24h gt 1 can't " +
				"be told: missing history"},
		{day + `count: {gt: 1}`, list(), "allow"},
	} {
		p := historyPlan(t, "{"+test.entry+"}")
		d := decide(t, p, `{"kind":"tool","tool":"pay",`+test.call+`}`)
		got := d.Outcome.String()
		if len(d.Reasons) > 0 {
			got += " " + string(d.Reasons[0].Code) + " " + d.Reasons[0].Detail
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s\n%s:\n%s, want %s", test.entry, test.call, got, test.want)
		}
	}
}

// The form of past calls is strict, is written back, and is neither bound nor recorded.
func TestPastCallsOfACall(t *testing.T) {
	const good = `{"at":"2026-11-25T11:00:00Z","states":["ran","succeeded"],"agent_id":"a","principal":"p",` +
		`"session":"s","kind":"mcp_tool","tool":"t","server":"d","server_ref":"r","args":{"n":1.50}}`
	line := func(entries string) string { return `{"kind":"tool","tool":"pay","history":` + entries + `}` }
	for _, bad := range []string{
		`{}`, `null`, `1`, `"x"`, `[1]`, `[null]`, `[{}]`, `[` + good + `,]`,
		strings.Replace(`[`+good+`]`, `"ran"`, `"run"`, 1), strings.Replace(`[`+good+`]`, `"ran"`, `1`, 1),
		strings.Replace(`[`+good+`]`, `["ran","succeeded"]`, `[]`, 1),
		strings.Replace(`[`+good+`]`, `["ran","succeeded"]`, `"ran"`, 1),
		strings.Replace(`[`+good+`]`, `T11`, `t11`, 1), strings.Replace(`[`+good+`]`, `mcp_tool`, `tool`, 1),
		strings.Replace(`[`+good+`]`, `mcp_tool`, `mcp`, 1), strings.Replace(`[`+good+`]`, `"server":"d",`, ``, 1),
		strings.Replace(`[`+good+`]`, `"kind":"mcp_tool",`, ``, 1),
		strings.Replace(`[`+good+`]`, `"at":"2026-11-25T11:00:00Z",`, ``, 1),
		strings.Replace(`[`+good+`]`, `"states":["ran","succeeded"],`, ``, 1),
		strings.Replace(`[`+good+`]`, `"agent_id":"a"`, `"agent_id":""`, 1),
		strings.Replace(`[`+good+`]`, `"agent_id":"a"`, `"agent_id":"\ud800"`, 1),
		strings.Replace(`[`+good+`]`, `["ran","succeeded"]`, `["\ud800"]`, 1),
		strings.Replace(`[`+good+`]`, `"agent_id"`, `"agent"`, 1),
		strings.Replace(`[`+good+`]`, `"session"`, `"annotations"`, 1),
		strings.Replace(`[`+good+`]`, `{"n":1.50}`, `[1]`, 1),
		strings.Replace(`[`+good+`]`, `{"n":1.50}`, `{"n":1,"n":2}`, 1),
		strings.Replace(`[`+good+`]`, `"principal":"p"`, `"principal":"p","principal":"q"`, 1),
		`[` + strings.Repeat(good+",", resolve.MostPast) + good + `]`,
	} {
		if _, err := resolve.ParseCall([]byte(line(bad)), value.Limits{}); err == nil {
			t.Errorf("%.200s is read", bad)
		}
	}
	c, err := resolve.ParseCall([]byte(line(`[`+good+`]`)), value.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.JSON()
	again, parseErr := resolve.ParseCall(text, value.Limits{})
	if err != nil || parseErr != nil || fmt.Sprint(again.History) != fmt.Sprint(c.History) || !again.HistoryKnown {
		t.Errorf("%s, %v, %v", text, err, parseErr)
	}
	broken := *c
	broken.History = []resolve.PastCall{c.History[0], {Kind: resolve.Tool, Tool: "\xff"}}
	if _, err := broken.JSON(); err == nil {
		t.Error("a past call with a broken name is written")
	}
	if recorded := c.Recorded(); recorded.History != nil || recorded.HistoryKnown {
		t.Error("the past calls are recorded")
	}
	p := historyPlan(t, `{within: 1h, count: {gt: 0}}`)
	here, _ := p.Bind(c)
	c.History = nil
	if there, _ := p.Bind(c); here != there {
		t.Error("the past calls are bound")
	}
}

// Who decides by their own clock does not believe the past calls of the caller either.
func TestDecideAtIgnoresThePastCallsOfTheCall(t *testing.T) {
	p := historyPlan(t, `{within: 1h, count: {gt: 1}}`)
	c, err := resolve.ParseCall([]byte(`{"kind":"tool","tool":"pay","at":"`+historyNow+`","history":[]}`),
		value.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(c); d.Outcome != resolve.Allow {
		t.Errorf("%+v", d)
	}
	d := p.DecideAt(c, c.At)
	if d.Outcome != resolve.Ask || d.Reasons[0].Matchers[0].Why != condition.WhyNoHistory || !c.HistoryKnown {
		t.Errorf("%+v", d)
	}
}

// Histories and Recorded describe what a service must keep.
func TestWhatTestsOfPastCallsRead(t *testing.T) {
	p := historyPlan(t, `{within: 24h, by: [args.to, principal], count: {gt: 1}}, {within: 1h, of: {targets: [refund]}, `+
		`state: failed, exists: true}, {within: 1h, of: {targets: [gone]}, state: denied, exists: true}`)
	now, _ := time.Parse(time.RFC3339, historyNow)
	c := &resolve.Call{Kind: resolve.Tool, Tool: "pay", Principal: "p", Args: resolve.Raw(`{"to":"x"}`), At: now}
	queries := p.Histories(c)
	if len(queries) != 3 || queries[0].Keys[1].Value != "p" || queries[0].Keys[0].Value != `"x"` ||
		queries[0].Keys[2].By != "target" || !queries[0].From.Equal(now.Add(-24*time.Hour)) ||
		queries[1].State != condition.PastFailed || len(queries[1].Keys) != 0 {
		t.Errorf("%+v", queries)
	}
	since := historyPlan(t, `{since: day, zone: Europe/Berlin, count: {gt: 1}}`).Histories(c)
	first := time.Date(2026, 11, 24, 23, 0, 0, 0, time.UTC)
	if len(since) != 1 || !since[0].From.Equal(first) || !since[0].FromIncluded {
		t.Errorf("%+v", since)
	}
	past := p.Past(c)
	for i, key := range queries[0].Keys {
		if text, found := past.Key(key.By); text != key.Value || found != condition.True {
			t.Errorf("key %d: %s, %s", i, text, found)
		}
	}
	c.Principal = ""
	if queries = p.Histories(c); len(queries) != 2 {
		t.Errorf("a call without the group's value: %+v", queries)
	}
	if !p.Recorded(&past) || !p.Recorded(&resolve.PastCall{Kind: resolve.Tool, Tool: "refund"}) {
		t.Error("calls that count are not recorded")
	}
	only := historyPlan(t, `{within: 1h, of: {targets: [gone]}, count: {gt: 1}}, `+
		`{within: 1h, state: asked, count: {gt: 1}}`)
	if only.Recorded(&past) || !only.Recorded(&resolve.PastCall{Kind: resolve.Tool, Tool: "gone"}) {
		t.Error("other calls are recorded")
	}
}
