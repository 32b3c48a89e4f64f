package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
)

// valueNotOffered reports values that are missing in the tool's list of values for the
// argument.
func valueNotOffered(p *lint.Pass) {
	for _, g := range p.Gates() {
		for m := range matchersOf(p, &g) {
			types, known := typesOf(&g, m.Key)
			for i := range m.Tests {
				if known && compares(&m.Tests[i]) && !clashes(types, &m.Tests[i]) {
					judgeValueNotOffered(p, &g, m, &m.Tests[i], types)
				}
			}
		}
	}
}

// compares reports whether a test compares an argument with listed values.
func compares(t *condition.Test) bool {
	return t.Op == condition.Eq || t.Op == condition.Ne || t.Op == condition.In || t.Op == condition.NotIn
}

func judgeValueNotOffered(
	p *lint.Pass, g *lint.Gate, m *condition.Matcher, t *condition.Test, types []*catalog.Type,
) {
	for _, operand := range t.Operands() {
		if !unlisted(types, operand) {
			continue
		}
		var known []string
		for _, typ := range types {
			for _, v := range typ.Enum {
				known = append(known, catalog.Word(v))
			}
		}
		p.Report(
			operand.Range,
			fmt.Sprintf("%q of %q is never %s%s", m.Key, g.Tools[0].Name, operand.String(), through(p, g)),
			lint.Expected("one of "+strings.Join(known[:min(len(known), 20)], ", ")),
			lint.Nearest(operand.Text, known),
			lint.Declared(g.Tools[0]),
		)
	}
}

// unlisted reports whether every type lists its values and none of them has the operand.
func unlisted(types []*catalog.Type, operand condition.Scalar) bool {
	return all(types, func(t *catalog.Type) bool { return t.Enum != nil && !t.Values.Holds(operand) })
}
