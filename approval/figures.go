package approval

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// What makes an approver overloaded (threat 1): nobody reads more than
// so many calls in an hour, and nobody reads a call in seconds.
const (
	mostInAnHour = 30              // votes
	rubberRate   = 0.95            // approve rate, from here on
	rubberWait   = 5 * time.Second // median wait, below this
	rubberLeast  = 20              // votes, before the rate and the wait say anything
	day          = 24 * time.Hour
)

// Stats are the figures of a tenant: who answers how much, and which
// agents ask how often.
type Stats struct {
	// the earliest vote or request that was looked at; now when there
	// was none
	Since     time.Time         `json:"since"`
	Until     time.Time         `json:"until"`
	Approvers []ApproverFigures `json:"approvers"` // the overloaded first, then by votes, then by name; never nil
	Agents    []AgentFigures    `json:"agents"`    // by asks, then by name; never nil
}

// ApproverFigures are one person's.
type ApproverFigures struct {
	Person      string  `json:"person"`
	Votes       int     `json:"votes"`          // answers to calls and to tools' questions: both take reading
	PerHour     float64 `json:"votes_per_hour"` // over the time looked at, at least an hour
	BusiestHour int     `json:"busiest_hour"`   // most votes within any 60 minutes
	// from the revision's start to the vote on a call, in nanoseconds
	MedianWait  time.Duration `json:"median_wait"`
	ApproveRate float64       `json:"approve_rate"` // of votes on calls, 0 to 1; a choice is no approval
	Overloaded  bool          `json:"overloaded"`   // TooMany or RubberStamp
	TooMany     bool          `json:"too_many"`     // more than 30 votes in one hour
	// approves 95 % or more, in under 5 seconds (median), over at least
	// 20 votes on calls
	RubberStamps bool `json:"rubber_stamping"`
}

// AgentFigures are one agent's. Questions are left out: they are asked
// by tools, and approve nothing.
type AgentFigures struct {
	Agent   string     `json:"agent"`
	Asks    int        `json:"asks"`         // requests
	PerDay  float64    `json:"asks_per_day"` // over the time looked at, at least a day
	Days    []DayCount `json:"days"`         // by day (UTC), oldest first; only days with asks
	Decided int        `json:"decided"`      // by people: approved or denied
	// from the last revision's start to the last vote, in nanoseconds;
	// 0 when nobody voted
	MedianDecide time.Duration `json:"median_decide"`
	ApproveRate  float64       `json:"approve_rate"` // of those decided, 0 to 1
}

// DayCount is how many requests an agent made on one day.
type DayCount struct {
	Day  string `json:"day"` // 2006-01-02, UTC
	Asks int    `json:"asks"`
}

