// Package resolve compiles an agent with its policies into a Plan, and
// decides calls with it: allow, ask or deny.
//
// It is pure: no clock, no network, no disk. A Plan is immutable and
// safe for concurrent use, and the same plan and call always give the
// same decision, byte for byte. Deny beats ask beats allow; every rule
// that denied or asked is in the answer; no policy, order or further
// input can loosen a decision (Agent Format, HITL: governance union).
package resolve

import (
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
)

// Outcome is the outcome of a decision, and of opening a request (approval.Opened). Outcomes are
// ordered: the smaller one wins. The zero value is Deny, so a decision that was never made lets
// nothing run.
type Outcome uint8

// The outcomes, strictest first.
const (
	Deny Outcome = iota
	Ask
	Allow
)

// String returns "deny", "ask" or "allow".
func (o Outcome) String() string {
	switch o {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	default:
		return "deny"
	}
}

// MarshalText writes the outcome as its name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name of an outcome.
func (o *Outcome) UnmarshalText(b []byte) error {
	for _, known := range []Outcome{Deny, Ask, Allow} {
		if string(b) == known.String() {
			*o = known
			return nil
		}
	}

	return fmt.Errorf("unknown outcome %q: expected allow, ask or deny", b)
}

// Source is the layer that gave a reason.
type Source string

// The sources of reasons.
const (
	FromAgent       Source = "agent"        // an approval on the tool, skill or agent itself
	FromServer      Source = "server"       // the blanket approval of an MCP server
	FromPolicy      Source = "policy"       // a governance policy
	FromArguments   Source = "arguments"    // the call could not be read
	FromActionSpace Source = "action_space" // what the agent's file declares and allows
	FromDefault     Source = "default"      // of a message: no rule has a template, so it was made from the call
)

// Code classifies a reason. New codes may be added; a code never changes its meaning.
type Code string

// The codes of reasons.
const (
	Always              Code = "always"               // an unconditional approval
	ConditionTrue       Code = "condition_true"       // an approval whose condition is true
	ConditionUnknown    Code = "condition_unknown"    // an approval whose condition is neither true nor false
	NotDeclared         Code = "not_declared"         // no such tool, server or agent in the file
	NotAllowed          Code = "not_allowed"          // the allow-list is present and does not name it
	AllowListMisspelt   Code = "allow_list_misspelt"  // a list of tools or skills has a misspelt name
	ApprovalMisspelt    Code = "approval_misspelt"    // an unknown field is meant as an approval
	AskedUndeclared     Code = "undeclared"           // not declared, or not allowed, where the owner has people asked
	Denied              Code = "denied"               // a policy rule denies it
	UnreadableArguments Code = "unreadable_arguments" // the arguments are no JSON that everybody reads alike
	UnreadableCall      Code = "unreadable_call"      // the call itself can't be read
	PolicyUnresolved    Code = "policy_unresolved"    // a required policy, or the registry, is not there
)

// Reason is one rule that asked or denied, with its place.
type Reason struct {
	Source Source `json:"source"`
	Policy string `json:"policy,omitempty"` // policy_ref, for FromPolicy
	Rule   string `json:"rule,omitempty"`   // rule id of a policy, or the place in the agent's action space
	Code   Code   `json:"code"`
	Detail string `json:"detail"`
	// Description is the purpose of the rule, in the words of the policy's author.
	Description string `json:"description,omitempty"`

	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Matchers are the tests that made the condition true or unknown. They contain the class of a
	// value, never the value.
	Matchers []Matcher `json:"matchers,omitempty"`

	outcome Outcome
}

// Matcher is one test of a condition that came out true or unknown.
type Matcher struct {
	Group  int    `json:"group"` // which of the OR-ed groups, from 0
	Key    string `json:"key"`
	Test   string `json:"test"`  // "gt 10000"
	Truth  string `json:"truth"` // "true" or "unknown"
	Why    string `json:"why"`   // "matched", "missing_argument", "type_mismatch", …
	Seen   string `json:"seen"`  // the class of the value: "number", "string of 14 characters", "missing"
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// History has the numbers that a test of past calls compared.
	History *condition.Figures `json:"history,omitempty"`
}

// Decision is the answer for one call.
type Decision struct {
	Outcome Outcome `json:"outcome"`
	// Message is the text for the approver. It is always shown together with the full arguments,
	// never instead of them.
	Message string `json:"message"`
	// MessageFrom is the source of the message's template: FromAgent, FromServer or FromPolicy, or
	// FromDefault if there is none. It is set if the outcome is ask.
	MessageFrom Source   `json:"-"`
	Reasons     []Reason `json:"reasons"` // every rule that denied or asked, denials first; nil when allowed
	// Require joins the requirements of the asking policy rules. It is nil if they have none.
	Require          *policy.Require `json:"require,omitempty"`
	MissingVariables []string        `json:"missing_variables"` // template variables without a value
	// Binding identifies exactly this call under exactly this plan:
	// "sha256:…". It is set when the outcome is ask; see Plan.Bind for
	// the others.
	Binding string `json:"binding,omitempty"`
	// Configuration is the digest of the decision configuration with which the plan was compiled,
	// see Config.Digest. It is empty if there was none.
	Configuration string `json:"configuration,omitempty"`
}

// MarshalJSON writes the decision in the form of
// docs/contracts/decide.md: lists are never null.
func (d Decision) MarshalJSON() ([]byte, error) {
	type plain Decision
	if d.Reasons == nil {
		d.Reasons = []Reason{}
	}
	if d.MissingVariables == nil {
		d.MissingVariables = []string{}
	}
	return json.Marshal(plain(d))
}
