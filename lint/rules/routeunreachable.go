package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
)

// routeUnreachable reports routes that match only what an earlier route already takes.
func routeUnreachable(p *lint.Pass) {
	routes, a := p.Agent.Policy.Routes, p.Analyzer(condition.Route)
	for j := 1; j < len(routes); j++ {
		if possible, _ := a.Satisfiable(routes[j].When); possible != condition.Yes {
			continue // condition-unsatisfiable reports it
		}
		for i := range j {
			if implies, _ := a.Implies(routes[j].When, routes[i].When); implies == condition.Yes {
				p.Report(
					routes[j].When.Range,
					fmt.Sprintf(
						"the route to %q in line %d takes whatever would come here",
						routes[i].Agent.Alias,
						routes[i].Range.Start.Line,
					),
					lint.Expected("the special case first"),
					lint.Related(routes[i].When.Range, "taken first"),
				)
				break
			}
		}
	}
}
