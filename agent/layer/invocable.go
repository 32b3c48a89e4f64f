package layer

import (
	"context"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// InvocableState is the name under which InvocableBypass keeps parked calls in the thread.
const InvocableState = "_invocableFunctionCalls"

// NewInvocableBypass returns a layer for loops that give back all calls of a turn as soon as one of them is the caller's to run: only
// those of the caller go on, the calls of functions that run here are parked in the thread and approved in the next run. It takes the
// same choices as a Bypass and treats parked calls alike in both profiles. A turn without a call of the caller's passes as it is.
//
// The loop of the Default profile keeps such calls by itself and needs no such layer.
func NewInvocableBypass(inner agent.ChatClient, cfg BypassConfig) agent.ChatClient {
	v := &invocable{cfg: cfg, warn: newWarner(cfg.Log)}
	return &stack{inner, v.begin}
}

type invocable struct {
	cfg  BypassConfig
	warn *warner
}

// ParkedCalls returns the requests in whose form InvocableBypass keeps the calls of a thread.
func ParkedCalls(t *agent.Thread) ([]content.InputRequest, error) { return parkedIn(t, InvocableState) }

func (v *invocable) begin(ctx context.Context, in input) (*round, error) {
	t := in.thread()
	if t == nil {
		v.warn.noThread(ctx, "InvocableBypass", "all calls are shown")
		return &round{messages: in.messages, options: in.options}, nil
	}
	state, err := load[parked](t, InvocableState)
	if err != nil {
		return nil, err
	}
	guard := guard{toolsOf(in.options, v.cfg.Tools), v.cfg.Decider}
	var mine []*content.FunctionCall
	take := func(c content.Content) (bool, error) {
		call, ok := c.(*content.FunctionCall)
		if !ok || !slices.Contains(mine, call) {
			return true, nil
		}
		return false, state.park(t, InvocableState, &content.ToolApprovalRequest{RequestID: "ficc_" + call.CallID, Call: call, NoConfirmation: true})
	}
	r, err := v.settle(ctx, in, state, guard, take)
	if err != nil {
		return nil, err
	}
	r.choose = func(messages []*content.Message) { mine = guard.invocable(messages) }
	return r, nil
}

func (v *invocable) settle(ctx context.Context, in input, state *parked, g guard, take func(content.Content) (bool, error)) (*round, error) {
	if v.cfg.Profile != agent.Compatible {
		free, asked, err := g.sort(ctx, state, in.thread())
		if err != nil {
			return nil, err
		}
		return settleParked(in, state, InvocableState, free, asked, take), nil
	}
	free := state.all()
	r := settleParked(in, state, InvocableState, free, nil, take)
	if len(free) > 0 {
		r.messages = append(slices.Clip(in.messages), content.NewMessage(content.User, approvals(free)...))
	}
	return r, nil
}

// invocable returns the calls of functions that run here when they stand beside calls that the caller runs.
func (g guard) invocable(messages []*content.Message) []*content.FunctionCall {
	var mine []*content.FunctionCall
	theirs := false
	for _, call := range openCalls(messages) {
		switch {
		case len(g.tools.functions(call.Name)) > 0:
			mine = append(mine, call)
		case len(g.tools.named(call.Name)) > 0:
			theirs = true
		}
	}
	if !theirs {
		return nil
	}
	return mine
}

// openCalls returns the live calls of functions that have no result in the same messages.
func openCalls(messages []*content.Message) []*content.FunctionCall {
	done := map[string]bool{}
	each(messages, func(_ at, c content.Content) {
		if r, ok := c.(*content.FunctionResult); ok {
			done[r.CallID] = true
		}
	})
	var out []*content.FunctionCall
	each(messages, func(_ at, c content.Content) {
		if call, ok := c.(*content.FunctionCall); ok && !call.InformationalOnly && !done[call.CallID] {
			out = append(out, call)
		}
	})
	return out
}
