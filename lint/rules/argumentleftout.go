package rules

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
)

// argumentLeftOut reports conditions on arguments that are optional in a call.
func argumentLeftOut(p *lint.Pass) {
	for _, g := range p.Gates() {
		reported := map[string]bool{}
		for m := range matchersOf(p, &g) {
			if _, fault := condition.Places(g.Use, m.Key); fault == "" && !reported[m.Key] && taken(&g, m.Key) {
				reported[m.Key] = true
				judgeArgumentLeftOut(p, &g, m)
			}
		}
	}
}

func judgeArgumentLeftOut(p *lint.Pass, g *lint.Gate, m *condition.Matcher) {
	i := slices.IndexFunc(g.Tools, func(t *catalog.Tool) bool { return optional(t, g.Use, m.Key) })
	if i < 0 {
		return
	}
	tool, e := g.Tools[i], g.Approval.Condition
	bounds := lint.Bounds(tool, g.Use, e)
	verdict, witness := p.Analyzer(g.Use).Within(bounds).Dodged(e, m.Key)
	if verdict == condition.Yes {
		p.Report(
			m.KeyRange,
			fmt.Sprintf(
				"%q may be left out of a call of %q, which lets it through%s",
				m.Key,
				tool.Name,
				lint.Witness(witness),
			),
			lint.Expected("an argument that every call has, or on_missing: ask in the owner's configuration"),
			lint.Declared(tool),
		)
		return
	}

	p.Report(
		m.KeyRange,
		fmt.Sprintf(
			"%q may be left out of a call of %q: then this test is never certain, and the gate asks unless the other "+
				"tests let the call through",
			m.Key,
			tool.Name,
		),
		lint.Expected("an argument that every call has, or calls that ask without it"),
		lint.Declared(tool),
		lint.Soften(diag.Info),
	)
}

// optional reports whether a tool declares an argument and a call may omit it.
func optional(t *catalog.Tool, use condition.Use, key string) bool {
	places, _ := condition.Places(use, key)
	typ, _ := lint.Typed(t, use, key)
	return typ != nil && !slices.ContainsFunc(places, func(place []string) bool {
		values, _ := t.Args.At(place)
		return values.And(condition.Missing()).Empty()
	})
}
