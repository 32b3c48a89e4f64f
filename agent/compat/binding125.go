package compat

import (
	"context"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// begin125 binds answers by the rules of 1.25.
func (b *binding) begin125(
	ctx context.Context, in rounds.Input, t *agent.Thread, state *rounds.Book,
) (*rounds.Round, error) {
	n := &binding125{
		binding: b,
		tools:   rounds.ToolsOf(in.Options, b.cfg.Tools),
		settled: map[string]bool{},
		known:   map[string]content.InputRequest{},
	}
	for _, e := range state.Open {
		if !e.Reused {
			n.known[e.ID] = e.Request.InputRequest
			n.order = append(n.order, e.ID)
		}
	}

	for r := range content.All[*content.FunctionResult](in.Messages) {
		n.settled[r.CallID] = true
	}
	in = n.bind(ctx, in)
	made := &rounds.Book{}
	return &rounds.Round{
		Messages: in.Messages,
		Options:  in.Options,
		Refused:  n.refused,
		Lead:     n.rejections,
		Take: func(c content.Content) (bool, error) {
			q, ok := c.(content.InputRequest)
			if !ok || rounds.Inert(q) {
				return true, nil
			}
			if err := made.Record(q); err != nil {
				return false, err
			}
			if err := state.Record(q); err != nil {
				return false, err
			}
			return true, state.Keep(t, layer.BindingState)
		},
		End: func(*agent.Response) (rounds.Ending, error) {
			return rounds.Ending{}, made.Keep(t, layer.BindingState)
		},
	}, nil
}

// binding125 is the binding of one run.
type binding125 struct {
	*binding
	tools      rounds.Toolbox
	settled    map[string]bool                 // ids of calls that have a result in the messages
	known      map[string]content.InputRequest // recorded requests without an answer so far
	order      []string                        // ids of known, oldest first
	answers    []content.Content               // answers to recorded requests, in order
	rejections []content.Content               // rejections for the caller
	refused    []agent.Refusal
}

// bind makes the messages for the loop: the accepted answers, and rejections of the requests
// that are left open. The answers are copies, because the loop marks their calls as handled.
func (n *binding125) bind(ctx context.Context, in rounds.Input) rounds.Input {
	judged := map[rounds.At]content.Content{}
	moving := map[rounds.At]bool{}
	rounds.Each(in.Messages, func(at rounds.At, c content.Content) {
		judged[at] = c
		switch c := c.(type) {
		case *content.ToolApprovalRequest:
			out := *c
			out.Call = content.CloneCall(c.Call)
			judged[at] = &out
		case content.InputResponse:
			judged[at], moving[at] = n.answer(ctx, c)
		}
	})
	rejected := n.reject()
	place := func(at rounds.At, _ content.Content) content.Content {
		if len(rejected) > 0 && moving[at] {
			return nil
		}
		return judged[at]
	}
	messages, fresh := rounds.Rewrite(in.Messages, in.FirstNew(), place)
	in.Options = rounds.WithFresh(in.Options, fresh)
	in.Messages = messages
	if len(rejected) == 0 {
		return in
	}

	at := len(messages) - fresh
	for i, m := range messages {
		for range content.All[*content.ToolApprovalRequest]([]*content.Message{m}) {
			at = max(at, i+1)
		}
	}
	together := content.NewMessage(content.User, slices.Concat(n.answers, rejected)...)
	in.Messages = slices.Insert(messages, at, together)
	return in.MoreFresh(1)
}

// answer returns the answer to pass on, or nil, and whether it answers a recorded request.
func (n *binding125) answer(ctx context.Context, a content.InputResponse) (content.Content, bool) {
	id, call := a.InputResponseTo(), rounds.CallOf(a)
	if call != nil && n.settled[call.ID()] {
		return a, false
	}
	q, ok := n.known[id]
	switch {
	case ok:
		delete(n.known, id)
		out := copied(rebind(q, a))
		n.answers = append(n.answers, out)
		return out, true
	case call != nil && n.harmless(call):
		return copied(a), false
	}

	n.refused = append(n.refused, n.unknown(ctx, id))
	return nil, false
}

// harmless reports whether the call's tool is known and needs no approval.
func (n *binding125) harmless(c content.ToolCall) bool {
	f, ok := c.(*content.FunctionCall)
	if !ok {
		return false
	}
	named := n.tools.Named(f.Name)
	return len(named) > 0 && !slices.ContainsFunc(named, agent.NeedsApproval)
}

// reject returns rejections for recorded requests that have neither an answer nor a result of
// their call, and records copies for the caller.
func (n *binding125) reject() []content.Content {
	var out []content.Content
	for _, id := range n.order {
		q := n.known[id]
		if q == nil {
			continue
		}
		if a, ok := q.(*content.ToolApprovalRequest); ok && n.settled[a.Call.ID()] {
			continue
		}
		out = append(out, content.Rejection(q, ""))
		n.rejections = append(n.rejections, content.Rejection(q, ""))
	}

	return out
}

// copied returns an answer with its own copy of the call.
func copied(a content.InputResponse) content.InputResponse {
	answer, ok := a.(*content.ToolApprovalResponse)
	if !ok || answer.Call == nil {
		return a
	}
	out := *answer
	out.Call = content.CloneCall(answer.Call)
	return &out
}
