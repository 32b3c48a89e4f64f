package policy

import (
	"slices"
	"strings"
)

// Redaction describes what a policy hides at one position of a document and below it. Every channel
// uses it to walk a document, so that all of them hide the same values. The zero value hides
// nothing. It is immutable.
type Redaction struct {
	left [][]string // of each pattern that is reached so far, the segments that are still to come
}

// Redaction returns what is hidden in the arguments of a call.
func (a Arguments) Redaction() Redaction {
	var r Redaction
	for _, pattern := range a.Redact {
		r.left = append(r.left, strings.Split(pattern, "."))
	}

	return r
}

// ParentRedaction returns what is hidden in the calling agent's input: the paths that are hidden in
// arguments, and those that begin with parent.input.
func (a Arguments) ParentRedaction() Redaction {
	all := a.Redaction()
	below, _ := all.Step("parent")
	below, _ = below.Step("input")
	all.left = append(all.left, below.left...)

	return all
}

// Step goes down to a member of an object or an item of an array, given by its key or index. hidden
// is true if the policy hides it with everything in it. A pattern names a value by its whole key or
// by its segments, separated by dots; ** matches any number of segments, or none. The cost is
// proportional to the number of segments in the patterns.
func (r Redaction) Step(segment string) (below Redaction, hidden bool) {
	if len(r.left) == 0 {
		return Redaction{}, false
	}
	below = r
	for part := range strings.SplitSeq(segment, ".") {
		below = below.part(part)
	}

	return below, slices.ContainsFunc(below.left, ended)
}

// At goes down several segments. hidden is true if the policy hides the value, or a value that
// contains it.
func (r Redaction) At(path ...string) (below Redaction, hidden bool) {
	for _, segment := range path {
		if r, hidden = r.Step(segment); hidden {
			return r, true
		}
	}

	return r, false
}

// Hides reports whether anything at this position or below it may be hidden.
func (r Redaction) Hides() bool { return len(r.left) > 0 }

// anySegments matches any number of segments.
const anySegments = "**"

// part goes down one segment that has no dots.
func (r Redaction) part(segment string) Redaction {
	var below Redaction
	for _, left := range r.left {
		for len(left) > 0 && left[0] == anySegments {
			below.add(left) // it matches this segment too
			left = left[1:]
		}
		if len(left) > 0 && left[0] == segment {
			below.add(left[1:])
		}
	}

	return below
}

// add adds the rest of a pattern, unless it is there already.
func (r *Redaction) add(left []string) {
	if !slices.ContainsFunc(r.left, func(have []string) bool { return slices.Equal(have, left) }) {
		r.left = append(r.left, left)
	}
}

// ended reports whether a pattern matches the position, because only segments that may match
// nothing are left.
func ended(left []string) bool {
	return !slices.ContainsFunc(left, func(segment string) bool { return segment != anySegments })
}

// Hides reports whether the value at a path of the arguments is hidden, or a value that contains
// it. The path consists of object keys and array indexes.
func (a Arguments) Hides(path ...string) bool {
	_, hidden := a.Redaction().At(path...)

	return hidden
}
