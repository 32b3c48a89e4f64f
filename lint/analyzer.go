package lint

import (
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/value"
)

// budget limits the total cost of all questions about one file, so that no file keeps the linter
// busy: it is about a second of hard questions. Ordinary files need a thousandth of it. Once it is
// spent every answer is Undecided, and nothing is reported.
const budget = 1_000_000

// These are the costs of a question: one for each pair of boxes that may have to be compared, and
// patternCost for each pattern, which may need an automaton.
const (
	patternCost = 500
	maxBoxes    = 1_024
)

// Analyzer answers questions about the conditions of one file, see
// condition.Analyzer, within the file's budget.
type Analyzer struct {
	a    *condition.Analyzer
	left *int
}

// Analyzer returns an analyzer for conditions of a use. What it learns about patterns is kept as
// long as the worker.
func (p *Pass) Analyzer(use condition.Use) Analyzer { return Analyzer{p.worker.analyzer(use), &p.left} }

// Satisfiable is condition.Analyzer.Satisfiable.
func (q Analyzer) Satisfiable(e *condition.Expr) (condition.Verdict, value.Value) {
	if !q.spend(e, nil) {
		return condition.Undecided, value.Value{}
	}
	return q.a.Satisfiable(e)
}

// SatisfiableGroup is condition.Analyzer.SatisfiableGroup.
func (q Analyzer) SatisfiableGroup(g *condition.Group) (condition.Verdict, value.Value) {
	return q.Satisfiable(alone(g))
}

// CanBeFalse is condition.Analyzer.CanBeFalse.
func (q Analyzer) CanBeFalse(e *condition.Expr) (condition.Verdict, value.Value) {
	if !q.spend(e, nil) {
		return condition.Undecided, value.Value{}
	}
	return q.a.CanBeFalse(e)
}

// Implies is condition.Analyzer.Implies.
func (q Analyzer) Implies(x, y *condition.Expr) (condition.Verdict, value.Value) {
	if !q.spend(x, y) {
		return condition.Undecided, value.Value{}
	}
	return q.a.Implies(x, y)
}

// ImpliesGroup is condition.Analyzer.ImpliesGroup.
func (q Analyzer) ImpliesGroup(g, h *condition.Group) (condition.Verdict, value.Value) {
	return q.Implies(alone(g), alone(h))
}

// Covers is condition.Analyzer.Covers.
func (q Analyzer) Covers(x, y *condition.Expr) (condition.Verdict, value.Value) {
	if !q.spend(x, y) {
		return condition.Undecided, value.Value{}
	}
	return q.a.Covers(x, y)
}

// Evaluate evaluates a condition on a document such as a witness, see
// condition.Evaluate.
func (p *Pass) Evaluate(use condition.Use, e *condition.Expr, doc value.Value) (condition.Truth, error) {
	return condition.Evaluate(use, p.worker.linter.opt.Semantics.Conditions, e, doc)
}

// Dodged is condition.Analyzer.Dodged.
func (q Analyzer) Dodged(e *condition.Expr, key string) (condition.Verdict, value.Value) {
	if !q.spend(e, e) {
		return condition.Undecided, value.Value{}
	}
	return q.a.Dodged(e, key)
}

// Within is condition.Analyzer.Within.
func (q Analyzer) Within(bounds []condition.Bound) Analyzer {
	return Analyzer{q.a.Within(bounds), q.left}
}

func alone(g *condition.Group) *condition.Expr {
	return &condition.Expr{Groups: []condition.Group{*g}, Range: g.Range}
}

// spend subtracts the cost of a question from the budget. It returns false if too little is left.
func (q Analyzer) spend(x, y *condition.Expr) bool {
	boxesX, patternsX := size(x)
	boxesY, patternsY := size(y)
	*q.left -= boxesX*boxesY + (patternsX+patternsY)*patternCost
	return *q.left >= 0
}

// size counts the boxes of a condition and its patterns. A key with a
// dot names two places and triples the boxes of its group.
func size(e *condition.Expr) (boxes, patterns int) {
	if e == nil {
		return 1, 0
	}
	for i := range e.Groups {
		n := 1
		for _, m := range e.Groups[i].Matchers {
			if strings.Contains(m.Key, ".") {
				n = min(3*n, maxBoxes)
			}
			for _, t := range m.Tests {
				if _, searches := t.Expression(); searches {
					patterns++
				}
			}
		}

		boxes += n
	}

	return max(boxes, 1), patterns
}
