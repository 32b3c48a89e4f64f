// Package document reads the configurations of services and of people. A JSON Schema is the only
// table of their fields: decoding, flags, defaults, error messages and the schema for editors are
// all derived from it.
package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Schema has the keywords of JSON Schema that configurations use, and our own extensions ("x-…").
type Schema struct {
	Title                string             `json:"title"` // what an object is called in errors
	Description          string             `json:"description"`
	Ref                  string             `json:"$ref"` // "#/$defs/NAME"
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Enum                 []string           `json:"enum"`
	Default              string             `json:"default"`
	Items                *Schema            `json:"items"` // a single item may be written without a list
	Properties           map[string]*Schema `json:"properties"`
	AdditionalProperties *Schema            `json:"additionalProperties"` // of a table; an object has none
	Required             []string           `json:"required"`
	Defs                 map[string]*Schema `json:"$defs"`

	Flag    string   `json:"x-flag"`    // of the command line; its help is the description
	Empty   bool     `json:"x-empty"`   // the text may be empty
	Commas  bool     `json:"x-commas"`  // the flag takes several values, separated by commas
	Unique  string   `json:"x-unique"`  // the property that tells items of a list apart
	Lacks   string   `json:"x-lacks"`   // instead of the names of required properties that are missing
	Lacking string   `json:"x-lacking"` // what is expected where required properties are missing
	Extends []string `json:"x-extends"` // $defs whose properties are properties here too
	// Elsewhere maps names that are not properties here to where that setting belongs.
	Elsewhere map[string]string `json:"x-elsewhere"`

	name string // in $defs
	root *Schema
}

// Load parses a schema. It returns an error if a reference can't be resolved.
func Load(text []byte) (*Schema, error) {
	var s Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	for name, def := range s.Defs {
		def.name = name
	}
	if err := s.link(&s); err != nil {
		return nil, err
	}

	return &s, nil
}

// Join adds fields, which are schemas by name, to the properties of an object. object is the path
// of the object in the $defs of the schema. Definitions of the fields are added to those $defs.
func Join(text []byte, object []string, fields map[string][]byte) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	defs := whole["$defs"].(map[string]any)
	at := defs
	for _, step := range object {
		at = at[step].(map[string]any)
	}
	for name, part := range fields {
		var field map[string]any
		if err := json.Unmarshal(part, &field); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", name, err)
		}
		own, _ := field["$defs"].(map[string]any)
		delete(field, "$defs")
		for def, schema := range own {
			if defs[def] != nil {
				return nil, fmt.Errorf("the schema of %s defines %s, which is defined already", name, def)
			}
			defs[def] = schema
		}

		at[name] = field
	}

	return json.Marshal(whole)
}

// Prefixed adds a prefix to the names of all $defs and formats of a schema, so that it can be
// joined to another one.
func Prefixed(text []byte, prefix string) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	defs := map[string]any{}
	for name, def := range whole["$defs"].(map[string]any) {
		prefixIn(def, prefix)
		defs[prefix+name] = def
	}
	whole["$defs"] = defs

	return json.Marshal(whole)
}

// prefixIn does this for a node and its descendants. The names of properties are not keywords, so
// they are not changed.
func prefixIn(node any, prefix string) {
	object, _ := node.(map[string]any)
	for key, value := range object {
		text, _ := value.(string)
		name, refers := strings.CutPrefix(text, "#/$defs/")
		names, _ := value.([]any)
		properties, _ := value.(map[string]any)
		switch {
		case key == "$ref" && refers:
			object[key] = "#/$defs/" + prefix + name
		case key == "format" && text != "":
			object[key] = prefix + text
		case key == "x-extends":
			for i := range names {
				names[i] = prefix + names[i].(string)
			}
		case key == "properties":
			for _, property := range properties {
				prefixIn(property, prefix)
			}
		default:
			prefixIn(value, prefix)
		}
	}
}

// link resolves references and adds the properties of the schemas that a schema extends.
func (s *Schema) link(root *Schema) error {
	s.root = root
	for _, name := range s.Extends {
		from, ok := root.Defs[name]
		if !ok {
			return fmt.Errorf("the schema extends %s, which it does not define", name)
		}
		for key, property := range from.Properties {
			if _, own := s.Properties[key]; !own {
				s.Properties[key] = property
			}
		}
	}

	if s.Ref != "" && s.target() == nil {
		return fmt.Errorf("the schema refers to %s, which it does not define", s.Ref)
	}
	for _, below := range s.below() {
		if below.root == nil {
			if err := below.link(root); err != nil {
				return err
			}
		}
	}

	return nil
}

