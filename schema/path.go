package schema

import (
	"fmt"
	"strings"
)

// Path is a path expression, `source.direction.field(.field | .[])*`
// (Agent Format, path expressions).
type Path struct {
	Source    string   // "parent" or the alias of a step
	Direction string   // "input" or "output"
	Fields    []string // at least one, the first a name; "[]" selects every item of a list
}

// parent is the source name for the agent that contains the path.
const parent = "parent"

// pathForm describes a path in messages about texts that are none.
const pathForm = "source.direction.field, such as parent.input.query or researcher.output.result"

// iterates reports whether the path walks the items of a list.
func (p Path) iterates() bool {
	for _, f := range p.Fields {
		if f == "[]" {
			return true
		}
	}
	return false
}

// flaw is the range of a text that makes it an invalid path.
type flaw struct {
	offset, length    int
	message, expected string
}

// parsePath reads a path, or returns the position and reason of the flaw.
func parsePath(text string) (Path, *flaw) {
	segments := strings.Split(text, ".")
	if len(segments) == 1 {
		return Path{}, &flaw{0, len(text), fmt.Sprintf("%q is no path", text), pathForm}
	}
	offset := 0
	for i, s := range segments {
		if message, expected := badSegment(i, s); message != "" {
			return Path{}, &flaw{offset, len(s), message, expected}
		}
		offset += len(s) + 1
	}

	if len(segments) < 3 {
		return Path{}, &flaw{0, len(text), fmt.Sprintf("%q names no field", text), pathForm}
	}
	return Path{segments[0], segments[1], segments[2:]}, nil
}

// badSegment describes what is wrong with the i-th segment. It returns an empty message if the
// segment is valid.
func badSegment(i int, s string) (message, expected string) {
	switch {
	case i == 1 && s != "input" && s != "output":
		return fmt.Sprintf("%q is no direction", s), "input or output after the source: " + pathForm
	case i == 2 && s == "[]":
		return "a path starts with the name of a field, not with []", "a field before [], such as " +
			"parent.input.items.[].value"
	case i > 2 && s == "[]", isName(s):
		return "", ""
	case s == "":
		return "a segment of the path is empty", pathForm
	case strings.HasSuffix(s, "[]") && isName(strings.TrimSuffix(s, "[]")):
		return fmt.Sprintf("%q runs into its []", s), strings.TrimSuffix(s, "[]") + ".[]"
	default:
		return fmt.Sprintf(
			"%q can't stand in a path",
			s,
		), "a name of letters, digits and _, no digit first; a field that a path reads needs such a name"
	}
}

// isName reports whether s may be an alias or a field of a path:
// [A-Za-z_][A-Za-z0-9_]*.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}

	return s != ""
}
