package inbox

import (
	"time"

	"github.com/assent-dev/assent/approval"
)

// Limits of what the figures read. If a limit is reached, the page says that the figures are
// partial.
const (
	mostAsks  = 10_000
	mostVotes = 20_000
)

// activityPage shows the figures of the last days.
type activityPage struct {
	figures
	Days    int
	Most    int // requests on the busiest day of any agent; scale of the bars
	Partial bool
	Own     bool // only the visitor's own answers and the requests that they may read
}

func (v recordPages) activity() error {
	p := activityPage{Days: 7}
	switch v.r.URL.Query().Get("days") {
	case "1":
		p.Days = 1
	case "30":
		p.Days = 30
	}

	y, m, d := v.now.UTC().Date()
	from := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 1-p.Days)
	asks, more, err := v.asks(from)
	if err != nil {
		return err
	}
	votes, err := v.Store.Votes(v.ctx(), v.Tenant, from, mostVotes)
	if err != nil {
		return err
	}
	by, err := v.reader()
	if err != nil {
		return err
	}
	p.Partial = more || len(votes) == mostVotes
	p.Own = !by.All()
	p.figures = figure(asks, by.Votes(votes), from, v.now)
	for _, a := range p.Agents {
		for _, d := range a.Days {
			p.Most = max(p.Most, d.Asks)
		}
	}
	for i := range p.People {
		p.People[i].Person = v.called(p.People[i].Person)
	}
	return v.show("activity", "Activity", "activity", p)
}

func (v recordPages) asks(from time.Time) (out []ask, more bool, err error) {
	f := approval.Filter{Since: from, Limit: 500}
	for {
		list, err := v.list(f)
		if err != nil {
			return nil, false, err
		}
		for _, s := range list.Requests {
			out = append(out, ask{s.Agent, s.Created})
		}
		if list.Next == "" || len(out) >= mostAsks {
			return out, list.Next != "", nil
		}
		f.Cursor = list.Next
	}
}
