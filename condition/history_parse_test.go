package condition

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// entry reads an entry of history.
func entry(t *testing.T, text string) *History {
	t.Helper()
	e, ok := when(t, "{history: [{"+text+"}]}")
	if !ok {
		t.Fatalf("{%s} is refused", text)
	}
	return e.Groups[0].Matchers[0].History
}

// Each row is an entry, and what is reported about it: the position in the entry, and the message with
// what is expected. A group with such an entry is unknown whatever happened.
func TestWrongTestsOfPastCalls(t *testing.T) {
	const (
		form   = "this is not built like a condition"
		number = "count is compared with numbers (gt: 100)"
		name   = "argument of a past call (the name of an argument, such as amount)"
		one    = "1: a test of past calls needs one of count, sum, distinct and exists (count: {gt: 100})"
		span   = "1: a test of past calls needs either within or since (within: 24h)"
		key    = "key of past calls (agent, principal, session, target or args.PATH)"
	)
	no := func(column int, text, what string) string { return fmt.Sprintf("%d: %q is no %s", column, text, what) }
	duration := func(text string) string {
		return no(10, text, "duration between a second and a year (a duration with its unit, such as 90s, 30m or 24h)")
	}
	zone := func(text string) string {
		return fmt.Sprintf("20: %q: no zone has that name (a name of the IANA database, such as Europe/Berlin)", text)
	}
	for entry, want := range map[string]string{
		// The JSON Schema of policies accepts these, so people see the messages.
		`{count: {gt: 5}}`: span,
		`{within: 1h, since: day, zone: UTC, count: {gt: 5}}`:     span,
		`{within: 1h, zone: UTC, count: {gt: 5}}`:                 "1: zone is only for since (since: day)",
		`{within: 0s, count: {gt: 5}}`:                            duration("0s"),
		`{within: 999ms, count: {gt: 5}}`:                         duration("999ms"),
		`{within: -1h, count: {gt: 5}}`:                           duration("-1h"),
		`{within: +1h, count: {gt: 5}}`:                           duration("+1h"),
		`{within: .5h, count: {gt: 5}}`:                           duration(".5h"),
		`{within: 1d, count: {gt: 5}}`:                            duration("1d"),
		`{within: 8760h1s, count: {gt: 5}}`:                       duration("8760h1s"),
		`{within: "", count: {gt: 5}}`:                            duration(""),
		`{since: day, count: {gt: 5}}`:                            "9: since needs the zone of its calendar (zone: Europe/Berlin)",
		`{since: day, zone: Local, count: {gt: 5}}`:               zone("Local"),
		`{since: day, zone: "", count: {gt: 5}}`:                  zone(""),
		`{since: day, zone: utc, exists: true}`:                   zone("utc"),
		`{within: 1h}`:                                            one,
		`{within: 1h, count: {gt: 5}, exists: true}`:              one,
		`{within: 1h, sum: {of: a, gt: 1}, count: {gt: 5}}`:       one,
		`{within: 1h, currency: c, count: {gt: 5}}`:               "1: currency is only for sum (sum: {of: amount, gt: 1000})",
		`{within: 1h, sum: {of: "", gt: 1}}`:                      no(24, "", name),
		`{within: 1h, sum: {of: parent.input.a, gt: 1}}`:          no(24, "parent.input.a", name),
		`{within: 1h, sum: {of: a, gt: 1}, currency: ""}`:         no(45, "", name),
		`{within: 1h, by: [user], exists: true}`:                  no(19, "user", key),
		`{within: 1h, by: [agent, args.], exists: true}`:          no(26, "args.", key),
		`{within: 1h, by: [args.parent.input.a], count: {gt: 1}}`: no(19, "args.parent.input.a", key),
		`{within: 1h, count: {gt: .inf}}`:                         "26: " + number,
		`{within: 1h, where: {parent.input.a: 1}, exists: true}`: "22: where reads the arguments of past calls, which " +
			"have no parent (the name of an argument)",

		// The JSON Schema refuses these. They are not read as something else here either.
		`5`:                                      "1: " + form + "|" + span + "|" + one,
		`{within: 1h, state: run, exists: true}`: "21: " + form,
		`{within: 1h, state: true, exists: true}`:          "21: " + form,
		`{within: 1h, by: agent, exists: true}`:            "18: " + form,
		`{within: 1h, by: [], exists: true}`:               "18: " + form,
		`{within: 1h, by: [1], exists: true}`:              "19: " + form + "|" + no(19, "1", key),
		`{within: 3600, exists: true}`:                     "10: " + form + "|" + duration("3600"),
		`{since: year, zone: UTC, exists: true}`:           "9: " + form,
		`{within: 1h, of: pay, exists: true}`:              "18: " + form,
		`{within: 1h, of: {agents: [a]}, exists: true}`:    "19: " + form,
		`{within: 1h, of: {targets: []}, exists: true}`:    "28: " + form,
		`{within: 1h, of: {targets: pay}, exists: true}`:   "28: " + form,
		`{within: 1h, of: {servers: [1]}, exists: true}`:   "29: " + form,
		`{within: 1h, where: 5, exists: true}`:             "21: " + form,
		`{within: 1h, where: {a: {gtt: 1}}, exists: true}`: "26: " + form,
		`{within: 1h, where: {a: .inf}, exists: true}`:     "25: " + form,
		`{within: 1h, exists: 1}`:                          "22: " + form,
		`{within: 1h, exists: null}`:                       "22: " + form,
		`{within: 1h, count: 5}`:                           "21: count needs a comparison (gt: 100)",
		`{within: 1h, count: {}}`:                          "21: count needs a comparison (gt: 100)",
		`{within: 1h, count: {of: a, gt: 1}}`:              "22: " + form + "|26: " + number,
		`{within: 1h, count: {eq: 1}}`:                     "22: " + form,
		`{within: 1h, count: {gt: "5"}}`:                   "26: " + number,
		`{within: 1h, sum: {gt: 1}}`:                       "19: " + form,
		`{within: 1h, distinct: {of: a}}`:                  "24: distinct needs a comparison (gt: 100)",
		`{within: 1h, exists: true, until: 1h}`:            "28: " + form,
	} {
		const before = "{history: ["
		e, ok := when(t, before+entry+"]}")
		_, findings := ParseWhen(nodes(t, before+entry+"]}"))
		var got []string
		for _, f := range findings {
			text := fmt.Sprintf("%d: %s", f.Range.Start.Column-len(before), f.Message)
			if f.Rule == ruleHistory {
				text += " (" + f.Expected + ")"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "|"); ok || text != want {
			t.Errorf("%s:\n%s\n%s", entry, text, want)
		}
		m := &e.Groups[0].Matchers[0]
		if m.IsFact() || m.Key != "history" || len(m.Tests) != 1 || m.Tests[0].Op != Unreadable {
			t.Errorf("%s is read as %s", entry, m.FactText())
		}
		program := NewCompiler(Semantics{}).Add(Governance, e)
		if truth := program.Eval(&View{Past: past{True, nil}}); truth != Unknown {
			t.Errorf("%s is %s", entry, truth)
		}
	}
	for _, list := range []string{"[]", "{within: 1h, exists: true}", "null", "1"} {
		e, ok := when(t, "{history: "+list+"}")
		if ok || len(e.Groups[0].Matchers) != 1 || e.Groups[0].Matchers[0].Tests[0].Op != Unreadable {
			t.Errorf("%s is read", list)
		}
	}
	e := sound(t, "{args_match: {history: 1}, history: [{within: 1h, exists: true}]}")
	if len(e.Groups[0].Matchers) != 1 {
		t.Error("a condition that is no when of a rule has a test of past calls")
	}
}

// Each row is an entry, and how reasons and lists show it.
func TestTestsOfPastCallsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`within: 24h, count: {gt: 5}`:                                "count over ran in 24h gt 5",
		`within: 90m, count: {gte: 1, lt: 5}`:                        "count over ran in 1h30m gte 1 and lt 5",
		`within: 1s, state: asked, exists: true`:                     "call over asked in 1s",
		`within: 8760h, state: expired, exists: false`:               "no call over expired in 8760h",
		`of: {}, within: 1h, exists: true`:                           "call over ran any call in 1h",
		`within: 1h, distinct: {of: a.b, lte: 2}`:                    "distinct of a.b over ran in 1h lte 2",
		`within: 1h, sum: {of: n, gt: 1e3}, currency: c`:             "sum of n in the same c over ran in 1h gt 1e3",
		`since: week, zone: Europe/Berlin, exists: true`:             "call over ran since the start of the week Europe/Berlin",
		`within: 1h, by: [target, agent], count: {gt: 1}`:            "count over ran in 1h by agent, target gt 1",
		`within: 1h, where: {a: 1, b: {gt: 2, lt: 9}}, exists: true`: "call over ran in 1h where a equals 1, b gt 2 and lt 9",
		`within: 1h, where: {}, exists: true`:                        "call over ran in 1h where ",
		`of: {kinds: [tool, skill], targets: ["p*"], servers: [s], server_refs: [r]}, state: failed, within: 1h, exists: true`: "" +
			"call over failed tool, skill of p* of s of r in 1h",
	} {
		h := entry(t, text)
		m := Matcher{History: h}
		if h.String() != want || !m.IsFact() || m.FactText() != want || h.Self != Unknown {
			t.Errorf("%s:\n%s\n%s", text, h, want)
		}
	}
	h := entry(t, `of: {kinds: [tool], targets: [a, b], servers: [c], server_refs: [d]}, since: hour, zone: UTC, `+
		`exists: false`)
	if fmt.Sprint(*h.Of) != "{[tool] [a b] [c] [d]}" || h.Since != Hour || h.Zone != "UTC" || h.Within != 0 ||
		h.Exists {
		t.Errorf("%+v", h)
	}
	h = entry(t, "within: 24h, exists: true")
	if h.Within != 24*time.Hour || h.State != PastRan || h.Of != nil || !h.Exists {
		t.Errorf("%+v", h)
	}
	if none := (&Matcher{}).FactText(); none != "" {
		t.Errorf("the fact of a matcher that tests an argument is %q", none)
	}
}

