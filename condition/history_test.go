package condition

import (
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/value"
)

// past answers every test of past calls alike.
type past struct {
	truth   Truth
	figures *Figures
}

func (p past) Look(*PastTest) PastResult { return PastResult{p.truth, WhyHistory, p.figures} }

// answers gives each test of past calls its own answer, by its text, and counts the questions.
type answers struct {
	truths map[string]Truth
	asked  int
}

func (a *answers) Look(t *PastTest) PastResult {
	a.asked++
	return PastResult{Truth: a.truths[t.String()], Why: WhyMatched, Figures: &Figures{Used: "3", Window: t.Window()}}
}

// Tests of past calls are three-valued like other matchers, and all of a group must hold.
func TestPastCallsInConditions(t *testing.T) {
	const first, second = "count over ran in 1h gt 2", "no call over failed in 24h"
	e, ok := when(t, `[{args_match: {a: 1}, history: [{within: 1h, count: {gt: 2}}, `+
		`{within: 24h, state: failed, exists: false}]}]`)
	if !ok {
		t.Fatal("the condition is refused")
	}
	c := NewCompiler(Semantics{})
	program := c.Add(Governance, e)
	for _, test := range []struct {
		args        string
		one, other  Truth
		want        Truth
		mostLookups int // Eval stops when the result can't change any more
	}{
		{`{"a":1}`, True, True, True, 2},
		{`{"a":1}`, True, Unknown, Unknown, 2},
		{`{"a":1}`, Unknown, False, False, 2},
		{`{"a":1}`, False, True, False, 1},
		{`{"a":2}`, True, True, False, 0}, // arguments are tested first
		{`{}`, True, True, Unknown, 2},
	} {
		past := &answers{truths: map[string]Truth{first: test.one, second: test.other}}
		v := scan(t, c, Governance, test.args)
		v.Past = past
		got := program.Eval(v)
		if got != test.want || past.asked > test.mostLookups {
			t.Errorf("%+v: %s after %d lookups", test, got, past.asked)
		}
		truth, seen := program.Explain(v)
		if truth != got || (len(seen) == 0) != (got == False) {
			t.Errorf("%+v: %s, explained as %s: %+v", test, got, truth, seen)
		}
		if len(seen) == 3 && (seen[1].Test != first || seen[2].Test != second || seen[1].Truth != test.one ||
			seen[1].Key != "history" || seen[1].Why != WhyMatched || seen[1].Seen != "3 in 1h" ||
			seen[1].Figures.Used != "3" || seen[1].Range.Start.Column != 33 || seen[2].Seen != "3 in 24h") {
			t.Errorf("%+v: %+v", test, seen)
		}
		truth, parts := program.Truths(v)
		of := parts[0].Matchers
		if truth != got || parts[0].Truth != got || of[1] != test.one || of[2] != test.other {
			t.Errorf("%+v: %s %+v", test, truth, parts)
		}
	}

	// Without past calls, and without numbers, nothing is assumed.
	v := scan(t, c, Governance, `{"a":1}`)
	truth, seen := program.Explain(v)
	if truth != Unknown || program.Eval(v) != Unknown || seen[1].Why != WhyNoHistory ||
		seen[1].Seen != "" || seen[1].Figures != nil {
		t.Errorf("%s %+v", truth, seen)
	}
	if v.Past = (past{Unknown, nil}); program.Eval(v) != Unknown {
		t.Error("a test that is unknown is assumed")
	}
	if tests := program.PastTests(); len(tests) != 2 || tests[0].String() != first || tests[1].String() != second {
		t.Errorf("%v", tests)
	}
	if tests := NewCompiler(Semantics{}).Add(Governance, sound(t, match("a: 1"))).PastTests(); tests != nil {
		t.Errorf("%v", tests)
	}
}

// Each row is an entry: whether the call counts itself, whether its arguments are read if it is selected
// and if it is not, and the truth of the test in a document of an analyzer with the value true.
func TestPropertiesOfTestsOfPastCalls(t *testing.T) {
	for _, test := range []struct {
		entry                     string
		included, selected, other bool
		wanted                    Truth
	}{
		{`within: 1h, count: {gt: 1}`, true, false, false, True},
		{`within: 1h, state: asked, count: {gt: 1}`, true, false, false, True},
		{`within: 1h, state: failed, count: {gt: 1}`, false, false, false, True},
		{`within: 1h, exists: true`, false, false, false, True},
		{`within: 1h, exists: false`, false, false, false, False},
		{`within: 1h, sum: {of: n, gt: 1}`, true, true, false, True},
		{`within: 1h, sum: {of: n, gt: 1}, currency: c`, true, true, true, True},
		{`within: 1h, state: denied, distinct: {of: n, gt: 1}`, false, false, false, True},
		{`within: 1h, by: [agent, target, session], count: {gt: 1}`, true, false, false, True},
		{`within: 1h, by: [agent, args.n], exists: true`, false, true, true, True},
	} {
		h := entry(t, test.entry)
		compiled := newPastTest(h, Semantics{})
		h.Self = True
		selected := compiled.ReadsArguments()
		h.Self = False
		other := compiled.ReadsArguments()
		if h.Included() != test.included || selected != test.selected || other != test.other ||
			compiled.Wanted(true) != test.wanted || compiled.Wanted(false) != True-test.wanted {
			t.Errorf("%s: %v %v %v %s", test.entry, h.Included(), selected, other, compiled.Wanted(true))
		}
	}
	if text := entry(t, `within: 1h, count: {gte: 2, lt: 5.5}`).BoundText(); text != "gte 2 and lt 5.5" {
		t.Error(text)
	}
	if !Gt.IsOrder() || !Lte.IsOrder() || Eq.IsOrder() {
		t.Error("other operators than gt, gte, lt and lte compare with a bound")
	}
	if UpperCode("eUr é") != "EUR é" {
		t.Errorf("the currency is %s", UpperCode("eUr é"))
	}
}

