package runtime

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
)

// dispatcher sends invocations, answers and notices to tools, and ends calls.
type dispatcher struct {
	*base
	listings *listings
	signIns  *signInKeeper
	notices  chan struct{}
}

// send makes an attempt to send the invocation. The attempt was stored before. If the process
// dies meanwhile, the invocation may have arrived, so it is not sent again: the call stays
// pending.
func (d *dispatcher) send(ctx context.Context, c *call) durable.Result[part] {
	attempt := c.Run.Tries
	if err := d.record(ctx, "rap_invoked", c, map[string]any{"attempt": attempt}); err != nil {
		d.log.Warn("a call waits: "+plainError(err), "call", callName(c.Key))
		return durable.Result[part]{
			After: durable.NotBegun,
			Pause: pause(1),
			Keep:  func(c *call) { c.Run.Tries-- }, // not made: no call is sent without its ledger event
		}
	}

	s := d.servers[c.Part.Server]
	err := s.peer.Post(ctx, c.Part.Endpoint, d.invocation(c))
	wait, more := s.peer.Pause(attempt)
	switch {
	case err == nil || ctx.Err() != nil: // an interrupted request may have arrived
		return durable.Result[part]{After: durable.HandedOn}
	case !again(err):
		return notSent(whyNotAccepted, err)
	case !more:
		return notSent(whyNotReached, err)
	}

	d.log.Warn(
		"an attempt failed; it is made again",
		"call",
		callName(c.Key),
		"attempt",
		attempt,
		"error",
		plainError(err),
	)
	return durable.Result[part]{After: durable.NotBegun, Pause: wait}
}

func notSent(why durable.Why, err error) durable.Result[part] {
	reason := "the tool server did not accept the call: " + plainError(err)

	return durable.Result[part]{Ending: durable.Ending{Why: why, Reason: reason}}
}

func (d *dispatcher) invocation(c *call) []byte {
	p := &c.Part

	return (&wire.Invocation{
		Operation:   p.Operation,
		Arguments:   c.Args(),
		ID:          p.Wire.ID,
		CallID:      p.CallID,
		CallbackURL: d.callbackURL(p.Token),
		GroupID:     p.Wire.Group,
		Ancestors:   p.Wire.Ancestors,
		UserID:      p.User,
	}).Append(nil)
}

func (d *dispatcher) callbackURL(token string) string { return d.callbacks + "/" + token }

// again reports whether another attempt can help. Any 4xx is final here, including 429.
func again(err error) bool {
	if status, ok := errors.AsType[*peer.StatusError](err); ok && status.Code < http.StatusInternalServerError {
		return false
	}

	return peer.Again(err)
}

// post makes an attempt to post the answer to a tool's question: the same bytes to the same URL
// each time.
func (d *dispatcher) post(ctx context.Context, c *call) durable.Sent[part] {
	d.signIns.endSignIn(ctx, c)
	attempt := c.Message.Tries
	s := d.servers[c.Part.Server]
	if s == nil {
		return d.undelivered(c, errors.New("its tool server is not registered any more"))
	}
	if _, more := s.peer.Pause(attempt - 1); attempt > 1 && !more { // the process died in the last attempt
		return d.undelivered(c, errors.New("the attempts are spent"))
	}

	q := c.Part.Choice
	facts := map[string]any{
		"question":    q.Number,
		"selected":    q.Selected,
		"attempt":     attempt,
		"answered_by": q.By,
	}
	if err := d.record(ctx, "rap_choice_answered", c, facts); err != nil {
		d.log.Warn("an answer waits: "+plainError(err), "call", callName(c.Key))
		return durable.Sent[part]{
			Retry: true,
			Pause: pause(1),
			Keep:  func(c *call) { c.Message.Tries-- }, // not made: no answer is sent without its ledger event
		}
	}

	err := s.peer.Post(ctx, q.URL, wire.Answer{ID: c.Part.Wire.ID, Selected: q.Selected}.Append(nil))
	wait, more := s.peer.Pause(attempt)
	switch {
	case err == nil:
		d.note(ctx, "rap_choice_delivered", c, map[string]any{"question": q.Number, "answered_by": q.By})
		return durable.Sent[part]{Keep: func(c *call) { c.Part.Choice.State = choiceDelivered }}
	case more && again(err):
		return durable.Sent[part]{Retry: true, Pause: wait}
	}

	return d.undelivered(c, err)
}

// undelivered gives up an answer. The call stays pending until its result or its deadline, and
// is not sent again.
func (d *dispatcher) undelivered(c *call, cause error) durable.Sent[part] {
	d.log.Warn("an answer could not be delivered", "call", callName(c.Key), "error", plainError(cause))

	return durable.Sent[part]{Keep: func(c *call) {
		c.Part.Choice.State = choiceFailed
		c.Part.Told.Trouble = "the answer could not be delivered to the tool: " + plainError(cause)
	}}
}

// pause returns how long to wait after a number of failures in a row of the approval service,
// the rules or the ledger.
func pause(fails int) time.Duration {
	return min(time.Second<<min(fails-1, 6), time.Minute)
}
