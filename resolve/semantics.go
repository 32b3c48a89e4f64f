package resolve

import (
	_ "embed"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/condition"
)

// Semantics answers the questions on which Agent Format is silent. The
// zero value is assent's fail-safe default for every one of them;
// docs/design/001-semantics.md gives the reasons. A runtime owner may
// switch a point, an agent's file can't. The choice is part of the
// plan's version, so a switch voids what was approved before it.
type Semantics struct {
	// Conditions holds the points about matchers: missing and mistyped
	// arguments, regular expressions.
	Conditions condition.Semantics
	// Undeclared is the outcome for a tool, server, skill or agent that the file does not declare.
	Undeclared Undeclared
	// EmptyAllowList is the meaning of `allowed_tools: []` and `allowed_skills: []`.
	EmptyAllowList EmptyAllowList
	// RemoteApproval decides whether a skill's own approval replaces the remote agent's.
	RemoteApproval RemoteApproval
}

// Undeclared is the answer for a call to something that the file does
// not declare, or that an allow-list leaves out.
type Undeclared uint8

// The answers for undeclared targets.
const (
	UndeclaredDeny Undeclared = iota // deny (default)
	UndeclaredAsk                    // ask, with the code AskedUndeclared
)

// EmptyAllowList is the reading of an allow-list that is present and empty.
type EmptyAllowList uint8

// The readings of an empty allow-list.
const (
	EmptyAllowsNone EmptyAllowList = iota // nothing is allowed (default)
	EmptyIsAbsent                         // as if the list were not there
)

// RemoteApproval is the relation of a remote agent's approval to those
// of its skills.
type RemoteApproval uint8

// The relations of agent-level and skill-level approval.
const (
	TwoGates      RemoteApproval = iota // delegation gate and skill gate, both evaluated (default)
	SkillReplaces                       // a skill's own approval replaces the agent's
)

// Point is one silent point of the standard with our answer.
type Point struct {
	Name         string // field of Semantics, or a short name for a fixed point
	Question     string
	Default      string
	Alternatives string // empty if the point is fixed
	Spec         string // where the standard is silent
}

// Switch returns the setting of a decision configuration that selects the other reading, such as
// "semantics.on_missing: no_match". It returns an empty string if the point is fixed.
func (p Point) Switch() string {
	if p.Alternatives == "" {
		return ""
	}
	var name []rune
	for i, r := range strings.TrimPrefix(p.Name, "Conditions.") {
		if lower := unicode.ToLower(r); lower != r && i > 0 {
			name = append(name, '_', lower)
		} else {
			name = append(name, lower)
		}
	}

	field := string(name)
	if field != "undeclared" {
		field = "semantics." + field
	}

	return field + ": " + p.Alternatives
}

//go:embed points.txt
var points string

// Points lists every silent point that a decision rests on, in reading
// order. In points.txt a point is a paragraph, and each field a line.
func Points() []Point {
	var all []Point
	for paragraph := range strings.SplitSeq(strings.TrimSpace(points), "\n\n") {
		l := strings.Split(paragraph, "\n")
		all = append(all, Point{l[0], l[1], l[2], strings.TrimPrefix(l[3], "fixed"), l[4]})
	}
	return all
}
