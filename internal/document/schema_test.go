package document

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

const whole = `{"$defs": {"route": {"type": "object"}, "notify": {"type": "object", "properties": {}}}}`

// TestPrefixed: after prefixing, a schema can be joined to one with the same names and still means
// the same. Names of properties are unchanged.
func TestPrefixed(t *testing.T) {
	const own = `{"$ref": "#/$defs/route", "$defs": {"base": {"properties": {"format": {"type": "string"}}},
		"route": {"type": "object", "x-extends": ["base"], "properties": {"at": {"format": "url"}}}}}`
	text, err := Prefixed([]byte(own), "a_")
	must.Do(t, err)
	if text, err = Join([]byte(whole), []string{"notify", "properties"}, map[string][]byte{"slack": text}); err != nil {
		t.Fatal(err)
	}
	s := must.Get(Load(text))(t)
	route := s.Def("a_route")
	if route.Properties["at"].Format != "a_url" || route.Properties["format"].Type != "string" {
		t.Errorf("%+v", route.Properties)
	}
	if _, err := Prefixed([]byte("["), "a_"); err == nil {
		t.Error("what is no JSON is prefixed")
	}
}

// TestJoin: a field is added at the path, and its definitions are added to the existing ones.
func TestJoin(t *testing.T) {
	path := []string{"notify", "properties"}
	text := must.Get(Join([]byte(whole), path, map[string][]byte{
		"slack": []byte(`{"$ref": "#/$defs/app", "$defs": {"app": {"type": "object", "title": "app"}}}`),
	}))(t)
	s := must.Get(Load(text))(t)
	if got := s.Def("notify").Properties["slack"].Resolved().Title; got != "app" {
		t.Errorf("the field leads to %q", got)
	}

	for field, want := range map[string]string{
		`{"$defs": {"route": {}}}`: "the schema of slack defines route, which is defined already",
		`[`:                        "the schema of slack:",
	} {
		if _, err := Join([]byte(whole), path, map[string][]byte{"slack": []byte(field)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
