package compat

import (
	"context"
	"log/slog"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// BindingRules are what a release of .NET makes of answers.
type BindingRules uint8

// The rules.
const (
	Rules114 BindingRules = iota // of 1.14, which brought the layer
	Rules125                     // of 1.25 and later
)

// BindingConfig are the choices for a Binding. The zero value is the default.
type BindingConfig struct {
	// Rules are those of the release to agree with.
	Rules BindingRules
	// Tools are known beside those of the options. Only Rules125 asks
	// which of them need approval.
	Tools []agent.Tool
	// Log takes warnings; nil means slog.Default().
	Log *slog.Logger
}

// NewBinding returns a layer that lets an answer pass only when it
// answers a request that is known. An answer gets the known call if its
// own differs; a request in the messages counts as known and wins; what
// is recorded lives until the next run. Without a thread nothing is
// checked.
//
// With Rules125 only what is recorded counts as known, and lives until a
// run ends well: a failed one can be tried again. That run rejects every
// recorded request that it does not answer, before everything new in its
// messages, and gives these rejections to the caller ahead of all else.
// An answer passes without a record when the messages hold a result of
// its call, and when its tool is known and needs no approval. An id
// under which two calls were asked about is answered by nobody.
func NewBinding(inner agent.ChatClient, cfg BindingConfig) agent.ChatClient {
	b := &binding{cfg: cfg, warn: rounds.NewWarner(cfg.Log)}
	return rounds.New(inner, b.begin)
}

type binding struct {
	cfg  BindingConfig
	warn *rounds.Warner
}

func (b *binding) begin(ctx context.Context, in rounds.Input) (*rounds.Round, error) {
	t := in.Thread()
	if t == nil {
		b.warn.NoThread(ctx, "Binding", "answers are not checked")
		return &rounds.Round{Messages: in.Messages, Options: in.Options}, nil
	}
	state, err := rounds.Load[rounds.Book](t, layer.BindingState)
	if err != nil {
		return nil, err
	}
	if b.cfg.Rules == Rules125 {
		return b.begin125(ctx, in, t, state)
	}
	messages, fresh, refused := b.rebindAll(ctx, in, knownRequests(state, in.Messages))
	t.Drop(layer.BindingState)
	left := &rounds.Book{}
	take := func(c content.Content) (bool, error) {
		q, ok := c.(content.InputRequest)
		if !ok || rounds.Find(left.Open, q.InputRequestID()) != nil {
			return true, nil
		}
		if err := left.Record(q); err != nil {
			return false, err
		}
		return true, left.Keep(t, layer.BindingState)
	}
	return &rounds.Round{
		Messages: messages,
		Options:  rounds.WithFresh(in.Options, fresh),
		Refused:  refused,
		Take:     take,
	}, nil
}

// knownRequests are the recorded ones, and those in the messages, which win.
func knownRequests(state *rounds.Book, messages []*content.Message) map[string]content.InputRequest {
	known := map[string]content.InputRequest{}
	for _, q := range rounds.RequestsOf(state.Open) {
		known[q.InputRequestID()] = q
	}
	rounds.Each(messages, func(_ rounds.At, c content.Content) {
		if q, ok := c.(content.InputRequest); ok {
			known[q.InputRequestID()] = q
		}
	})
	return known
}

func (b *binding) rebindAll(
	ctx context.Context, in rounds.Input, known map[string]content.InputRequest,
) ([]*content.Message, int, []agent.Refusal) {
	var refused []agent.Refusal
	messages, fresh := rounds.Rewrite(
		in.Messages,
		in.FirstNew(),
		func(_ rounds.At, c content.Content) content.Content {
			a, ok := c.(content.InputResponse)
			if !ok {
				return c
			}
			id := a.InputResponseTo()
			q, ok := known[id]
			if !ok {
				refused = append(refused, b.unknown(ctx, id))
				return nil
			}

			delete(known, id)
			return rebind(q, a)
		},
	)
	return messages, fresh, refused
}

// unknown warns of an answer that is left out.
func (b *binding) unknown(ctx context.Context, id string) agent.Refusal {
	b.warn.Log.WarnContext(ctx, "Binding: left out an answer to a request that is not known", "request", id)
	return agent.Refusal{
		RequestID: id,
		Reason:    agent.UnknownRequest,
		Detail:    "no such request is known",
	}
}

// rebind gives an answer the known call if its own differs. The flags
// and the reason stay.
func rebind(q content.InputRequest, a content.InputResponse) content.InputResponse {
	asked, ok := q.(*content.ToolApprovalRequest)
	answer, _ := a.(*content.ToolApprovalResponse)
	if !ok || answer == nil || content.SameCall(asked.Call, answer.Call) {
		return a
	}
	out := *answer
	out.Call = content.CloneCall(asked.Call)
	return &out
}
