package policy

import (
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

// policy reads a document that has passed the JSON Schema.
func (r *reader) policy(root *yamldoc.Node) *Policy {
	p := &Policy{Applies: Referenced, Range: root.Get("policy_ref").Range}
	yamldoc.Fill(root, p)
	for _, n := range root.Get("rules").Items {
		p.Rules = append(p.Rules, r.rule(n))
	}
	return p
}

func (r *reader) rule(n *yamldoc.Node) Rule {
	approval, findings := schema.ParseApproval(n.Get("approval"), r.operators)
	r.add(findings...)
	rule := Rule{
		Approval: approval,
		Denies:   n.Get("deny") != nil,
		Require:  readRequire(n.Get("require"), approval != nil || text(n.Get("unknown")) == string(DoubtAsks)),
		Range:    n.Range,
	}
	yamldoc.Fill(n, &rule)
	if when := n.Get("when"); when != nil {
		rule.When, findings = condition.ParseWhen(when)
		r.add(findings...)
	}
	return rule
}

// readRequire reads `require`, which may be absent, in normal form. A rule that asks always has an
// opinion on timeouts and on arguments that may vary: see Timeout and Grants.
func readRequire(n *yamldoc.Node, asks bool) Require {
	q := Require{}
	yamldoc.Fill(n, &q)
	switch grants := n.Get("grants"); text(grants) {
	case "forbid":
		q.Grants.Forbid = true
	case "session":
		q.Grants.Session = true
	default:
		yamldoc.Fill(grants, &q.Grants)
	}

	hidden := n.Get("arguments").Get("approve_hidden")
	q.Arguments.ForbidHidden = hidden != nil && !hidden.Bool
	if asks && q.OnTimeout == "" {
		q.OnTimeout = TimeoutDeny
	}
	if asks && q.Grants.Bounds == nil {
		q.Grants.Bounds = []Bound{}
	}
	q.AnyOf = readAnyOf(n.Get("any_of"))
	if reason := n.Get("reason"); reason != nil {
		q.Reason = Reason{Required: true}
		if pattern := reason.Get("pattern"); pattern != nil {
			q.Reason.Patterns = []string{pattern.Text}
		}
	}
	for i := range q.Stages {
		q.Stages[i].People = max(q.Stages[i].People, 1)
	}

	return q.withStandIns()
}

// readAnyOf reads the alternatives of a rule, which may be absent.
func readAnyOf(n *yamldoc.Node) []AnyOf {
	if n == nil {
		return nil
	}
	var out AnyOf
	for _, alternative := range n.Items {
		var stages []Stage
		yamldoc.Fill(alternative, &stages)
		for i := range stages {
			stages[i].People = max(stages[i].People, 1)
		}
		out = append(out, stages)
	}

	return []AnyOf{out}
}

// text returns the content of a scalar, or an empty string if it is absent.
func text(n *yamldoc.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

func items(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// duration returns a duration that mistakes has checked, or 0 if it is absent.
func duration(n *yamldoc.Node) time.Duration {
	d, _ := ParseDuration(text(n))
	return d
}
