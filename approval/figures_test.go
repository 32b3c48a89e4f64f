package approval

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func votesOf(person string, n int, every, waited time.Duration, v Verdict) []VoteFact {
	out := make([]VoteFact, n)
	for i := range out {
		out[i] = VoteFact{
			Request: person + strconv.Itoa(i),
			Agent:   "desk",
			Target:  "tool pay",
			Person:  person,
			Verdict: v,
			Waited:  waited,
			At:      time.Unix(0, 0).Add(time.Duration(i) * every),
		}
	}

	return out
}

func TestOverloaded(t *testing.T) {
	now := time.Unix(0, 0).Add(240 * time.Hour)
	for name, tt := range map[string]struct {
		votes          []VoteFact
		tooMany, stamp bool
	}{
		"thirty in an hour":     {votesOf("a", 30, time.Minute, time.Minute, Approve), false, false},
		"one more":              {votesOf("a", 31, time.Minute, time.Minute, Approve), true, false},
		"one more, not in one":  {votesOf("a", 31, 2*time.Minute, time.Minute, Approve), false, false},
		"twenty within seconds": {votesOf("a", 20, time.Hour, 5*time.Second-1, Approve), false, true},
		"nineteen":              {votesOf("a", 19, time.Hour, time.Second, Approve), false, false},
		"five seconds each":     {votesOf("a", 20, time.Hour, 5*time.Second, Approve), false, false},
		"one no in twenty": {
			append(votesOf("a", 19, time.Hour, 0, Approve), votesOf("a", 1, time.Hour, 0, Deny)...),
			false,
			true,
		},
		"two answers of twenty": {
			append(votesOf("a", 18, time.Hour, 0, Approve), votesOf("a", 2, time.Hour, 0, Respond)...),
			false,
			false,
		},
		"a clock that went back": {votesOf("a", 20, time.Hour, -time.Hour, Approve), false, true},
	} {
		f := Figures(tt.votes, now).Approvers[0]
		if f.TooMany != tt.tooMany || f.RubberStamps != tt.stamp || f.Overloaded != (tt.tooMany || tt.stamp) {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

func TestFigures(t *testing.T) {
	now := time.Unix(0, 0).Add(48 * time.Hour)
	votes := slices.Concat(
		votesOf("ann", 3, time.Hour, 10*time.Second, Approve),
		votesOf("bob", 1, time.Hour, 30*time.Second, Deny),
	)
	s := Figures(votes, now)
	if !s.Since.Equal(time.Unix(0, 0)) || len(s.Approvers) != 2 || s.Approvers[0].Person != "ann" ||
		s.Approvers[0].PerHour != 3.0/48 ||
		s.Approvers[0].MedianWait != 10*time.Second {
		t.Errorf("got %+v", s)
	}
	a := s.Agents[0]
	if a.Asks != 4 || a.PerDay != 2 || a.Decided != 4 || a.ApproveRate != 0.75 ||
		a.MedianDecide != 10*time.Second || !slices.Equal(a.Days, []DayCount{{"1969-12-31", 2}, {"1970-01-01", 2}}) {
		t.Errorf("got %+v", a)
	}
	if s := Figures(nil, now); s.Approvers == nil || s.Agents == nil || !s.Since.Equal(now) {
		t.Errorf("got %+v", s)
	}
}

// TestFiguresAreSound: figures don't modify their input, don't depend on its order, and are never
// out of range.
func TestFiguresAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fact := rapid.Custom(func(t *rapid.T) VoteFact {
			return VoteFact{
				Request: rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "request"),
				Agent:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"),
				Person:  rapid.SampledFrom([]string{"p", "q"}).Draw(t, "person"),
				Verdict: rapid.SampledFrom([]Verdict{Approve, Deny, Respond}).Draw(t, "verdict"),
				Waited:  time.Duration(rapid.Int64().Draw(t, "waited")),
				At:      time.Unix(rapid.Int64Range(-1e10, 1e10).Draw(t, "at"), 0),
			}
		})
		votes := rapid.SliceOfN(fact, 0, 20).Draw(t, "votes")
		now := time.Unix(rapid.Int64Range(-1e10, 1e10).Draw(t, "now"), 0)
		before := slices.Clone(votes)
		s := Figures(votes, now)
		if !slices.Equal(votes, before) {
			t.Fatal("the votes were changed")
		}
		n := 0
		for _, f := range s.Approvers {
			n += f.Votes
			if f.ApproveRate < 0 || f.ApproveRate > 1 || f.MedianWait < 0 || f.BusiestHour < 1 ||
				f.BusiestHour > f.Votes ||
				f.PerHour < 0 ||
				math.IsInf(f.PerHour, 0) {
				t.Fatalf("got %+v", f)
			}
		}

		past := 0
		for _, v := range votes {
			if !v.At.After(now) {
				past++
			}
		}
		if n != past {
			t.Fatalf("%d votes of %d are counted", n, past)
		}
	})
}
