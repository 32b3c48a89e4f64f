package layer

import (
	"context"
	"log/slog"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// BindingState is the key of the thread state in which Binding keeps the open requests.
const BindingState = "_pendingApprovalRequests"

// BindingConfig configures a Binding. The zero value is the default.
type BindingConfig struct {
	// Tools are known in addition to those of the options. Edited arguments are checked against
	// the schemas of both.
	Tools []agent.Tool
	// Log receives warnings. The default is slog.Default().
	Log *slog.Logger
}

// NewBinding returns a layer that passes an answer on only if it answers a request that came
// from the inner client before.
//
// The recorded request takes precedence over everything in the messages. It stays open until it
// is answered, and is then closed even if the run fails. An answer is removed and reported in
// Response.Refused if it shows a different call than the recorded one, repeats or contradicts
// another answer, is of the wrong kind, or has data that the schema rejects. Requests in the
// messages that are not open are removed. Without a thread every answer is refused. Only new
// messages can contain answers (agent.Options.Fresh).
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
