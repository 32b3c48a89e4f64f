package layer

import (
	"context"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// InvocableState is the key of the thread state in which InvocableBypass keeps parked calls.
const InvocableState = "_invocableFunctionCalls"

// NewInvocableBypass returns a layer for loops that return all calls of a turn to the caller if
// the caller must run one of them. Only the caller's own calls are passed on. Calls of
// functions that run here are parked in the thread and approved in the next run, as in Bypass.
// A turn without a call for the caller is passed on unchanged.
//
// The loop of package agent keeps such calls itself and doesn't need this layer.
func NewInvocableBypass(inner agent.ChatClient, cfg BypassConfig) agent.ChatClient {
	warn := rounds.NewWarner(cfg.Log)
	return rounds.New(inner, func(ctx context.Context, in rounds.Input) (*rounds.Round, error) {
		tools := rounds.ToolsOf(in.Options, cfg.Tools)
		guard := guard{tools: tools, decider: cfg.Decider}
		return rounds.ParkInvocable(ctx, in, InvocableState, tools, warn, guard.sort)
	})
}
