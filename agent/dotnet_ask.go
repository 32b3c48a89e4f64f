package agent

import (
	"context"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/resolve"
)

// respond is a turn that comes whole.
func (r *dotnetRun) respond(out *Response) (dotnetTurn, error) {
	resp, err := r.model.Respond(r.ctx, r.send, r.opt)
	if err != nil {
		return dotnetTurn{}, err
	}
	if resp == nil {
		return dotnetTurn{}, errNoAnswer
	}
	var served served
	for _, m := range resp.Messages {
		served.note(m.Contents)
	}
	t := dotnetTurn{resp.Messages, resp.ConversationID, false}
	for _, c := range liveCalls(resp.Messages) {
		t.asked = r.needsApproval(c) || t.asked
	}
	for _, m := range resp.Messages {
		if t.asked && len(liveIn(m.Contents)) > 0 {
			m = m.With(r.wrap(m.Contents))
		}
		out.Messages = append(out.Messages, m)
	}
	out.take(resp)
	return t, nil
}

// take adds what one turn of the model says about the whole answer.
func (r *Response) take(turn *Response) {
	r.note(&Update{ID: turn.ID, Model: turn.Model, ConversationID: turn.ConversationID, FinishReason: turn.FinishReason, Refused: turn.Refused})
	if turn.Usage != nil {
		r.Usage = addUsage(r.Usage, turn.Usage)
	}
}

// served finds the calls that the service has run by itself: those whose result came too, before or after.
type served struct {
	results map[string]bool
	calls   []*content.FunctionCall
}

// note flags the calls that are handled.
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

// liveCalls are the calls that nobody has handled.
func liveCalls(ms []*content.Message) []*content.FunctionCall {
	var out []*content.FunctionCall
	for _, m := range ms {
		out = append(out, liveIn(m.Contents)...)
	}
	return out
}

func liveIn(contents []content.Content) []*content.FunctionCall {
	var out []*content.FunctionCall
	for _, c := range contents {
		if call, ok := c.(*content.FunctionCall); ok && !call.InformationalOnly {
			out = append(out, call)
		}
	}
	return out
}

// needsApproval tells whether a marked tool, of the request or of the loop, has the name of the call, or the decider does not simply allow
// it. A decider that fails has not allowed it.
func (r *dotnetRun) needsApproval(call *content.FunctionCall) bool {
	if known, ok := r.asks[call]; ok {
		return known
	}
	asks := anyMarked(call.Name, r.opt.Tools) || anyMarked(call.Name, r.cfg.Tools)
	if !asks && r.cfg.Decider != nil {
		v, err := r.cfg.Decider.Decide(r.ctx, findTool(call.Name, r.opt, r.cfg.Tools), call)
		asks = err != nil || v.Outcome != resolve.Allow
	}
	r.asks[call] = asks
	return asks
}

func anyMarked(name string, tools []Tool) bool {
	for _, t := range tools {
		if nameOf(t) == name && NeedsApproval(t) {
			return true
		}
	}
	return false
}

// refusal decides a call right before it runs. Without a decider nothing is looked at again, as in .NET.
func (r *dotnetRun) refusal(ctx context.Context, j job) string {
	v, err := r.cfg.Decider.Decide(ctx, j.tool, j.call)
	switch {
	case err != nil:
		return rejectionText("It could not be decided whether the call may run.")
	case v.Outcome == resolve.Allow, v.Outcome == resolve.Ask && j.approval != "":
		return ""
	}
	return rejectionText(v.Message)
}

// wrap makes requests of all live calls.
func (r *dotnetRun) wrap(in []content.Content) []content.Content {
	out := make([]content.Content, len(in))
	for i, c := range in {
		out[i] = c
		if call, ok := c.(*content.FunctionCall); ok && !call.InformationalOnly {
			out[i] = r.request(call)
		}
	}
	return out
}

func (r *dotnetRun) request(call *content.FunctionCall) *content.ToolApprovalRequest {
	r.debug(fmt.Sprintf("Function '%s' requires approval", call.Name))
	id := "ficc_" + call.CallID
	if r.cfg.RequestID != nil {
		id = r.cfg.RequestID(call.CallID)
	}
	return &content.ToolApprovalRequest{RequestID: id, Call: call, NoConfirmation: !r.needsApproval(call)}
}

func (r *dotnetRun) debug(text string) {
	if r.cfg.Log != nil {
		r.cfg.Log.DebugContext(r.ctx, text)
	}
}
