package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/lint"
)

// agentIDRepeated reports an agent whose id also occurs in another file of the run.
func agentIDRepeated(p *lint.Pass) {
	at := p.Agent.Doc.Root.Get("metadata").Get("id")
	others := p.Fleet.Twins(p.Agent.Metadata.ID, p.Agent.File)
	if at == nil || len(others) == 0 {
		return
	}
	p.Report(
		at.Range,
		fmt.Sprintf("the id %q is also that of %s, and assent serve refuses to load both",
			p.Agent.Metadata.ID, strings.Join(others[:min(len(others), 3)], ", ")),
		lint.Expected("an id of its own"),
	)
}
