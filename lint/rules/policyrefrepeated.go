package rules

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// policyRefRepeated reports policies that an agent names twice.
func policyRefRepeated(p *lint.Pass) {
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
			p.Report(
				ref.RefRange,
				fmt.Sprintf("%q is named twice", ref.Ref),
				lint.Expected("one mention"),
				lint.Related(earlier.RefRange, "first named here"),
				lint.Soften(diag.Warning),
			)
		}
	}
}
