// Package condition is the `args_match` language: an OR of groups, each
// an AND of matchers, each a test of one argument. Parse reads it from
// YAML with findings, a Compiler turns it into Programs that evaluate
// without allocating, and an Analyzer answers questions about all
// possible arguments at once, with witnesses.
//
// Truth has three values. Unknown is for every case in which the
// standard is silent and a guess could open a gate: a missing argument,
// a null, a value of another type, a key that is no path. Approvals ask
// on True and on Unknown. A loop should exit, and a route should be
// taken, on True only.
//
// docs/design/001-semantics.md has the rules, point by point. In short:
// no coercion between types, booleans are never numbers, numbers
// compare exactly, literals compare exactly, patterns are RE2 and
// searched unanchored in the raw and in the right-trimmed text.
package condition

import (
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// Use says where a condition stands, which decides what its keys mean.
type Use uint8

// The uses of a condition (Agent Format, matchers page).
const (
	ToolArgs   Use = iota // approval of a tool: keys name arguments, a dotted key also a nested one
	SkillArgs             // approval of a remote agent's skill: as ToolArgs
	Delegation            // approval of delegation: keys are paths, `parent.input.field`
	Governance            // approval of a policy rule: as ToolArgs, and `parent.input.field` as in Delegation
	LoopExit              // exit_condition: keys are paths, `source.direction.field`
	Route                 // when: as LoopExit
)

// Expr is a condition: it is true when one of its Groups is. Without
// groups it is always true, as a condition that says nothing must not
// open a gate.
type Expr struct {
	Groups []Group
	Range  diag.Range
}

// Group is true when all its Matchers are. Without matchers it is always true
// (docs/design/001-semantics.md, `args_match: {}`).
type Group struct {
	Matchers    []Matcher
	NoArgsMatch bool // the group has no args_match at all, almost surely a typo
	Range       diag.Range
}

// Matcher is true when all its Tests hold for the argument that Key
// names. Without tests, `key: {}`, it is always true, also when the
// argument is missing.
type Matcher struct {
	Key      string
	KeyRange diag.Range
	Range    diag.Range
	Tests    []Test
	Literal  bool // written as a bare scalar: one Eq test
}

// Test compares an argument with a scalar (Operand) or with a List, as
// its operator says.
type Test struct {
	Op      Op
	Operand Scalar
	List    []Scalar
	Range   diag.Range
}

// Scalar is a string, number or boolean of the file. Other kinds never
// come from Parse.
type Scalar struct {
	Kind  value.Kind
	Bool  bool
	Text  string
	Num   value.Num
	Range diag.Range
}

// Truth is the outcome of a test, matcher, group or condition. The
// order False < Unknown < True makes Kleene's "and" the minimum and
// "or" the maximum.
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
