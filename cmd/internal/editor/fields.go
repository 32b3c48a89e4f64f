package editor

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/schema"
)

// format is the JSON Schema of a document, used to look up its fields.
type format struct {
	root map[string]any
	text string // the document: `if` branches count if it contains their constants
}

// format returns the JSON Schema of a document.
func (d *document) format() format {
	text := schema.JSON()
	switch d.content {
	case lint.PolicyContent:
		text = policy.JSON()
	case lint.PeopleContent:
		text = people.JSON()
	}

	f := format{text: string(d.src)}
	_ = json.Unmarshal(text, &f.root) // our own schemas are JSON
	return f
}

// at returns the schemas at a path of fields.
func (f format) at(path []string) []map[string]any {
	here := f.open(f.root)
	for _, name := range path {
		var next []map[string]any
		for _, s := range here {
			next = append(next, f.child(s, name)...)
		}
		here = next
	}

	return here
}

// open returns a schema with the schemas to which it refers and those of list items, because items
// are not part of a path.
func (f format) open(s map[string]any) []map[string]any {
	all := []map[string]any{s}
	if ref, ok := s["$ref"].(string); ok {
		defs, _ := f.root["$defs"].(map[string]any)
		if def, ok := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any); ok {
			all = append(all, f.open(def)...)
		}
	}

	if items, ok := s["items"].(map[string]any); ok {
		all = append(all, f.open(items)...)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for _, part := range list {
			if branch, ok := part.(map[string]any); ok && f.holds(branch["if"]) {
				all = append(all, f.open(branch)...)
			}
		}
	}

	if then, ok := s["then"].(map[string]any); ok {
		all = append(all, f.open(then)...)
	}
	return all
}

// holds reports whether the constant of a condition occurs in the text. It returns true if there is
// no constant.
func (f format) holds(condition any) bool {
	s, ok := condition.(map[string]any)
	if !ok {
		return true
	}
	if text, ok := s["const"].(string); ok {
		return strings.Contains(f.text, text)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, p := range properties {
		if !f.holds(p) {
			return false
		}
	}
	return true
}

// child returns the schemas of one field of an object.
func (f format) child(s map[string]any, name string) (found []map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	if p, ok := properties[name].(map[string]any); ok {
		return f.open(p)
	}
	if p, ok := s["additionalProperties"].(map[string]any); ok {
		return f.open(p)
	}
	return nil
}

// names returns the fields that an object at a path may have, in alphabetical order, with their
// descriptions.
func (f format) names(path []string) (names []string, meanings map[string]string) {
	meanings = map[string]string{}
	for _, s := range f.at(path) {
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			field, _ := p.(map[string]any)
			meanings[name] = f.meaning(f.open(field))
		}
	}

	return slices.Sorted(maps.Keys(meanings)), meanings
}

// meaning returns the first description in some schemas.
func (format) meaning(list []map[string]any) string {
	for _, s := range list {
		if text, ok := s["description"].(string); ok {
			return text
		}
	}
	return ""
}

// values returns the words that are valid for a field at a path.
func (f format) values(path []string) (words []string) {
	for _, s := range f.at(path) {
		words = append(words, listed(s)...)
		kinds, _ := s["type"].([]any)
		if s["type"] == "boolean" || slices.Contains(kinds, any("boolean")) {
			words = append(words, "true", "false")
		}
	}

	return words
}

// listed returns the words of a schema's enum.
func listed(s map[string]any) (words []string) {
	list, _ := s["enum"].([]any)
	for _, v := range list {
		if word, ok := v.(string); ok {
			words = append(words, word)
		}
	}

	return words
}
