package resolve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// pastGoal is a test of past calls and the truth that it should have.
type pastGoal struct {
	target *Target
	test   *condition.PastTest
	want   condition.Truth
}

// maxAdded limits the past calls that FindHistory adds for one test.
const maxAdded = 1000

// FindHistory looks for past calls with which tests of some targets come out as a document of an
// analyzer says (condition.Pasts). It sets them in the call, with a moment and with fields and
// arguments that the tests need if the call lacks them. It returns false if it finds none, which does
// not mean that there are none.
func FindHistory(c *Call, holds map[string]bool, targets ...*Target) bool {
	var goals []pastGoal
	for _, t := range targets {
		if t == nil {
			continue
		}
		for i := range t.t.rules {
			if t.t.rules[i].when == nil {
				continue
			}
			for _, test := range t.t.rules[i].when.PastTests() {
				if want, given := holds[test.Key()]; given {
					goals = append(goals, pastGoal{t, test, test.Wanted(want)})
				}
			}
		}
	}
	if c.At.IsZero() {
		c.At = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	}
	c.History, c.HistoryKnown = nil, true
	for i := range goals {
		c.complete(goals[i].test.History)
	}
	best := reachedGoals(c, goals)
	for range 2 * len(goals) {
		if best == len(goals) {
			break
		}
		if !improve(c, goals, &best) {
			return false
		}
	}

	return best == len(goals)
}

// improve adds past calls with which more goals are reached.
func improve(c *Call, goals []pastGoal, best *int) bool {
	for i := range goals {
		if goals[i].reached(c) {
			continue
		}
		for _, added := range goals[i].candidates(c, goals) {
			one := *c
			one.History = slices.Concat(c.History, added)
			if n := reachedGoals(&one, goals); n > *best {
				c.History, *best = one.History, n
				return true
			}
		}
	}
	return false
}

func reachedGoals(c *Call, goals []pastGoal) int {
	n := 0
	for i := range goals {
		if goals[i].reached(c) {
			n++
		}
	}
	return n
}

func (g *pastGoal) look(c *Call) condition.PastResult {
	return g.target.plan.history(c, g.target.t).Look(g.test)
}

func (g *pastGoal) reached(c *Call) bool { return g.look(c).Truth == g.want }

// complete adds what a test reads of the call itself and the call lacks.
func (c *Call) complete(h *condition.History) {
	add := func(path, text string) {
		v, err := value.Parse(c.Args, value.Limits{MaxBytes: 1 << 30})
		if len(c.Args) == 0 {
			v, err = value.Value{Kind: value.Object}, nil
		}
		if _, found := argumentOf(v, condition.True, path); err == nil && v.Kind == value.Object && found == condition.False {
			c.Args = withArgument(v, path, value.Value{Kind: value.String, Text: text}).AppendJSON(nil)
		}
	}
	for _, by := range h.By {
		path, argument := strings.CutPrefix(by, "args.")
		switch {
		case by == "principal" && c.Principal == "":
			c.Principal = "someone"
		case by == "session" && c.Session == "":
			c.Session = "s"
		case argument && c.Kind != Delegation:
			add(path, "x")
		}
	}
	if h.Currency != "" && c.Kind != Delegation {
		add(h.Currency, "EUR")
	}
	if h.Measure == condition.Distinct && c.Kind != Delegation {
		add(h.Path, "x")
	}
}

// withArgument returns arguments in which a literal key has a value.
func withArgument(args value.Value, key string, v value.Value) value.Value {
	out := value.Value{Kind: value.Object}
	for _, m := range args.Members {
		if m.Key != key {
			out.Members = append(out.Members, m)
		}
	}
	out.Members = append(out.Members, value.Member{Key: key, Value: v})
	return out
}

