package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/value"
)

// conditionVacuous reports conditions that match every call.
func conditionVacuous(p *lint.Pass) {
	for _, c := range p.Conditions() {
		switch {
		case c.Use == condition.Route, slices.ContainsFunc(c.Groups, func(g condition.Group) bool {
			return reportedElsewhere(c.Use, &g)
		}):
		case slices.ContainsFunc(c.Groups, func(g condition.Group) bool { return len(g.Matchers) == 0 }):
			reportEmpty(p, c)
		case c.Asks():
			if letsThrough, _ := p.Analyzer(c.Use).CanBeFalse(c.Expr); letsThrough == condition.No {
				reportConditionVacuous(p, c)
			}
		}
	}
}

// reportedElsewhere reports whether another rule reports the group: a group without args_match,
// with unreadable keys, or with only empty matchers.
func reportedElsewhere(use condition.Use, g *condition.Group) bool {
	idle := !slices.ContainsFunc(g.Matchers, func(m condition.Matcher) bool { return !lint.Idle(&m) })
	return g.NoArgsMatch || !lint.Readable(use, g) || len(g.Matchers) > 0 && idle
}

// reportEmpty reports a group that its author left empty, most likely on purpose.
func reportEmpty(p *lint.Pass, c lint.Condition) {
	for _, g := range c.Groups {
		if len(g.Matchers) > 0 {
			continue
		}
		if c.Asks() {
			p.Report(
				g.Range,
				"an empty args_match matches every call",
				lint.Expected("tests, or no condition"),
				lint.Soften(diag.Info),
			)
		} else {
			p.Report(
				g.Range,
				"an empty args_match always matches, so the loop ends after one round",
				lint.Expected("tests, or max_iterations: 1"),
			)
		}
	}
}

func reportConditionVacuous(p *lint.Pass, c lint.Condition) {
	fix := []func(*diag.Finding){lint.Expected("approval: true, if every call is to ask")}
	if key, fields := exclusions(c.Expr); key != "" {
		fix[0] = lint.Expected(
			fmt.Sprintf(
				"one group with %s: {not_in: [%s]}, if all of them are to pass",
				key,
				strings.Join(fields, ", "),
			),
		)
	}

	p.Report(c.Range, "one of these groups matches whatever the arguments are, so every call asks", fix...)
}

// exclusions looks for the usual mistake, which is one exclusion of the same key in each group.
// It returns the key and the excluded values.
func exclusions(e *condition.Expr) (key string, fields []string) {
	for _, g := range e.Groups {
		if len(g.Matchers) != 1 || key != "" && g.Matchers[0].Key != key {
			return "", nil
		}
		key = g.Matchers[0].Key
		for _, t := range g.Matchers[0].Tests {
			if !t.Negative() {
				return "", nil
			}
			for _, s := range t.Operands() {
				fields = append(fields, word(s))
			}
		}
	}

	return key, fields
}

func word(s condition.Scalar) string {
	switch s.Kind {
	case value.Number:
		return s.Num.String()
	case value.Bool:
		return strconv.FormatBool(s.Bool)
	}

	return s.Text
}
