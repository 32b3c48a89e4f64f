package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

// asking returns a rule that asks one question about a condition many times
// and reports how often it got an answer.
func asking(times int, ask func(lint.Analyzer, lint.Condition) bool) lint.Rule {
	return lint.Rule{
		RuleInfo: diag.RuleInfo{ID: "asking"},
		Agent: func(p *lint.Pass) {
			answers := 0
			for range times {
				for _, c := range p.Conditions() {
					if ask(p.Analyzer(c.Use), c) {
						answers++
					}
				}
			}

			p.Report(p.Agent.Metadata.Range, fmt.Sprintf("%d answers", answers))
		},
	}
}

func TestBudget(t *testing.T) {
	questions := map[string]func(lint.Analyzer, lint.Condition) bool{
		"satisfiable": func(a lint.Analyzer, c lint.Condition) bool {
			v, _ := a.Satisfiable(c.Expr)
			return v.String() == "yes"
		},
		"satisfiable group": func(a lint.Analyzer, c lint.Condition) bool {
			v, _ := a.SatisfiableGroup(&c.Groups[0])
			return v.String() == "yes"
		},
		"can be false": func(a lint.Analyzer, c lint.Condition) bool {
			v, _ := a.CanBeFalse(c.Expr)
			return v.String() == "yes"
		},
		"implies": func(a lint.Analyzer, c lint.Condition) bool {
			v, _ := a.Implies(c.Expr, c.Expr)
			return v.String() == "yes"
		},
		"implies group": func(a lint.Analyzer, c lint.Condition) bool {
			v, _ := a.ImpliesGroup(&c.Groups[0], &c.Groups[0])
			return v.String() == "yes"
		},
		"covers": func(a lint.Analyzer, c lint.Condition) bool {
			v, _ := a.Covers(c.Expr, nil)
			return v.String() == "yes"
		},
	}
	body := func(matchers string) []byte {
		return []byte(
			head + "action_space: {local_tools: [{alias: pay, approval: {condition: {args_match: {" + matchers +
				"}}}}]}\n",
		)
	}
	for name, ask := range questions {
		for matchers, want := range map[string]func(int) bool{
			"amount: 5":                            func(n int) bool { return n == 2100 },
			"amount: {pattern: '^a'}, order.id: 5": func(n int) bool { return n > 100 && n < 2100 },
		} {
			w := lint.New([]lint.Rule{asking(2100, ask)}, lint.Options{}).Worker()
			for range 2 { // each file has a budget of its own
				var n int
				found := w.Agent("a.agf.yaml", body(matchers), nil).Findings
				if _, err := fmt.Sscanf(found[len(found)-1].Message, "%d answers", &n); err != nil || !want(n) {
					t.Errorf("%s of %s: got %s", name, matchers, found[len(found)-1].Message)
				}
			}
		}
	}
}

// Conditions that an attacker would write must not keep the linter
// busy: they are left unanswered, and nothing is said.
func TestHostileConditions(t *testing.T) {
	dotted := make([]string, 30)
	for i := range dotted {
		dotted[i] = fmt.Sprintf("a.b%d: {gt: %d}", i, i)
	}
	group := "          - args_match: {" + strings.Join(dotted, ", ") + "}\n"
	r := agent(
		t,
		"action_space:\n  local_tools:\n    - alias: pay\n      approval:\n        condition:\n"+strings.Repeat(
			group,
			60,
		),
		lint.Options{},
	)
	for _, f := range r.Findings {
		if f.Rule != "dotted-key" {
			t.Errorf("unexpected: %s [%s]", f.Message, f.Rule)
		}
	}
}
