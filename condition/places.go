package condition

import "strings"

// Places returns where a key is read from, as segments of the document that a use is evaluated on: the arguments
// for ToolArgs and SkillArgs, the parent's input for Delegation, and for LoopExit and Route one document
// {"parent":{"input":…},"alias":{"output":…}}. Tool and skill keys with a dot have two places, the literal key and
// the nested path (docs/design/001-semantics.md; half-literal keys are not tried).
//
// If the key names nothing in that use there are no places, the matcher is always Unknown, and fault tells why:
// WhyBareKey or WhyNotAPath.
func Places(use Use, key string) (places [][]string, fault string) {
	switch use {
	case ToolArgs, SkillArgs:
		places = [][]string{{key}}
		if strings.Contains(key, ".") {
			places = append(places, strings.Split(key, "."))
		}
		return places, ""
	}
	segments := strings.Split(key, ".")
	if len(segments) == 1 {
		return nil, WhyBareKey
	}
	if !isPath(segments) {
		return nil, WhyNotAPath
	}
	if use != Delegation {
		return [][]string{segments}, ""
	}
	if segments[0] != "parent" || segments[1] != "input" {
		return nil, WhyNotAPath
	}
	return [][]string{segments[2:]}, ""
}

// isPath checks the grammar source.direction.field(.field)* (Agent Format, path expressions). `[]` belongs to batch.
func isPath(segments []string) bool {
	if len(segments) < 3 || segments[1] != "input" && segments[1] != "output" {
		return false
	}
	for _, s := range segments {
		if !isName(s) {
			return false
		}
	}
	return true
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
