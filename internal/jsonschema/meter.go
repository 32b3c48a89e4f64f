package jsonschema

import (
	"encoding/json"
	"strings"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// meter counts the cost of validating and aborts if it exceeds the budget. It is an extension
// of v5, which calls it at the end of each visit of a schema, except for visits that end at the
// type. Such schemas have no children, so their parent is charged for them.
type meter struct{ left int }

// overBudget is the value of the meter's panic, because v5 has no other way to abort. Validate
// recovers it.
type overBudget struct{}

// toll is the part of a schema's cost that depends only on the schema.
type toll struct {
	meter   *meter
	wide    int // members, and items of their values
	inPlace int // schemas for the same value
	needs   int // properties that others need
	listed  int // number of enum and const values
	operand int // their size
	program int // instructions of the pattern for texts
	names   int // instructions of the patterns for names
	unique  bool
}

// Compile computes the toll of one schema.
func (m *meter) Compile(_ v5.CompilerContext, schema map[string]any) (v5.ExtSchema, error) {
	t := &toll{meter: m}
	for keyword, v := range schema {
		t.wide += 1 + breadth(v)
		t.add(keyword, v)
	}
	return t, nil
}

func (t *toll) add(keyword string, v any) {
	switch keyword {
	case "allOf", "anyOf", "oneOf", "dependentSchemas":
		t.inPlace += breadth(v)
	case "$ref", "$dynamicRef", "$recursiveRef", "not", "if", "then", "else":
		t.inPlace++
	case "dependencies", "dependentRequired":
		t.inPlace += breadth(v)
		lists, _ := v.(map[string]any)
		for _, list := range lists {
			t.needs += 1 + breadth(list)
		}
	case "enum":
		t.listed, t.operand = t.listed+breadth(v), t.operand+size(v)
	case "const":
		t.listed, t.operand = t.listed+1, t.operand+size(v)
	case "pattern":
		p, _ := v.(string)
		t.program = program(p)
	case "patternProperties":
		patterns, _ := v.(map[string]any)
		for p := range patterns {
			t.names += program(p)
		}
	case "uniqueItems":
		t.unique = v == true
	}
}

// Validate charges the cost of one visit.
func (t *toll) Validate(ctx v5.ValidationContext, v any) error {
	place := placeCost(ctx.Error("", ""))
	units := 4 + t.wide + place*(2+t.inPlace+t.needs+breadth(v)) + 2*breadth(v)*(1+t.inPlace) + t.ofKind(v)
	if t.meter.left -= units; t.meter.left < 0 {
		panic(overBudget{})
	}
	return nil
}

// ofKind returns the cost of the keywords that depend on the kind of value.
func (t *toll) ofKind(v any) int {
	units := t.operand
	switch v := v.(type) {
	case string:
		units += len(v)/16 + len(v)*t.program/10
	case map[string]any:
		for key := range v {
			units += len(key)/16 + (1+len(key))*t.names/10
		}
	case []any:
		if t.unique {
			units += 20 * size(v)
		}
	case json.Number:
		units += (4 + t.listed) * size(v)
	}

	return units
}

// placeCost returns the cost of building an error's location, which v5 does segment by segment.
func placeCost(at *v5.ValidationError) int {
	segments := strings.Count(at.KeywordLocation, "/")
	return 1 + segments + segments*len(
		at.KeywordLocation,
	)/1000 + (len(at.AbsoluteKeywordLocation)+len(at.InstanceLocation))/500
}

// breadth returns the number of items or members, and 0 for other values.
func breadth(v any) int {
	switch v := v.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}

	return 0
}

// size returns the cost of comparing a value.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 64
	case json.Number:
		n += 10 + len(v)/4
		if strings.ContainsAny(string(v), "eE") {
			n += 40
		}
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case map[string]any:
		for key, item := range v {
			n += 1 + len(key)/64 + size(item)
		}
	}

	return n
}
