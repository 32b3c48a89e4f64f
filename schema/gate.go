package schema

import (
	"github.com/assent-dev/assent/internal/yamldoc"
)

// This file decides whether an unknown field was meant as a gate, by its name (spelling.go) and its
// value. agf-validate reports these fields, and resolve asks about the calls
// (docs/design/020-misspelt-gates.md).

// meaning is the probable intention of an unknown field.
type meaning uint8

const (
	meansNothing  meaning = iota // no gate: the format says that it is ignored
	meansApproval                // an approval under another name
	meansPart                    // a part of an approval, outside of one
	meansHolder                  // something else that holds an approval or a part of one
	meansList                    // a list of the tools or skills that may be called, or may not
)

// These are the fields of an approval.
const (
	approvalField  = "approval"
	conditionField = "condition"
	argsMatchField = "args_match"
	templateField  = "message_template"
)

// meaningOf returns the probable intention of an unknown field of an entry. lists is true if the
// entry has an allow-list.
func meaningOf(key, value *yamldoc.Node, lists bool) meaning {
	n := readName(key.Text)
	switch {
	case n.isApproval(value), n.isWeakApproval(value):
		return meansApproval
	case n.part() != "":
		return meansPart
	case holdsGate(value, false):
		return meansHolder
	case asksByValue(n, value):
		return meansApproval
	case lists && n.isToolList(value):
		return meansList
	}
	return meansNothing
}

// meaningOutside is meaningOf for a field outside of the entries. There, words such as "review" are
// too weak a sign. conditions is true if the place may have conditions of its own that are no
// approvals.
func meaningOutside(key, value *yamldoc.Node, conditions bool) meaning {
	n := readName(key.Text)
	switch {
	case n.isApproval(value):
		return meansApproval
	case !conditions && n.part() != "":
		return meansPart
	case holdsGate(value, conditions):
		return meansHolder
	}
	return meansNothing
}

// holdsGate reports whether the value contains a field that means an approval or, unless the place
// has conditions of its own, a part of one.
func holdsGate(n *yamldoc.Node, conditions bool) bool {
	held := false
	heldGates(n, func(key *yamldoc.Node, _ []*yamldoc.Node) bool {
		held = held || !conditions || readName(key.Text).part() == ""
		return !held
	})
	return held
}

// heldGates visits every field in a value that means an approval or a part of one, with the
// mappings that contain it, outermost first, until visit returns false. It doesn't visit the
// contents of such a field, or the property names of a JSON Schema, which describe arguments.
func heldGates(n *yamldoc.Node, visit func(key *yamldoc.Node, in []*yamldoc.Node) bool) {
	w := heldWalk{visit: visit}
	w.value(n)
}

type heldWalk struct {
	visit func(key *yamldoc.Node, in []*yamldoc.Node) bool
	in    []*yamldoc.Node
	done  bool
}

func (w *heldWalk) value(n *yamldoc.Node) {
	if w.done {
		return
	}
	for _, item := range n.Items {
		w.value(item)
	}
	if len(n.Fields) == 0 {
		return
	}
	w.in = append(w.in, n)
	schema := isDataSchema(n)
	for _, f := range n.Fields {
		w.field(f, schema)
	}
	w.in = w.in[:len(w.in)-1]
}

func (w *heldWalk) field(f yamldoc.Field, schema bool) {
	if w.done || isExtension(f.Key.Text) {
		return
	}
	if schema {
		switch f.Key.Text {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for _, property := range f.Value.Fields {
				w.value(property.Value)
			}
			return
		case "default", "const", "enum", "examples", "example":
			return
		}
	}
	if n := readName(f.Key.Text); n.isApproval(f.Value) || n.part() == argsMatchField || n.part() == templateField {
		w.done = !w.visit(f.Key, w.in)
		return
	}
	w.value(f.Value)
}

// isDataSchema reports whether a mapping is a JSON Schema.
func isDataSchema(n *yamldoc.Node) bool {
	kind := n.Get("type")
	if kind != nil && kind.Kind == yamldoc.String {
		switch kind.Text {
		case "object", "array", "string", "number", "integer", "boolean", "null":
			return true
		}
	}
	properties := n.Get("properties")
	return n.Get("$schema") != nil || kind == nil && properties != nil && properties.Kind == yamldoc.Mapping
}
