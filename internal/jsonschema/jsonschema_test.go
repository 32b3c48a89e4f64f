package jsonschema

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

func compile(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := Compile("test", []byte(schema))
	must.Do(t, err)
	return s
}

func document(t testing.TB, text string) any {
	t.Helper()
	v, err := decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func (f Failure) line() string {
	s := fmt.Sprintf("  /%s %s: %s", strings.Join(f.Path, "/"), f.Keyword, f.Message)
	if f.Expected != "" {
		s += "; want " + f.Expected
	}
	if f.InKey {
		s += " (key)"
	}
	if f.Nearest != "" {
		s += "; near " + f.Nearest
	}
	return s + "\n"
}

// Each document of testdata/*.json is validated against the schema in the same file. The golden
// files contain every text that an author may see.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must.Do(t, err)
			var c struct {
				Schema    json.RawMessage
				Documents []json.RawMessage
			}
			must.Do(t, json.Unmarshal(text, &c))
			s := compile(t, string(c.Schema))
			var got strings.Builder
			for _, doc := range c.Documents {
				fmt.Fprintf(&got, "%s\n", doc)
				for _, f := range s.Validate(document(t, string(doc))) {
					got.WriteString(f.line())
				}
			}

			golden.Equal(t, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".json")+".golden", got.String())
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	must.Do(t, os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600))
	for name, schema := range map[string]string{
		"no json":          `{`,
		"no schema":        `{"type":"text"}`,
		"a file":           `{"$ref":"file://` + secret + `"}`,
		"a relative file":  `{"$ref":"secret.json"}`,
		"the network":      `{"$ref":"https://example.com/schema.json"}`,
		"a meta-schema":    `{"$schema":"https://example.com/meta.json"}`,
		"a missing anchor": `{"$ref":"#/$defs/none"}`,
		"a bad pattern":    `{"pattern":"("}`,
	} {
		if s, err := Compile(secret, []byte(schema)); err == nil || s != nil {
			t.Errorf("%s: compiled", name)
		}
	}
}

func TestCompileKnowsItsOwnID(t *testing.T) {
	s := compile(t, `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/x.json",
		"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`)
	if fs := s.Validate("x"); fs != nil {
		t.Error(fs)
	}
	if fs := s.Validate(json.Number("1")); len(fs) != 1 || fs[0].Keyword != "type" {
		t.Error(fs)
	}
}

func TestFormatsAreNotAsserted(t *testing.T) {
	if fs := compile(t, `{"format":"uri"}`).Validate("no uri"); fs != nil {
		t.Error(fs)
	}
}

func TestNumbersThatJSONLacks(t *testing.T) {
	bounded := compile(
		t,
		`{"properties":{"n":{"type":"number","maximum":5},"i":{"type":"integer"},"l":{"items":{"type":"integer"}}}}`,
	)
	for _, c := range []struct {
		doc  any
		want string
	}{
		{map[string]any{"n": math.Inf(1)}, "  /n maximum: .inf is too large; want 5 or less\n"},
		{map[string]any{"n": math.Inf(-1)}, ""},
		{map[string]any{"n": math.NaN()}, ""},
		{map[string]any{"i": math.NaN()}, "  /i type: .nan is of the wrong type; want a whole number\n"},
		{map[string]any{"i": math.Inf(-1)}, "  /i type: -.inf is of the wrong type; want a whole number\n"},
		{
			map[string]any{"l": []any{json.Number("1"), math.Inf(1)}},
			"  /l/1 type: .inf is of the wrong type; want a whole number\n",
		},
	} {
		got := ""
		for _, f := range bounded.Validate(c.doc) {
			got += f.line()
		}
		if got != c.want {
			t.Errorf("%v: got %q, want %q", c.doc, got, c.want)
		}
	}
}

func TestValidateFailsClosed(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	for _, doc := range []any{
		struct{}{},
		map[string]any{"n": json.Number("no number")},
		map[string]any{"n": []string{"x"}},
	} {
		if fs := s.Validate(doc); len(fs) == 0 {
			t.Errorf("%v passes", doc)
		}
	}
}

// Each single mistake in the smallest agent causes one failure, at its path.
func TestOfficialTypos(t *testing.T) {
	schema, err := os.ReadFile("testdata/agent-like.json")
	must.Do(t, err)
	var c struct{ Schema json.RawMessage }
	must.Do(t, json.Unmarshal(schema, &c))
	s := compile(t, string(c.Schema))
	const good = `{"id":"a","tools":[{"alias":"t","approval":{"condition":{"args_match":{"x":{"gt":1}}}}}],` +
		`"policy":{"id":"react","config":{"n":1}}}`
	if err := s.Validate(document(t, good)); err != nil {
		t.Fatal(err)
	}
	for old, wrong := range map[string]string{
		`"gt":1`:                        `"gtt":1`,
		`{"gt":1}`:                      `null`,
		`"alias"`:                       `"alais"`,
		`{"n":1}`:                       `{"n":"1"}`,
		`"react"`:                       `"raect"`,
		`"id":"a"`:                      `"id":"A"`,
		`{"args_match":{"x":{"gt":1}}}`: `[]`,
		`{"condition":{"args_match":{"x":{"gt":1}}}}`: `"yes"`,
	} {
		fs := s.Validate(document(t, strings.Replace(good, old, wrong, 1)))
		if len(fs) != 1 {
			t.Errorf("%s for %s: %d failures: %v", wrong, old, len(fs), fs)
		}
	}
}

func TestDeterministic(t *testing.T) {
	s := compile(t, `{"additionalProperties":{"type":"integer"},"required":["x","y"]}`)
	doc := document(t, `{"a":"","b":"","c":"","d":"","e":"","f":""}`)
	want := fmt.Sprint(s.Validate(doc))
	for range 50 {
		if got := fmt.Sprint(s.Validate(doc)); got != want {
			t.Fatalf("%s\n%s", got, want)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	schema, err := os.ReadFile("testdata/agent-like.json")
	must.Do(b, err)
	var c struct {
		Schema    json.RawMessage
		Documents []json.RawMessage
	}
	must.Do(b, json.Unmarshal(schema, &c))
	s := compile(b, string(c.Schema))
	doc := document(b, string(c.Documents[0]))
	for b.Loop() {
		if s.Validate(doc) != nil {
			b.Fatal("invalid")
		}
	}
}
