package layer

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
)

// answered records a person's answer. A waiting automatic approval of the same request is
// dropped.
func (j *judge) answered(a settled) {
	j.forget(a.request.InputRequestID())
	j.wish(a)
}

// wish adds a future rule for an accepted answer that asks for one. The answer contains the
// recorded call.
func (j *judge) wish(a settled) {
	answer := approval(a.answer)
	if answer == nil || answer.Always == content.AlwaysNot || !answer.Approved || answer.Edited != nil {
		return
	}
	call, ok := answer.Call.(*content.FunctionCall)
	if !ok || call.CheckArguments() != nil || j.forbids(call) {
		return
	}
	wide := answer.Always == content.AlwaysTool
	digest := j.definition(call.Name)
	if digest == "" || wide && !j.cfg.AllowToolScope || rounds.Nested(a.request) {
		j.warn.Log.WarnContext(
			j.ctx,
			"Standing: no rule was made",
			"tool",
			call.Name,
			"request",
			answer.RequestID,
		)
		return
	}

	now := j.cfg.Now()
	j.state.Minted++
	rule := Rule{
		ID:           fmt.Sprintf("rule-%d", j.state.Minted),
		Tool:         call.Name,
		AnyArguments: wide,
		RequestID:    answer.RequestID,
		Definition:   digest,
		Created:      now,
		Expires:      now.Add(j.cfg.MaxAge),
		Left:         j.cfg.MaxUses,
	}
	if !wide {
		rule.Arguments = string(call.Arguments)
	}
	j.state.Wishes = append(j.state.Wishes, rule)
}

// noteRefused handles the refusals of the inner client: a refused answer creates no rule, and a
// refused automatic approval is not repeated.
func (j *judge) noteRefused(refused []agent.Refusal) {
	for _, no := range refused {
		j.state.Wishes = slices.DeleteFunc(
			j.state.Wishes,
			func(r Rule) bool { return r.RequestID == no.RequestID },
		)
		if j.sent[no.RequestID] && !j.manual(no.RequestID) {
			j.state.Manual = rounds.Newest(append(j.state.Manual, no.RequestID))
		}
	}
}

// manual reports whether only a person can answer a request, since the inner client refused an
// automatic approval of it.
func (j *judge) manual(id string) bool { return slices.Contains(j.state.Manual, id) }

// grant turns wishes into rules, after the inner client has accepted their answers.
func (j *judge) grant() {
	j.state.Rules = append(j.state.Rules, j.state.Wishes...)
	j.state.Wishes = nil
}

// groundless removes and returns waiting requests whose approval is no longer valid, because
// the inner client has refused something.
func (j *judge) groundless() []content.InputRequest {
	var out []content.InputRequest
	j.state.Waiting = slices.DeleteFunc(j.state.Waiting, func(w rounds.Waiting) bool {
		gone := j.manual(w.Request.InputRequestID()) || w.Rule != "" && ruleOf(j.state.Rules, w.Rule) == nil
		if gone {
			out = append(out, w.Request.InputRequest)
		}
		return gone
	})
	return out
}
