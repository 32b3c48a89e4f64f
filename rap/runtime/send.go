package runtime

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
)

// send begins the next attempt to send the invocation. The attempt is kept before it is made; when the process that made it is gone nobody knows
// whether it arrived, and it is not made again: the call stays pending (U18).
func (r *Runtime) send(ctx context.Context, c *outCall) error {
	if !c.Send.Lease.IsZero() {
		return r.lapsed(ctx, c)
	}
	v, err := r.decide(ctx, c)
	switch {
	case err != nil:
		return r.putOff(ctx, c, err)
	case v.Outcome != resolve.Allow && v.Outcome != resolve.Ask:
		return r.refused(ctx, c, deniedText(v))
	case r.servers[c.Server] == nil:
		return r.end(ctx, c, ending{WhyNotAccepted, "the tool server is not registered any more", c.left()}, sameConsent(c))
	}
	if want := r.consentFor(c, v); want != nil {
		guard := sameConsent(c)
		_, err := r.update(ctx, c.Key, func(c *outCall) error {
			if err := guard(c); err != nil || !c.Send.Lease.IsZero() {
				return errors.Join(err, errMoved)
			}
			c.ask(want)
			return nil
		})
		return err
	}
	return r.attempt(ctx, c)
}

func (r *Runtime) attempt(ctx context.Context, seen *outCall) error {
	guard, server := sameConsent(seen), r.servers[seen.Server]
	var now *outCall
	keep := func() (err error) {
		now, err = r.update(ctx, seen.Key, func(c *outCall) error {
			if err := guard(c); err != nil || !c.Send.Lease.IsZero() {
				return errors.Join(err, errMoved) // another process was faster
			}
			if c.Send.Attempts == 0 {
				c.Deadline = r.now().Add(r.cfg.CallWithin)
			}
			c.Send.begin(r.now(), server.lease())
			return nil
		})
		return err
	}
	return r.fly(seen.Key, keep, func(ctx context.Context) { r.invoke(ctx, now) })
}

// invoke makes an attempt that was kept. Without its place in the ledger no call leaves (I8).
func (r *Runtime) invoke(ctx context.Context, c *outCall) {
	if err := r.record(ctx, "rap_invoked", c, map[string]any{"attempt": c.Send.Attempts}); err != nil {
		r.settle(r.unsent(ctx, c, err), c)
		return
	}
	r.sent(c, r.servers[c.Server].peer.Post(ctx, c.Endpoint, r.invocation(c)))
}

// unsent takes an attempt back that was none.
func (r *Runtime) unsent(ctx context.Context, c *outCall, cause error) error {
	r.log.Warn("a call waits: "+plainError(cause), "call", callName(c.Key))
	guard := sameConsent(c)
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		c.Send = errand{Attempts: c.Send.Attempts - 1, Next: r.now().Add(pause(0))}
		return nil
	})
	return err
}

func (r *Runtime) invocation(c *outCall) []byte {
	return (&wire.Invocation{
		Operation: c.Operation, Arguments: c.args(), ID: c.Wire.ID, CallID: c.CallID, CallbackURL: r.callbackURL(c.Token), GroupID: c.Wire.Group,
		Ancestors: c.Wire.Ancestors, UserID: c.User,
	}).Append(nil)
}

func (r *Runtime) callbackURL(token string) string { return r.callbacks + "/" + token }

// sent keeps how an attempt went. Once the tool has sent anything about the call it has it, whatever its answer was (R5, R7).
func (r *Runtime) sent(tried *outCall, result error) {
	ctx, done := context.WithTimeout(context.Background(), storeWithin)
	defer done()
	wait, more := r.servers[tried.Server].peer.Pause(tried.Send.Attempts)
	if result != nil && !(more && again(result)) {
		how := ending{WhyNotAccepted, "the tool server did not accept the call: " + plainError(result), again(result)}
		r.settle(r.end(ctx, tried, how, sameConsent(tried)), tried)
		return
	}
	if result != nil {
		r.log.Warn("an attempt failed; it is made again", "call", callName(tried.Key), "attempt", tried.Send.Attempts, "error", plainError(result))
	}
	guard := sameConsent(tried)
	_, err := r.update(ctx, tried.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		c.Send.Lease, c.Send.Next = time.Time{}, r.now().Add(wait)
		if result == nil {
			c.State = CallPending
		}
		return nil
	})
	r.settle(err, tried)
}

// settle logs what could not be kept of an attempt. Its lease runs out then.
func (r *Runtime) settle(err error, c *outCall) {
	if err != nil && !errors.Is(err, errMoved) {
		r.log.Warn("an attempt could not be kept", "call", callName(c.Key), "error", plainError(err))
	}
}

// again tells whether another attempt can help. All of 4xx is the peer's last word here (I6, R9), 429 included.
func again(err error) bool {
	if status, ok := errors.AsType[*peer.StatusError](err); ok && status.Code < http.StatusInternalServerError {
		return false
	}
	return peer.Again(err)
}

// lapsed leaves a call to the tool of which nobody knows whether it arrived.
func (r *Runtime) lapsed(ctx context.Context, c *outCall) error {
	guard := sameConsent(c)
	_, err := r.update(ctx, c.Key, func(c *outCall) error {
		if err := guard(c); err != nil {
			return err
		}
		c.State, c.Send.Lease = CallPending, time.Time{}
		return nil
	})
	return err
}

// flights are the requests of calls that are under way, so that ending a call ends them too.
type flights struct {
	mu sync.Mutex
	of map[string]map[*flight]struct{}
}

type flight struct {
	stop context.CancelFunc
	down chan struct{}
}

// fly makes a request beside everything else: it takes as long as the peer likes, within the peer's own bounds. It is made only once keep has kept
// that it will be, and it can be stopped from before then on.
func (r *Runtime) fly(key string, keep func() error, request func(context.Context)) error {
	ctx, stop := context.WithCancel(context.Background())
	f := &flight{stop, make(chan struct{})}
	r.flights.mu.Lock()
	if r.flights.of[key] == nil {
		r.flights.of[key] = map[*flight]struct{}{}
	}
	r.flights.of[key][f] = struct{}{}
	r.flights.mu.Unlock()
	if err := keep(); err != nil {
		r.land(key, f)
		return err
	}
	go func() {
		defer r.land(key, f)
		request(ctx)
	}()
	return nil
}

func (f *flights) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.of) == 0
}

func (r *Runtime) land(key string, f *flight) {
	f.stop()
	r.flights.mu.Lock()
	defer r.flights.mu.Unlock()
	delete(r.flights.of[key], f)
	if len(r.flights.of[key]) == 0 {
		delete(r.flights.of, key)
	}
	close(f.down)
}

// ground ends the requests of a call that has ended, and waits until they have: what was not sent by then never is.
func (r *Runtime) ground(ctx context.Context, key string) {
	r.flights.mu.Lock()
	var all []*flight
	for f := range r.flights.of[key] {
		f.stop()
		all = append(all, f)
	}
	r.flights.mu.Unlock()
	for _, f := range all {
		select {
		case <-f.down:
		case <-ctx.Done():
			return
		}
	}
}
