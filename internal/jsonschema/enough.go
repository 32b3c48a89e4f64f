package jsonschema

import (
	"strings"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// Limits of what is explained. More would not help the reader, and searching for the nearest
// names would take too long.
const (
	maxFailures = 1_000
	maxWords    = 10_000_000 // units of some nanoseconds
)

// estimate adds up the cost of explaining a tree of errors.
type estimate struct {
	explainer
	failures, units int
}

// explainable reports whether the cost of explaining errors is within the limits.
func (u *Untrusted) explainable(doc any, invalid *v5.ValidationError) bool {
	e := estimate{explainer: explainer{schema: u.schema.raw, doc: doc}}
	return e.add(invalid, 1)
}

func (e *estimate) add(ve *v5.ValidationError, depth int) bool {
	e.failures++
	e.units += 50*depth + len(ve.AbsoluteKeywordLocation) + len(ve.InstanceLocation)
	if len(ve.Causes) == 0 || strings.HasSuffix(ve.AbsoluteKeywordLocation, "/minContains") {
		e.leaf(ve)
	}
	for _, cause := range ve.Causes {
		if e.failures > maxFailures || e.units > maxWords {
			return false
		}
		e.add(cause, depth+1)
	}

	return e.failures <= maxFailures && e.units <= maxWords
}

// leaf counts the names that would be compared to find the nearest one.
func (e *estimate) leaf(ve *v5.ValidationError) {
	where := segments(fragment(ve.AbsoluteKeywordLocation))
	found := lookup(e.doc, segments(ve.InstanceLocation))
	owner, _ := lookup(e.schema, where[:max(0, len(where)-1)]).(map[string]any)
	wanted := words(owner["enum"]) + words(owner["const"]) + words(owner["required"]) + words(owner["properties"])
	here := words(found)
	e.units += wanted * (64 + here)
	if object, ok := found.(map[string]any); ok {
		if last(where) == "additionalProperties" {
			e.failures += len(object)
		}
		patterns, _ := owner["patternProperties"].(map[string]any)
		for p := range patterns {
			e.units += len(object) * 100 * program(p)
		}
	}
}

// words returns the total length of the texts, or the names, in a value.
func words(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, item := range v {
			n += 8
			if s, ok := item.(string); ok {
				n += len(s)
			}
		}
	case map[string]any:
		for key := range v {
			n += 8 + len(key)
		}
	}

	return n
}
