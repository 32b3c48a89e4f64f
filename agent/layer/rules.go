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
)

// approvedBy begins the reason of an automatic approval.
const approvedBy = "Approved by "

// Rule is a standing approval.
type Rule struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// AnyArguments covers all calls of the tool; else only those with
	// exactly Arguments are covered.
	AnyArguments bool   `json:"any_arguments,omitempty"`
	Arguments    string `json:"arguments,omitempty"` // JSON text; "" for none
	// RequestID is the request whose answer made the rule.
	RequestID  string    `json:"request_id,omitempty"`
	Definition string    `json:"definition,omitempty"` // agent.DefinitionDigest of the tool
	Created    time.Time `json:"created,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
	Left       int       `json:"left,omitempty"` // uses
}

// ErrNoRule says that a thread has no rule of an id.
var ErrNoRule = errors.New("there is no such rule")

// Rules returns the standing approvals of a thread, oldest first, used
// up ones included until they expire.
func Rules(t *agent.Thread) ([]Rule, error) {
	state, err := rounds.Load[standingState](t, StandingState)
	if err != nil {
		return nil, err
	}
	return state.Rules, nil
}

// Revoke takes a standing approval away, or returns ErrNoRule. Nothing
// that it approved and that has not gone in yet will.
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

// expire drops rules that are over, and those whose tool is no longer
// what it was.
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

// definition tells what the tool of a name is, by digest; "" when it is
// unknown or can't be told. Namesakes count together.
func (j *judge) definition(name string) string {
	var digests []string
	for _, t := range j.tools.Named(name) {
		d := agent.DefinitionDigest(t)
		if !strings.HasPrefix(d, "sha256:") {
			return "" // a schema that can't be read, which is as good as any other such
		}
		digests = append(digests, d)
	}

	return strings.Join(digests, " ")
}

func (j *judge) forbids(call content.ToolCall) bool {
	return j.cfg.Forbids != nil && j.cfg.Forbids(call)
}

// covers reports whether a rule is for such a call, uses aside.
func (j *judge) covers(r *Rule, call *content.FunctionCall) bool {
	now := j.cfg.Now()
	switch {
	case r.Tool != call.Name, r.Definition == "", r.Definition != j.definition(call.Name):
		return false
	case now.Before(r.Created), !now.Before(r.Expires):
		return false
	case j.forbids(call):
		return false
	case r.AnyArguments:
		return j.cfg.AllowToolScope
	}

	return content.SameArguments([]byte(r.Arguments), call.Arguments)
}

// match approves a request by a rule, which costs a use, or by a
// predicate; nil when a person must answer.
func (j *judge) match(q content.InputRequest) *rounds.Waiting {
	call := rounds.FunctionCall(q)
	if call == nil || call.CheckArguments() != nil || rounds.Nested(q) || j.manual(q.InputRequestID()) {
		return nil
	}
	for _, rules := range [][]Rule{j.state.Rules, j.state.Wishes} {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.Left > 0 && j.covers(&r, call) })
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

// predicate returns the name of the first predicate that approves a call.
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

// stands reports whether what approved a request still does.
func (j *judge) stands(w rounds.Waiting, q *content.ToolApprovalRequest) bool {
	call := rounds.FunctionCall(q)
	if call == nil || j.manual(q.RequestID) {
		return false
	}
	if w.Rule == "" {
		return j.predicate(call) != ""
	}
	r := ruleOf(j.state.Rules, w.Rule)
	return r != nil && j.covers(r, call)
}

func ruleOf(rules []Rule, id string) *Rule {
	for i := range rules {
		if rules[i].ID == id {
			return &rules[i]
		}
	}
	return nil
}
