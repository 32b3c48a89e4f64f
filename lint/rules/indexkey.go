package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/lint"
)

// indexKey reports conditions that test one element of a list.
func indexKey(p *lint.Pass) {
	for c, m := range p.Matchers() {
		list, index, ok := lint.Element(m.Key)
		if c.Asks() && ok && !strings.HasPrefix(m.Key, "parent.") {
			p.Report(
				m.KeyRange,
				fmt.Sprintf("%q tests element %s of %q alone, and a call may have others", m.Key, index, list),
				lint.Expected("an argument outside of the list, or approval: true"),
			)
		}
	}
}
