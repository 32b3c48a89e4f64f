package layer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Reasons of automatic approvals in the Compatible profile.
const (
	byStandingRule = "Auto-approved by standing rule"
	byPredicate    = "Auto-approved by auto-approval rule"
)

// dotnet is a run of Standing in the Compatible profile: rules 56 to 59.
type dotnet struct {
	*standing
	ctx    context.Context
	in     input // as the caller sent it, for the predicates
	t      *agent.Thread
	state  *standingState
	rounds int
}

func (s *standing) beginCompatible(ctx context.Context, in input) (*round, error) {
	if in.thread() == nil {
		opt := in.options.Clone()
		opt.Thread = agent.NewThread("")
		in.options = opt
	}
	t := in.options.Thread
	state, err := load[standingState](t, StandingState)
	if err != nil {
		return nil, err
	}
	d := &dotnet{s, ctx, in, t, state, 0}
	for _, m := range in.messages {
		for _, c := range m.Contents {
			d.mint(c)
		}
	}
	in.messages = withoutScopes(in.messages)
	if len(state.Queue) > 0 {
		if err := d.collect(&in); err != nil {
			return nil, err
		}
		if err := d.drain(); err != nil {
			return nil, err
		}
		if len(state.Queue) > 0 {
			return d.showNext()
		}
	}
	return d.round(in)
}

func (d *dotnet) keep() error { return d.t.Put(StandingState, d.state) }

func (d *dotnet) showNext() (*round, error) {
	next := d.state.Queue[0].InputRequest
	d.state.Queue = d.state.Queue[1:]
	end := func(*agent.Response) (ending, error) { return ending{extra: []content.Content{next}}, nil }
	return &round{silent: true, end: end}, d.keep()
}

// mint makes a rule of whatever answer asks for one.
func (d *dotnet) mint(c content.Content) {
	a, ok := c.(*content.ToolApprovalResponse)
	if !ok || a.Always == content.AlwaysNot {
		return
	}
	call, ok := a.Call.(*content.FunctionCall)
	if !ok {
		return
	}
	rule := Rule{Tool: call.Name, AnyArguments: a.Always == content.AlwaysTool}
	if !rule.AnyArguments {
		if _, ok := texts(call.Arguments); !ok {
			return
		}
		rule.Arguments = string(call.Arguments)
	}
	if slices.ContainsFunc(d.state.Rules, func(r Rule) bool { return sameRule(r, rule) }) {
		return
	}
	d.state.Minted++
	rule.ID = fmt.Sprintf("rule-%d", d.state.Minted)
	d.state.Rules = append(d.state.Rules, rule)
}

func sameRule(a, b Rule) bool {
	return a.Tool == b.Tool && a.AnyArguments == b.AnyArguments && (a.AnyArguments || sameTexts([]byte(a.Arguments), []byte(b.Arguments)))
}

// texts returns the text of each argument. No arguments, null and {} are none.
func texts(arguments []byte) (map[string]string, bool) {
	raw := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(arguments)) > 0 && json.Unmarshal(arguments, &raw) != nil {
		return nil, false
	}
	out := map[string]string{}
	for k, v := range raw {
		out[k] = string(v)
	}
	return out, true
}

// sameTexts compares arguments by the text of each value, so that 5 and 5.0 differ.
func sameTexts(a, b []byte) bool {
	x, okX := texts(a)
	y, okY := texts(b)
	return okX && okY && maps.Equal(x, y)
}

// match returns the reason why a request is approved automatically; "" when a person must answer.
func (d *dotnet) match(q content.InputRequest) string {
	call := functionCall(q)
	if call == nil {
		return ""
	}
	for _, r := range d.state.Rules {
		if r.Tool == call.Name && (r.AnyArguments || sameTexts([]byte(r.Arguments), call.Arguments)) {
			return byStandingRule
		}
	}
	for _, p := range d.cfg.Predicates {
		if p.Approve(d.ctx, d.asked(d.in, call)) {
			return byPredicate
		}
	}
	return ""
}

