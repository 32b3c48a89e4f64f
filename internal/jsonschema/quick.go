package jsonschema

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// mostNested limits the depth of quick, which follows references into the same value.
const mostNested = 500

// quick reports whether a document is surely valid. It reads the decoded schema as it is, and visits
// only the parts that the document uses, which takes a small part of the time of building v5's
// schema: a hook reads one small file. It knows the keywords of our embedded schemas. In all other
// cases, also if the document is invalid, v5 decides and explains.
func (s *Schema) quick(doc any) bool {
	root, ok := s.raw.(map[string]any)
	if !ok {
		return false
	}
	q := quickly{root: root, patterns: &s.patterns}

	return q.valid(root, doc) && !q.unsure
}

// quickly validates a document. Its results count only if it is not unsure at the end.
type quickly struct {
	root     map[string]any
	patterns *sync.Map
	unsure   bool
	depth    int
}

// doubt makes the result unsure.
func (q *quickly) doubt() bool {
	q.unsure = true
	return false
}

// valid reports whether a schema allows a value.
func (q *quickly) valid(schema, v any) bool {
	if q.depth++; q.depth > mostNested || q.unsure {
		return q.doubt()
	}
	defer func() { q.depth-- }()
	if always, ok := schema.(bool); ok {
		return always
	}
	object, ok := schema.(map[string]any)
	if !ok {
		return q.doubt()
	}
	for keyword, operand := range object {
		if !q.keyword(object, keyword, operand, v) {
			return false
		}
	}

	return true
}

// keyword tests a value with one keyword.
func (q *quickly) keyword(schema map[string]any, keyword string, operand, v any) bool {
	switch keyword {
	case "$schema", "$id", "$defs", "title", "description", "default", "examples", "format", "then", "else":
		return true // they test nothing, or if reads them
	case "$ref":
		return q.refers(operand, v)
	case "type":
		return q.isType(operand, v)
	case "const":
		return q.equal(operand, v)
	case "enum":
		return q.some(operand, func(one any) bool { return q.equal(one, v) }) > 0
	case "not":
		return !q.valid(operand, v)
	case "allOf":
		return q.some(operand, func(one any) bool { return !q.valid(one, v) }) == 0
	case "anyOf":
		return q.some(operand, func(one any) bool { return q.valid(one, v) }) > 0
	case "oneOf":
		return q.some(operand, func(one any) bool { return q.valid(one, v) }) == 1
	case "if":
		branch, has := schema["then"]
		if !q.valid(operand, v) {
			branch, has = schema["else"]
		}
		return !has || q.valid(branch, v)
	}
	switch v := v.(type) {
	case map[string]any:
		return q.object(schema, keyword, operand, v)
	case []any:
		return q.array(keyword, operand, v)
	case string:
		return q.text(keyword, operand, v)
	case nil, bool:
		return known(keyword) || q.doubt()
	}

	// Bounds of numbers are left to v5.
	return known(keyword) && keyword != "minimum" && keyword != "maximum" || q.doubt()
}

// known reports whether a keyword tests nothing in values of other types than its own.
func known(keyword string) bool {
	switch keyword {
	case "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "items", "contains",
		"minProperties", "maxProperties", "required", "properties", "patternProperties", "additionalProperties",
		"propertyNames":
		return true
	}

	return false
}

// some counts the items of a list that pass.
func (q *quickly) some(list any, pass func(any) bool) (n int) {
	items, ok := list.([]any)
	if !ok {
		q.doubt()
	}
	for _, item := range items {
		if pass(item) {
			n++
		}
	}

	return n
}

// refers follows "#" and "#/$defs/NAME".
func (q *quickly) refers(to, v any) bool {
	text, _ := to.(string)
	if text == "#" {
		return q.valid(q.root, v)
	}
	name, ok := strings.CutPrefix(text, "#/$defs/")
	defs, _ := q.root["$defs"].(map[string]any)
	schema, found := defs[name]
	if !ok || !found || escaped(name) != name {
		return q.doubt()
	}

	return q.valid(schema, v)
}

