package layer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/rounds"
	approvals "github.com/assent-dev/assent/approval"
)

// approvedBy is the beginning of the reason of an automatic approval.
const approvedBy = "Approved by "

// Rule is a standing approval.
type Rule struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// AnyArguments covers all calls of the tool. Otherwise only calls with exactly Arguments
	// are covered.
	AnyArguments bool   `json:"any_arguments,omitempty"`
	Arguments    string `json:"arguments,omitempty"` // JSON text, if any
	// RequestID is the request whose answer created the rule.
	RequestID  string    `json:"request_id,omitempty"`
	Definition string    `json:"definition,omitempty"` // agent.DefinitionDigest of the tool
	Created    time.Time `json:"created,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
	Left       int       `json:"left,omitempty"` // remaining uses
}

// ErrNoRule is returned if a thread has no rule with the given id.
var ErrNoRule = errors.New("there is no such rule")

// Rules returns the standing approvals of a thread, oldest first. Rules without remaining uses
// are included until they expire.
func Rules(t *agent.Thread) ([]Rule, error) {
	state, err := rounds.Load[standingState](t, StandingState)
	if err != nil {
		return nil, err
	}
	return state.Rules, nil
}

// Revoke removes a standing approval, or returns ErrNoRule. Approvals by this rule that the
// inner client has not received yet are withdrawn too.
func Revoke(t *agent.Thread, id string) error {
	state, err := rounds.Load[standingState](t, StandingState)
	if err != nil {
		return err
	}
	before := len(state.Rules)
	state.Rules = slices.DeleteFunc(state.Rules, func(r Rule) bool { return r.ID == id })
	if len(state.Rules) == before {
		return fmt.Errorf("rule %q: %w", id, ErrNoRule)
	}
	return t.Put(StandingState, state)
}

// expire removes rules that have expired, and rules whose tool has changed.
func (j *judge) expire() {
	now := j.cfg.Now()
	j.state.Rules = slices.DeleteFunc(j.state.Rules, func(r Rule) bool {
		if r.Definition == "" {
			return false // made by package compat; approves nothing here
		}
		digest := j.definition(r.Tool)
		return !now.Before(r.Expires) || digest != "" && digest != r.Definition
	})
}

// definition returns a digest of all tools with the name. It returns an empty string if there
// is none or if one has a schema that is not valid JSON.
func (j *judge) definition(name string) string {
	var digests []string
	for _, t := range j.tools.Named(name) {
		d := agent.DefinitionDigest(t)
		if !strings.HasPrefix(d, "sha256:") {
			return "" // all unreadable schemas have the same digest, so a change would not be noticed
		}
		digests = append(digests, d)
	}

	return strings.Join(digests, " ")
}

func (j *judge) forbids(call content.ToolCall) bool {
	return j.cfg.Forbids != nil && j.cfg.Forbids(call)
}

// covers reports whether a rule applies to a call. left is the number of its remaining
// uses.
func (j *judge) covers(r *Rule, call *content.FunctionCall, left int) bool {
	standing := approvals.Standing{
		Basis:   []string{r.Tool, r.Definition},
		Created: r.Created,
		Expires: r.Expires,
		MaxUses: left,
	}
	switch {
	case r.Definition == "", j.forbids(call):
		return false
	case !standing.Covers([]string{call.Name, j.definition(call.Name)}, nil, j.cfg.Now()):
		return false
	case r.AnyArguments:
		return j.cfg.AllowToolScope
	}

	return content.SameArguments([]byte(r.Arguments), call.Arguments)
}

// match approves a request by a rule, which uses it once, or by a predicate. It returns nil if
// a person must answer.
func (j *judge) match(q content.InputRequest) *rounds.Waiting {
	call := rounds.FunctionCall(q)
	if call == nil || call.CheckArguments() != nil || rounds.Nested(q) || j.manual(q.InputRequestID()) {
		return nil
	}
	for _, rules := range [][]Rule{j.state.Rules, j.state.Wishes} {
		i := slices.IndexFunc(rules, func(r Rule) bool { return j.covers(&r, call, r.Left) })
		if i >= 0 {
			rules[i].Left--
			return &rounds.Waiting{Rule: rules[i].ID, Reason: approvedBy + "standing " + rules[i].ID}
		}
	}

	if name := j.predicate(call); name != "" {
		return &rounds.Waiting{Reason: approvedBy + name}
	}
	return nil
}

// predicate returns the name of the first predicate that approves a call, or an empty string.
func (j *judge) predicate(call *content.FunctionCall) string {
	for _, p := range j.cfg.Predicates {
		if p.Name != "" && p.Approve != nil && p.Approve(j.ctx, j.asked(j.in, call)) {
			return p.Name
		}
	}
	return ""
}

func (s *standing) asked(in rounds.Input, call *content.FunctionCall) Asked {
	return Asked{
		Call:     content.CloneCall(call).(*content.FunctionCall),
		Agent:    s.cfg.Agent,
		Thread:   in.Thread(),
		Messages: in.Messages,
		Options:  in.Options,
	}
}

// stillApproved reports whether an automatic approval is still valid.
func (j *judge) stillApproved(w rounds.Waiting, q *content.ToolApprovalRequest) bool {
	call := rounds.FunctionCall(q)
	if call == nil || j.manual(q.RequestID) {
		return false
	}
	if w.Rule == "" {
		return j.predicate(call) != ""
	}
	r := ruleOf(j.state.Rules, w.Rule)
	return r != nil && j.covers(r, call, 1) // its use is counted already
}

func ruleOf(rules []Rule, id string) *Rule {
	for i := range rules {
		if rules[i].ID == id {
			return &rules[i]
		}
	}
	return nil
}
