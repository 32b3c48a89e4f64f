package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	"github.com/assent-dev/assent/agent/layer"
)

// Reasons of automatic approvals.
const (
	byStandingRule = "Auto-approved by standing rule"
	byPredicate    = "Auto-approved by auto-approval rule"
)

// StandingConfig configures a Standing. The zero value is the default.
type StandingConfig struct {
	// Rules selects the release whose behavior is used.
	Rules BindingRules
	// Agent is the agent name that predicates get.
	Agent string
	// Predicates approve requests automatically. The first one that returns true approves.
	Predicates []layer.Predicate
	// MaxRounds limits how often the inner client is called again with only automatic
	// approvals. The default is 40. Requests of the round after the last one are returned to
	// the caller.
	MaxRounds int
}

// NewStanding returns a layer that answers requests by rules from earlier "always" answers and
// by predicates. If all requests of a response are answered in this way, it calls the inner
// client again. Requests are shown one at a time.
//
// Rules are made from answers without a check, last as long as the thread, and compare the text
// of each argument. With Rules125 a rule is made from the recorded call, and an answer to a
// request that is not recorded makes no rule.
func NewStanding(inner agent.ChatClient, cfg StandingConfig) agent.ChatClient {
	if cfg.MaxRounds <= 0 {
		cfg.MaxRounds = 40
	}
	return rounds.New(inner, cfg.begin)
}

type standingState = rounds.Standing[layer.Rule]

// standingRun is a run of Standing.
type standingRun struct {
	cfg    StandingConfig
	ctx    context.Context
	in     rounds.Input // as the caller sent it, for the predicates
	t      *agent.Thread
	state  *standingState
	rounds int
}

