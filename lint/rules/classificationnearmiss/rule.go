// Package classificationnearmiss reports data classifications that are almost one of the common values.
package classificationnearmiss

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{
			ID: "classification-near-miss", Title: "A data classification is almost a common one", Severity: diag.Warning,
			Why: "`data_classification` is free text, and policies select agents by it, letter by letter. `Confidential` or `confidental` is a class of its own that no policy knows, " +
				"so the agent slips out of governance without a word. The common values are `public`, `internal`, `confidential` and `restricted`.",
			Bad: lint.Sample(bad), Good: lint.Sample(good), Spec: "Agent Format, metadata.data_classification",
		},
		Agent: checkAgent, Policy: checkPolicy,
	}
}

func checkAgent(p *lint.Pass) {
	if n := p.Agent.Doc.Root.Get("metadata").Get("data_classification"); n != nil {
		judge(p, n, "policies that select")
	}
}

func checkPolicy(p *lint.Pass) {
	list := p.Policy.Doc.Root.Get("agents").Get("data_classifications")
	if list == nil {
		return
	}
	for _, n := range list.Items {
		if !strings.Contains(n.Text, "*") {
			judge(p, n, "agents of class")
		}
	}
}

func judge(p *lint.Pass, n *yamldoc.Node, others string) {
	known := []string{"public", "internal", "confidential", "restricted"}
	near := diag.Nearest(n.Text, known)
	if near == "" || slices.Contains(known, n.Text) {
		return
	}
	p.Report(n.Range, fmt.Sprintf("%q is not %q, and misses %s %q", n.Text, near, others, near),
		lint.Expected(strings.Join(known, ", ")+", or a class of your own"), lint.Meant(near))
}
