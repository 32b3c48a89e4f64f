package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

// Program is a handler outside of the API that acts for one agent with the callers' tokens,
// which need the scope request. Its callers are authenticated, limited and checked like
// those of the API's operations before it sees the call.
type Program struct {
	Path   string
	Tenant string
	Agent  string
	// Serve answers. The request's context ends when the token is no longer valid.
	Serve func(w http.ResponseWriter, r *http.Request, by approval.Asker)
}

// addPrograms serves the programs.
func (s *Server) addPrograms() {
	for _, p := range s.cfg.Programs {
		s.mux.Handle(p.Path, s.serve(route{
			scopes: []scope{openapi.ScopeRequest},
			lax:    true,
			body:   callBody,
			deny:   true,
			handle: p.handle,
		}))
	}
}

// handle passes a request to the program, if the token may act for its agent.
func (p *Program) handle(x *exchange) error {
	if x.tenant() != p.Tenant {
		return fail(openapi.CodeAgentNotAllowed, "the token is of another tenant")
	}
	if err := x.mayActFor(p.Agent); err != nil {
		return err
	}
	if _, err := x.namesPerson(); err != nil { // the person is barred from answering, so the name must be theirs
		return err
	}
	place, err := x.waitingPlace()
	if err != nil {
		return err
	}
	defer place.Return()
	ctx, done := x.whileItMay(openapi.ScopeRequest)
	defer done()
	r := x.r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(x.body))
	p.Serve(x.w, r, asker(x.token))
	return nil
}

// waitingPlace takes a place among the exchanges that wait. A large body keeps its memory
// meanwhile, because the program keeps the body too.
func (x *exchange) waitingPlace() (*quota.Hold, error) {
	pool, kind := x.cfg.Shares.Polls, "polls"
	if x.r.Method == http.MethodGet {
		pool, kind = x.cfg.Shares.Streams, "streams"
	}
	if len(x.body) < heavy {
		return x.place(pool, kind)
	}
	x.leave()
	x.turned.Return()
	x.turned = nil
	hold, err := pool.Take(x.r.Context(), x.who, 1, 0)
	if err != nil {
		return nil, x.limited(err, kind)
	}
	return hold, nil
}

// whileItMay returns the request's context, which also ends with the token.
func (x *exchange) whileItMay(s scope) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(x.r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beat := time.NewTicker(x.cfg.Timing.Heartbeat)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
				if x.stillMay(s) != nil {
					cancel()
				}
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}

// Bearers looks up the tokens by which a program may be called, by their names.
type Bearers struct {
	Tokens store.Tokens
	Tenant string
	Agent  string
	Now    func() time.Time
}

// Asker returns the caller behind the live token of a name. It returns approval.ErrNotFound
// if there is no such token, or if it may not ask for the program's agent.
func (b *Bearers) Asker(ctx context.Context, name string) (approval.Asker, error) {
	t, err := b.Tokens.LiveToken(ctx, b.Tenant, name, b.Now())
	if err != nil {
		return approval.Asker{}, err
	}
	if permit(&t, []scope{openapi.ScopeRequest}) != nil || !actsFor(&t, b.Agent) {
		return approval.Asker{}, approval.ErrNotFound
	}
	return asker(&t), nil
}