// Figures computes the figures from votes. Requests that nobody voted
// on are not among the asks. It doesn't keep the slice and changes none
// of it.
func Figures(votes []VoteFact, now time.Time) Stats {
	// what has not happened yet by this clock is left out
	votes = slices.DeleteFunc(slices.Clone(votes), func(v VoteFact) bool { return v.At.After(now) })
	out := Stats{
		Since:     now,
		Until:     now,
		Approvers: []ApproverFigures{},
		Agents:    []AgentFigures{},
	}
	for i := range votes {
		votes[i].Waited = max(votes[i].Waited, 0)
		out.Since = earlier(out.Since, votes[i].At)
	}

	for person, theirs := range by(votes, func(v VoteFact) string { return v.Person }) {
		out.Approvers = append(out.Approvers, approverFigures(person, theirs, now.Sub(out.Since)))
	}

	slices.SortFunc(out.Approvers, func(a, b ApproverFigures) int {
		switch {
		case a.Overloaded && !b.Overloaded:
			return -1
		case b.Overloaded && !a.Overloaded:
			return 1
		}

		return cmp.Or(b.Votes-a.Votes, cmp.Compare(a.Person, b.Person))
	})
	for agent, asks := range by(slices.Collect(maps.Values(asksOf(votes))), func(a *ask) string {
		return a.agent
	}) {
		out.Agents = append(out.Agents, agentFigures(agent, asks, now.Sub(out.Since)))
	}
	slices.SortFunc(out.Agents, func(a, b AgentFigures) int {
		return cmp.Or(b.Asks-a.Asks, cmp.Compare(a.Agent, b.Agent))
	})
	return out
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func by[T any](all []T, key func(T) string) map[string][]T {
	out := map[string][]T{}
	for _, x := range all {
		out[key(x)] = append(out[key(x)], x)
	}
	return out
}

func approverFigures(person string, votes []VoteFact, span time.Duration) ApproverFigures {
	f := ApproverFigures{
		Person:      person,
		Votes:       len(votes),
		PerHour:     per(len(votes), span, time.Hour),
		BusiestHour: busiest(votes),
	}
	votes = slices.DeleteFunc(slices.Clone(votes), func(v VoteFact) bool { return v.Verdict.picks() })
	waits, approvals := make([]time.Duration, len(votes)), 0
	for i, v := range votes {
		waits[i] = v.Waited
		if v.Verdict == Approve {
			approvals++
		}
	}

	f.MedianWait, f.ApproveRate = median(waits), rate(approvals, len(votes))
	f.TooMany = f.BusiestHour > mostInAnHour
	f.RubberStamps = len(votes) >= rubberLeast && f.ApproveRate >= rubberRate && f.MedianWait < rubberWait
	f.Overloaded = f.TooMany || f.RubberStamps
	return f
}

// per is a rate over a time, which counts as at least one unit: one
// vote a minute ago is not sixty an hour.
func per(n int, span, unit time.Duration) float64 {
	return float64(n) / (float64(max(span, unit)) / float64(unit))
}

func rate(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// median is the middle one, or the mean of the two in the middle.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	low, high := all[(len(all)-1)/2], all[len(all)/2]
	return low + (high-low)/2
}

// busiest is the most votes within any 60 minutes, wherever they begin.
func busiest(votes []VoteFact) int {
	times := make([]time.Time, len(votes))
	for i, v := range votes {
		times[i] = v.At
	}
	slices.SortFunc(times, time.Time.Compare)
	most, first := 0, 0
	for i := range times {
		for times[i].Sub(times[first]) >= time.Hour {
			first++
		}
		most = max(most, i-first+1)
	}

	return most
}

// ask is one request, by what votes tell.
type ask struct {
	agent  string
	at     time.Time
	waited time.Duration // until the last vote
	yes    bool
}

func asksOf(votes []VoteFact) map[string]*ask {
	out := map[string]*ask{}
	for _, v := range votes {
		if v.Verdict.picks() {
			continue
		}
		begun := v.At.Add(-v.Waited)
		a := out[v.Request]
		if a == nil {
			a = &ask{agent: v.Agent, at: begun, yes: true}
			out[v.Request] = a
		}
		a.at, a.waited = earlier(a.at, begun), max(a.waited, v.Waited)
		a.yes = a.yes && v.Verdict == Approve // one no denies
	}

	return out
}

func agentFigures(agent string, asks []*ask, span time.Duration) AgentFigures {
	f := AgentFigures{
		Agent:   agent,
		Asks:    len(asks),
		PerDay:  per(len(asks), span, day),
		Decided: len(asks),
	}
	waits := make([]time.Duration, len(asks))
	days, yes := map[string]int{}, 0
	for i, a := range asks {
		waits[i] = a.waited
		days[a.at.UTC().Format(time.DateOnly)]++
		if a.yes {
			yes++
		}
	}

	f.MedianDecide, f.ApproveRate = median(waits), rate(yes, len(asks))
	for _, d := range slices.Sorted(maps.Keys(days)) {
		f.Days = append(f.Days, DayCount{d, days[d]})
	}
	return f
}
