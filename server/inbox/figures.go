package inbox

import (
	"cmp"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
)

// figures are the figures of a period by agent and by approver.
type figures struct {
	Agents []agentFigures
	People []personFigures
}

// agentFigures are the figures of one agent's requests.
type agentFigures struct {
	Agent  string
	Asks   int
	Days   []dayFigures // one per day, oldest first
	PerDay float64
}

type dayFigures struct {
	Day  string
	Asks int
}

// personFigures are the figures of one person's answers.
type personFigures struct {
	Person  string
	Votes   int
	Judged  int           // number of answers to calls, without answers to questions of tools
	Rate    int           // percentage of approvals among the answers to calls
	Median  time.Duration // from question to answer
	Busiest int           // most votes within any hour
	Flags   []string
}

// The thresholds for an approver (threats 1 and 16). Beyond them, answers can't be considered
// decisions.
const (
	busyHour   = 30 // votes within one hour
	rubberRate = 95 // percent of approvals
	rubberTime = 5 * time.Second
	rubberMin  = 20 // votes before the rate and the time are judged
)

// ask is one request in the figures.
type ask struct {
	Agent string
	At    time.Time
}

func figure(asks []ask, votes []approval.VoteFact, from, to time.Time) figures {
	return figures{agentsOf(asks, from, to), peopleOf(votes)}
}

func agentsOf(asks []ask, from, to time.Time) []agentFigures {
	days := daysOf(from, to)
	byAgent := map[string]map[string]int{}
	for _, a := range asks {
		if byAgent[a.Agent] == nil {
			byAgent[a.Agent] = map[string]int{}
		}
		byAgent[a.Agent][a.At.UTC().Format(time.DateOnly)]++
	}

	var out []agentFigures
	for agent, perDay := range byAgent {
		f := agentFigures{Agent: agent}
		for _, d := range days {
			f.Days = append(f.Days, dayFigures{d, perDay[d]})
			f.Asks += perDay[d]
		}
		f.PerDay = float64(f.Asks) / float64(max(1, len(days)))
		out = append(out, f)
	}

	slices.SortFunc(out, func(a, b agentFigures) int {
		return cmp.Or(cmp.Compare(b.Asks, a.Asks), cmp.Compare(a.Agent, b.Agent))
	})
	return out
}

func daysOf(from, to time.Time) []string {
	var out []string
	for d := from.UTC(); !d.After(to); d = d.AddDate(0, 0, 1) {
		out = append(out, d.Format(time.DateOnly))
	}
	return out
}

func peopleOf(votes []approval.VoteFact) []personFigures {
	by := map[string][]approval.VoteFact{}
	for _, x := range votes {
		by[x.Person] = append(by[x.Person], x)
	}
	var out []personFigures
	for person, theirs := range by {
		out = append(out, personOf(person, theirs))
	}
	slices.SortFunc(out, func(a, b personFigures) int {
		return cmp.Or(cmp.Compare(b.Votes, a.Votes), cmp.Compare(a.Person, b.Person))
	})
	return out
}

func personOf(person string, votes []approval.VoteFact) personFigures {
	f := personFigures{Person: person, Votes: len(votes)}
	approved := 0
	var waits, judged []time.Duration
	var times []time.Time
	for _, x := range votes {
		waits, times = append(waits, x.Waited), append(times, x.At)
		switch x.Verdict {
		case approval.Choose, approval.Dismiss:
			continue
		case approval.Approve:
			approved++
		}

		judged = append(judged, x.Waited)
	}

	if f.Judged = len(judged); f.Judged > 0 {
		f.Rate = approved * 100 / f.Judged
	}
	f.Median = median(waits)
	f.Busiest = busiest(times)
	if f.Busiest > busyHour {
		f.Flags = append(f.Flags, "Overloaded: more than "+safetext.Count(busyHour)+" answers within an hour")
	}
	if f.Judged >= rubberMin && approved*100 >= rubberRate*f.Judged && median(judged) < rubberTime {
		f.Flags = append(f.Flags, "Approves nearly everything within seconds")
	}
	return f
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	n := len(d)
	if n%2 == 1 {
		return d[n/2]
	}
	return (d[n/2-1] + d[n/2]) / 2
}

// busiest returns the largest number of times within any hour.
func busiest(times []time.Time) int {
	slices.SortFunc(times, time.Time.Compare)
	most, from := 0, 0
	for i, t := range times {
		for t.Sub(times[from]) >= time.Hour {
			from++
		}
		most = max(most, i-from+1)
	}

	return most
}
