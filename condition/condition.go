// Package condition implements the `args_match` language: an OR of groups, each an AND of
// matchers, each a test of one argument. Parse reads it from YAML and reports findings, a
// Compiler converts it to Programs that evaluate without allocating, and an Analyzer answers
// questions about all possible arguments at once, with witnesses.
//
// Truth has three values. Unknown is the result in every case in which the standard is silent
// and a guess could open a gate: a missing argument, a null, a value of another type, a key
// that is not a path. Approvals ask if the result is True or Unknown. A loop exits, and a route
// is taken, only if it is True.
//
// docs/design/001-semantics.md has the rules in detail. In short: types are never converted,
// booleans are not numbers, numbers and literals compare exactly, and patterns are RE2 and
// searched unanchored in the raw and in the right-trimmed text.
package condition

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// Use is the place of a condition in a file. It determines what its keys mean.
type Use uint8

// The uses of a condition (Agent Format, matchers page).
const (
	ToolArgs   Use = iota // approval of a tool: keys are arguments; a dotted key is also a nested argument
	SkillArgs             // approval of a remote agent's skill: like ToolArgs
	Delegation            // approval of delegation: keys are paths, `parent.input.field`
	Governance            // approval by a policy rule: like ToolArgs, and `parent.input.field` like Delegation
	LoopExit              // exit_condition: keys are paths, `source.direction.field`
	Route                 // when: like LoopExit
)

// Expr is a condition, which is true if one of its Groups is. Without groups it is always true,
// because an empty condition must not open a gate.
type Expr struct {
	Groups []Group
	Range  diag.Range
}

// Group is true if all its Matchers are. Without matchers it is always true
// (docs/design/001-semantics.md, `args_match: {}`).
type Group struct {
	Matchers    []Matcher
	NoArgsMatch bool // the group has no args_match, which is almost certainly a typo
	Range       diag.Range
}

// Matcher is true if all its Tests hold for the argument named by Key. Without tests, `key:
// {}`, it is always true, even if the argument is missing.
type Matcher struct {
	Key      string
	KeyRange diag.Range
	Range    diag.Range
	Tests    []Test
	Literal  bool // written as a bare scalar: one Eq test
	// Takes means that the matcher has no tests and is true if the call has the argument Key, a
	// whole name, and it is not null, or if the schema of the called tool declares it. Otherwise it is
	// false.
	Takes bool
	// Time is a test of the moment of the call, in place of Tests. Key is then "time".
	Time *TimeTest
	// History is a test of the past calls, in place of Tests. Key is then "history".
	History *History
}

// IsFact reports whether the matcher tests a fact of the call, its moment or its past calls, in place
// of an argument.
func (m *Matcher) IsFact() bool { return m.Time != nil || m.History != nil }

// FactText describes the test of a fact. It returns an empty string for other matchers.
func (m *Matcher) FactText() string {
	switch {
	case m.Time != nil:
		return m.Time.String()
	case m.History != nil:
		return m.History.String()
	}
	return ""
}

// Test compares an argument with a scalar (Operand) or with a List, depending on its operator.
type Test struct {
	Op      Op
	Operand Scalar
	List    []Scalar
	Tests   []Test // of a length, or of the elements of a list
	Where   *Group // of the elements of a list that are objects
	Money   *Money
	Range   diag.Range
}

// Scalar is a string, number or boolean of the file. Parse never returns other kinds.
type Scalar struct {
	Kind  value.Kind
	Bool  bool
	Text  string
	Num   value.Num
	Range diag.Range
}

// And returns a condition that is as true as the less true one of two. A nil condition is always
// true. The groups are those of a, each combined with every group of b.
func And(a, b *Expr) *Expr {
	if a == nil {
		return b
	}
	if b == nil || len(b.Groups) == 0 {
		return a
	}
	if len(a.Groups) == 0 {
		return b
	}
	out := &Expr{Range: a.Range, Groups: make([]Group, 0, len(a.Groups)*len(b.Groups))}
	for i := range a.Groups {
		for j := range b.Groups {
			out.Groups = append(out.Groups, Group{
				Matchers: slices.Concat(a.Groups[i].Matchers, b.Groups[j].Matchers),
				Range:    a.Groups[i].Range,
			})
		}
	}

	return out
}

// Takes returns a condition that is true if a call has all arguments with these names, or its tool
// declares them.
func Takes(names []string) *Expr {
	g := Group{}
	for _, name := range names {
		g.Matchers = append(g.Matchers, Matcher{Key: name, Takes: true})
	}
	return &Expr{Groups: []Group{g}}
}

// Truth is the result of a test, matcher, group or condition. Because of the order False <
// Unknown < True, Kleene's "and" is the minimum and "or" the maximum.
type Truth uint8

// The truth values.
const (
	False Truth = iota
	Unknown
	True
)

// String returns "false", "unknown" or "true".
func (t Truth) String() string {
	switch t {
	case False:
		return "false"
	case Unknown:
		return "unknown"
	case True:
		return "true"
	}

	return fmt.Sprintf("truth %d", uint8(t))
}
