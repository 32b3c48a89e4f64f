package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// TestJSON checks that the published JSON Schema is the one that is used, and that its id is right.
func TestJSON(t *testing.T) {
	var s struct {
		Schema string `json:"$schema"`
		ID     string `json:"$id"`
	}
	must.Do(t, json.Unmarshal(JSON(), &s))
	if s.Schema != "https://json-schema.org/draft/2020-12/schema" ||
		s.ID != "https://assent.dev/schema/1.0/agent.schema.json" {
		t.Errorf("%+v", s)
	}
	JSON()[0] = 'x'
	if JSON()[0] != '{' {
		t.Error("a caller can change the schema")
	}
}

// TestViolationsOfAnotherSchema uses a schema of its own, as governance policies do.
func TestViolationsOfAnotherSchema(t *testing.T) {
	s, err := jsonschema.Compile(
		"other.json",
		[]byte(`{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"propertyNames": {"pattern": "^[a-z]+$"},
		"properties": {
			"rules": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}, "additionalProperties": false}},
			"name": {"type": "string"}
		}
	}`),
	)
	must.Do(t, err)
	tests := []struct{ src, want string }{
		{"name: a", ""},
		{"Name: a", "1:1-1:5 error invalid-value (stops)"},
		{"rules: [{id: a, matches: b}]", "1:17-1:24 error unknown-field (stops)"},
		{"rules: [{}]", "1:9-1:11 error missing-field (stops)"},
		{"rules:\n  - id:", "2:5-2:7 error wrong-type (stops)"},
		{"rules: [~]", "1:9-1:10 error wrong-type (stops)"},
		{"name: true", "1:7-1:11 error wrong-type (stops)"},
		{"name: .nan", "1:7-1:11 error non-finite-number (stops)"},
	}
	for _, test := range tests {
		doc, findings := yamldoc.Parse("", []byte(test.src), yamldoc.Limits{})
		if doc == nil {
			t.Fatalf("%s: %s", test.src, render(findings))
		}
		got := render(Violations(doc.Root, s))
		if first, _, _ := strings.Cut(got, "\n"); first != test.want {
			t.Errorf("%q: %s, want %s", test.src, got, test.want)
		}
	}
}

// TestLocateStopsWhereThePathDoes checks that a path that is not in the document leads to the last
// existing value on it.
func TestLocateStopsWhereThePathDoes(t *testing.T) {
	doc, _ := yamldoc.Parse("", []byte("a: [b, {c: d}]"), yamldoc.Limits{})
	l := locator{root: doc.Root, index: map[*yamldoc.Node]map[string]int{}}
	for _, test := range []struct {
		path []string
		want string
	}{
		{nil, "1:1-1:15"},
		{[]string{"a", "1", "c"}, "1:12-1:13"},
		{[]string{"a", "2"}, "1:4-1:15"},
		{[]string{"a", "x"}, "1:4-1:15"},
		{[]string{"a", "1", "z", "c"}, "1:8-1:14"},
	} {
		if got := span(l.locate(test.path).node.Range); got != test.want {
			t.Errorf("%v: %s, want %s", test.path, got, test.want)
		}
	}
}
