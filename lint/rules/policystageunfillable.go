package rules

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

// policyStageUnfillable reports stages that nobody can fill.
func policyStageUnfillable(p *lint.Pass) {
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
