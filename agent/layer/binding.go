package layer

import (
	"context"
	"log/slog"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// BindingState is the name under which Binding keeps the open requests in the thread.
const BindingState = "_pendingApprovalRequests"

// BindingConfig are the choices for a Binding. The zero value is the default.
type BindingConfig struct {
	Profile agent.Profile
	// Tools are known beside those of the options; the schemas of both are held against edited arguments.
	Tools []agent.Tool
	// Log takes warnings; nil means slog.Default().
	Log *slog.Logger
}

// NewBinding returns a layer that lets an answer pass only when it answers a request that came out before.
//
// Default: the recorded request wins over everything in the messages. It stays open until it is answered, and is then used up, whether
// the run goes well or not. An answer that shows another call than the recorded one, repeats or contradicts another, is of the wrong kind
// or holds data that the schema refuses is left out and told in Response.Refused. Requests in the messages that are not open are left
// out. Without a thread every answer is refused. Only new messages can answer (agent.Options.Fresh).
//
// Compatible: an answer to a known id gets the recorded call if its own differs; a request in the messages counts as known and wins;
// what is recorded lives until the next run. Without a thread nothing is checked.
func NewBinding(inner agent.ChatClient, cfg BindingConfig) agent.ChatClient {
	b := &binding{cfg: cfg, warn: newWarner(cfg.Log)}
	begin := b.begin
	if cfg.Profile == agent.Compatible {
		begin = b.beginCompatible
	}
	return &stack{inner, begin}
}

type binding struct {
	cfg  BindingConfig
	warn *warner
}

// OpenRequests returns the requests that Binding has on record for a thread, oldest first.
func OpenRequests(t *agent.Thread) ([]content.InputRequest, error) {
	b, err := load[book](t, BindingState)
	if err != nil {
		return nil, err
	}
	return requestsOf(b.Open), nil
}

func requestsOf(entries []*entry) []content.InputRequest {
	var out []content.InputRequest
	for _, e := range entries {
		out = append(out, e.Request.InputRequest)
	}
	return out
}

func (b *binding) begin(ctx context.Context, in input) (*round, error) {
	t := in.thread()
	if t == nil {
		b.warn.noThread(ctx, "Binding", "answers are refused")
	}
	state, err := load[book](t, BindingState)
	if err != nil {
		return nil, err
	}
	out := state.bind(in.messages, in.firstNew(), toolsOf(in.options, b.cfg.Tools))
	r := &round{messages: out.messages, options: withFresh(in.options, out.fresh), refused: out.refused}
	if t == nil {
		return r, nil
	}
	r.take = func(c content.Content) (bool, error) {
		q, ok := c.(content.InputRequest)
		if !ok || inert(c) {
			return true, nil
		}
		if err := state.record(q); err != nil {
			return false, err
		}
		return true, state.keep(t, BindingState)
	}
	return r, state.keep(t, BindingState)
}

// keep puts the book into the thread.
func (b *book) keep(t *agent.Thread, key string) error {
	if len(b.Open) == 0 && len(b.Closed) == 0 {
		t.Drop(key)
		return nil
	}
	return t.Put(key, b)
}

// beginCompatible follows rules 48 to 52.
func (b *binding) beginCompatible(ctx context.Context, in input) (*round, error) {
	t := in.thread()
	if t == nil {
		b.warn.noThread(ctx, "Binding", "answers are not checked")
		return &round{messages: in.messages, options: in.options}, nil
	}
	state, err := load[book](t, BindingState)
	if err != nil {
		return nil, err
	}
	messages, fresh, refused := b.rebindAll(ctx, in, knownRequests(state, in.messages))
	t.Drop(BindingState)
	left := &book{}
	take := func(c content.Content) (bool, error) {
		q, ok := c.(content.InputRequest)
		if !ok || find(left.Open, q.InputRequestID()) != nil {
			return true, nil
		}
		if err := left.record(q); err != nil {
			return false, err
		}
		return true, left.keep(t, BindingState)
	}
	return &round{messages: messages, options: withFresh(in.options, fresh), refused: refused, take: take}, nil
}

// knownRequests are the recorded ones, and those in the messages, which win.
func knownRequests(state *book, messages []*content.Message) map[string]content.InputRequest {
	known := map[string]content.InputRequest{}
	for _, q := range requestsOf(state.Open) {
		known[q.InputRequestID()] = q
	}
	each(messages, func(_ at, c content.Content) {
		if q, ok := c.(content.InputRequest); ok {
			known[q.InputRequestID()] = q
		}
	})
	return known
}

func (b *binding) rebindAll(ctx context.Context, in input, known map[string]content.InputRequest) ([]*content.Message, int, []agent.Refusal) {
	var refused []agent.Refusal
	messages, fresh := rewrite(in.messages, in.firstNew(), func(_ at, c content.Content) content.Content {
		a, ok := c.(content.InputResponse)
		if !ok {
			return c
		}
		id := a.InputResponseTo()
		q, ok := known[id]
		if !ok {
			b.warn.log.WarnContext(ctx, "Binding: left out an answer to a request that is not known", "request", id)
			refused = append(refused, agent.Refusal{RequestID: id, Reason: agent.UnknownRequest, Detail: "no such request is known"})
			return nil
		}
		delete(known, id)
		return rebindCompatible(q, a)
	})
	return messages, fresh, refused
}

// rebindCompatible gives an answer the known call if its own differs. The flags and the reason stay.
func rebindCompatible(q content.InputRequest, a content.InputResponse) content.InputResponse {
	asked, ok := q.(*content.ToolApprovalRequest)
	answer := approval(a)
	if !ok || answer == nil || content.SameCall(asked.Call, answer.Call) {
		return a
	}
	out := *answer
	out.Call = content.CloneCall(asked.Call)
	return &out
}

// PutOpen puts requests on record for a thread, as if Binding had let them out. It is for moving threads in from elsewhere, over a
// Compatible loop: the Default loop knows only what it asked itself.
func PutOpen(t *agent.Thread, requests []content.InputRequest) error {
	state, err := load[book](t, BindingState)
	if err != nil {
		return err
	}
	for _, q := range requests {
		if err := state.record(q); err != nil {
			return err
		}
	}
	return state.keep(t, BindingState)
}
