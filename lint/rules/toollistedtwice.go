package rules

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// toolListedTwice reports tools and skills that occur twice in an allow-list.
func toolListedTwice(p *lint.Pass) {
	eachAllowList(p, reportToolListedTwice)
}

func reportToolListedTwice(p *lint.Pass, list []schema.ToolRef, what string) {
	first := make(map[string]schema.ToolRef, len(list))
	for _, e := range list {
		earlier, seen := first[e.Name]
		if !seen {
			first[e.Name] = e
			continue
		}
		if e.Approval == nil && earlier.Approval == nil {
			p.Report(
				e.NameRange,
				fmt.Sprintf("%s %q is listed twice", what, e.Name),
				lint.Expected("one entry"),
				lint.Related(earlier.NameRange, "first listed here"),
				lint.Soften(diag.Warning),
			)
			continue
		}

		p.Report(
			e.NameRange,
			fmt.Sprintf("%s %q is listed twice, and only one of the approvals can be meant", what, e.Name),
			lint.Expected("one entry, with the approval that is meant"),
			lint.Related(earlier.NameRange, "first listed here"),
		)
	}
}
