package compat

import (
	"context"
	"log/slog"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// BypassConfig configures a Bypass. The zero value is the default.
type BypassConfig struct {
	// Tools are known to the loop in addition to those of the options.
	Tools []agent.Tool
	// Log receives warnings. The default is slog.Default().
	Log *slog.Logger
}

// NewBypass returns a layer that hides requests for known functions without the marker. It
// parks them in the thread and approves them in the next run, in a message at the end, even if
// their tools have changed since. Without a thread all requests are passed on.
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
	old, err := rounds.Load[rounds.Parked](t, layer.BypassState)
	if err != nil {
		return nil, err
	}
	messages := in.Messages
	if len(old.Requests) > 0 {
		messages = append(
			slices.Clip(messages),
			content.NewMessage(content.User, rounds.Approvals(old.All())...),
		)
		in = in.MoreFresh(1)
	}

	tools := rounds.ToolsOf(in.Options, b.cfg.Tools)
	fresh := &rounds.Parked{Thread: t.ID}
	take := func(c content.Content) (bool, error) {
		q, ok := c.(*content.ToolApprovalRequest)
		if !ok || !runsUnasked(tools, rounds.FunctionCall(q)) {
			return true, nil
		}
		snap, err := rounds.Snapshot(q)
		if err != nil {
			return false, err
		}
		fresh.Requests = append(fresh.Requests, snap)
		return false, nil
	}
	keep := func() error {
		if !in.Streaming {
			slices.Reverse(fresh.Requests) // like .NET, which walks whole responses from their end
		}
		return fresh.Unpark(t, layer.BypassState, nil)
	}
	end := func(*agent.Response) (rounds.Ending, error) { return rounds.Ending{}, keep() }
	return &rounds.Round{
		Messages: messages,
		Options:  in.Options,
		Take:     take,
		End:      end,
		Left:     func() { _ = keep() },
	}, nil
}

// runsUnasked reports whether a function without the marker has the name of the call.
func runsUnasked(tools rounds.Toolbox, call *content.FunctionCall) bool {
	unmarked := func(f agent.Function) bool { return !agent.NeedsApproval(f) }
	return call != nil && slices.ContainsFunc(tools.Functions(call.Name), unmarked)
}

// NewInvocableBypass returns a layer that parks calls of functions that run here if the same
// response contains calls that the caller runs. It approves them in the next run, in a message
// at the end, even if their tools have changed since.
func NewInvocableBypass(inner agent.ChatClient, cfg BypassConfig) agent.ChatClient {
	warn := rounds.NewWarner(cfg.Log)
	return rounds.New(inner, func(ctx context.Context, in rounds.Input) (*rounds.Round, error) {
		var free []content.InputRequest
		approveAll := func(
			_ context.Context, p *rounds.Parked, _ *agent.Thread,
		) (all, none []content.InputRequest, _ error) {
			free = p.All()
			return free, nil, nil
		}
		tools := rounds.ToolsOf(in.Options, cfg.Tools)
		r, err := rounds.ParkInvocable(ctx, in, layer.InvocableState, tools, warn, approveAll)
		if err == nil && len(free) > 0 {
			r.Messages = append(
				slices.Clip(in.Messages),
				content.NewMessage(content.User, rounds.Approvals(free)...),
			)
		}

		return r, err
	})
}
