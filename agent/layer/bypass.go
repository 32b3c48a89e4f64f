package layer

import (
	"context"
	"log/slog"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/resolve"
)

// BypassState is the name under which Bypass keeps parked requests in the thread.
const BypassState = "_autoApprovedFunctionCalls"

// BypassConfig are the choices for a Bypass. The zero value is the default.
type BypassConfig struct {
	Profile agent.Profile
	// Tools are known to the loop beside those of the options.
	Tools []agent.Tool
	// Decider decides, beside the markers of the tools, whether a call needs approval; give it the one of the loop. Default profile only.
	Decider agent.Decider
	// Log takes warnings; nil means slog.Default().
	Log *slog.Logger
}

// NewBypass returns a layer that keeps away requests for calls that need no approval and are asked about only because a sibling needs it.
// They are parked in the thread and approved in the next run, together with what the user answered. Without a thread all pass.
//
// Default: a request that wants to be confirmed is never parked, nor one of a nested agent, whose tools are not known here. A parked call is looked at again before it is approved: when its tool
// needs approval by then, is unknown, or the state came from another thread, the user is asked. Approvals come before what the user said
// last.
//
// Compatible: every request for a known function without the marker is parked; parked calls are approved whatever has become of their
// tools, in a message at the end.
func NewBypass(inner agent.ChatClient, cfg BypassConfig) agent.ChatClient {
	b := &bypass{cfg: cfg, warn: newWarner(cfg.Log)}
	begin := b.begin
	if cfg.Profile == agent.Compatible {
		begin = b.beginCompatible
	}
	return &stack{inner, begin}
}

type bypass struct {
	cfg  BypassConfig
	warn *warner
}

// parked is the state of both bypasses: requests that nobody is shown.
type parked struct {
	Thread   string     `json:"thread,omitempty"`
	Requests []*request `json:"requests,omitempty"`
}

func (p *parked) whole() bool {
	return !slices.ContainsFunc(p.Requests, func(q *request) bool { return !q.whole() })
}

// ParkedRequests returns the requests that Bypass keeps from the user of a thread.
func ParkedRequests(t *agent.Thread) ([]content.InputRequest, error) { return parkedIn(t, BypassState) }

func parkedIn(t *agent.Thread, key string) ([]content.InputRequest, error) {
	p, err := load[parked](t, key)
	if err != nil {
		return nil, err
	}
	return p.all(), nil
}

func (p *parked) all() []content.InputRequest {
	var out []content.InputRequest
	for _, q := range p.Requests {
		out = append(out, q.InputRequest)
	}
	return out
}

// park adds a request and keeps the state. A request with the id of another takes its place.
func (p *parked) park(t *agent.Thread, key string, q content.InputRequest) error {
	snap, err := snapshot(q)
	if err != nil {
		return err
	}
	p.Thread = t.ID
	p.Requests = append(slices.DeleteFunc(p.Requests, func(old *request) bool { return old.InputRequestID() == q.InputRequestID() }), snap)
	return t.Put(key, p)
}

// unpark takes requests away and keeps the state.
func (p *parked) unpark(t *agent.Thread, key string, gone []content.InputRequest) error {
	p.Requests = slices.DeleteFunc(p.Requests, func(q *request) bool { return slices.Contains(gone, q.InputRequest) })
	if len(p.Requests) == 0 {
		t.Drop(key)
		return nil
	}
	return t.Put(key, p)
}

func approvals(requests []content.InputRequest) []content.Content {
	var out []content.Content
	for _, q := range requests {
		if q, ok := q.(*content.ToolApprovalRequest); ok {
			out = append(out, q.CreateApproval(""))
		}
	}
	return out
}

func (b *bypass) begin(ctx context.Context, in input) (*round, error) {
	t := in.thread()
	if t == nil {
		b.warn.noThread(ctx, "Bypass", "all requests are shown")
		return &round{messages: in.messages, options: in.options}, nil
	}
	state, err := load[parked](t, BypassState)
	if err != nil {
		return nil, err
	}
	guard := guard{toolsOf(in.options, b.cfg.Tools), b.cfg.Decider}
	free, asked, err := guard.sort(ctx, state, t)
	if err != nil {
		return nil, err
	}
	return settleParked(in, state, BypassState, free, asked, func(c content.Content) (bool, error) {
		q, ok := c.(*content.ToolApprovalRequest)
		if !ok || inert(c) || !q.NoConfirmation {
			return true, nil
		}
		needs, err := guard.needsApproval(ctx, q)
		if err != nil || needs {
			return true, err
		}
		return false, state.park(t, BypassState, q)
	}), nil
}

