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

// maxTried limits the histories that are tried.
const maxTried = 600

// FindHistory looks for past calls with which tests of some targets come out as a document of an
// analyzer says (condition.Pasts). It sets them in the call, with a moment and with fields and
// arguments that the tests need if the call lacks them. It returns false if it finds none, which does
// not mean that there are none.
func FindHistory(c *Call, holds map[string]bool, targets ...*Target) bool {
	var goals, unknown []pastGoal
	for _, t := range targets {
		if t == nil {
			continue
		}
		for i := range t.t.rules {
			if t.t.rules[i].when == nil {
				continue
			}
			for _, test := range t.t.rules[i].when.PastTests() {
				want, given := holds[test.Key()]
				if given {
					goals = append(goals, pastGoal{t, test, test.Wanted(want)})
				} else {
					unknown = append(unknown, pastGoal{t, test, condition.Unknown})
				}
			}
		}
	}
	moments := []time.Time{c.At}
	if c.At.IsZero() { // at noon, after midnight, and on the second day of a month
		moments = nil
		for _, hours := range []time.Duration{12, 0, 25 - 4*24} {
			moments = append(moments, time.Date(2026, 1, 5, 0, 30, 0, 0, time.UTC).Add(hours*time.Hour))
		}
	}
	c.HistoryKnown = true
	for _, at := range moments {
		// What the document does not have is unknown, or does not matter.
		for _, wanted := range [][]pastGoal{slices.Concat(goals, unknown), goals} {
			for _, own := range ownNumbers(goals) {
				one := *c
				one.At, one.History = at, nil
				for i := range goals {
					one.complete(goals[i].test.History, own)
				}
				if findHistory(&one, wanted) {
					*c = one
					return true
				}
			}
		}
	}
	return false
}

// EmptyHistory sets that a call has no past calls, with a moment and with the fields and arguments that
// tests of past calls need if the call lacks them.
func EmptyHistory(c *Call, targets ...*Target) {
	if c.At.IsZero() {
		c.At = time.Date(2026, 1, 5, 12, 30, 0, 0, time.UTC)
	}
	c.History, c.HistoryKnown = nil, true
	for _, t := range targets {
		for i := range t.t.rules {
			if t.t.rules[i].when == nil {
				continue
			}
			for _, test := range t.t.rules[i].when.PastTests() {
				c.complete(test.History, value.IntNum(0))
			}
		}
	}
}

// ownNumbers returns numbers for arguments that are summed and that the call lacks.
func ownNumbers(goals []pastGoal) []value.Num {
	out := []value.Num{value.IntNum(0)}
	for i := range goals {
		for _, b := range goals[i].test.Bounds {
			above := decimalOf(b.Operand.Num).add(decimalOf(value.IntNum(1)))
			if n, err := value.ParseNum(above.String()); err == nil && goals[i].test.Measure == condition.Sum {
				out = append(out, n)
			}
		}
	}
	return out
}

func findHistory(c *Call, goals []pastGoal) bool {
	best, tries := reachedGoals(c, goals), maxTried
	for range 2 * len(goals) {
		if best == len(goals) {
			break
		}
		if !improve(c, goals, &best, &tries) {
			return false
		}
	}

	return best == len(goals)
}

// improve adds past calls with which more goals are reached.
func improve(c *Call, goals []pastGoal, best, tries *int) bool {
	for i := range goals {
		if goals[i].reached(c) {
			continue
		}
		for _, added := range goals[i].candidates(c, goals) {
			if *tries--; *tries < 0 {
				return false
			}
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
func (c *Call) complete(h *condition.History, own value.Num) {
	add := func(path string, with value.Value) {
		v, err := value.Parse(c.Args, value.Limits{MaxBytes: 1 << 30})
		if len(c.Args) == 0 {
			v, err = value.Value{Kind: value.Object}, nil
		}
		_, found := argumentOf(v, condition.True, path)
		if err == nil && v.Kind == value.Object && found == condition.False {
			c.Args = withArgument(v, path, with).AppendJSON(nil)
		}
	}
	x := value.Value{Kind: value.String, Text: "x"}
	if h.Measure == condition.Sum && c.Kind != Delegation {
		add(h.Path, value.Value{Kind: value.Number, Num: own})
	}
	for _, by := range h.By {
		path, argument := strings.CutPrefix(by, "args.")
		switch {
		case by == "principal" && c.Principal == "":
			c.Principal = "someone"
		case by == "session" && c.Session == "":
			c.Session = "s"
		case argument && c.Kind != Delegation:
			add(path, x)
		}
	}
	if h.Currency != "" && c.Kind != Delegation {
		add(h.Currency, value.Value{Kind: value.String, Text: "EUR"})
	}
	if h.Measure == condition.Distinct && c.Kind != Delegation {
		add(h.Path, x)
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
		for _, args := range g.arguments(c, goals) {
			for _, at := range momentsOf(c, goals) {
				one := base
				one.At, one.States = at, []condition.PastState{g.test.State}
				if g.want == condition.Unknown { // a past call that lacks what the test reads
					with := one
					with.Args = args.AppendJSON(nil)
					out = append(out, []PastCall{with})
				}
				switch g.test.Measure {
				case condition.Sum:
					for _, n := range numbers {
						with := one
						amount := value.Value{Kind: value.Number, Num: n}
						with.Args = withArgument(args, g.test.Path, amount).AppendJSON(nil)
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
func (g *pastGoal) arguments(c *Call, goals []pastGoal) []value.Value {
	own, given := g.target.plan.values(c)
	if given != condition.True {
		own = value.Value{Kind: value.Object}
	}
	out := []value.Value{own, {Kind: value.Object}}
	for i := range goals {
		if goals[i].test.Where == nil {
			continue
		}
		where := &condition.Expr{Groups: []condition.Group{*goals[i].test.Where}}
		analyzer := condition.NewAnalyzer(condition.Governance, condition.Semantics{}, 0)
		passing, yes := analyzer.Satisfiable(where)
		failing, no := analyzer.CanBeFalse(where)
		for _, found := range []struct {
			verdict condition.Verdict
			args    value.Value
		}{{passing, yes}, {failing, no}} {
			if found.verdict == condition.Yes {
				merged := own
				for _, m := range found.args.Members {
					merged = withArgument(merged, m.Key, m.Value)
				}
				out = append(out, merged)
			}
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
			if at.Compare(c.At) <= 0 && !slices.ContainsFunc(out, at.Equal) {
				out = append(out, at)
			}
		}
	}
	return out
}
