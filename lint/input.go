package lint

import "github.com/assent-dev/assent/internal/yamldoc"

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
