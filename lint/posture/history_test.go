package posture

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// pastTest is the parts of a test of past calls.
type pastTest [3]string

func (d dice) pastPart(i int) string {
	n := pick(d, "0", "1", "2")
	switch i {
	case 0:
		return pick(d, "within: 2h", "within: 24h", "since: day, zone: UTC")
	case 1:
		return pick(d, "", "", ", of: {}", ", of: {targets: [b]}", ", by: [principal]", ", where: {k: {gt: 1}}")
	}
	return pick(d, "count: {gt: "+n+"}", "count: {gt: "+n+"}", "count: {lte: "+n+"}", "sum: {of: k, gt: "+n+"}",
		"sum: {of: k, lt: "+n+"}", "count: {gt: "+n+", lt: 3}",
		"distinct: {of: k, gte: "+n+"}", "exists: true", "exists: false")
}

func (d dice) pastTest() (p pastTest) {
	for i := range p {
		p[i] = d.pastPart(i)
	}
	return p
}

// pastRule draws how a rule with a test of past calls begins and ends.
func (d dice) pastRule() (head, tail string) {
	does := pick(d, "approval: true", `deny: "no"`, `deny: "no", unknown: ask`)
	return "{id: r, " + does + ", when: {history: [{", "}]" + pick(d, "", "", ", args_match: {k: {gt: 1}}") + "}}"
}

func (p pastTest) text(head, tail string) string {
	return policyText("p", head+p[0]+p[1]+", "+p[2]+tail)
}

// pasts returns lists of up to three past calls on a grid of times and arguments.
func (d dice) pasts(at time.Time) [][]resolve.PastCall {
	out := [][]resolve.PastCall{nil}
	for range 60 {
		var list []resolve.PastCall
		for range 1 + d.IntN(3) {
			past := resolve.PastCall{
				At: at.Add(-time.Duration(pick(d, 0, 1, 3, 13, 25)) * time.Hour), States: []condition.PastState{"ran"},
				Kind: resolve.Tool, Tool: pick(d, "a", "a", "b"), Principal: pick(d, "", "p"),
				Args: resolve.Raw(pick(d, `{"k":1}`, `{"k":2}`, `{"k":-1}`, `{}`)),
			}
			list = append(list, past)
		}
		out = append(out, list)
	}
	return out
}

// Compare misses no change of an outcome that some past calls have: each is among the changes, or
// there is one that is undecided. Changes that are not undecided have a call that shows them.
func TestHistoriesAreCompared(t *testing.T) {
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	changed, undecided := 0, 0
	for seed := range uint64(150) {
		d := dice{rand.New(rand.NewPCG(seed, 103))}
		space := "{local_tools: [{alias: a}]}"
		head, tail := d.pastRule()
		first := d.pastTest()
		second := first
		if part := int(seed % 5); part < 3 { // one edit
			second[part] = d.pastPart(part)
		} else if part == 3 {
			second = d.pastTest()
		}
		before, after := first.text(head, tail), second.text(head, tail)
		old := sideText(t, resolve.Options{}, agentText(space), before)
		new := sideText(t, resolve.Options{}, agentText(space), after)
		found, open := map[string]bool{}, false
		for _, c := range Compare(old, new) {
			if c.Effect == Undecided {
				open = true
			} else if c.Aspect == outcomeAspect && !strings.Contains(c.Region, "no object") {
				found[c.From+" "+c.To] = true
			}
			if strings.Contains(c.Region, "parent.history") {
				t.Errorf("seed %d: region %s", seed, c.Region)
			}
		}
		if open {
			undecided++
			if before == after {
				t.Errorf("seed %d: equal rules are undecided\n%s", seed, before)
			}
		}
		for _, past := range d.pasts(at) {
			for _, args := range []string{`{"k":1}`, `{"k":2}`, "{}"} {
				for _, principal := range []string{"", "p"} {
					call := resolve.Call{
						Kind: resolve.Tool, Tool: "a", Args: resolve.Raw(args), Principal: principal, At: at,
						History: past, HistoryKnown: len(past) > 0 || args != "{}",
					}
					was, is := old.Plan.Decide(&call).Outcome, new.Plan.Decide(&call).Outcome
					if was == is {
						continue
					}
					changed++
					if !open && !found[was.String()+" "+is.String()] {
						text, _ := call.JSON()
						t.Fatalf("seed %d: %s %s is not among %v: %s\n%s\n%s", seed, was, is, found, text, before, after)
					}
				}
			}
		}
	}
	t.Logf("%d changes, %d pairs of 150 undecided", changed, undecided)
	if changed < 1000 || undecided > 30 {
		t.Errorf("%d changes were tried, %d pairs are undecided", changed, undecided)
	}
}

// Queries are about calls with any past calls, or about calls without any.
func TestQueriesOfCallsWithoutPastCalls(t *testing.T) {
	space := "{local_tools: [{alias: a}]}"
	for _, test := range []struct {
		entry        string
		any, without condition.Verdict // whether some call is allowed
	}{
		{"within: 1h, count: {gt: 3}", condition.Yes, condition.Yes},
		{"within: 1h, count: {gte: 1}", condition.No, condition.No},
		{"within: 1h, count: {lt: 3}", condition.Yes, condition.No},
		{"within: 1h, state: failed, count: {lte: 0}", condition.Yes, condition.No},
		{"within: 1h, exists: true", condition.Yes, condition.Yes},
		{"within: 1h, exists: false", condition.Yes, condition.No},
		{"within: 1h, sum: {of: k, gt: 5}", condition.Yes, condition.Yes},
	} {
		side := sideText(t, resolve.Options{}, agentText(space),
			policyText("p", "{id: r, approval: true, when: {history: [{"+test.entry+"}]}}"))
		q := Query{Call: resolve.Call{Kind: resolve.Tool, Tool: "a"}, Outcome: resolve.Allow}
		if a := q.Ask(side.Plan); a.Found != test.any {
			t.Errorf("%s: %s %s, want %s", test.entry, a.Found, a.Why, test.any)
		}
		q.NoHistory = true
		if a := q.Ask(side.Plan); a.Found != test.without {
			t.Errorf("%s without past calls: %s %s %s, want %s", test.entry, a.Found, a.Why, a.Witness, test.without)
		}
	}
}
