package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/resolve"
)

// Holder returns what the client's token asks the people of an agent.
// The token needs the scope request. Held.Where points to the inbox of
// the same server.
func Holder(c *Client, agentID string) hold.Requests {
	return hold.Over(Side(c, agentID), agentID, c.String())
}

// Side is the side that asks the people of an agent behind a server,
// for a program that asks by a Side itself.
func Side(c *Client, agentID string) hold.Side { return &side{c, agentID} }

// People returns the people of an agent behind a server. The server
// knows askers by their tokens alone, so each asker has a client of its
// own, by the name of its Asker.Token, whose token was made for the
// asker's person; others are refused. The tokens need the scope
// request. Where one has the scope read too, Watch follows the server's
// stream of events; else it looks every Options.Poll. A token that
// reads everything also reads answers that a freeze holds back, so the
// scope request alone is the safer choice.
func People(agentID string, clients map[string]*Client) hold.People {
	return &people{agent: agentID, clients: clients}
}

// people are those behind a server.
type people struct {
	agent   string
	clients map[string]*Client // by the token of the asker
}

// As returns the requests of an asker. One without a client is refused
// by all that it does.
func (p *people) As(who approval.Asker) hold.Requests {
	c := p.clients[who.Token]
	if c == nil {
		return hold.Nobody(fmt.Errorf("ask as %q: there is no token of the server for it", who.Token))
	}

	return Holder(c, p.agent)
}

// Watch says what may have changed, until ctx ends, whose error it returns.
func (p *people) Watch(ctx context.Context, changed func(ref string)) error {
	var all sync.WaitGroup
	for _, c := range p.clients {
		all.Go(func() {
			c.follow(ctx, hold.Changes{Agent: p.agent, Changed: changed})
		})
	}
	changed("")
	<-ctx.Done()
	all.Wait()

	return ctx.Err()
}

// follow reads the server's events where the token may, and else has
// everything looked at now and then.
func (c *Client) follow(ctx context.Context, changes hold.Changes) {
	barred := false
	for ctx.Err() == nil {
		if !barred {
			barred = forbidden(c.followEvents(ctx, changes))
		}
		if ctx.Err() == nil {
			changes.Changed("")
			_ = wait.Pause(ctx, c.opt.Poll) // the loop looks at ctx
		}
	}
}

// followEvents reads the events from the end of the ledger, until they
// break off for good.
func (c *Client) followEvents(ctx context.Context, changes hold.Changes) error {
	end, err := c.Checkpoint(ctx)
	if err != nil {
		return err
	}
	changes.Changed("")
	for e, err := range c.Events(ctx, end.Size-1) {
		if err != nil {
			return err
		}
		changes.Leaf(e.Leaf)
	}

	return nil
}

// forbidden reports whether the token may not read events at all.
func forbidden(err error) bool {
	var p *Problem

	return errors.As(err, &p) && p.Status == http.StatusForbidden
}

// side asks through a server.
type side struct {
	c     *Client
	agent string
}

func (s *side) Open(ctx context.Context, key string, v hold.Verdict) (*approval.Opened, error) {
	text, err := v.Call.JSON()
	if err != nil {
		return nil, err
	}

	return s.c.Open(ctx, s.agent, text, OpenOptions{
		Key:     key,
		Within:  v.Within(),
		Context: v.Context,
		Ask:     v.Ask,
	})
}

func (s *side) Ask(ctx context.Context, key string, q hold.Question) (*approval.Opened, error) {
	opt := AskOptions{Key: key, Within: q.Within, Context: q.Context}
	if q.Call.Kind == "" {
		opt.Principal, opt.Session = q.Call.Principal, q.Call.Session

		return s.c.Ask(ctx, s.agent, nil, q.Put(), opt)
	}
	text, err := q.Call.JSON()
	if err != nil {
		return nil, err
	}

	return s.c.Ask(ctx, s.agent, text, q.Put(), opt)
}

func (s *side) Request(ctx context.Context, id string) (*approval.Request, error) {
	return s.c.Request(ctx, id)
}

func (s *side) Answer(ctx context.Context, id string) (*approval.Request, error) {
	return s.c.Answer(ctx, id)
}

func (s *side) Consume(ctx context.Context, id, key string, call *resolve.Call) (*approval.Request, error) {
	text, err := call.JSON()
	if err != nil {
		return nil, err
	}

	return s.c.Consume(ctx, id, text, key)
}

func (s *side) Cancel(ctx context.Context, id, reason string) error {
	_, err := s.c.Cancel(ctx, id, reason)

	return err
}