// Entries that mean the same are one test of an analyzer, and others are not.
func TestEqualTestsOfPastCalls(t *testing.T) {
	key := func(text string, sem Semantics) string {
		place := HistoryPlace(entry(t, text), sem)
		if len(place) != 2 || place[0] != pastInput {
			t.Errorf("%s has the place %q", text, place)
		}
		return place[1]
	}
	for _, equal := range [][2]string{
		{`within: 1h, count: {gt: 1}`, `within: 60m, state: ran, count: {gt: 1.0}`},
		{`within: 1h, count: {gt: 1, lt: 5}`, `count: {lt: 5, gt: 1}, within: 1h`},
		{`within: 1h, by: [agent, session], exists: true`, `within: 1h, by: [session, agent, session], exists: true`},
		{`within: 1h, of: {targets: [a, b]}, exists: true`, `within: 1h, of: {targets: [b, a, a]}, exists: true`},
		{`within: 1h, where: {a: 1, b: 2}, exists: true`, `within: 1h, where: {b: 2.0, a: 1}, exists: true`},
		{`within: 1h, where: {}, exists: true`, `within: 1h, exists: true`},
		{`within: 1h, exists: true`, `within: 1h, exists: false`}, // with opposite values
	} {
		if a, b := key(equal[0], Semantics{}), key(equal[1], Semantics{}); a != b {
			t.Errorf("%s and %s differ:\n%s\n%s", equal[0], equal[1], a, b)
		}
	}
	seen := map[string]string{}
	for _, text := range []string{
		`within: 1h, count: {gt: 1}`, `within: 1h, count: {gte: 1}`, `within: 1h, count: {gt: 1, lt: 5}`,
		`within: 2h, count: {gt: 1}`, `within: 1h, state: failed, count: {gt: 1}`, `within: 1h, of: {}, count: {gt: 1}`,
		`within: 1h, of: {targets: [a]}, count: {gt: 1}`, `within: 1h, of: {servers: [a]}, count: {gt: 1}`,
		`within: 1h, by: [agent], count: {gt: 1}`, `within: 1h, where: {a: 1}, count: {gt: 1}`,
		`within: 1h, exists: true`, `within: 1h, sum: {of: a, gt: 1}`, `within: 1h, sum: {of: b, gt: 1}`,
		`within: 1h, sum: {of: a, gt: 1}, currency: c`, `within: 1h, distinct: {of: a, gt: 1}`,
		`since: day, zone: UTC, count: {gt: 1}`, `since: hour, zone: UTC, count: {gt: 1}`,
		`since: day, zone: Europe/Berlin, count: {gt: 1}`,
	} {
		k := key(text, Semantics{})
		if other, found := seen[k]; found {
			t.Errorf("%s and %s are equal", text, other)
		}
		seen[k] = text
	}

	// The readings of the runtime's owner and the agent's file distinguish tests that read them.
	strict := Semantics{OnMissing: NoMatch}
	const where, plain = `within: 1h, where: {a: 1}, exists: true`, `within: 1h, exists: true`
	if key(where, strict) == key(where, Semantics{}) || key(plain, strict) != key(plain, Semantics{}) {
		t.Error("only tests with where depend on the semantics")
	}
	h := *entry(t, plain)
	h.Context = "x"
	test := newPastTest(&h, strict)
	if test.Key() == key(plain, Semantics{}) || test.Key() != HistoryPlace(&h, strict)[1] {
		t.Errorf("a test in a context has the key %s", test.Key())
	}
}

// Durations have an explicit unit, and are written without units that are zero.
func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"1s": "1s", "60s": "1m", "3600s": "1h", "90m": "1h30m", "1h0m5s": "1h0m5s", "1500ms": "1.5s", "8760h": "8760h",
		"0.5h": "30m", "10m": "10m", "100s": "1m40s", "20h": "20h",
		"": "no duration", "+5m": "no duration", ".5h": "no duration", "5": "no duration", "1d": "no duration",
		"999ms": "shorter than a second", "0s": "shorter than a second", "-1h": "shorter than a second",
		"8760h1s": "longer than a year", "9999999h": "no duration", "1000000h": "longer than a year",
	} {
		d, err := DurationOf(text)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && FormatDuration(d) != want {
			t.Errorf("%s: %s, %v, want %s", text, FormatDuration(d), err, want)
		}
	}
}
