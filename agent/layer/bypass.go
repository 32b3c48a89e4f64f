package layer

import (
	"context"
	"log/slog"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/resolve"
)

// BypassState is the key of the thread state in which Bypass keeps parked requests.
const BypassState = "_autoApprovedFunctionCalls"

// BypassConfig configures a Bypass. The zero value is the default.
type BypassConfig struct {
	// Tools are known to the loop in addition to those of the options.
	Tools []agent.Tool
	// Decider decides, in addition to the markers of the tools, whether a call needs approval.
	// Use the same one as for the loop.
	Decider agent.Decider
	// Log receives warnings. The default is slog.Default().
	Log *slog.Logger
}

// NewBypass returns a layer that hides requests for calls that need no approval and were
// requested only because another call of the turn needs it. It parks them in the thread and
// approves them in the next run, together with the user's answers and before the user's last
// messages. Without a thread all requests are passed on.
//
// A request that needs confirmation is never parked, and neither is a request of a nested
// agent, whose tools are not known here. A parked call is checked again before it is approved.
// The user is asked if its tool needs approval by then or is unknown, or if the state came from
// another thread.
func NewBypass(inner agent.ChatClient, cfg BypassConfig) agent.ChatClient {
	b := &bypass{cfg: cfg, warn: rounds.NewWarner(cfg.Log)}
	return rounds.New(inner, b.begin)
}

type bypass struct {
	cfg  BypassConfig
	warn *rounds.Warner
}

func (b *bypass) begin(ctx context.Context, in rounds.Input) (*rounds.Round, error) {
	t := in.Thread()
	if t == nil {
		b.warn.NoThread(ctx, "Bypass", "all requests are shown")
		return &rounds.Round{Messages: in.Messages, Options: in.Options}, nil
	}
	state, err := rounds.Load[rounds.Parked](t, BypassState)
	if err != nil {
		return nil, err
	}
	guard := guard{tools: rounds.ToolsOf(in.Options, b.cfg.Tools), decider: b.cfg.Decider}
	free, asked, err := guard.sort(ctx, state, t)
	if err != nil {
		return nil, err
	}
	return rounds.SettleParked(in, state, BypassState, free, asked, func(c content.Content) (bool, error) {
		q, ok := c.(*content.ToolApprovalRequest)
		if !ok || rounds.Inert(c) || !q.NoConfirmation {
			return true, nil
		}
		needs, err := guard.needsApproval(ctx, q)
		if err != nil || needs {
			return true, err
		}
		return false, state.Park(t, BypassState, q)
	}), nil
}

// guard decides which calls need approval.
type guard struct {
	tools   rounds.Toolbox
	decider agent.Decider
}

// sort splits parked calls into those that still need no approval and those that the user must
// be asked about.
func (g guard) sort(
	ctx context.Context, p *rounds.Parked, t *agent.Thread,
) (free, asked []content.InputRequest, err error) {
	for _, q := range p.All() {
		needs, err := g.needsApproval(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		if needs || p.Thread != t.ID {
			asked = append(asked, q)
		} else {
			free = append(free, q)
		}
	}

	return free, asked, nil
}

// needsApproval returns false only if the call is of a known function, no tool of that name is
// marked, and the decider allows the call.
func (g guard) needsApproval(ctx context.Context, q content.InputRequest) (bool, error) {
	call := rounds.FunctionCall(q)
	if call == nil || rounds.Nested(q) {
		return true, nil
	}
	known := g.tools.Functions(call.Name)
	if len(known) == 0 || slices.ContainsFunc(g.tools.Named(call.Name), agent.NeedsApproval) {
		return true, nil
	}
	if g.decider == nil {
		return false, nil
	}
	v, err := g.decider.Decide(ctx, known[0], call)
	return v.Outcome != resolve.Allow, err
}
