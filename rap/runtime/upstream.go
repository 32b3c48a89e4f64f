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

// UpstreamConfig names the server behind.
type UpstreamConfig struct {
	// Common is that of a Runtime, but for Plan and People, which are
	// not used: the gateway's rules have decided before a call gets
	// here, and what the server asks goes to the user by Job.Ask.
	rap.Common
	Server      Server // Groups, MCPServer and TrustDestructive mean nothing here, for the same reason
	CallbackURL string // base under which the upstream server reaches UpstreamServer.ServeHTTP
}

// UpstreamServer is a tool server behind a gateway, and the Feed of its
// operations.
type UpstreamServer struct {
	runtime *Runtime
	relay   *relay
	offers  []Offer
}

var _ rap.Feed = (*UpstreamServer)(nil)

// Upstream wraps the operations of another RAP tool server: it
// discovers them now and calls them through a Runtime of its own, which
// decides nothing. Questions of the upstream server are relayed
// (Job.Ask): a call about which the gateway asked its user itself can't
// ask again, and ends with an error. A server that wants its user to
// sign in is not served: the link reaches nobody.
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

// Operations are what it offers.
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

// ServeHTTP takes its callbacks.
func (u *UpstreamServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	u.runtime.ServeHTTP(w, req)
}

// Run works as Runtime.Run.
func (u *UpstreamServer) Run(ctx context.Context) error { return u.runtime.Run(ctx) }

// CloseThread tells the server that a thread of a caller has ended
// (GatewayConfig.Closed).
func (u *UpstreamServer) CloseThread(ctx context.Context, who approval.Asker, thread string) error {
	threads, err := u.runtime.As(who)
	if err != nil {
		return err
	}

	return threads.CloseThread(ctx, thread)
}

// Name is Feed's: where the call is kept.
func (u *UpstreamServer) Name(job rap.Job) (string, error) {
	threads, err := u.runtime.As(job.Asker)
	if err != nil {
		return "", err
	}

	return u.runtime.names.Call(threads.who, job.Thread, upstreamID(&job)), nil
}

// Events is Feed's.
func (u *UpstreamServer) Events(ctx context.Context, subscription string, from int) ([]rap.Event, bool, error) {
	return u.runtime.eventsOf(ctx, subscription, from)
}

// End is Feed's: it interrupts the call, or ends its subscription.
func (u *UpstreamServer) End(ctx context.Context, subscription string) error {
	err := u.runtime.cancel(ctx, subscription, "nobody listens any more")
	if errors.Is(err, ErrDone) || errors.Is(err, ErrNoCall) {
		return nil
	}

	return err
}

// Watch is Feed's.
func (u *UpstreamServer) Watch(ctx context.Context, changed func(subscription string)) error {
	defer u.runtime.newEvents.add(changed)()
	<-ctx.Done()

	return ctx.Err()
}

// run calls the server, in the name of whoever called the gateway.
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

// upstreamID names a call for the server behind. Ids that the gateway
// has forgotten may come again, and its runs are other calls then.
func upstreamID(job *rap.Job) string { return job.ID + " " + job.Run }

// unchanged reports by an error that the session is not offered any
// more what the gateway's rules decided about: a tool that changed is
// another tool.
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

// follow waits for what becomes of a call, and relays what the server
// asks meanwhile.
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

	return upstreamOutcome(shown(c))
}

// relayAsked puts what the server asks about a call to the user of the
// gateway's runtime, once.
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

// interrupt tells the server that nobody waits any more.
func (u *UpstreamServer) interrupt(ctx context.Context, threads *Threads, in Invocation) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	if err := threads.Cancel(ctx, in.Thread, in.ID, "nobody waits for it any more"); err != nil &&
		!errors.Is(err, ErrDone) {
		u.runtime.log.Warn("a call of the upstream server was not cancelled", "error", plainError(err))
	}
}

// upstreamOutcome is what the server said. What our own side says in
// its place is an error of ours.
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
