package layer

import (
	"context"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// InvocableState is the name under which InvocableBypass keeps parked
// calls in the thread.
const InvocableState = "_invocableFunctionCalls"

// NewInvocableBypass returns a layer for loops that give back all calls
// of a turn as soon as one of them is the caller's to run: only those
// of the caller go on, the calls of functions that run here are parked
// in the thread and approved in the next run, as Bypass does it. A turn
// without a call of the caller's passes as it is.
//
// The loop of package agent keeps such calls by itself and needs no
// such layer.
func NewInvocableBypass(inner agent.ChatClient, cfg BypassConfig) agent.ChatClient {
	warn := rounds.NewWarner(cfg.Log)
	return rounds.New(inner, func(ctx context.Context, in rounds.Input) (*rounds.Round, error) {
		tools := rounds.ToolsOf(in.Options, cfg.Tools)
		guard := guard{tools: tools, decider: cfg.Decider}
		return rounds.ParkInvocable(ctx, in, InvocableState, tools, warn, guard.sort)
	})
}