// candidates returns lists of past calls, each of which may give the test its truth.
func (g *pastGoal) candidates(c *Call, goals []pastGoal) [][]PastCall {
	numbers := g.amounts(c)
	var out [][]PastCall
	for _, base := range g.bases(c) {
		for _, args := range g.arguments(c) {
			for _, at := range momentsOf(c, goals) {
				one := base
				one.At, one.States = at, []condition.PastState{g.test.State}
				switch g.test.Measure {
				case condition.Sum:
					for _, n := range numbers {
						with := one
						with.Args = withArgument(args, g.test.Path, value.Value{Kind: value.Number, Num: n}).AppendJSON(nil)
						out = append(out, []PastCall{with})
					}
				case condition.Existing:
					one.Args = args.AppendJSON(nil)
					out = append(out, []PastCall{one})
				default:
					for _, n := range g.counts() {
						var list []PastCall
						for i := range n {
							with := one
							with.Args = args.AppendJSON(nil)
							if g.test.Measure == condition.Distinct {
								text := value.Value{Kind: value.String, Text: fmt.Sprintf("other%d", i)}
								with.Args = withArgument(args, g.test.Path, text).AppendJSON(nil)
							}
							list = append(list, with)
						}
						out = append(out, list)
					}
				}
			}
		}
	}
	return out
}

// counts returns how many past calls to try.
func (g *pastGoal) counts() []int {
	out := []int{1}
	for i := range g.test.Bounds {
		bound := int(min(g.test.Bounds[i].Operand.Num.Float(), maxAdded))
		for n := bound - 1; n <= bound+1; n++ {
			if n > 0 && n <= maxAdded && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// amounts returns the numbers that take a sum to a bound, and a little above and below it.
func (g *pastGoal) amounts(c *Call) []value.Num {
	var out []value.Num
	figures := g.look(c).Figures
	if figures == nil {
		return nil
	}
	spent := decimal{}
	for _, text := range []string{figures.Used, figures.This} {
		if n, err := value.ParseNum(text); err == nil {
			spent = spent.add(decimalOf(n))
		}
	}
	for i := range g.test.Bounds {
		need := decimalOf(g.test.Bounds[i].Operand.Num).add(spent.negated())
		for _, more := range []int64{0, 1, -1} {
			n, err := value.ParseNum(need.add(decimalOf(value.IntNum(more))).String())
			if err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// bases returns past calls that the test selects, without arguments.
func (g *pastGoal) bases(c *Call) []PastCall {
	this := g.target.plan.Past(c)
	this.Args, this.States = nil, nil
	of := g.test.Of
	if of == nil {
		return []PastCall{this}
	}
	name := func(globs []string, otherwise string) string {
		if len(globs) == 0 {
			return otherwise
		}
		return strings.ReplaceAll(globs[0], "*", "x")
	}
	match := matchOf(of)
	out := []PastCall{this}
	for _, kind := range policy.Kinds() {
		past := this
		past.Kind, past.Tool, past.Server, past.Agent, past.Skill, past.ServerRef = kind, "", "", "", "", ""
		target, server := name(of.Targets, "x"), name(of.Servers, "x")
		switch kind {
		case Tool:
			past.Tool = target
		case MCPTool:
			past.Server, past.Tool, past.ServerRef = server, target, name(of.ServerRefs, "")
		case Skill:
			past.Agent, past.Skill = server, target
		case Delegation:
			past.Agent = target
		}
		out = append(out, past)
	}
	return slices.DeleteFunc(out, func(past PastCall) bool {
		return !slices.ContainsFunc(g.target.plan.calledBefore(&past), match.Target)
	})
}

// arguments returns arguments for past calls: none, this call's, and those that pass `where`.
func (g *pastGoal) arguments(c *Call) []value.Value {
	own, given := g.target.plan.values(c)
	if given != condition.True {
		own = value.Value{Kind: value.Object}
	}
	out := []value.Value{own}
	if g.test.Where != nil {
		analyzer := condition.NewAnalyzer(condition.Governance, condition.Semantics{}, 0)
		found, passing := analyzer.Satisfiable(&condition.Expr{Groups: []condition.Group{*g.test.Where}})
		if found == condition.Yes {
			for _, m := range passing.Members {
				own = withArgument(own, m.Key, m.Value)
			}
			out = append(out, own, passing)
		}
	}
	return out
}

// momentsOf returns the moment of a call, and moments around the beginnings of all intervals.
func momentsOf(c *Call, goals []pastGoal) []time.Time {
	out := []time.Time{c.At}
	for i := range goals {
		start, _ := goals[i].test.Start(c.At)
		for _, at := range []time.Time{start.Add(time.Second), start.Add(-time.Second)} {
			if !at.After(c.At) && !slices.ContainsFunc(out, at.Equal) {
				out = append(out, at)
			}
		}
	}
	return out
}
