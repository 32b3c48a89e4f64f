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

// Holder returns the approval requests of an agent that the client's token makes. The token
// needs the scope request. Held.Where refers to the inbox of the same server.
func Holder(c *Client, agentID string) hold.Requests {
	return hold.Over(Side(c, agentID), agentID, c.String())
}

// Side returns the Side of a server for an agent, for a program that uses a Side directly.
func Side(c *Client, agentID string) hold.Side { return &side{c, agentID} }

// People returns the approval service of a server for an agent. The server identifies askers by
// their tokens, so clients has a client for each Asker.Token, whose server token was created
// for the asker's person. Other askers are refused. The tokens need the scope request. If a
// token also has the scope read, Watch follows the server's event stream; otherwise it polls
// every Options.Poll. A token that may read everything may also read answers that are withheld
// by a freeze, so the scope request alone is safer.
func People(agentID string, clients map[string]*Client) hold.People {
	return &people{agent: agentID, clients: clients}
}

// people is the approval service of a server.
type people struct {
	agent   string
	clients map[string]*Client // by Asker.Token
}

// As returns the requests of an asker. If it has no client, all methods return an error.
func (p *people) As(who approval.Asker) hold.Requests {
	c := p.clients[who.Token]
	if c == nil {
		return hold.Nobody(fmt.Errorf("ask as %q: there is no token of the server for it", who.Token))
	}

	return Holder(c, p.agent)
}

// Watch reports changes until ctx ends, and returns the error of ctx.
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

// follow reads the server's events if the token may. Otherwise it reports a possible change of
// everything at each poll.
func (c *Client) follow(ctx context.Context, changes hold.Changes) {
	barred := false
	for ctx.Err() == nil {
		if !barred {
			barred = forbidden(c.followEvents(ctx, changes))
		}
		if ctx.Err() == nil {
			changes.Changed("")
			_ = wait.Pause(ctx, c.opt.Poll) // the loop checks ctx
		}
	}
}

// followEvents reads the events from the end of the ledger until there is a permanent error.
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

// side implements hold.Side by a server.
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
