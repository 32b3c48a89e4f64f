package posture

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/resolve"
)

func (d dice) window() string {
	zone := pick(d, "UTC", "Europe/Berlin", "America/New_York", "Africa/Lagos", "Europe/London")
	days := pick(d, "", ", days: [mon-fri]", ", days: [sat, sun]", ", days: [fri]")
	hours := pick(d, "", `, hours: ["08:00-18:00"]`, `, hours: ["22:00-06:00"]`,
		`, hours: ["12:00-13:00"]`, `, hours: ["02:10-02:50"]`)
	dates := pick(d, "", "", `, not_dates: ["2026-11-27"]`, `, dates: ["2026-10-25"]`,
		`, dates: ["2030-01-01..2030-12-31"]`, `, not_dates: ["2026-01-01..2029-12-31"]`)
	return "{zone: " + zone + days + hours + dates + "}"
}

// timedRules draws a policy with rules about the time and one argument.
func (d dice) timedRules() string {
	var rules []string
	for i := range 1 + d.IntN(2) {
		group := "{time: {" + pick(d, "during", "outside") + ": " + d.window() + "}" +
			pick(d, "", ", args_match: {k: {gt: 1}}") + "}"
		does := pick(d, "approval: true", `deny: "no"`, `deny: "no", unknown: ask`)
		rules = append(rules, "{id: r"+string(rune('0'+i))+", "+does+", when: "+group+"}")
	}
	return policyText("p", rules...)
}

// Compare finds exactly the changes of outcomes that some moment has: on every hour of two weeks, and
// of the days around changes of clocks in several years.
func TestTimesAreComparedExactly(t *testing.T) {
	var moments []time.Time
	for hour := range 24 * 14 {
		moments = append(moments, time.Date(2026, 11, 20, hour, 30, 0, 0, time.UTC))
	}
	for _, day := range []time.Time{
		time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC), // the clocks of Europe change on the 25th
		time.Date(2027, 3, 27, 0, 0, 0, 0, time.UTC),
		time.Date(2030, 3, 30, 0, 0, 0, 0, time.UTC),
		time.Date(2030, 7, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2030, 11, 2, 0, 0, 0, 0, time.UTC), // those of New York on the 3rd
	} {
		for half := range 6 * 24 {
			moments = append(moments, day.Add(time.Duration(half)*20*time.Minute))
		}
	}
	moments = append(moments, time.Time{})
	changed := 0
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 101))}
		space := "{local_tools: [{alias: a}]}"
		before, after := d.timedRules(), d.timedRules()
		old := sideText(t, resolve.Options{}, agentText(space), before)
		new := sideText(t, resolve.Options{}, agentText(space), after)
		found := map[string]bool{}
		for _, c := range Compare(old, new) {
			if c.Effect == Undecided {
				t.Errorf("seed %d: undecided: %s\n%s\n%s", seed, c.Why, before, after)
			}
			if c.Aspect == outcomeAspect && !strings.Contains(c.Region, "no object") {
				found[c.From+" "+c.To] = true
				if strings.Contains(c.Region, "parent.time") {
					t.Errorf("seed %d: region %s", seed, c.Region)
				}
			}
		}
		seen := map[string]bool{}
		for _, at := range moments {
			for _, args := range []string{`{"k":1}`, `{"k":2}`, "{}"} {
				call := resolve.Call{Kind: resolve.Tool, Tool: "a", Args: resolve.Raw(args), At: at}
				was, is := old.Plan.Decide(&call).Outcome, new.Plan.Decide(&call).Outcome
				if was != is {
					seen[was.String()+" "+is.String()] = true
				}
			}
		}
		changed += len(seen)
		for change := range seen {
			if !found[change] {
				t.Errorf("seed %d: %s is not among %v\n%s\n%s", seed, change, found, before, after)
			}
		}
	}
	if changed < 40 {
		t.Errorf("only %d changes were tried", changed)
	}
}
