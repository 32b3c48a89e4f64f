package schema

import (
	"slices"
	"strconv"

	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// This file removes the parts of a document that violate the JSON Schema, so that mistakes in the
// rest are reported in the same run.

// deepest returns the maximum length of the path of a part that is removed below a top-level key:
// an entry of a list of the action space or of the constraints, or a field of the metadata. Any
// other block is removed as a whole.
func deepest(key string) int {
	switch key {
	case "action_space", "constraints":
		return 3
	case "metadata":
		return 2
	}

	return 1
}

// part returns the path of the part that a failure is about, or nil if it is about the whole
// document.
func part(f jsonschema.Failure) []string {
	if len(f.Path) == 0 {
		return nil
	}
	return f.Path[:min(len(f.Path), deepest(f.Path[0]))]
}

// sound returns a document without the parts that failures are about, and the top-level blocks from
// which parts were removed. It returns nil if the document is not a mapping.
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

// leaveOut copies a node, without the parts to remove.
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

// step follows one key. It returns the parts to remove below the key, or that the key itself is
// removed.
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
