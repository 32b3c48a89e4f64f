package policy

import (
	"slices"
	"strings"
)

// Redaction is what a policy hides at one place of a document and below
// it. Every channel goes down a document with it, so that all of them
// hide the same. The zero value hides nothing. It is immutable.
type Redaction struct {
	left [][]string // of each pattern that is reached so far, the segments that are still to come
}

// Redaction is what is hidden in the arguments of a call.
func (a Arguments) Redaction() Redaction {
	var r Redaction
	for _, pattern := range a.Redact {
		r.left = append(r.left, strings.Split(pattern, "."))
	}

	return r
}

// ParentRedaction is what is hidden in the input of the calling agent:
// what stands at a path that is hidden in arguments, and what a path
// that begins with parent.input names.
func (a Arguments) ParentRedaction() Redaction {
	all := a.Redaction()
	below, _ := all.Step("parent")
	below, _ = below.Step("input")
	all.left = append(all.left, below.left...)

	return all
}

// Step goes down to a member of an object or an item of an array, named
// by its key or its index. hidden says that the policy hides it, with
// all that stands in it. A pattern names a value by its whole key or by
// its segments with dots between them; ** in it stands for any number
// of segments, none included. The cost is that of the patterns'
// segments.
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

// At goes down several segments. hidden says that the policy hides the
// value there, by itself or with what it stands in.
func (r Redaction) At(path ...string) (below Redaction, hidden bool) {
	for _, segment := range path {
		if r, hidden = r.Step(segment); hidden {
			return r, true
		}
	}

	return r, false
}

// Hides reports whether anything can be hidden at this place or below it.
func (r Redaction) Hides() bool { return len(r.left) > 0 }

// anySegments stands for any number of segments.
const anySegments = "**"

// part goes down one segment that has no dots.
func (r Redaction) part(segment string) Redaction {
	var below Redaction
	for _, left := range r.left {
		for len(left) > 0 && left[0] == anySegments {
			below.add(left) // it stands for this segment too
			left = left[1:]
		}
		if len(left) > 0 && left[0] == segment {
			below.add(left[1:])
		}
	}

	return below
}

// add keeps what is left of a pattern, once.
func (r *Redaction) add(left []string) {
	if !slices.ContainsFunc(r.left, func(have []string) bool { return slices.Equal(have, left) }) {
		r.left = append(r.left, left)
	}
}

// ended reports whether a pattern names the place, so that only
// segments that stand for none are left of it.
func ended(left []string) bool {
	return !slices.ContainsFunc(left, func(segment string) bool { return segment != anySegments })
}

// Hides reports whether the value at a path of the arguments is hidden,
// by itself or with what it stands in. The path is given by its
// segments: names of objects, indexes of arrays.
func (a Arguments) Hides(path ...string) bool {
	_, hidden := a.Redaction().At(path...)

	return hidden
}
