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

// BypassState is the name under which Bypass keeps parked requests in
// the thread.
const BypassState = "_autoApprovedFunctionCalls"

// BypassConfig are the choices for a Bypass. The zero value is the default.
type BypassConfig struct {
	// Tools are known to the loop beside those of the options.
	Tools []agent.Tool
	// Decider decides, beside the markers of the tools, whether a call
	// needs approval; give it the one of the loop.
	Decider agent.Decider
	// Log takes warnings; nil means slog.Default().
	Log *slog.Logger
}

// NewBypass returns a layer that keeps away requests for calls that
// need no approval and are asked about only because a sibling needs it.
// They are parked in the thread and approved in the next run, together
// with what the user answered, ahead of what the user said last.
// Without a thread all pass.
//
// A request that wants to be confirmed is never parked, nor one of a
// nested agent, whose tools are not known here. A parked call is looked
// at again before it is approved: when its tool needs approval by then,
// is unknown, or the state came from another thread, the user is asked.
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

// guard tells which calls need approval.
type guard struct {
	tools   rounds.Toolbox
	decider agent.Decider
}

// sort tells which parked calls are still free and which are to be
// asked about.
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

// needsApproval holds unless the call is one of a known function of
// which no namesake is marked and that the decider allows.
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