func (s *Schema) below() []*Schema {
	all := slices.Concat(slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.Defs)))
	for _, one := range []*Schema{s.Items, s.AdditionalProperties} {
		if one != nil {
			all = append(all, one)
		}
	}

	return all
}

func (s *Schema) target() *Schema { return s.root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")] }

// Def returns a schema of $defs.
func (s *Schema) Def(name string) *Schema { return s.root.Defs[name] }

// Resolved follows a reference. Keywords next to the reference override those of its target.
func (s *Schema) Resolved() *Schema {
	if s.Ref == "" {
		return s
	}
	out := *s.target()
	if s.Default != "" {
		out.Default = s.Default
	}

	return &out
}

// Fields lists the paths of all properties with their schemas: "oidc.issuer", "tenants.name". It
// doesn't support recursive schemas.
func (s *Schema) Fields() map[string]*Schema {
	out := map[string]*Schema{}
	s.fields("", out)

	return out
}

func (s *Schema) fields(prefix string, out map[string]*Schema) {
	s = s.Resolved()
	if s.Items != nil {
		s.Items.fields(prefix, out)
		return
	}
	for key, property := range s.Properties {
		path := strings.TrimPrefix(prefix+"."+key, ".")
		out[path] = property
		property.fields(path, out)
	}
}

// Publish returns one of the $defs as a separate schema for editors.
func Publish(text []byte, name, id string) ([]byte, error) {
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	defs := raw["$defs"].(map[string]any)
	for _, def := range defs {
		inherit(def.(map[string]any), defs)
	}
	for key, def := range defs {
		defs[key] = published(def)
	}
	out := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     id,
		"$ref":    "#/$defs/" + name,
		"$defs":   reachable(name, defs),
	}
	text, err := json.MarshalIndent(out, "", "  ")

	return append(text, '\n'), err
}

func inherit(def, defs map[string]any) {
	extends, _ := def["x-extends"].([]any)
	for _, name := range extends {
		from := defs[name.(string)].(map[string]any)
		own := def["properties"].(map[string]any)
		for key, property := range from["properties"].(map[string]any) {
			if _, has := own[key]; !has {
				own[key] = property
			}
		}
	}
}

// published removes our extensions, closes objects, and allows a single item instead of a list.
func published(node any) any {
	object, ok := node.(map[string]any)
	if !ok {
		return node
	}
	out := map[string]any{}
	for key, value := range object {
		switch {
		case key == "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				properties[name] = published(property)
			}
			out[key] = properties
		case key == "format" || strings.HasPrefix(key, "x-"): // formats are words of ours
		case key == "items" || key == "additionalProperties":
			out[key] = published(value)
		default:
			out[key] = value
		}
	}

	if _, closed := out["additionalProperties"]; out["type"] == "object" && !closed {
		out["additionalProperties"] = false
	}
	if out["type"] == "array" {
		list := map[string]any{"type": "array", "items": out["items"]}
		delete(out, "type")
		out["anyOf"] = []any{out["items"], list}
		delete(out, "items")
	}

	if text, ok := out["default"].(string); ok && out["type"] == "integer" {
		out["default"] = json.Number(text)
	}
	if out["type"] == "size" {
		out["type"] = []any{"string", "integer"}
	}

	return out
}

// reachable returns the definitions that can be reached from a definition, including itself.
func reachable(name string, defs map[string]any) map[string]any {
	out := map[string]any{}
	var follow func(node any)
	follow = func(node any) {
		switch x := node.(type) {
		case map[string]any:
			if ref, ok := x["$ref"].(string); ok {
				follow(ref)
			}
			for _, value := range x {
				follow(value)
			}
		case []any:
			for _, value := range x {
				follow(value)
			}
		case string:
			key, ok := strings.CutPrefix(x, "#/$defs/")
			if def, known := defs[key]; ok && known && out[key] == nil {
				out[key] = def
				follow(def)
			}
		}
	}
	follow("#/$defs/" + name)

	return out
}
