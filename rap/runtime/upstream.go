package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

// UpstreamConfig configures an UpstreamServer.
type UpstreamConfig struct {
	// Common is that of a Runtime. Plan and People are not used: the gateway's rules have
	// decided before a call is made, and questions of the server go to the user by Job.Ask.
	rap.Common
	Server      Server // Groups, MCPServer and TrustDestructive are not used, for the same reason
	CallbackURL string // base URL of UpstreamServer.ServeHTTP for the upstream server
}

// UpstreamServer is a tool server behind a gateway, and the Feed of its operations.
type UpstreamServer struct {
	runtime *Runtime
	relay   *relay
	offers  []Offer
}

var _ rap.Feed = (*UpstreamServer)(nil)

// Upstream discovers the operations of another RAP tool server and returns a wrapper that calls
// them through a Runtime of its own, which does not evaluate rules. Questions of the upstream
// server are relayed (Job.Ask). If the gateway has asked its user about the call itself, the
// call can't ask again and ends with an error. Servers that require their user to sign in are
// not supported: the link is not passed on.
func Upstream(ctx context.Context, cfg UpstreamConfig) (*UpstreamServer, error) {
	u := &UpstreamServer{relay: newRelay()}
	cfg.People = u.relay
	cfg.Server.Groups = nil
	cfg.Server.MCPServer = ""

	own := Config{
		Common:      cfg.Common,
		Servers:     []Server{cfg.Server},
		CallbackURL: cfg.CallbackURL,
	}
	var err error
	if u.runtime, err = open(own, true); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", cfg.Server.Name, err)
	}
	start, err := u.runtime.As(approval.Asker{Token: cfg.Namespace})
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", cfg.Server.Name, err)
	}

	tools, err := start.Tools(ctx, "start "+rand.Text())
	for _, p := range tools.Problems {
		if p.Tool != "" {
			p.Err = fmt.Errorf("%s: %w", p.Tool, p.Err)
		}
		err = errors.Join(err, p.Err)
	}

	if err != nil {
		return nil, fmt.Errorf("discover what %s offers: %w", cfg.Server.Name, err)
	}
	u.offers = tools.Offers
	return u, nil
}

// Operations returns the operations of the server.
func (u *UpstreamServer) Operations() []rap.Operation {
	var out []rap.Operation
	for _, o := range u.offers {
		out = append(out, rap.Operation{
			Name:        o.Name,
			Description: o.Description,
			InputSchema: o.InputSchema,
			Destructive: hinted(o.Annotations.Destructive),
			ReadOnly:    hinted(o.Annotations.ReadOnly),
			Run: func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
				return u.run(ctx, &o.Tool, job)
			},
			Feed: u,
		})
	}

	return out
}

func hinted(hint *bool) bool { return hint != nil && *hint }

// ServeHTTP handles callbacks of the server.
func (u *UpstreamServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	u.runtime.ServeHTTP(w, req)
}

// Run works like Runtime.Run.
func (u *UpstreamServer) Run(ctx context.Context) error { return u.runtime.Run(ctx) }

// CloseThread notifies the server that a caller closed a thread (gateway.Config.Closed).
func (u *UpstreamServer) CloseThread(ctx context.Context, who approval.Asker, thread string) error {
	threads, err := u.runtime.As(who)
	if err != nil {
		return err
	}

	return threads.CloseThread(ctx, thread)
}

// Name implements Feed: it returns the key of the call.
func (u *UpstreamServer) Name(job rap.Job) (string, error) {
	threads, err := u.runtime.As(job.Asker)
	if err != nil {
		return "", err
	}

	return u.runtime.names.Call(threads.who, job.Thread, upstreamID(&job)), nil
}

// Events implements Feed.
func (u *UpstreamServer) Events(ctx context.Context, subscription string, from int) ([]rap.Event, bool, error) {
	return u.runtime.eventsOf(ctx, subscription, from)
}

// End implements Feed: it interrupts the call, or ends its subscription.
func (u *UpstreamServer) End(ctx context.Context, subscription string) error {
	err := u.runtime.dispatcher.cancel(ctx, subscription, "nobody listens any more")
	if errors.Is(err, ErrDone) || errors.Is(err, ErrNoCall) {
		return nil
	}

	return err
}

// Watch implements Feed.
func (u *UpstreamServer) Watch(ctx context.Context, changed func(subscription string)) error {
	defer u.runtime.handler.newEvents.add(changed)()
	<-ctx.Done()

	return ctx.Err()
}

