package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
)

// argumentTypeClash reports tests with a value of a type that the argument never has.
func argumentTypeClash(p *lint.Pass) {
	for _, g := range p.Gates() {
		for m := range matchersOf(p, &g) {
			types, known := typesOf(&g, m.Key)
			for i := range m.Tests {
				if known && clashes(types, &m.Tests[i]) {
					reportArgumentTypeClash(p, &g, m, &m.Tests[i], types[0])
				}
			}
		}
	}
}

// clashes reports whether a test has an operand of a type that the argument never has.
func clashes(types []*catalog.Type, t *condition.Test) bool {
	for _, operand := range t.Operands() {
		if all(types, func(typ *catalog.Type) bool { return !typ.Values.Has(operand.Kind) }) {
			return true
		}
	}
	return false
}

func reportArgumentTypeClash(
	p *lint.Pass, g *lint.Gate, m *condition.Matcher, t *condition.Test, typ *catalog.Type,
) {
	claim := "never true of it"
	if t.Negative() {
		claim = "true of all of them, as values of different types are never equal"
	} else if len(t.Operands()) > 1 {
		claim = "not true of it for each of its values"
	}
	p.Report(
		t.Range,
		fmt.Sprintf("%q of %q is %s, and %q is %s%s", m.Key, g.Tools[0].Name, typ, t.String(), claim, through(p, g)),
		lint.Expected("a test of "+typ.String()),
		lint.Declared(g.Tools[0]),
	)
}
