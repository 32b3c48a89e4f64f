package condition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/value"
)

// pastGate returns a gate with tests of past calls. self says whether they select the call itself.
func pastGate(t *testing.T, self Truth, entries ...string) Gate {
	t.Helper()
	e, ok := when(t, "{history: [{"+strings.Join(entries, "}, {")+"}]}")
	if !ok {
		t.Fatalf("%v is refused", entries)
	}
	for i := range e.Groups[0].Matchers {
		e.Groups[0].Matchers[i].History.Self = self
	}
	return Gate{Use: Governance, When: e}
}

// pastOf returns the first test of a gate.
func pastOf(g Gate) *History { return g.When.Groups[0].Matchers[0].History }

// related compares two gates, and returns which truths they have for the same calls, such as "FF TU".
func related(t *testing.T, calls Calls, a, b Gate) string {
	t.Helper()
	certainly := func(g Gate) []Gate {
		g.Certain = true
		return []Gate{g}
	}
	cells, ok := NewComparison(0).Cells(calls, nil, certainly(a), []Gate{a}, certainly(b), []Gate{b})
	var out []string
	for _, c := range cells {
		if !ok || c.Found != Yes {
			t.Errorf("a cell is %s", c.Found)
		}
		truth := func(at int) string { return "FUT"[index(c.Asks[at])+index(c.Asks[at+1]):][:1] }
		out = append(out, truth(0)+truth(2))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Each row is two entries, whether they select the call itself, and which truths they have together.
// Tests with the same words are equal, and tests that differ only in their bounds, or of which one
// selects fewer calls, are ordered.
func TestTestsOfPastCallsAreCompared(t *testing.T) {
	const (
		all     = "FF FT FU TF TT TU UF UT UU"
		known   = "FF FT TF TT UU" // both are unknown together
		equal   = "FF TT UU"
		implies = "FF FT TT UU" // the second if the first
	)
	for _, test := range []struct {
		a, b string
		self Truth
		want string
	}{
		{`within: 1h, count: {gt: 1}`, `count: {gt: 1.0}, within: 3600s, state: ran`, True, equal},
		{`within: 1h, count: {gt: 2}`, `within: 1h, count: {gt: 1}`, True, implies},
		{`within: 1h, count: {gt: 1}`, `within: 1h, count: {gt: 2}`, True, "FF TF TT UU"},
		{`within: 1h, count: {gt: 4}`, `within: 1h, count: {gte: 5}`, True, equal}, // a count is an integer
		{`within: 1h, count: {gt: 4.2}`, `within: 1h, count: {gt: 4.7}`, True, equal},
		{`within: 1h, count: {gt: 4}`, `within: 1h, count: {lte: 4}`, True, "FT TF UU"},
		{`within: 1h, count: {gt: 6}`, `within: 1h, count: {lt: 4}`, True, "FF FT TF UU"},
		{`within: 1h, count: {gt: 2}`, `within: 1h, count: {lt: 4}`, True, "FT TF TT UU"},
		{`within: 1h, count: {gt: 2, lt: 5}`, `within: 1h, count: {gte: 3, lte: 4}`, True, equal},
		{`within: 1h, count: {gt: 2, lt: 3}`, `within: 1h, count: {gt: 9}`, True, "FF FT UU"}, // no count is both
		{`within: 1h, count: {gte: 1}`, `within: 1h, count: {gt: 9}`, True, "TF TT UU"},       // always true
		{`within: 1h, count: {gte: 1}`, `within: 1h, count: {gt: 9}`, False, "FF TF TT UU"},
		{`within: 1h, count: {lt: 0}`, `within: 1h, count: {gt: 9}`, Unknown, "FF FT UU"}, // never true
		{`within: 1h, state: failed, count: {gte: -3}`, `within: 1h, state: failed, count: {gte: 1}`, True, "TF TT UU"},
		{`within: 1h, count: {gt: 1e30}`, `within: 1h, count: {gt: 9}`, True, "FF FT UU"},

		// If a past call may or may not count, what is certain is certain for both.
		{`within: 1h, where: {k: 1}, count: {gt: 2}`, `within: 1h, where: {k: 1}, count: {gt: 1}`, True, "FF FT FU TT UT UU"},
		{`within: 1h, where: {k: 1}, count: {gt: 2}`, `within: 1h, where: {k: 1}, count: {gte: 3}`, True, equal},
		{`within: 1h, where: {k: 1}, count: {gt: 2, lt: 3}`, `within: 1h, where: {k: 1}, count: {gt: 9}`, True,
			"FF FT FU UF UU"},
		{`within: 1h, where: {k: 1}, count: {gt: 3, lt: 2}`, `within: 1h, where: {k: 1}, count: {gt: 9}`, True,
			"FF FT FU UF UU"},
		{`within: 1h, sum: {of: n, gt: 5}`, `within: 1h, sum: {of: n, gte: 5}`, True, "FF FT FU TT UT UU"},
		{`within: 1h, sum: {of: n, gt: 5}`, `within: 1h, sum: {of: n, gte: 6}`, True, "FF TF TT TU UF UU"},
		{`within: 1h, sum: {of: n, lt: 5}`, `within: 1h, sum: {of: n, gte: 5}`, True, "FT TF UU"},
		{`within: 1h, sum: {of: n, gt: 5}`, `within: 1h, sum: {of: m, gt: 5}`, True, all},
		{`within: 1h, sum: {of: n, gt: 5}, currency: c`, `within: 1h, sum: {of: n, gt: 5}`, True, all},
		{`within: 1h, distinct: {of: n, gt: 5}`, `within: 1h, distinct: {of: n, gt: 4.5}`, True, "FF FT FU TT UT UU"},

		// Existence is a count that never includes the call itself.
		{`within: 1h, exists: true`, `within: 1h, exists: true`, True, equal},
		{`within: 1h, exists: true`, `within: 1h, exists: false`, True, "FT TF UU"},
		{`within: 1h, exists: true`, `within: 1h, count: {gte: 2}`, True, equal},
		{`within: 1h, exists: true`, `within: 1h, count: {gte: 1}`, True, "FT TT UU"},
		{`within: 1h, exists: true`, `within: 1h, count: {gte: 1}`, False, equal},
		{`within: 1h, exists: true`, `within: 1h, count: {gte: 1}`, Unknown, known},
		{`within: 1h, state: failed, exists: false`, `within: 1h, state: failed, count: {lt: 1}`, Unknown, equal},
		{`within: 1h, where: {k: 1}, exists: true`, `within: 1h, where: {k: 1}, count: {gte: 2}`, True, all},
		{`within: 1h, state: failed, where: {k: 1}, exists: true`, `within: 1h, state: failed, where: {k: 1}, count: {gte: 1}`,
			True, equal},

		// Fewer calls: a shorter interval, a selector, where, or more groups.
		{`within: 1h, count: {gt: 2}`, `within: 2h, count: {gt: 1}`, True, implies},
		{`within: 2h, count: {gt: 2}`, `within: 1h, count: {gt: 2}`, True, "FF TF TT UU"},
		{`within: 1h, count: {gt: 2}`, `within: 2h, count: {gt: 3}`, True, known},
		{`within: 1h, count: {lt: 2}`, `within: 2h, count: {lt: 2}`, True, known}, // not ordered here
		{`within: 1h, exists: true`, `within: 2h, exists: true`, True, implies},
		{`within: 1h, exists: true`, `of: {}, within: 1h, exists: true`, True, implies},
		{`within: 1h, of: {targets: [a]}, exists: true`, `of: {}, within: 1h, exists: true`, True, implies},
		{`within: 1h, of: {targets: [a]}, exists: true`, `within: 1h, exists: true`, True, known},
		{`within: 1h, of: {targets: [a]}, exists: true`, `within: 1h, of: {kinds: [tool]}, exists: true`, True, known},
		{`within: 1h, state: ran, exists: true`, `within: 1h, state: asked, exists: true`, True, known},
		{`within: 1h, where: {k: 1}, count: {gt: 2}`, `within: 1h, count: {gt: 2}`, True, "FF FT TT UT UU"},
		{`within: 1h, where: {k: 1}, count: {gt: 2}`, `within: 1h, where: {k: 2}, count: {gt: 2}`, True, all},
		{`within: 1h, distinct: {of: n, gt: 2}`, `within: 2h, distinct: {of: n, gt: 2}`, True, "FF FT FU TT TU UT UU"},
		{`within: 1h, by: [agent], count: {gt: 2}`, `within: 1h, count: {gt: 2}`, True, implies},
		{`within: 1h, by: [session], count: {gt: 2}`, `within: 1h, count: {gt: 2}`, True, "FF FT TT UF UT UU"},
		{`within: 1h, by: [session], count: {gt: 2}`, `within: 2h, by: [session], count: {gt: 2}`, True, implies},
		{`within: 1h, by: [session], count: {gt: 2}`, `within: 1h, by: [session, principal], count: {gt: 2}`, True,
			"FF FU TF TT TU UU"},
		{`within: 1h, by: [args.k], count: {gt: 2}`, `within: 1h, count: {gt: 2}`, True, "FF FT TT UF UT UU"},
		{`within: 1h, by: [args.k], count: {gt: 2}`, `within: 1h, by: [args.k], count: {gt: 3}`, True, "FF TF TT TU UF UU"},

		// Periods of one zone, and their longest durations.
		{`since: hour, zone: UTC, exists: true`, `since: day, zone: UTC, exists: true`, True, implies},
		{`since: day, zone: UTC, exists: true`, `since: month, zone: UTC, exists: true`, True, implies},
		{`since: hour, zone: UTC, exists: true`, `since: week, zone: UTC, exists: true`, True, implies},
		{`since: week, zone: UTC, exists: true`, `since: month, zone: UTC, exists: true`, True, known},
		{`since: week, zone: UTC, count: {gt: 2}`, `since: week, zone: UTC, count: {gt: 1}`, True, implies},
		{`since: day, zone: UTC, exists: true`, `since: day, zone: Europe/Berlin, exists: true`, True, known},
		{`since: day, zone: UTC, exists: true`, `within: 24h, exists: true`, True, implies},
		{`since: day, zone: UTC, exists: true`, `within: 23h, exists: true`, True, known},
		{`since: day, zone: Europe/Berlin, exists: true`, `within: 24h, exists: true`, True, known},
		{`since: day, zone: Europe/Berlin, exists: true`, `within: 48h, exists: true`, True, implies},
		{`since: month, zone: UTC, exists: true`, `within: 744h, exists: true`, True, implies},
		{`within: 1s, exists: true`, `since: hour, zone: UTC, exists: true`, True, known},
	} {
		a, b := pastGate(t, test.self, test.a), pastGate(t, test.self, test.b)
		if got := related(t, Calls{NoParent: true}, a, b); got != test.want {
			t.Errorf("%s and %s, %s: %s, want %s", test.a, test.b, test.self, got, test.want)
		}
	}
}

// Tests with the same words are not equal if agent's files or the semantics give them other meanings.
func TestTestsOfPastCallsInContext(t *testing.T) {
	const (
		by    = `within: 1h, by: [agent], exists: true`
		where = `within: 1h, where: {k: 1}, exists: true`
		plain = `within: 1h, exists: true`
	)
	context := func(text, context string) Gate {
		g := pastGate(t, True, text)
		pastOf(g).Context = context
		return g
	}
	reading := func(text string, sem Semantics) Gate {
		g := pastGate(t, True, text)
		g.Sem = sem
		return g
	}
	lax := Semantics{OnMissing: NoMatch}
	for _, test := range []struct {
		a, b Gate
		want string
	}{
		{context(by, "x"), context(by, "x"), "FF TT UU"},
		{context(by, "x"), context(by, "y"), "FF FT TF TT UU"},
		{context(by, "x"), context(plain, ""), "FF FT TT UU"},
		{reading(where, lax), reading(where, lax), "FF TT UU"},
		{reading(where, lax), reading(where, Semantics{}), "FF FT FU TF TT TU UF UT UU"},
		{reading(plain, lax), reading(plain, Semantics{}), "FF TT UU"},
	} {
		if got := related(t, Calls{NoParent: true}, test.a, test.b); got != test.want {
			t.Errorf("%+v and %+v: %s, want %s", pastOf(test.a), pastOf(test.b), got, test.want)
		}
	}
}

// Without past calls the results of most tests are certain.
func TestCallsWithoutPastCalls(t *testing.T) {
	for _, test := range []struct {
		entry string
		self  Truth
		want  string // the truths of the test, twice
	}{
		{`within: 1h, count: {gt: 1}`, True, "FF"},
		{`within: 1h, count: {gte: 1}`, True, "TT"},
		{`within: 1h, count: {gte: 1}`, False, "FF"},
		{`within: 1h, count: {gte: 1}`, Unknown, "FF TT"},
		{`within: 1h, state: failed, count: {lt: 1}`, Unknown, "TT"},
		{`within: 1h, exists: true`, True, "FF"},
		{`within: 1h, exists: false`, Unknown, "TT"},
		{`within: 1h, by: [agent], exists: false`, True, "TT"},
		{`within: 1h, by: [session], exists: true`, True, "FF UU"}, // a call may have no session
		{`within: 1h, by: [session], count: {gt: 1}`, True, "FF UU"},
		{`within: 1h, where: {k: 1}, exists: true`, True, "FF UU"},
		{`within: 1h, sum: {of: n, gt: 1}`, True, "FF TT UU"},
	} {
		g := pastGate(t, test.self, test.entry)
		if got := related(t, Calls{NoParent: true, NoPast: true}, g, g); got != test.want {
			t.Errorf("%s, %s: %s, want %s", test.entry, test.self, got, test.want)
		}
	}
}

// Without a moment nothing is known of the past.
func TestPastCallsNeedAMoment(t *testing.T) {
	e, _ := when(t, "{time: {during: {zone: UTC, days: [mon]}}}")
	monday := Gate{Use: Governance, When: e}
	for _, entry := range []string{`within: 1h, count: {gt: 1}`, `within: 1h, sum: {of: n, gt: 1}`} {
		for _, at := range []bool{true, false} { // whether the place of the moment is first
			a, b := monday, pastGate(t, True, entry)
			want := "FF FT FU TF TT TU UU"
			if !at {
				a, b, want = b, a, "FF FT TF TT UF UT UU"
			}
			if got := related(t, Calls{NoParent: true}, a, b); got != want {
				t.Errorf("%s: %s, want %s", entry, got, want)
			}
		}
	}
}

// Regions are described with what the past calls are.
func TestRegionsWithPastCalls(t *testing.T) {
	const count, exists = `within: 1h, count: {gt: 1}`, `within: 24h, state: failed, exists: true`
	words := func(calls Calls, gates ...Gate) string {
		cells, _ := NewComparison(0).Cells(calls, nil, gates)
		var out []string
		for _, c := range cells {
			out = append(out, fmt.Sprint(c.Asks[0], ": ", c.Region))
		}
		return strings.Join(out, "\n")
	}
	certain := func(g Gate) Gate {
		g.Certain = true
		return g
	}
	for want, got := range map[string]string{
		"true: count over ran in 1h gt 1 or an unknown count over ran in 1h\n" +
			"false: not (count over ran in 1h gt 1)": words(Calls{NoParent: true}, pastGate(t, True, count)),
		"true: count over ran in 1h gt 1\n" +
			"false: not (count over ran in 1h gt 1) or an unknown count over ran in 1h": words(Calls{NoParent: true},
			certain(pastGate(t, True, count))),
		"true: call over failed in 24h\nfalse: no call over failed in 24h or an unknown call over failed in 24h": words(
			Calls{NoParent: true}, certain(pastGate(t, True, exists))),
		// Both are unknown together.
		"true: count over ran in 1h gt 1 and call over failed in 24h; or an unknown count over ran in 1h\n" +
			"false: not (count over ran in 1h gt 1); or no call over failed in 24h": words(Calls{NoParent: true},
			pastGate(t, True, count, exists)),
		"true: every call": words(Calls{NoParent: true, NoPast: true}, pastGate(t, True, `within: 1h, exists: false`)),
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// Histories lists calls of a region that differ in what their past calls are, which Pasts reads.
func TestCallsOfARegionWithPastCalls(t *testing.T) {
	a, b := pastGate(t, True, `within: 1h, count: {gt: 1}`), pastGate(t, True, `within: 1h, count: {gt: 5}`)
	cells, _ := NewComparison(0).Cells(Calls{NoParent: true}, nil, []Gate{a}, []Gate{b})
	keys := []string{HistoryPlace(pastOf(a), Semantics{})[1], HistoryPlace(pastOf(b), Semantics{})[1]}
	for _, c := range cells {
		var found []string
		for _, doc := range c.Region.Histories(10) {
			if !c.Region.Has(doc) {
				t.Errorf("%s is not of the region %s", doc.AppendJSON(nil), c.Region)
			}
			holds, given := Pasts(doc)
			text := ""
			for _, key := range keys {
				yes, known := holds[key]
				text += "UFT"[index(known)+index(yes):][:1]
			}
			if args, _, _ := SplitDocument(doc); given != (text != "UU") || len(args.Members) > 0 {
				t.Errorf("%s: %s", doc.AppendJSON(nil), text)
			}
			found = append(found, text)
		}
		want := []string{"FF", "TF", "TT UU"}[index(c.Asks[0])+index(c.Asks[1])]
		if text := strings.Join(found, " "); text != want {
			t.Errorf("%v: %s, want %s", c.Asks, text, want)
		}
		if most := c.Region.Histories(1); len(most) != 1 {
			t.Errorf("%d calls, want 1", len(most))
		}
	}
	plain := Gate{Use: Governance, When: sound(t, match("k: 1"))}
	cells, _ = NewComparison(0).Cells(Calls{NoParent: true}, nil, []Gate{plain})
	for _, c := range cells {
		if calls := c.Region.Histories(10); calls != nil {
			t.Errorf("a region that does not depend on past calls: %v", calls)
		}
	}
	wrong, _ := value.Parse([]byte(`{"parent.history":{"k":1}}`), value.Limits{})
	holds, given := Pasts(wrong)
	if !given || holds["k"] {
		t.Errorf("a test that is neither true nor false holds: %v", holds)
	}
}
