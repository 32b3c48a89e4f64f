package compat

import (
	"context"
	"log/slog"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// BindingRules selects how answers are matched to requests, as in a release of .NET.
type BindingRules uint8

// The rules.
const (
	Rules114 BindingRules = iota // of 1.14, which introduced the layer
	Rules125                     // of 1.25 and later
)

// BindingConfig configures a Binding. The zero value is the default.
type BindingConfig struct {
	// Rules selects the release whose behavior is used.
	Rules BindingRules
	// Tools are known in addition to those of the options. Only Rules125 checks which of them
	// need approval.
	Tools []agent.Tool
	// Log receives warnings. The default is slog.Default().
	Log *slog.Logger
}

// NewBinding returns a layer that passes an answer on only if it answers a known request. If
// the call in the answer differs from that of the known request, it is replaced. Requests in
// the messages count as known and take precedence over recorded ones. A record lasts until the
// next run. Without a thread nothing is checked.
//
// With Rules125 only recorded requests count as known, and a record lasts until a run succeeds,
// so a failed run can be repeated. The run rejects every recorded request that it doesn't
// answer, before all new messages, and returns these rejections to the caller first. An answer
// needs no record if the messages contain a result of its call, or if its tool is known and
// needs no approval. If two calls were requested under the same id, no answer to that id is
// accepted.
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

// knownRequests returns the recorded requests and those in the messages, which take precedence.
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

// unknown logs a warning about an answer that is left out, and returns its refusal.
func (b *binding) unknown(ctx context.Context, id string) agent.Refusal {
	b.warn.Log.WarnContext(ctx, "Binding: left out an answer to a request that is not known", "request", id)
	return agent.Refusal{
		RequestID: id,
		Reason:    agent.UnknownRequest,
		Detail:    "no such request is known",
	}
}

// rebind replaces the call of an answer with the known one if they differ. Flags and reason are
// kept.
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