func (q *quickly) isType(types, v any) bool {
	if one, ok := types.(string); ok {
		types = []any{one}
	}

	return q.some(types, func(one any) bool { return q.isOne(one, v) }) > 0
}

func (q *quickly) isOne(name, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		if name == "integer" && strings.Trim(string(v), "0123456789") != "" {
			return q.doubt()
		}
	default:
		if name == "integer" || name == "number" {
			return q.doubt()
		}
	}

	return name == "number" || name == "integer"
}

// equal compares two values, of which one must be a text, a bool or null.
func (q *quickly) equal(a, b any) bool {
	for _, v := range []any{a, b} {
		switch v.(type) {
		case nil, bool, string:
			return a == b
		}
	}

	return q.doubt()
}

func (q *quickly) object(schema map[string]any, keyword string, operand any, v map[string]any) bool {
	switch keyword {
	case "minProperties":
		return q.atLeast(len(v), operand)
	case "maxProperties":
		return q.atMost(len(v), operand)
	case "required":
		return q.some(operand, func(name any) bool { text, _ := name.(string); _, has := v[text]; return !has }) == 0
	case "propertyNames":
		for name := range v {
			if !q.valid(operand, name) {
				return false
			}
		}
		return true
	case "properties", "patternProperties", "additionalProperties":
		for name, item := range v {
			if !q.property(schema, keyword, name, item) {
				return false
			}
		}
		return true
	}

	return known(keyword) || q.doubt()
}

// property tests one property with one of the keywords for properties.
func (q *quickly) property(schema map[string]any, keyword, name string, v any) bool {
	properties, _ := schema["properties"].(map[string]any)
	one, listed := properties[name]
	if keyword == "properties" {
		return !listed || q.valid(one, v)
	}
	patterns, _ := schema["patternProperties"].(map[string]any)
	for pattern, one := range patterns {
		if !q.matches(pattern, name) {
			continue
		}
		listed = true
		if keyword == "patternProperties" && !q.valid(one, v) {
			return false
		}
	}

	return keyword == "patternProperties" || listed || q.valid(schema["additionalProperties"], v)
}

func (q *quickly) array(keyword string, operand any, v []any) bool {
	switch keyword {
	case "minItems":
		return q.atLeast(len(v), operand)
	case "maxItems":
		return q.atMost(len(v), operand)
	case "items":
		return q.some(v, func(item any) bool { return !q.valid(operand, item) }) == 0
	case "contains":
		return q.some(v, func(item any) bool { return q.valid(operand, item) }) > 0
	}

	return known(keyword) || q.doubt() // also uniqueItems
}

func (q *quickly) text(keyword string, operand any, v string) bool {
	switch keyword {
	case "minLength":
		return q.atLeast(utf8.RuneCountInString(v), operand)
	case "maxLength":
		return q.atMost(utf8.RuneCountInString(v), operand)
	case "pattern":
		return q.matches(operand, v)
	}

	return known(keyword) || q.doubt()
}

func (q *quickly) atLeast(n int, bound any) bool { return q.number(bound) <= n }

func (q *quickly) atMost(n int, bound any) bool { return q.number(bound) >= n }

// number reads a bound, which must be written as a short integer.
func (q *quickly) number(bound any) (n int) {
	text, _ := bound.(json.Number)
	if text == "" || len(text) > 9 || strings.Trim(string(text), "0123456789") != "" {
		q.doubt()
		return 0
	}
	for _, digit := range []byte(text) {
		n = 10*n + int(digit-'0')
	}

	return n
}

func (q *quickly) matches(pattern any, v string) bool {
	text, _ := pattern.(string)
	compiled, ok := q.patterns.Load(text)
	if !ok {
		re, err := bounds.Compile(text)
		if err != nil {
			return q.doubt()
		}
		compiled, _ = q.patterns.LoadOrStore(text, re)
	}

	return compiled.(*regexp.Regexp).MatchString(v)
}
