package schema

import (
	"slices"
	"strconv"

	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// This file takes out of a document what breaks the JSON Schema, so
// that what is wrong with the rest is told in the same run.

// deepest is how long the path of the smallest part is that is taken
// out below a top-level key: an entry of a list of the action space or
// of the constraints, a field of the metadata. Of everything else the
// whole block goes.
func deepest(key string) int {
	switch key {
	case "action_space", "constraints":
		return 3
	case "metadata":
		return 2
	}

	return 1
}

// part is the path of the part that a failure is about, nil when it is
// about the document as a whole.
func part(f jsonschema.Failure) []string {
	if len(f.Path) == 0 {
		return nil
	}
	return f.Path[:min(len(f.Path), deepest(f.Path[0]))]
}

// sound returns a document without the parts that failures are about,
// and which top-level blocks lack something then. It is nil when there
// is no mapping to take them out of.
func sound(doc *yamldoc.Document, failures []jsonschema.Failure) (rest *yamldoc.Document, cut map[string]bool) {
	if doc.Root.Kind != yamldoc.Mapping {
		return nil, nil
	}
	cut = map[string]bool{}
	var parts [][]string
	for _, f := range failures {
		if p := part(f); p != nil {
			parts = append(parts, p)
			cut[p[0]] = true
		}
	}

	for _, block := range []string{"metadata", "interface", "execution_policy"} {
		cut[block] = cut[block] || doc.Root.Get(block) == nil
	}
	return &yamldoc.Document{
		File:     doc.File,
		Root:     leaveOut(doc.Root, parts),
		Comments: doc.Comments,
	}, cut
}

// leaveOut copies a node as far as parts are taken out below it.
func leaveOut(n *yamldoc.Node, parts [][]string) *yamldoc.Node {
	if len(parts) == 0 {
		return n
	}
	left := *n
	left.Fields, left.Items = nil, nil
	for _, f := range n.Fields {
		if below, gone := step(parts, f.Key.Text); !gone {
			left.Fields = append(left.Fields, yamldoc.Field{Key: f.Key, Value: leaveOut(f.Value, below)})
		}
	}

	for i, item := range n.Items {
		if below, gone := step(parts, strconv.Itoa(i)); !gone {
			left.Items = append(left.Items, leaveOut(item, below))
		}
	}
	return &left
}

// step follows one key: which parts lie below it, or that it is gone.
func step(parts [][]string, key string) (below [][]string, gone bool) {
	for _, p := range parts {
		if p[0] != key {
			continue
		}
		if len(p) == 1 {
			return nil, true
		}
		below = append(below, p[1:])
	}

	return slices.Clip(below), false
}
