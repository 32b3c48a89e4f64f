package condition

import (
	"slices"
	"strings"
)

// parentInput is the first segment of places in the parent's input for Governance conditions.
// No argument is read from it, because a key that begins with `parent.` never names an
// argument.
const parentInput = "parent.input"

// Places returns the places from which a key is read, as segments of the document on which a
// use is evaluated: the arguments for ToolArgs and SkillArgs; the parent's input for
// Delegation; the arguments with the parent's input as the additional member `parent.input` for
// Governance; and the single document {"parent":{"input":…},"alias":{"output":…}} for LoopExit
// and Route. Keys of arguments with a dot have two places, the literal key and the nested path
// (docs/design/001-semantics.md; partly literal keys are not tried).
//
// If the key is not valid for the use, there are no places, the matcher is always Unknown, and
// fault is the reason: WhyBareKey, WhyNotAPath or WhyNoParentHere.
func Places(use Use, key string) (places [][]string, fault string) {
	segments := strings.Split(key, ".")
	ofParent := len(segments) > 1 && segments[0] == "parent"
	switch use {
	case ToolArgs, SkillArgs, Governance:
		if !ofParent {
			return argumentPlaces(key, segments), ""
		}
		if use != Governance {
			return nil, WhyNoParentHere
		}
	}

	if len(segments) == 1 {
		return nil, WhyBareKey
	}
	if !isPath(segments) {
		return nil, WhyNotAPath
	}
	if use == LoopExit || use == Route {
		return [][]string{segments}, ""
	}
	if !ofParent || segments[1] != "input" {
		return nil, WhyNotAPath
	}
	if use == Governance {
		return [][]string{append([]string{parentInput}, segments[2:]...)}, ""
	}
	return [][]string{segments[2:]}, ""
}

func argumentPlaces(key string, segments []string) [][]string {
	places := [][]string{{key}}
	if len(segments) > 1 { // otherwise it is the same place
		places = append(places, segments)
	}
	return places
}

// inParent reports whether a place is in the parent's input rather than in the arguments, and
// returns its segments there.
func inParent(use Use, place []string) (segments []string, ok bool) {
	switch {
	case use == Delegation:
		return place, true
	case place[0] == parentInput: // only Governance has such places
		return place[1:], true
	}

	return place, false
}

// isPath checks the grammar source.direction.field(.field)* (Agent Format, path expressions).
// `[]` is only for batches.
func isPath(segments []string) bool {
	if len(segments) < 3 || segments[1] != "input" && segments[1] != "output" {
		return false
	}
	return !slices.ContainsFunc(segments, func(s string) bool { return !isName(s) })
}

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}

	return s != ""
}
