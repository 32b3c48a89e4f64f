package rules

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// policyGroupUnknown reports groups without members.
func policyGroupUnknown(p *lint.Pass) {
	known := p.People.Groups()
	for _, asking := range p.Asking() {
		for _, at := range slices.Concat(asking.Stages, asking.AnyOf) {
			reportPolicyGroupUnknown(
				p,
				known,
				at,
				fmt.Sprintf("rule %s asks the group %q, which nobody is in", asking.Rule.ID, at.Text),
			)
		}

		for _, at := range asking.Escalates {
			reportPolicyGroupUnknown(
				p,
				known,
				at,
				fmt.Sprintf("rule %s escalates to the group %q, which nobody is in", asking.Rule.ID, at.Text),
			)
		}
	}
}

func reportPolicyGroupUnknown(p *lint.Pass, known []string, at *yamldoc.Node, message string) {
	if slices.Contains(known, at.Text) {
		return
	}
	p.Report(at.Range, message, lint.Expected("a group of people.yaml"), lint.Nearest(at.Text, known))
}