// Past calls without readable arguments may pass where.
func TestWhereOfPastCalls(t *testing.T) {
	filtered := entry(t, `within: 1h, where: {a: {gt: 1}, b.c: x}, exists: true`)
	free := entry(t, `within: 1h, where: {}, exists: true`)
	for text, want := range map[string]Truth{
		`{"a":2,"b":{"c":"x"}}`: True, `{"a":2,"b.c":"x"}`: True, `{"a":1}`: False, `{"a":2}`: Unknown, `{}`: Unknown,
		`{"a":"2","b.c":"y"}`: False, `{"a":null,"b.c":"x"}`: Unknown, `[]`: Unknown,
	} {
		args, err := value.Parse([]byte(text), value.Limits{})
		if got := newPastTest(filtered, Semantics{}).Matches(args, true); got != want || err != nil {
			t.Errorf("%s: %s, want %s, %v", text, got, want, err)
		}
		if got := newPastTest(filtered, Semantics{}).Matches(args, false); got != Unknown {
			t.Errorf("arguments that are not given: %s", got)
		}
		for _, given := range []bool{true, false} {
			if got := newPastTest(free, Semantics{}).Matches(args, given); got != True {
				t.Errorf("%s without where: %s", text, got)
			}
		}
	}
	lax := newPastTest(filtered, Semantics{OnMissing: NoMatch})
	if got := lax.Matches(value.Value{Kind: value.Object}, true); got != False {
		t.Errorf("missing arguments are read as %s", got)
	}
}

// Intervals end at the moment of the call. Periods begin at their first instant on the wall, also if
// clocks change then.
func TestIntervalsOfPastCalls(t *testing.T) {
	for _, test := range []struct{ interval, now, first, window string }{
		{"within: 90m", "2026-11-25T12:00:00Z", "2026-11-25T10:30:00Z", "1h30m"},
		{"since: hour, zone: Asia/Kolkata", "2026-11-25T12:00:00Z", "2026-11-25T11:30:00Z", "hour Asia/Kolkata"},
		{"since: day, zone: UTC", "2026-11-25T00:00:00Z", "2026-11-25T00:00:00Z", "day UTC"},
		// A Sunday.
		{"since: week, zone: UTC", "2026-11-29T12:00:00Z", "2026-11-23T00:00:00Z", ""},
		// A Monday.
		{"since: week, zone: UTC", "2026-11-30T12:00:00Z", "2026-11-30T00:00:00Z", "week UTC"},
		{"since: month, zone: UTC", "2026-11-30T12:00:00Z", "2026-11-01T00:00:00Z", "month UTC"},
		// No midnight.
		{"since: day, zone: America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", ""},
		// 25 hours.
		{"since: day, zone: Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", ""},
		// Repeated.
		{"since: hour, zone: Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T00:00:00Z", ""},
		// Midnight twice.
		{"since: day, zone: America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", ""},
		// A date left out.
		{"since: month, zone: Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-01T10:00:00Z", ""},
		// Before the change.
		{"since: week, zone: Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-22T23:00:00Z", ""},
		// Half an hour.
		{"since: hour, zone: Australia/Lord_Howe", "2026-04-04T15:10:00Z", "2026-04-04T14:00:00Z", ""},
		// Back over midnight.
		{"since: day, zone: America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", ""},
		// The last hour again.
		{"since: hour, zone: America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-18T01:00:00Z", ""},
		// Seconds.
		{"since: month, zone: Africa/Monrovia", "1972-01-07T12:00:00Z", "1972-01-01T00:44:30Z", ""},
		// After a date left out.
		{"since: day, zone: Pacific/Kwajalein", "1993-08-22T11:00:00Z", "1993-08-21T12:00:00Z", ""},
		// The same.
		{"since: day, zone: Pacific/Kiritimati", "1995-01-01T09:00:00Z", "1994-12-31T10:00:00Z", ""},
	} {
		h := entry(t, test.interval+", exists: true")
		now, _ := time.Parse(time.RFC3339, test.now)
		start, included := h.Start(now)
		got := start.UTC().Format(time.RFC3339)
		if got != test.first || included != strings.HasPrefix(test.interval, "since") {
			t.Errorf("%s at %s begins at %s, %v", test.interval, test.now, got, included)
		}
		if test.window != "" && h.Window() != test.window {
			t.Errorf("%s is shown as %s", test.interval, h.Window())
		}
	}
}

// The numbers of a reason are shown with what they count and with what is not known.
func TestFiguresAreShown(t *testing.T) {
	for want, f := range map[string]Figures{
		"5 in 24h": {Used: "5", Window: "24h"},
		"18400 EUR since the start of the day Europe/Berlin, this call 2500": {
			Used: "18400", Currency: "EUR", Window: "day Europe/Berlin", This: "2500", Bound: "gt 20000",
		},
		"0 in 1h, this call 1, 2 past calls in doubt": {Used: "0", Window: "1h", This: "1", Doubtful: 2},
	} {
		if got := f.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