// run calls the server on behalf of the gateway's caller.
func (u *UpstreamServer) run(ctx context.Context, tool *wire.Tool, job rap.Job) (rap.Outcome, error) {
	threads, err := u.runtime.As(job.Asker)
	if err != nil {
		return rap.Outcome{}, fmt.Errorf("call the upstream server: %w", err)
	}
	in := Invocation{
		Thread:    job.Thread,
		ID:        upstreamID(&job),
		Ancestors: job.Ancestors,
		User:      job.User,
		Operation: job.Operation,
		Arguments: job.Arguments,
	}
	if err := unchanged(ctx, threads, tool, names.Root(in.Thread, in.Ancestors)); err != nil {
		return rap.Outcome{}, err
	}
	if _, err := threads.Invoke(ctx, in); err != nil {
		return rap.Outcome{}, fmt.Errorf("call the upstream server: %w", err)
	}

	return u.follow(ctx, threads, in, job)
}

// upstreamID returns the id of a call for the upstream server. It contains the run, because an
// id that the gateway no longer remembers may be used again for another call.
func upstreamID(job *rap.Job) string { return job.ID + " " + job.Run }

// unchanged returns an error if the session is no longer offered the tool that the gateway's
// rules decided on. A tool whose definition changed is another tool.
func unchanged(ctx context.Context, threads *Threads, tool *wire.Tool, session string) error {
	tools, err := threads.Tools(ctx, session)
	if err != nil {
		return fmt.Errorf("discover the upstream server: %w", err)
	}
	for _, o := range tools.Offers {
		if o.Name == tool.Name && o.Digest() == tool.Digest() {
			return nil
		}
	}
	return &rap.PublicError{
		Text: "the upstream server does not offer the operation any more as it did; nothing was run",
	}
}

// follow waits for the end of a call, and relays questions of the server meanwhile.
func (u *UpstreamServer) follow(
	ctx context.Context, threads *Threads, in Invocation, job rap.Job,
) (rap.Outcome, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	key := u.runtime.names.Call(threads.who, in.Thread, in.ID)
	c, err := u.runtime.engine.Watch(ctx, key, func(c *call) bool {
		if c.Ask != nil {
			u.relayAsked(ctx, c.Ask.Ref, job)
		}
		return c.Over()
	})
	if err != nil {
		u.interrupt(ctx, threads, in)
		return rap.Outcome{}, fmt.Errorf("wait for the upstream server: %w", err)
	}

	return upstreamOutcome(publicCall(c))
}

// relayAsked relays a question of the server to the user of the gateway's runtime, once.
func (u *UpstreamServer) relayAsked(ctx context.Context, ref string, job rap.Job) {
	q, ok := u.relay.take(ref)
	if !ok {
		return
	}

	go func() {
		index, err := job.Ask(ctx, q.Prompt, q.Choices, q.Default)
		if err != nil {
			u.relay.settle(ref, hold.Answer{State: hold.Cancelled, Reason: relayReason(err)})
			return
		}
		u.relay.settle(ref, hold.Answer{
			State:    hold.Chosen,
			Selected: index,
			By:       job.Caller,
		})
	}()
}

func relayReason(err error) string {
	if public, ok := errors.AsType[*rap.PublicError](err); ok {
		return public.Text
	}
	if errors.Is(err, rap.ErrAskedAlready) {
		return rap.ErrAskedAlready.Error()
	}
	return "the question could not be relayed"
}

// interrupt cancels a call at the server.
func (u *UpstreamServer) interrupt(ctx context.Context, threads *Threads, in Invocation) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	if err := threads.Cancel(ctx, in.Thread, in.ID, "nobody waits for it any more"); err != nil &&
		!errors.Is(err, ErrDone) {
		u.runtime.log.Warn("a call of the upstream server was not cancelled", "error", plainError(err))
	}
}

// upstreamOutcome returns the outcome from the server. A synthetic outcome is returned as an
// error.
func upstreamOutcome(c Call) (rap.Outcome, error) {
	switch {
	case c.Outcome == nil:
		return rap.Outcome{}, errors.New("the upstream call ended without an outcome")
	case c.Synthetic:
		return rap.Outcome{}, &rap.PublicError{Text: c.Outcome.Text}
	}

	out := *c.Outcome
	out.Subscription = c.Subscription

	return out, nil
}
