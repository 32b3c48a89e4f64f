package rounds

import (
	"context"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Parked is the state of both bypasses: requests that are not shown.
type Parked struct {
	Thread   string     `json:"thread,omitempty"`
	Requests []*Request `json:"requests,omitempty"`
}

func (p *Parked) whole() bool {
	return !slices.ContainsFunc(p.Requests, func(q *Request) bool { return !q.whole() })
}

// All returns the parked requests.
func (p *Parked) All() []content.InputRequest {
	var out []content.InputRequest
	for _, q := range p.Requests {
		out = append(out, q.InputRequest)
	}
	return out
}

// Park adds a request and stores the state. It replaces a request with the same id.
func (p *Parked) Park(t *agent.Thread, key string, q content.InputRequest) error {
	snap, err := Snapshot(q)
	if err != nil {
		return err
	}
	p.Thread = t.ID
	p.Requests = slices.DeleteFunc(p.Requests, func(old *Request) bool {
		return old.InputRequestID() == q.InputRequestID()
	})
	p.Requests = append(p.Requests, snap)
	return t.Put(key, p)
}

// Unpark removes requests and stores the state.
func (p *Parked) Unpark(t *agent.Thread, key string, gone []content.InputRequest) error {
	p.Requests = slices.DeleteFunc(
		p.Requests,
		func(q *Request) bool { return slices.Contains(gone, q.InputRequest) },
	)
	if len(p.Requests) == 0 {
		t.Drop(key)
		return nil
	}
	return t.Put(key, p)
}

// Approvals returns approvals of the requests.
func Approvals(requests []content.InputRequest) []content.Content {
	var out []content.Content
	for _, q := range requests {
		if q, ok := q.(*content.ToolApprovalRequest); ok {
			out = append(out, q.CreateApproval(""))
		}
	}
	return out
}

// SettleParked approves the parked calls in free. It asks about those in asked if the run
// succeeds. If the run fails, all stay parked.
func SettleParked(
	in Input,
	state *Parked,
	key string,
	free, asked []content.InputRequest,
	take func(content.Content) (bool, error),
) *Round {
	t := in.Thread()
	injected := in.InsertAnswers(Approvals(free))
	seen := map[string]bool{}
	watch := func(c content.Content) (bool, error) {
		if q, ok := c.(content.InputRequest); ok {
			seen[q.InputRequestID()] = true
		}
		return take(c)
	}
	done := func() error { return state.Unpark(t, key, slices.Concat(free, asked)) }
	end := func(*agent.Response) (Ending, error) {
		var extra []content.Content
		for _, q := range asked {
			if !seen[q.InputRequestID()] {
				extra = append(extra, confirm(q))
			}
		}
		return Ending{Extra: extra}, done()
	}
	return &Round{
		Messages: injected.Messages,
		Options:  injected.Options,
		Take:     watch,
		End:      end,
		Left:     func() { _ = state.Unpark(t, key, free) },
	}
}

// confirm returns a copy of a request that needs confirmation.
func confirm(q content.InputRequest) content.Content {
	if a, ok := q.(*content.ToolApprovalRequest); ok {
		out := *a
		out.NoConfirmation = false
		return &out
	}
	return q
}

// Sort splits parked requests into those that are approved and those that the user is asked
// about.
type Sort func(ctx context.Context, p *Parked, t *agent.Thread) (free, asked []content.InputRequest, err error)

// ParkInvocable makes a round that parks calls of functions that run here if the response also
// contains calls that the caller runs.
func ParkInvocable(
	ctx context.Context, in Input, key string, tools Toolbox, warn *Warner, sort Sort,
) (*Round, error) {
	t := in.Thread()
	if t == nil {
		warn.NoThread(ctx, "InvocableBypass", "all calls are shown")
		return &Round{Messages: in.Messages, Options: in.Options}, nil
	}
	state, err := Load[Parked](t, key)
	if err != nil {
		return nil, err
	}
	free, asked, err := sort(ctx, state, t)
	if err != nil {
		return nil, err
	}
	var mine []*content.FunctionCall
	r := SettleParked(in, state, key, free, asked, func(c content.Content) (bool, error) {
		call, ok := c.(*content.FunctionCall)
		if !ok || !slices.Contains(mine, call) {
			return true, nil
		}
		q := &content.ToolApprovalRequest{
			RequestID:      "ficc_" + call.CallID,
			Call:           call,
			NoConfirmation: true,
		}
		return false, state.Park(t, key, q)
	})
	r.Choose = func(messages []*content.Message) { mine = tools.invocable(messages) }
	return r, nil
}
