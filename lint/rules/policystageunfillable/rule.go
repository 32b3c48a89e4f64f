// Package policystageunfillable reports stages that nobody can fill.
package policystageunfillable

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

//go:embed bad.policy.yaml
var bad string

//go:embed good.policy.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "policy-stage-unfillable", Title: "A stage asks for more people than there are", Severity: diag.Error,
			Why: "All stages of a rule are filled by different people. So nine of finance can't be found in a group of two, nor two of finance " +
				"and one of the heads where the same two people hold both groups. Such a call can only be denied, or expire. Checked for each " +
				"rule against the people.yaml that `--people` names, with all who may stand in. The requester, the principal and the agent's " +
				"owners may not answer and are not known here, so leave room for them. A warning where the file lists the group under " +
				"`groups`, since sign-ins may bring more people. The people of the examples are mara (sre, leads, finance, heads), omar " +
				"(sre, finance, heads) and ines (leads).",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "docs/contracts/people.md",
		},
		Policy: check, NeedsPeople: true,
	}
}

func check(p *lint.Pass) {
	known := p.People.Groups()
	for _, asking := range p.Asking() {
		short := p.People.Short(asking.Rule.Require.Stages)
		for _, at := range asking.Stages {
			have, isShort := short[at.Text]
			if !isShort || !slices.Contains(known, at.Text) { // an unknown group is another rule's
				continue
			}
			more := []func(*diag.Finding){lint.Expected("fewer people, or more people in the group")}
			if p.People.Lists(at.Text) {
				more = append(more, lint.Soften(diag.Warning))
			}
			p.Report(at.Range, message(asking.Rule, at.Text, have), more...)
		}
	}
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
