package rules

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// policyStageUnfillable reports approval stages that have too few people, either always or when
// the owners of an agent are excluded, and approvals without stages that only owners could give.
func policyStageUnfillable(p *lint.Pass) {
	for i := range p.Policy.Rules {
		if r := &p.Policy.Rules[i]; r.Approval != nil && !r.Denies &&
			len(r.Require.Stages)+len(r.Require.AnyOf) == 0 {
			for _, m := range governedBy(p, r) {
				if reportNobody(p, r.Approval.Range, &m) {
					break
				}
			}
		}
	}
	known := p.People.Groups()
	for _, asking := range p.Asking() {
		stages := asking.Rule.Require.Stages
		agents := governedBy(p, asking.Rule)
		reportAlternatives(p, &asking, agents)
		short := p.People.Short(stages, "", "")
		for _, at := range asking.Stages {
			if !slices.Contains(known, at.Text) { // policy-group-unknown reports it
				continue
			}
			have, isShort := short[at.Text]
			of := ""
			for i := 0; !isShort && i < len(agents); i++ {
				m := agents[i]
				have, isShort = p.People.Short(stages, m.ID, m.Labels["owner"])[at.Text]
				of = m.ID
			}
			if !isShort {
				continue
			}
			more := []func(*diag.Finding){lint.Expected("fewer people, or more people in the group")}
			text := message(asking.Rule, at.Text, have)
			if of != "" {
				more[0] = lint.Expected("people in the group who do not own the agent")
				text += " of the agent " + of + ", whose owners may not approve its calls"
			}
			if p.People.Lists(at.Text) {
				more = append(more, lint.Soften(diag.Warning))
			}
			p.Report(at.Range, text, more...)
		}
	}
}

// reportAlternatives reports a rule of which no alternative can be filled next to its stages, either
// always or when the owners of one of the agents are excluded.
func reportAlternatives(p *lint.Pass, asking *lint.Asking, agents []schema.Metadata) {
	if len(asking.AnyOf) == 0 {
		return
	}
	options, countable := policy.Options(asking.Rule.Require.Stages, asking.Rule.Require.AnyOf)
	if !countable {
		p.Report(asking.AnyOf[0].Range,
			fmt.Sprintf("rule %s has too many combinations of alternatives, so nothing can be approved", asking.Rule.ID),
			lint.Expected("fewer alternatives"))
		return
	}
	unfillable := func(m schema.Metadata) bool {
		return !slices.ContainsFunc(options, func(stages []policy.Stage) bool {
			return len(p.People.Short(stages, m.ID, m.Labels["owner"])) == 0
		})
	}
	agents = append([]schema.Metadata{{}}, agents...) // first without excluding anyone
	at := slices.IndexFunc(agents, unfillable)
	if at < 0 {
		return
	}
	text := fmt.Sprintf("rule %s has no alternative that enough people can fill", asking.Rule.ID)
	more := []func(*diag.Finding){lint.Expected("fewer people, or more people in the groups")}
	if at > 0 {
		text += " for the agent " + agents[at].ID + ", whose owners may not approve its calls"
		more[0] = lint.Expected("people in the groups who do not own the agent")
	}
	listed := func(n *yamldoc.Node) bool { return p.People.Lists(n.Text) }
	if slices.ContainsFunc(slices.Concat(asking.AnyOf, asking.Stages), listed) {
		more = append(more, lint.Soften(diag.Warning))
	}
	p.Report(asking.AnyOf[0].Range, text, more...)
}

// approvalUnfillable reports the first approval of an agent if nobody may
// give it, because everybody owns the agent.
func approvalUnfillable(p *lint.Pass) {
	for _, s := range p.Sites() {
		if s.Approval.Form != schema.Never {
			reportNobody(p, s.Approval.Range, &p.Agent.Metadata)
			return
		}
	}
}

// reportNobody reports an approval that any one person may give, if nobody
// may for an agent. It returns false if somebody may.
func reportNobody(p *lint.Pass, at diag.Range, m *schema.Metadata) bool {
	if len(p.People.Short([]policy.Stage{{People: 1}}, m.ID, m.Labels["owner"])) == 0 {
		return false
	}
	more := []func(*diag.Finding){lint.Expected("somebody in people.yaml who does not own the agent")}
	if slices.ContainsFunc(p.People.Groups(), p.People.Lists) { // sign-ins may bring more people
		more = append(more, lint.Soften(diag.Warning))
	}
	p.Report(at, fmt.Sprintf("nobody can give this approval: people.yaml has nobody but owners of the agent %s, who may "+
		"not approve its calls", m.ID), more...)

	return true
}

// governedBy lists the agents that have calls the rule may meet.
func governedBy(p *lint.Pass, rule *policy.Rule) []schema.Metadata {
	if p.Fleet == nil {
		return nil
	}
	var out []schema.Metadata
	for _, s := range p.Fleet.Governed(p.Policy) {
		if s.Meets(&rule.Match) {
			out = append(out, s.Metadata)
		}
	}
	return out
}

func message(rule *policy.Rule, group string, have int) string {
	stages := rule.Require.Stages
	need := stages[slices.IndexFunc(stages, func(s policy.Stage) bool { return s.Group == group })].People

	who, there := strconv.Itoa(need)+" people", "only "+strconv.Itoa(have)+" can fill the stage"
	if need == 1 {
		who = "1 person"
	}
	if have == 0 {
		there = "nobody can fill the stage"
	}
	if len(stages) > 1 {
		there += " beside the other stages"
	}

	return fmt.Sprintf("rule %s needs %s of %s: %s", rule.ID, who, group, there)
}
