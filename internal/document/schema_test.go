package document

import (
	"strings"
	"testing"
)

const whole = `{"$defs": {"route": {"type": "object"}, "notify": {"type": "object", "properties": {}}}}`

// TestJoin: a field stands where the path leads, and what it defines
// beside what was there.
func TestJoin(t *testing.T) {
	path := []string{"notify", "properties"}
	text, err := Join([]byte(whole), path, map[string][]byte{
		"slack": []byte(`{"$ref": "#/$defs/app", "$defs": {"app": {"type": "object", "title": "app"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(text)
	if err != nil {
		t.Fatal(err)
	}
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
