// Package policyrefrepeated reports policies that an agent names twice.
package policyrefrepeated

import (
	_ "embed"
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "policy-ref-repeated", Title: "A governance policy is named twice", Severity: diag.Error,
			Why: "Naming a policy once is enough. Where one mention requires it and the other does not, nobody can tell whether the agent may run without it; " +
				"assent takes it as required. Often the second was meant to be another policy. Two equal mentions are a warning.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, GovernancePolicyRef",
		},
		Agent: check,
	}
}

func check(p *lint.Pass) {
	first := map[string]schema.PolicyRef{}
	for _, ref := range p.Agent.Constraints.Policies {
		earlier, seen := first[ref.Ref]
		switch {
		case !seen:
			first[ref.Ref] = ref
		case earlier.Required != ref.Required:
			p.Report(ref.RefRange, fmt.Sprintf("%q is named twice, required and not required", ref.Ref),
				lint.Expected("one mention"), lint.Related(earlier.RefRange, "first named here"))
		default:
			p.Report(ref.RefRange, fmt.Sprintf("%q is named twice", ref.Ref),
				lint.Expected("one mention"), lint.Related(earlier.RefRange, "first named here"), lint.Soften(diag.Warning))
		}
	}
}
