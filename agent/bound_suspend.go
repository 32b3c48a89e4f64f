package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/reid"
)

// maxTries limits how often a call that can't continue is resumed.
const maxTries = 3

// again keeps a call that could not continue, to be resumed in the next run. It returns the
// function's error, which ends this run. After maxTries attempts, or if the state is not valid
// JSON, the call ends as failed and again returns nil.
func (r *run) again(ctx context.Context, it *item, s *Suspend) error {
	r.closeOpen(ctx, it, nil)
	if it.Tries++; it.Tries >= maxTries || !json.Valid(s.State) {
		it.Stage = done
		it.State = nil
		it.Result = jsonText(textGivenUp)
		it.Unrecorded = true
		it.ended = "failed: " + s.Err.Error()
		return nil
	}

	it.Stage = approved
	it.State = s.State
	it.Asks = nil
	return s.Err
}

// closeOpen closes the open requests of a call, except those in stay, and withdraws them from
// the people who were asked.
func (r *run) closeOpen(ctx context.Context, it *item, stay []*ask) {
	for _, a := range it.Asks {
		if a.Answer == nil && !slices.Contains(stay, a) {
			r.t.close(it, a, howElsewhere)
			// if cancelling fails, the request expires
			_ = r.cancel(context.WithoutCancel(ctx), a, "the answer is not needed any more")
		}
	}
}

// checkSuspend returns an error if the requests or the state can't be stored or shown.
func checkSuspend(s *Suspend) error {
	if len(s.Requests) == 0 {
		return errors.New("the function waits for its user and asks nothing")
	}
	if s.State != nil && !json.Valid(s.State) {
		return errors.New("the function waits for its user with a state that is no JSON")
	}
	for _, q := range s.Requests {
		if err := askable(q); err != nil {
			return err
		}
	}
	return nil
}

// askable returns an error if a question can't be shown, stored or answered.
func askable(q content.InputRequest) error {
	if q == nil {
		return errors.New("the question is nil")
	}
	if _, err := content.DotNet().AppendContent(nil, reid.Request(q, "x")); err != nil {
		return fmt.Errorf("what is asked can't be shown: %w", err)
	}
	data, ok := q.(*content.StructuredInputRequest)
	if !ok {
		return nil
	}
	var bad *content.BadError
	err := content.CheckSchema(data.Schema, json.RawMessage("null"))
	if errors.As(err, &bad) && bad.Code == content.BadSchema {
		return fmt.Errorf("the schema of the data can't be used: %w", err)
	}
	return nil
}

// suspend stores the requests and the state of a function that suspended.
func (r *run) suspend(ctx context.Context, it *item, s *Suspend) error {
	var asks []*ask
	for _, q := range s.Requests {
		a := stillOpen(it.Asks, q, asks)
		if a == nil {
			var err error
			if a, err = r.askFor(ctx, it, q); err != nil {
				return err
			}
		}

		asks = append(asks, a)
	}

	if err := r.refuse(ctx, outerRefusals(it.Asks, s.Refused)...); err != nil {
		return err
	}
	r.closeOpen(ctx, it, asks)
	it.Stage = open
	it.State = s.State
	it.Poll = s.Poll
	it.Asks = asks
	if it.State == nil {
		it.State = []byte("null")
	}
	return nil
}

// outerRefusals translates refusals of a nested agent to the request ids that the caller has.
func outerRefusals(asks []*ask, inner []Refusal) []Refusal {
	var out []Refusal
	for _, no := range inner {
		for _, a := range asks {
			if a.Inner == no.RequestID {
				no.RequestID = a.Request.InputRequestID()
				out = append(out, no)
				break
			}
		}
	}

	return out
}

// stillOpen finds an open request that a polled function makes again, so that it keeps its id.
func stillOpen(before []*ask, q content.InputRequest, taken []*ask) *ask {
	for _, a := range before {
		if a.Inner == q.InputRequestID() && a.Answer == nil && !slices.Contains(taken, a) {
			return a
		}
	}
	return nil
}

// askFor creates a request of this thread for a request that a function made.
func (r *run) askFor(ctx context.Context, it *item, q content.InputRequest) (*ask, error) {
	id, err := r.requestID(it.Call.ID())
	if err != nil {
		return nil, err
	}
	outer := cloneRequest(reid.Request(q, id))
	if approval, ok := outer.(*content.ToolApprovalRequest); ok && approval.Note.Agent == "" {
		// name the inner agent, so that its call is not mistaken for a call of this agent with
		// the same tool name
		approval.Note.Agent = it.Call.ToolName()
	}
	a := &ask{
		Request: outer,
		Inner:   q.InputRequestID(),
		Since:   r.now(),
		Expires: content.NoteOf(outer).Expires,
	}
	return a, r.record(ctx, it, Event{Type: "requested", RequestID: id})
}
