package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// classificationNearMissInAgent reports an agent's data classification that differs slightly
// from a common value.
func classificationNearMissInAgent(p *lint.Pass) {
	if n := p.Agent.Doc.Root.Get("metadata").Get("data_classification"); n != nil {
		judgeClassificationNearMiss(p, n, "policies that select")
	}
}

// classificationNearMissInPolicy reports the same in the selector of a policy.
func classificationNearMissInPolicy(p *lint.Pass) {
	list := p.Policy.Doc.Root.Get("agents").Get("data_classifications")
	if list == nil {
		return
	}
	for _, n := range list.Items {
		if !strings.Contains(n.Text, "*") {
			judgeClassificationNearMiss(p, n, "agents of class")
		}
	}
}

func judgeClassificationNearMiss(p *lint.Pass, n *yamldoc.Node, others string) {
	known := []string{"public", "internal", "confidential", "restricted"}
	near := diag.Nearest(n.Text, known)
	if near == "" || slices.Contains(known, n.Text) {
		return
	}
	p.Report(n.Range, fmt.Sprintf("%q is not %q, and misses %s %q", n.Text, near, others, near),
		lint.Expected(strings.Join(known, ", ")+", or a class of your own"), lint.Meant(near))
}
