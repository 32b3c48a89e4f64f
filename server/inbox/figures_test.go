package inbox

import (
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
)

func TestFigures(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	votes := func(person string, n int, every, waited time.Duration, denied int) []approval.VoteFact {
		var out []approval.VoteFact
		for i := range n {
			v := approval.Approve
			if i < denied {
				v = approval.Deny
			}
			out = append(out, approval.VoteFact{
				Person:  person,
				Verdict: v,
				Waited:  waited,
				At:      noon.Add(time.Duration(i) * every),
			})
		}

		return out
	}
	for _, c := range []struct {
		name    string
		votes   []approval.VoteFact
		rate    int
		busiest int
		flags   int
	}{
		{"calm", votes("a", 10, time.Hour, time.Minute, 5), 50, 1, 0},
		{"thirty in an hour", votes("a", 30, time.Minute, time.Minute, 10), 66, 30, 0},
		{"thirty-one in an hour", votes("a", 31, time.Minute, time.Minute, 10), 67, 31, 1},
		{"spread over two hours", votes("a", 40, 3*time.Minute, time.Minute, 10), 75, 20, 0},
		{"yes within seconds", votes("a", 20, time.Hour, 4*time.Second, 1), 95, 1, 1},
		{"yes within seconds, too few", votes("a", 19, time.Hour, time.Second, 0), 100, 1, 0},
		{"yes after reading", votes("a", 20, time.Hour, 5*time.Second, 0), 100, 1, 0},
		{"no within seconds", votes("a", 20, time.Hour, time.Second, 2), 90, 1, 0},
		{"both", votes("a", 60, time.Second, time.Second, 0), 100, 60, 2},
	} {
		f := personOf("a", c.votes)
		if f.Rate != c.rate || f.Busiest != c.busiest || len(f.Flags) != c.flags || f.Votes != len(c.votes) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}

	got := figure([]ask{{"x", noon}, {"x", noon}, {"y", noon.AddDate(0, 0, -1)}}, nil, noon.AddDate(0, 0, -1), noon)
	if len(got.Agents) != 2 || got.Agents[0].Agent != "x" || got.Agents[0].Asks != 2 ||
		got.Agents[0].Days[1].Asks != 2 || got.Agents[0].PerDay != 1 {
		t.Errorf("%+v", got.Agents)
	}
	if m := median([]time.Duration{4, 1, 3, 2}); m != 2 {
		t.Errorf("median %d", m)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		300 * time.Millisecond:      "0.3 s",
		90 * time.Second:            "90 s",
		5 * time.Minute:             "5 min",
		3 * time.Hour:               "3 h",
		3*time.Hour + 5*time.Minute: "3 h 5 min",
		72 * time.Hour:              "3 days",
		-time.Second:                "0.0 s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
}
