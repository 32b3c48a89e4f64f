package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
)

// Result is the result of one test.
type Result struct {
	Name     string
	Range    diag.Range // of the test's name
	Failures []Failure  // none: it passed
}

// Passed reports whether everything was as expected.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// Failure is one expectation that was not met.
type Failure struct {
	What     string // what was looked at: "outcome", "require.within", "votes[2]"
	Range    diag.Range
	Expected string
	Got      string
	Witness  string   // a call as JSON that shows it; "": the test's own
	Rules    []string // what spoke, with places: why it came so
	fix      *edit    // what --update writes; nil when only a person can say
}

// Run runs the tests of a file whose names are picked, in their order.
func (f *File) Run(b *Built, picked func(name string) bool) []Result {
	var out []Result
	for _, t := range f.tests() {
		if picked(t.name) {
			out = append(out, t.run(b))
		}
	}

	return out
}

// test is a test of whatever kind.
type test struct {
	name string
	call *resolve.Call // whose decision matters
	run  func(*Built) Result
}

// tests returns the tests of a file in the order in which they run.
func (f *File) tests() []test {
	var out []test
	for i := range f.Calls {
		out = append(out, test{name: f.Calls[i].Name, call: f.Calls[i].Call, run: f.Calls[i].run})
	}

	for _, list := range [][]Invariant{f.Never, f.Always} {
		for i := range list {
			out = append(out, test{name: list[i].Name, call: list[i].Call, run: list[i].run})
		}
	}

	for i := range f.Cases {
		out = append(out, test{name: f.Cases[i].Name, call: f.Cases[i].Call, run: f.Cases[i].run})
	}

	return out
}

func (t *CallTest) run(b *Built) Result {
	c := check{decision: b.Plan.Decide(t.Call), node: t.node.Get("expect")}
	c.outcome(t.Expect.Outcome)
	if t.Expect.Message != nil && *t.Expect.Message != c.decision.Message {
		c.fail("message", strconv.Quote(*t.Expect.Message), strconv.Quote(c.decision.Message))
	}
	c.reasons(t.Expect.Reasons)
	if c.node.Get("all_reasons") != nil {
		c.allReasons(t.Expect.All)
	}
	c.require()
	if why := b.unoffered(b.Plan, t.Call, nil, c.decision.Outcome == resolve.Deny); why != "" {
		c.failures = append(c.failures, noCall(t.node, why))
	}

	return Result{Name: t.Name, Range: t.node.Get("name").Range, Failures: c.failures}
}

// noCall returns the failure of a test whose call can't be made.
func noCall(test *yamldoc.Node, why string) Failure {
	return Failure{What: "call", Range: test.Get("call").Range, Expected: "a call of a tool that is offered", Got: why}
}

// check compares one decision with what is expected of it.
type check struct {
	decision resolve.Decision
	node     *yamldoc.Node // the expectation
	failures []Failure
}

// fail adds a failure for a field of the expectation. got is the actual value as written in a file.
func (c *check) fail(field, expected, got string) {
	at := c.node.Get(field)
	c.failures = append(c.failures, Failure{
		What:     field,
		Range:    at.Range,
		Expected: expected,
		Got:      got,
		fix:      &edit{at: at, text: got},
	})
}

func (c *check) outcome(expected string) {
	if got := c.decision.Outcome.String(); got != expected {
		c.fail("outcome", expected, got)
		c.failures[0].Rules = rules(c.decision.Reasons)
	}
}

func (r Reason) meets(got *resolve.Reason) bool {
	return (r.Source == "" || r.Source == string(got.Source)) && (r.Policy == "" || r.Policy == got.Policy) &&
		(r.Rule == "" || r.Rule == got.Rule) && (r.Code == "" || r.Code == string(got.Code))
}

// reasons checks that each expected reason is there.
func (c *check) reasons(expected []Reason) {
	for _, want := range expected {
		if !slices.ContainsFunc(c.decision.Reasons, func(got resolve.Reason) bool { return want.meets(&got) }) {
			c.fail("reasons", want.String(), listReasons(c.decision.Reasons))
			c.last().Rules = rules(c.decision.Reasons)
			return
		}
	}
}

// allReasons checks that each expected reason is there once, and no others. If an expectation
// matches several reasons, it takes the first one that no other expectation needs more.
func (c *check) allReasons(expected []Reason) {
	if len(expected) == len(c.decision.Reasons) && pairs(expected, c.decision.Reasons) {
		return
	}
	want := make([]string, len(expected))
	for i, r := range expected {
		want[i] = r.String()
	}
	c.fail("all_reasons", "["+strings.Join(want, ", ")+"]", listReasons(c.decision.Reasons))
	c.last().Rules = rules(c.decision.Reasons)
}

// pairs reports whether every expectation can have a reason of its own.
func pairs(expected []Reason, got []resolve.Reason) bool {
	taken := make([]int, len(got)) // by which expectation, from 1
	var place func(want int, tried []bool) bool
	place = func(want int, tried []bool) bool {
		for i := range got {
			if tried[i] || !expected[want].meets(&got[i]) {
				continue
			}
			tried[i] = true
			if taken[i] == 0 || place(taken[i]-1, tried) {
				taken[i] = want + 1
				return true
			}
		}

		return false
	}
	for i := range expected {
		if !place(i, make([]bool, len(got))) {
			return false
		}
	}

	return true
}

func (c *check) last() *Failure { return &c.failures[len(c.failures)-1] }

// reasonOf returns a reason as a file names it.
func reasonOf(r *resolve.Reason) Reason {
	return Reason{
		Source: string(r.Source),
		Policy: r.Policy,
		Rule:   r.Rule,
		Code:   string(r.Code),
	}
}

func listReasons(reasons []resolve.Reason) string {
	out := make([]string, len(reasons))
	for i := range reasons {
		out[i] = reasonOf(&reasons[i]).String()
	}

	return "[" + strings.Join(out, ", ") + "]"
}

// rules returns the positions and explanations of the reasons.
func rules(reasons []resolve.Reason) []string {
	var out []string
	for _, r := range reasons {
		place := diag.Position{Line: r.Line, Column: r.Column}
		who := ruleAt(r.File, place, string(r.Source), r.Policy, r.Rule)
		out = append(out, who+": "+string(r.Code)+": "+r.Detail)
	}

	return out
}

// ruleAt names a rule by its words, with its place in front.
func ruleAt(file string, place diag.Position, words ...string) string {
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	text := strings.Join(words, " ")
	if file == "" {
		return text
	}

	return fmt.Sprintf("%s:%d:%d: %s", file, place.Line, place.Column, text)
}
