package layer

import (
	"context"
	"log/slog"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// BindingState is the name under which Binding keeps the open requests
// in the thread.
const BindingState = "_pendingApprovalRequests"

// BindingConfig are the choices for a Binding. The zero value is the default.
type BindingConfig struct {
	// Tools are known beside those of the options; the schemas of both
	// are held against edited arguments.
	Tools []agent.Tool
	// Log takes warnings; nil means slog.Default().
	Log *slog.Logger
}

// NewBinding returns a layer that lets an answer pass only when it
// answers a request that came out before.
//
// The recorded request wins over everything in the messages. It stays
// open until it is answered, and is then used up, whether the run goes
// well or not. An answer that shows another call than the recorded one,
// repeats or contradicts another, is of the wrong kind or holds data
// that the schema refuses is left out and told in Response.Refused.
// Requests in the messages that are not open are left out. Without a
// thread every answer is refused. Only new messages can answer
// (agent.Options.Fresh).
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
		b.warn.NoThread(ctx, "Binding", "answers are refused")
	}
	state, err := rounds.Load[rounds.Book](t, BindingState)
	if err != nil {
		return nil, err
	}
	out := book{state}.bind(in.Messages, in.FirstNew(), rounds.ToolsOf(in.Options, b.cfg.Tools))
	r := &rounds.Round{
		Messages: out.messages,
		Options:  rounds.WithFresh(in.Options, out.fresh),
		Refused:  out.refused,
	}
	if t == nil {
		return r, nil
	}
	r.Take = func(c content.Content) (bool, error) {
		q, ok := c.(content.InputRequest)
		if !ok || rounds.Inert(c) {
			return true, nil
		}
		if err := state.Record(q); err != nil {
			return false, err
		}
		return true, state.Keep(t, BindingState)
	}
	return r, state.Keep(t, BindingState)
}
