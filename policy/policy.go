// Package policy reads governance policy documents (`*.policy.yaml`, docs/contracts/policy.md) and
// keeps them in registries.
//
// The Agent Format standard leaves the policy document and its registry to runtimes; these are
// ours. A policy can only tighten what an agent file says: it asks people, or it denies. Parse
// reads one document. NewSet and LoadFS build a registry of many, all or nothing: one broken
// document refuses the whole registry, since a lost policy would loosen every agent that it
// governs. Package policyhttp fetches a registry over HTTP(S). Require is the lattice in which the
// requirements of several asking rules are joined; nothing in it can loosen.
package policy

import (
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// Applies is how a policy is selected for an agent (docs/contracts/policy.md).
type Applies string

// These are the ways in which a policy is selected for an agent.
const (
	Referenced Applies = "referenced" // the agent's constraints.governance_policies names it
	Implicit   Applies = "implicit"   // the runtime owner applies it to every agent its selector matches
)

// Policy is one governance policy document. It is immutable once parsed.
type Policy struct {
	Ref           string `doc:"policy_ref"` // what an agent names, unique in a registry
	SchemaVersion string `doc:"schema_version"`
	Description   string `doc:"description"`
	File          string
	Applies       Applies   `doc:"applies"`
	Agents        *Selector `doc:"agents"` // nil matches every agent
	Rules         []Rule    // in source order
	Doc           *yamldoc.Document
	Range         diag.Range   // of the policy_ref
	Digest        value.Digest // of the canonical content: comments and layout don't change it
}

// Rule is one requirement of a policy. It asks (Approval) or denies (Denies). A rule with both
// denies.
type Rule struct {
	ID          string           `doc:"id"` // unique in its policy
	Description string           `doc:"description"`
	Match       Match            `doc:"match"`
	Approval    *schema.Approval // nil when the rule only denies; never the form `false`
	Deny        string           `doc:"deny"` // why the call is refused, when Denies
	Denies      bool
	// When limits the calls that the rule asks about or denies. It is nil if the rule has none.
	When *condition.Expr
	// Unknown is the outcome of a denial whose When is neither true nor false.
	Unknown Doubt `doc:"unknown"`
	Require Require
	Range   diag.Range // of the whole rule
}

// Doubt is the outcome of a rule with `deny` for a call about which its `when` is unknown.
type Doubt string

// The outcomes for unknown conditions. The empty Doubt denies.
const (
	DoubtDenies Doubt = "deny"
	DoubtAsks   Doubt = "ask"
)

// Condition returns the condition under which the rule asks: that of When and of the approval, both
// of which must hold. It is nil if the rule has neither. Its groups are those of When, each combined
// with those of the approval.
func (r *Rule) Condition() *condition.Expr {
	if r.Approval == nil || r.Approval.Form != schema.Conditional {
		return r.When
	}
	return condition.And(r.When, r.Approval.Condition)
}

// Kind is the kind of a call (docs/contracts/decide.md).
type Kind string

// The kinds of a call.
const (
	Tool       Kind = "tool"       // a local tool
	MCPTool    Kind = "mcp_tool"   // a tool of an MCP server
	Skill      Kind = "skill"      // a skill of a remote agent
	Delegation Kind = "delegation" // a sub-agent, local or remote
)

// Kinds lists the kinds in the order of the design.
func Kinds() []Kind { return []Kind{Tool, MCPTool, Skill, Delegation} }
