package lint

import (
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
)

// Asking is a rule of a policy that asks people, with the nodes that name the groups, in source
// order.
type Asking struct {
	Rule      *policy.Rule
	Stages    []*yamldoc.Node // the group of each stage
	AnyOf     []*yamldoc.Node // the group of each stage of an alternative
	Escalates []*yamldoc.Node // the group of each escalation
}

// Asking lists the rules of the policy that ask people.
func (p *Pass) Asking() []Asking {
	var out []Asking
	for i, n := range p.Policy.Doc.Root.Get("rules").Items { // a policy that was read has a rule for each
		rule, require := &p.Policy.Rules[i], n.Get("require")
		if rule.Approval == nil && rule.Unknown != policy.DoubtAsks || require == nil {
			continue
		}
		var alternatives []*yamldoc.Node
		if anyOf := require.Get("any_of"); anyOf != nil {
			for _, stages := range anyOf.Items {
				alternatives = append(alternatives, valuesOf(stages, "group")...)
			}
		}
		out = append(out, Asking{
			Rule:      rule,
			Stages:    valuesOf(require.Get("stages"), "group"),
			AnyOf:     alternatives,
			Escalates: valuesOf(require.Get("escalate"), "to"),
		})
	}

	return out
}

// valuesOf returns the values of one key, for every item that has it.
func valuesOf(list *yamldoc.Node, key string) []*yamldoc.Node {
	if list == nil {
		return nil
	}
	var out []*yamldoc.Node
	for _, item := range list.Items {
		if n := item.Get(key); n != nil {
			out = append(out, n)
		}
	}

	return out
}
