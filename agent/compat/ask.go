package compat

import (
	"fmt"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/resolve"
)

// respond gets a turn of the model that is not streamed.
func (r *run) respond(out *agent.Response) (turn, error) {
	resp, err := r.model.Respond(r.ctx, r.send, r.opt)
	if err != nil {
		return turn{}, err
	}
	if resp == nil {
		return turn{}, agent.ErrNoAnswer
	}
	var served served
	for _, m := range resp.Messages {
		served.note(m.Contents)
	}
	t := turn{messages: resp.Messages, conversation: resp.ConversationID}
	for _, c := range liveCalls(resp.Messages) {
		t.asked = r.needsApproval(c) || t.asked
	}
	for _, m := range resp.Messages {
		if t.asked && len(liveIn(m.Contents)) > 0 {
			m = m.With(r.wrap(m.Contents))
		}
		out.Messages = append(out.Messages, m)
	}

	out.Add(resp)
	return t, nil
}

// served finds the calls that the service ran itself: their results are part of the response,
// before or after the calls.
type served struct {
	results map[string]bool
	calls   []*content.FunctionCall
}

// note marks the calls that the service has handled.
func (s *served) note(contents []content.Content) {
	for _, c := range contents {
		switch c := c.(type) {
		case *content.FunctionCall:
			s.calls = append(s.calls, c)
		case *content.FunctionResult:
			if s.results == nil {
				s.results = map[string]bool{}
			}
			s.results[c.CallID] = true
		}
	}

	for _, c := range s.calls {
		if s.results[c.CallID] {
			c.InformationalOnly = true
		}
	}
}

// liveCalls returns the calls that have not been handled.
func liveCalls(ms []*content.Message) []*content.FunctionCall {
	var out []*content.FunctionCall
	for call := range content.All[*content.FunctionCall](ms) {
		if !call.InformationalOnly {
			out = append(out, call)
		}
	}
	return out
}

func liveIn(contents []content.Content) []*content.FunctionCall {
	return liveCalls([]*content.Message{{Contents: contents}})
}

// needsApproval reports whether a tool of the call's name in the request or the loop is marked,
// or the decider doesn't allow the call. An error of the decider counts as not allowed.
func (r *run) needsApproval(call *content.FunctionCall) bool {
	if known, ok := r.needs[call]; ok {
		return known
	}
	asks := anyMarked(call.Name, r.opt.Tools) || anyMarked(call.Name, r.cfg.Tools)
	if !asks && r.cfg.Decider != nil {
		v, err := r.cfg.Decider.Decide(r.ctx, agent.FindTool(call.Name, r.opt, r.cfg.Tools), call)
		asks = err != nil || v.Outcome != resolve.Allow
	}
	r.needs[call] = asks
	return asks
}

func anyMarked(name string, tools []agent.Tool) bool {
	for _, t := range tools {
		if t != nil && t.Definition().Name == name && agent.NeedsApproval(t) {
			return true
		}
	}
	return false
}

// wrap replaces all live calls with requests.
func (r *run) wrap(in []content.Content) []content.Content {
	out := make([]content.Content, len(in))
	for i, c := range in {
		out[i] = c
		if call, ok := c.(*content.FunctionCall); ok && !call.InformationalOnly {
			out[i] = r.request(call)
		}
	}

	return out
}

func (r *run) request(call *content.FunctionCall) *content.ToolApprovalRequest {
	r.debug(fmt.Sprintf("Function '%s' requires approval", call.Name))
	id := "ficc_" + call.CallID
	if r.cfg.RequestID != nil {
		id = r.cfg.RequestID(call.CallID)
	}
	return &content.ToolApprovalRequest{
		RequestID:      id,
		Call:           call,
		NoConfirmation: !r.needsApproval(call),
	}
}

func (r *run) debug(text string) {
	if r.cfg.Log != nil {
		r.cfg.Log.DebugContext(r.ctx, text)
	}
}
