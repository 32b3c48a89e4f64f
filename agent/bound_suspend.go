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

// maxTries bounds how often a call is resumed that could not go on.
const maxTries = 3

// again keeps a call that could not go on for the next run, which is
// this one's error.
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

// closeOpen ends the open requests of a call that are not among those
// that stay, and takes back what people are asked.
func (r *run) closeOpen(ctx context.Context, it *item, stay []*ask) {
	for _, a := range it.Asks {
		if a.Answer == nil && !slices.Contains(stay, a) {
			r.t.close(it, a, howElsewhere)
			_ = r.cancel(context.WithoutCancel(ctx), a, "the answer is not needed any more") // it expires else
		}
	}
}

// checkSuspend refuses what can't be kept or shown.
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

// askable refuses questions that can't be shown, kept, or answered.
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

// suspend keeps what a function asks before it goes on.
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

// outerRefusals are the refusals of a nested agent under the ids that
// its caller knows.
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

// stillOpen finds an open request that a polled function makes again:
// it keeps its id.
func stillOpen(before []*ask, q content.InputRequest, taken []*ask) *ask {
	for _, a := range before {
		if a.Inner == q.InputRequestID() && a.Answer == nil && !slices.Contains(taken, a) {
			return a
		}
	}
	return nil
}

// askFor shows a function's own request under an id of this thread.
func (r *run) askFor(ctx context.Context, it *item, q content.InputRequest) (*ask, error) {
	id, err := r.requestID(it.Call.ID())
	if err != nil {
		return nil, err
	}
	outer := cloneRequest(reid.Request(q, id))
	if approval, ok := outer.(*content.ToolApprovalRequest); ok && approval.Note.Agent == "" {
		approval.Note.Agent = it.Call.ToolName() // a call of theirs is none of ours, whatever its name
	}
	a := &ask{
		Request: outer,
		Inner:   q.InputRequestID(),
		Since:   r.now(),
		Expires: content.NoteOf(outer).Expires,
	}
	return a, r.record(ctx, it, Event{Type: "requested", RequestID: id})
}
