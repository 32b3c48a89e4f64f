package inbox

import (
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/rap"
)

// maxToolText is the largest number of characters that are drawn of a tool's text.
const maxToolText = 1500

// callsRest is the time between two notifications about changed calls.
const callsRest = time.Second

// callsPage lists the visitor's own tool calls.
type callsPage struct {
	Agents []rap.AgentCalls
	Open   map[string]bool // questions that can be shown here
	draws  *budget
}

// Going returns the number of running calls.
func (p callsPage) Going() (n int) {
	for _, a := range p.Agents {
		for _, c := range a.Calls {
			if c.Ended.IsZero() {
				n++
			}
		}
	}

	return n
}

// Said returns a tool's text in a form that is safe to show. It is always plain text, whatever it
// contains.
func (p callsPage) Said(text string) safetext.Shown {
	return safetext.Inspect(text, safetext.Form{
		Lines: true,
		Limit: maxToolText,
		Spend: p.draws.spend,
	})
}

// StateWords describes the state of a call.
func (p callsPage) StateWords(c rap.Watched) string {
	switch {
	case c.State == "asking":
		return "People are asked whether it may run"
	case c.State == "done" && c.Ended.IsZero():
		return "Goes on: its tool tells more"
	case c.Why != "":
		return "Ended without a result of its tool"
	case c.Failed:
		return "Ended with an error"
	case c.State == "done":
		return "Done"
	case c.Question != "":
		return "The tool asks something"
	}

	return "Running"
}

func (v recordPages) calls() error {
	p, err := v.readCalls()
	if err != nil {
		return err
	}

	return v.show("calls", "Calls", "calls", p)
}

// callsFragment returns the list without the page, for the script to insert.
func (v recordPages) callsFragment() error {
	p, err := v.readCalls()
	if err != nil {
		return err
	}
	page := v.base("Calls", "calls")
	page.Data = p
	if text, ok := v.render("calls", "list", page); ok {
		v.send(http.StatusOK, text)
	}

	return nil
}

func (v recordPages) readCalls() (p callsPage, err error) {
	if v.Calls == nil {
		return p, approval.ErrNotFound
	}
	if err := v.roomFor(0); err != nil {
		return p, err
	}
	p = callsPage{Open: map[string]bool{}, draws: v.draws}
	if p.Agents, err = v.Calls.CallsOf(v.ctx(), v.Tenant, v.Person.ID); err != nil {
		return p, err
	}
	for _, a := range p.Agents {
		for _, c := range a.Calls {
			if c.Question == "" {
				continue
			}
			heads, err := v.Store.Heads(v.ctx(), v.Tenant, []string{c.Question})
			if err != nil {
				return p, err
			}
			_, p.Open[c.Question] = heads[c.Question]
		}
	}

	return p, nil
}

// watchCalls notifies a stream of changed calls: at once for changes by this process, and with the
// next heartbeat for changes by others.
func (s *stream) watchCalls() {
	tell := func() {
		select {
		case s.calls <- struct{}{}:
		default:
		}
	}
	tell() // reports changes while the page was loading
	s.visit.Calls.Watch(s.visit.ctx(), s.visit.Tenant, func() {
		tell()
		_ = wait.Pause(s.visit.ctx(), callsRest)
	})
}