func (cfg StandingConfig) begin(ctx context.Context, in rounds.Input) (*rounds.Round, error) {
	if in.Thread() == nil {
		opt := in.Options.Clone()
		opt.Thread = agent.NewThread("")
		in.Options = opt
	}
	t := in.Options.Thread
	state, err := rounds.Load[standingState](t, layer.StandingState)
	if err != nil {
		return nil, err
	}
	d := &standingRun{
		cfg:   cfg,
		ctx:   ctx,
		in:    in,
		t:     t,
		state: state,
	}
	if err := d.mintAll(in.Messages); err != nil {
		return nil, err
	}
	in.Messages = rounds.WithoutScopes(in.Messages)
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

func (d *standingRun) keep() error { return d.t.Put(layer.StandingState, d.state) }

func (d *standingRun) showNext() (*rounds.Round, error) {
	next := d.state.Queue[0].InputRequest
	d.state.Queue = d.state.Queue[1:]
	end := func(*agent.Response) (rounds.Ending, error) {
		return rounds.Ending{Extra: []content.Content{next}}, nil
	}
	return &rounds.Round{Silent: true, End: end}, d.keep()
}

// mintAll makes the rules that answers ask for.
func (d *standingRun) mintAll(messages []*content.Message) error {
	recorded, err := rounds.Load[rounds.Book](d.t, layer.BindingState)
	if err != nil {
		return err
	}
	for a := range content.All[*content.ToolApprovalResponse](messages) {
		call := a.Call
		if d.cfg.Rules == Rules125 {
			call = d.recordedCall(recorded, a.RequestID)
		}
		if f, ok := call.(*content.FunctionCall); ok && a.Always != content.AlwaysNot {
			d.mint(a, f)
		}
	}

	return nil
}

// recordedCall returns the call of a recorded request, or nil if there is none.
func (d *standingRun) recordedCall(recorded *rounds.Book, id string) content.ToolCall {
	for _, open := range [][]*rounds.Entry{d.state.Shown.Open, recorded.Open} {
		if e := rounds.Find(open, id); e != nil && !e.Reused {
			return rounds.CallOf(e.Request.InputRequest)
		}
	}
	return nil
}

// mint makes a rule from an answer about a call.
func (d *standingRun) mint(a *content.ToolApprovalResponse, call *content.FunctionCall) {
	rule := layer.Rule{Tool: call.Name, AnyArguments: a.Always == content.AlwaysTool}
	if !rule.AnyArguments {
		if _, ok := texts(call.Arguments); !ok {
			return
		}
		rule.Arguments = string(call.Arguments)
	}

	if slices.ContainsFunc(d.state.Rules, func(r layer.Rule) bool { return sameRule(r, rule) }) {
		return
	}
	d.state.Minted++
	rule.ID = fmt.Sprintf("rule-%d", d.state.Minted)
	d.state.Rules = append(d.state.Rules, rule)
}

func sameRule(a, b layer.Rule) bool {
	if a.Tool != b.Tool || a.AnyArguments != b.AnyArguments {
		return false
	}
	return a.AnyArguments || sameTexts([]byte(a.Arguments), []byte(b.Arguments))
}

// texts returns the text of each argument. The result is empty for no arguments, null and {}.
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

// sameTexts compares arguments by the text of each value, so 5 and 5.0 differ.
func sameTexts(a, b []byte) bool {
	x, okX := texts(a)
	y, okY := texts(b)
	return okX && okY && maps.Equal(x, y)
}

// match returns the reason why a request is approved automatically, or an empty string if a
// person must answer.
func (d *standingRun) match(q content.InputRequest) string {
	call := rounds.FunctionCall(q)
	if call == nil {
		return ""
	}
	for _, r := range d.state.Rules {
		if r.Tool == call.Name && (r.AnyArguments || sameTexts([]byte(r.Arguments), call.Arguments)) {
			return byStandingRule
		}
	}
	for _, p := range d.cfg.Predicates {
		if p.Approve(d.ctx, d.asked(call)) {
			return byPredicate
		}
	}
	return ""
}

func (d *standingRun) asked(call *content.FunctionCall) layer.Asked {
	return layer.Asked{
		Call:     content.CloneCall(call).(*content.FunctionCall),
		Agent:    d.cfg.Agent,
		Thread:   d.in.Thread(),
		Messages: d.in.Messages,
		Options:  d.in.Options,
	}
}

func (d *standingRun) answer(a content.InputResponse) error {
	raw, err := rounds.WriteContent(a)
	if err != nil {
		return fmt.Errorf("an answer can't be kept: %w", err)
	}
	d.state.Answers = append(d.state.Answers, raw)
	return nil
}

// collect removes the answers from the messages, starting with the last message. Answers to
// shown requests get the recorded call. Other answers are dropped.
func (d *standingRun) collect(in *rounds.Input) error {
	for _, m := range slices.Backward(in.Messages) {
		for _, c := range m.Contents {
			a, ok := c.(*content.ToolApprovalResponse)
			if !ok {
				continue
			}
			e := rounds.Find(d.state.Shown.Open, a.RequestID)
			if e == nil {
				continue
			}
			d.state.Shown.Open = slices.DeleteFunc(
				d.state.Shown.Open,
				func(o *rounds.Entry) bool { return o == e },
			)
			if err := d.answer(rounds.Rebind(e.Request.InputRequest, a)); err != nil {
				return err
			}
		}
	}

	in.Messages, _ = rounds.Rewrite(in.Messages, 0, func(_ rounds.At, c content.Content) content.Content {
		if _, ok := c.(*content.ToolApprovalResponse); ok {
			return nil
		}
		return c
	})
	return nil
}

// drain approves the queued requests that match a rule by now, starting at the end of the
// queue.
func (d *standingRun) drain() error {
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

func (d *standingRun) approve(q content.InputRequest, reason string) error {
	return d.answer(q.(*content.ToolApprovalRequest).CreateApproval(reason))
}

// round calls the inner client with the collected answers before all other messages.
func (d *standingRun) round(in rounds.Input) (*rounds.Round, error) {
	collected, err := d.state.Collected(layer.StandingState)
	if err != nil {
		return nil, err
	}
	messages := in.Messages
	if len(collected) > 0 {
		messages = append([]*content.Message{content.NewMessage(content.User, collected...)}, messages...)
		in = in.MoreFresh(1)
	}

	r := &rounds.Round{Messages: messages, Options: in.Options, Alone: d.rounds > 0}
	if d.rounds < d.cfg.MaxRounds {
		r.Take, r.End = d.sorter(in)
	}
	return r, d.keep()
}

// sorter approves requests that match a rule, passes the first of the others on and queues the
// rest.
func (d *standingRun) sorter(
	in rounds.Input,
) (func(content.Content) (bool, error), func(*agent.Response) (rounds.Ending, error)) {
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
	end := func(*agent.Response) (rounds.Ending, error) {
		if approved == 0 || len(shown) > 0 {
			return rounds.Ending{}, nil
		}
		d.rounds++
		in.Messages = nil
		next, err := d.round(in)
		return rounds.Ending{Next: next}, err
	}
	return take, end
}

// queue stores the last of the requests for later. A single request is not recorded.
func (d *standingRun) queue(shown []content.InputRequest) error {
	if len(shown) < 2 {
		return nil
	}
	if len(shown) == 2 {
		if err := d.state.Shown.Record(shown[0]); err != nil {
			return err
		}
	}
	last := shown[len(shown)-1]
	snap, err := rounds.Snapshot(last)
	if err != nil {
		return err
	}
	d.state.Queue = append(d.state.Queue, snap)
	if err := d.state.Shown.Record(last); err != nil {
		return err
	}
	return d.keep()
}
