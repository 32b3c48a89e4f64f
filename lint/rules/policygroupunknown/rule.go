// Package policygroupunknown reports groups that nobody is in.
package policygroupunknown

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

//go:embed bad.policy.yaml
var bad string

//go:embed good.policy.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "policy-group-unknown", Title: "A policy asks a group that nobody is in", Severity: diag.Error,
			Why: "A request goes to the people of the groups that a rule names. Where nobody is in the group, mostly because its name is " +
				"misspelt, nobody is told, nobody may answer, and every such call expires. Checked against the people.yaml that `--people` " +
				"names: a group is known when somebody is in it, or when the file lists it under `groups`, so that sign-ins may bring it. " +
				"The people of the examples are mara (sre, leads, finance, heads), omar (sre, finance, heads) and ines (leads).",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "docs/contracts/people.md",
		},
		Policy: check, NeedsPeople: true,
	}
}

func check(p *lint.Pass) {
	known := p.People.Groups()
	for _, asking := range p.Asking() {
		for _, at := range asking.Stages {
			report(p, known, at, fmt.Sprintf("rule %s asks the group %q, which nobody is in", asking.Rule.ID, at.Text))
		}
		for _, at := range asking.Escalates {
			report(p, known, at, fmt.Sprintf("rule %s escalates to the group %q, which nobody is in", asking.Rule.ID, at.Text))
		}
	}
}

func report(p *lint.Pass, known []string, at *yamldoc.Node, message string) {
	if slices.Contains(known, at.Text) {
		return
	}
	p.Report(at.Range, message, lint.Expected("a group of people.yaml"), lint.Nearest(at.Text, known))
}
