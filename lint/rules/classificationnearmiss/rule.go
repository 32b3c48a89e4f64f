// Package classificationnearmiss reports data classifications that are
// almost one of the common values.
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

//go:embed rule.md
var page string

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: lint.Describe(page, bad, good),
		Agent:    checkAgent,
		Policy:   checkPolicy,
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