func (d *dotnet) answer(a content.InputResponse) error {
	raw, err := writeContent(a)
	if err != nil {
		return fmt.Errorf("an answer can't be kept: %w", err)
	}
	d.state.Answers = append(d.state.Answers, raw)
	return nil
}

// collect takes the answers out of the messages, last message first. Those to shown requests get the recorded call, others are dropped.
func (d *dotnet) collect(in *input) error {
	for _, m := range slices.Backward(in.messages) {
		for _, c := range m.Contents {
			a, ok := c.(*content.ToolApprovalResponse)
			if !ok {
				continue
			}
			e := find(d.state.Shown.Open, a.RequestID)
			if e == nil {
				continue
			}
			d.state.Shown.Open = slices.DeleteFunc(d.state.Shown.Open, func(o *entry) bool { return o == e })
			if err := d.answer(rebind(e.Request.InputRequest, a)); err != nil {
				return err
			}
		}
	}
	in.messages, _ = rewrite(in.messages, 0, func(_ at, c content.Content) content.Content {
		if _, ok := c.(*content.ToolApprovalResponse); ok {
			return nil
		}
		return c
	})
	return nil
}

// drain approves what of the queue has a rule by now, from its end.
func (d *dotnet) drain() error {
	for i, q := range slices.Backward(d.state.Queue) {
		reason := d.match(q.InputRequest)
		if reason == "" {
			continue
		}
		if err := d.approve(q.InputRequest, reason); err != nil {
			return err
		}
		d.state.Queue = slices.Delete(d.state.Queue, i, i+1)
	}
	return nil
}

func (d *dotnet) approve(q content.InputRequest, reason string) error {
	return d.answer(q.(*content.ToolApprovalRequest).CreateApproval(reason))
}

// round asks the inner client, with what was collected ahead of everything else.
func (d *dotnet) round(in input) (*round, error) {
	collected, err := d.state.collected()
	if err != nil {
		return nil, err
	}
	messages := in.messages
	if len(collected) > 0 {
		messages = append([]*content.Message{content.NewMessage(content.User, collected...)}, messages...)
		in = in.moreFresh(1)
	}
	r := &round{messages: messages, options: in.options, alone: d.rounds > 0}
	if d.rounds < d.cfg.MaxRounds {
		r.take, r.end = d.sorter(in)
	}
	return r, d.keep()
}

// sorter approves what comes out, lets the first of the others pass and queues the rest.
func (d *dotnet) sorter(in input) (func(content.Content) (bool, error), func(*agent.Response) (ending, error)) {
	var shown []content.InputRequest
	approved := 0
	take := func(c content.Content) (bool, error) {
		q, ok := c.(*content.ToolApprovalRequest)
		if !ok {
			return true, nil
		}
		if reason := d.match(q); reason != "" {
			approved++
			if err := d.approve(q, reason); err != nil {
				return false, err
			}
			return false, d.keep()
		}
		shown = append(shown, q)
		return len(shown) == 1, d.queue(shown)
	}
	end := func(*agent.Response) (ending, error) {
		if approved == 0 || len(shown) > 0 {
			return ending{}, nil
		}
		d.rounds++
		in.messages = nil
		next, err := d.round(in)
		return ending{next: next}, err
	}
	return take, end
}

// queue keeps the last of the requests for later. A single one is not recorded.
func (d *dotnet) queue(shown []content.InputRequest) error {
	if len(shown) < 2 {
		return nil
	}
	if len(shown) == 2 {
		if err := d.state.Shown.record(shown[0]); err != nil {
			return err
		}
	}
	last := shown[len(shown)-1]
	snap, err := snapshot(last)
	if err != nil {
		return err
	}
	d.state.Queue = append(d.state.Queue, snap)
	if err := d.state.Shown.record(last); err != nil {
		return err
	}
	return d.keep()
}