// settleParked approves the parked calls that are free and asks about the others when the run has gone well; a run that failed leaves
// both where they are.
func settleParked(in input, state *parked, key string, free, asked []content.InputRequest, take func(content.Content) (bool, error)) *round {
	t := in.thread()
	injected := in.insertAnswers(approvals(free))
	seen := map[string]bool{}
	watch := func(c content.Content) (bool, error) {
		if q, ok := c.(content.InputRequest); ok {
			seen[q.InputRequestID()] = true
		}
		return take(c)
	}
	done := func() error { return state.unpark(t, key, slices.Concat(free, asked)) }
	end := func(*agent.Response) (ending, error) {
		var extra []content.Content
		for _, q := range asked {
			if !seen[q.InputRequestID()] {
				extra = append(extra, confirm(q))
			}
		}
		return ending{extra: extra}, done()
	}
	return &round{messages: injected.messages, options: injected.options, take: watch, end: end, left: func() { _ = state.unpark(t, key, free) }}
}

// confirm returns a request that says by itself that it wants an answer.
func confirm(q content.InputRequest) content.Content {
	if a, ok := q.(*content.ToolApprovalRequest); ok {
		out := *a
		out.NoConfirmation = false
		return &out
	}
	return q
}

// guard tells which calls need approval.
type guard struct {
	tools   toolbox
	decider agent.Decider
}

// sort tells which parked calls are still free and which are to be asked about.
func (g guard) sort(ctx context.Context, p *parked, t *agent.Thread) (free, asked []content.InputRequest, err error) {
	for _, q := range p.all() {
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

// needsApproval holds unless the call is one of a known function of which no namesake is marked and that the decider allows.
func (g guard) needsApproval(ctx context.Context, q content.InputRequest) (bool, error) {
	call := functionCall(q)
	if call == nil || nested(q) {
		return true, nil
	}
	known := g.tools.functions(call.Name)
	if len(known) == 0 || slices.ContainsFunc(g.tools.named(call.Name), agent.NeedsApproval) {
		return true, nil
	}
	if g.decider == nil {
		return false, nil
	}
	v, err := g.decider.Decide(ctx, known[0], call)
	return v.Outcome != resolve.Allow, err
}

// beginCompatible follows rules 53 to 55.
func (b *bypass) beginCompatible(ctx context.Context, in input) (*round, error) {
	t := in.thread()
	if t == nil {
		b.warn.noThread(ctx, "Bypass", "all requests are shown")
		return &round{messages: in.messages, options: in.options}, nil
	}
	old, err := load[parked](t, BypassState)
	if err != nil {
		return nil, err
	}
	messages := in.messages
	if len(old.Requests) > 0 {
		messages = append(slices.Clip(messages), content.NewMessage(content.User, approvals(old.all())...))
		in = in.moreFresh(1)
	}
	tools := toolsOf(in.options, b.cfg.Tools)
	fresh := &parked{Thread: t.ID}
	take := func(c content.Content) (bool, error) {
		q, ok := c.(*content.ToolApprovalRequest)
		if !ok || functionCall(q) == nil || !slices.ContainsFunc(tools.functions(functionCall(q).Name), unmarked) {
			return true, nil
		}
		snap, err := snapshot(q)
		if err != nil {
			return false, err
		}
		fresh.Requests = append(fresh.Requests, snap)
		return false, nil
	}
	keep := func() error {
		if !in.streaming {
			slices.Reverse(fresh.Requests) // as .NET, which walks whole responses from their end
		}
		return fresh.unpark(t, BypassState, nil)
	}
	end := func(*agent.Response) (ending, error) { return ending{}, keep() }
	return &round{messages: messages, options: in.options, take: take, end: end, left: func() { _ = keep() }}, nil
}

func unmarked(f agent.Function) bool { return !agent.NeedsApproval(f) }

// PutParked parks requests in a thread under BypassState or InvocableState, as if the layer had kept them away. It is for moving threads
// in from elsewhere.
func PutParked(t *agent.Thread, key string, requests []content.InputRequest) error {
	state, err := load[parked](t, key)
	if err != nil {
		return err
	}
	for _, q := range requests {
		if err := state.park(t, key, q); err != nil {
			return err
		}
	}
	return nil
}
