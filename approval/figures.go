package approval

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The thresholds for an overloaded approver (threat 1): a person can't review more calls than this
// in an hour, and can't review a call within seconds.
const (
	mostInAnHour = 30              // votes
	rubberRate   = 0.95            // approve rate; at or above it
	rubberWait   = 5 * time.Second // median wait; below it
	rubberLeast  = 20              // votes that are needed before rate and wait are judged
	day          = 24 * time.Hour
)

// Stats are the figures of a tenant: how much each person answers, and how often each agent asks.
type Stats struct {
	// Since is the time of the earliest vote or request that was included, or Until if there was
	// none.
	Since     time.Time         `json:"since"`
	Until     time.Time         `json:"until"`
	Approvers []ApproverFigures `json:"approvers"` // overloaded first, then by votes and name; never nil
	Agents    []AgentFigures    `json:"agents"`    // by asks and name; never nil
}

// ApproverFigures are the figures of one person.
type ApproverFigures struct {
	Person      string  `json:"person"`
	Votes       int     `json:"votes"`          // answers to calls and questions, because both take time to read
	PerHour     float64 `json:"votes_per_hour"` // over the whole period, at least one hour
	BusiestHour int     `json:"busiest_hour"`   // most votes within any 60 minutes
	// MedianWait is the time from the revision's start to the vote on a call, in nanoseconds.
	MedianWait  time.Duration `json:"median_wait"`
	ApproveRate float64       `json:"approve_rate"` // share of approvals among votes on calls, 0 to 1
	Overloaded  bool          `json:"overloaded"`   // TooMany or RubberStamps
	TooMany     bool          `json:"too_many"`     // more than 30 votes in one hour
	// RubberStamps is set if the person approves 95 % or more, with a median wait under 5 seconds,
	// over at least 20 votes on calls.
	RubberStamps bool `json:"rubber_stamping"`
}

// AgentFigures are the figures of one agent. They leave out questions, which tools ask and which
// approve nothing.
type AgentFigures struct {
	Agent   string     `json:"agent"`
	Asks    int        `json:"asks"`         // requests
	PerDay  float64    `json:"asks_per_day"` // over the whole period, at least one day
	Days    []DayCount `json:"days"`         // by day (UTC), oldest first; only days with asks
	Decided int        `json:"decided"`      // by people: approved or denied
	// MedianDecide is the time from the last revision's start to the last vote, in nanoseconds, or
	// 0 if there were no votes.
	MedianDecide time.Duration `json:"median_decide"`
	ApproveRate  float64       `json:"approve_rate"` // share of the decided requests, 0 to 1
}

// DayCount is the number of requests of an agent on one day.
type DayCount struct {
	Day  string `json:"day"` // 2006-01-02, UTC
	Asks int    `json:"asks"`
}

// Figures computes the figures from votes. Requests without votes are not counted as asks. It
// neither keeps nor modifies the slice.
func Figures(votes []VoteFact, now time.Time) Stats {
	// ignore votes with a time in the future
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

// per returns a rate over a period. The period counts as at least one unit, so that one vote a
// minute ago is not 60 votes per hour.
func per(n int, span, unit time.Duration) float64 {
	return float64(n) / (float64(max(span, unit)) / float64(unit))
}

func rate(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// median returns the middle value, or the mean of the two middle values.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	low, high := all[(len(all)-1)/2], all[len(all)/2]
	return low + (high-low)/2
}

// busiest returns the largest number of votes within any 60 minutes.
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

// ask is one request, reconstructed from its votes.
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
		a.yes = a.yes && v.Verdict == Approve // one denial denies the request
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
