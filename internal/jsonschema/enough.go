package jsonschema

import (
	"strings"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// Bounds of what is explained: beyond them nobody reads, and to look
// for what was meant would take long.
const (
	maxFailures = 1_000
	maxWords    = 10_000_000 // units of some nanoseconds
)

// estimate adds up what explaining a tree of errors would cost.
type estimate struct {
	explainer
	failures, units int
}

// explainable reports whether errors can be explained at a bounded cost.
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

// leaf counts the names that are compared to find the one that was meant.
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

// words is the length of the texts, or the names, that a value offers.
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
