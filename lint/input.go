package lint

import (
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// Properties returns the fields that a JSON Schema in an interface declares. It returns nil if
// there are none, or if the schema uses keywords that the linter does not follow.
func Properties(schema *yamldoc.Node) *yamldoc.Node {
	for _, key := range []string{
		"$ref",
		"allOf",
		"anyOf",
		"oneOf",
		"if",
		"patternProperties",
		"additionalProperties",
		"dependentSchemas",
	} {
		if n := schema.Get(key); n != nil && (n.Kind != yamldoc.Bool || n.Bool) {
			return nil
		}
	}

	declared := schema.Get("properties")
	if declared == nil || len(declared.Fields) == 0 {
		return nil
	}
	return declared
}

// Names lists the keys of a mapping.
func Names(mapping *yamldoc.Node) []string {
	names := make([]string, 0, len(mapping.Fields))
	for _, f := range mapping.Fields {
		names = append(names, f.Key.Text)
	}
	return names
}

// InputValues returns the texts that an interface allows in the fields of its input for which it lists
// texts (enum, const), by the path with which a condition tests the field (parent.input.a.b).
func InputValues(input *yamldoc.Node) map[string][]string {
	all := map[string][]string{}
	var walk func(schema *yamldoc.Node, path string)
	walk = func(schema *yamldoc.Node, path string) {
		if values := listed(schema); values != nil {
			all[path] = values
		}
		declared := Properties(schema)
		if declared == nil {
			return
		}
		for _, f := range declared.Fields {
			if !strings.Contains(f.Key.Text, ".") { // no path leads to it
				walk(f.Value, path+"."+f.Key.Text)
			}
		}
	}
	walk(input, "parent.input")
	delete(all, "parent.input") // the input as a whole, which no path names
	return all
}

// listed lists the texts that a schema allows. It returns nil if it doesn't list texts.
func listed(schema *yamldoc.Node) []string {
	var values []string
	if enum := schema.Get("enum"); enum != nil {
		for _, item := range enum.Items {
			if item.Kind != yamldoc.String {
				return nil
			}
			values = append(values, item.Text)
		}
	}
	if only := schema.Get("const"); only != nil && only.Kind == yamldoc.String && values == nil {
		values = []string{only.Text}
	}
	return values
}
