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

// BypassConfig are the choices for a Bypass. The zero value is the default.
type BypassConfig struct {
	// Tools are known to the loop beside those of the options.
	Tools []agent.Tool
	// Log takes warnings; nil means slog.Default().
	Log *slog.Logger
}

// NewBypass returns a layer that keeps away every request for a known
// function without the marker. They are parked in the thread, and
// approved in the next run whatever has become of their tools, in a
// message at the end. Without a thread all pass.
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
			slices.Reverse(fresh.Requests) // as .NET, which walks whole responses from their end
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

// runsUnasked reports whether a function that runs here without
// approval has the name of a call.
func runsUnasked(tools rounds.Toolbox, call *content.FunctionCall) bool {
	unmarked := func(f agent.Function) bool { return !agent.NeedsApproval(f) }
	return call != nil && slices.ContainsFunc(tools.Functions(call.Name), unmarked)
}

// NewInvocableBypass returns a layer that parks the calls of functions
// that run here when they stand beside calls that the caller runs, and
// approves them in the next run whatever has become of their tools, in
// a message at the end.
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
