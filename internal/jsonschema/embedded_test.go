package jsonschema

import (
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/assent-dev/assent/internal/must"
)

// ours returns the schemas that are embedded in a program.
func ours(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{
		"schema/agent.schema.json", "policy/policy.schema.json", "resolve/decisions.schema.json",
		"policy/people/people.schema.json", "lint/policytest/test.schema.json",
		"cmd/agf-validate/settings.schema.json",
	} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		must.Do(t, err)
		all[name] = string(text)
	}

	return all
}

// Both ways build the same schema, part by part.
func TestEmbeddedSchemasAreWhatTheCompilerMakes(t *testing.T) {
	for name, text := range ours(t) {
		made := assembledFrom(text)
		if made == nil {
			t.Errorf("%s has something that is not known to assembled", name)
			continue
		}
		whole, err := Compile(name, []byte(text))
		must.Do(t, err)
		c := comparison{seen: map[*v5.Schema]bool{}}
		if where := c.differs(made.compiled(), whole.compiled()); where != "" {
			t.Errorf("%s differs from what v5 makes: %s", name, where)
		}
		if len(c.seen) < 10 {
			t.Errorf("%s: %d parts were compared", name, len(c.seen))
		}
		if !reflect.DeepEqual(made.raw, whole.raw) {
			t.Errorf("%s: what failures are explained from differs", name)
		}
	}
}

// Both ways report failures at the same paths with the same texts.
func TestEmbeddedSchemasFailAsTheCompilers(t *testing.T) {
	const name = "resolve/decisions.schema.json"
	text := ours(t)[name]
	made := assembledFrom(text)
	whole, err := Compile(name, []byte(text))
	must.Do(t, err)
	for _, doc := range []any{
		map[string]any{"undeclared": "allow"},
		map[string]any{"rules": map[string]any{"condition-vacuous": "loud"}, "undeclared": "no"},
		map[string]any{"approve_on_timeout": "yes", "more": true},
		[]any{},
	} {
		got, want := made.Validate(doc), whole.Validate(doc)
		if len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v, expected %+v", doc, got, want)
		}
	}
}

// A schema is equal to the compiler's result, or is left to the compiler.
func TestEmbeddedSchemasTakeEveryKeywordOrNone(t *testing.T) {
	const head = `"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://x.invalid/s"`
	for inner, known := range map[string]bool{
		`"not":{"type":["string","null"]},"else":{"minItems":1}`:                                      true,
		`"if":{"const":null},"then":false,"else":true,"uniqueItems":true`:                             true,
		`"anyOf":[true,{"minimum":0.5,"maximum":1e3}],"contains":{"enum":[[1]],"items":{"$ref":"#"}}`: true,
		`"properties":{"a/b~c d":{"$ref":"#/$defs/x"}},"$defs":{"x":{"maxItems":2}}`:                  true,
		`"patternProperties":{"^x-/":{"pattern":"^a"}},"propertyNames":{"maxLength":3}`:               true,
		`"additionalProperties":{"type":"number"},"items":{"format":"date"},"required":[]`:            true,
		`"dependentRequired":{"a":["b"]}`:                                                             false,
		`"unevaluatedProperties":false`:                                                               false,
		`"properties":{"a":{"$id":"inner"}}`:                                                          false,
		`"$ref":"#/properties/a","properties":{"a":true}`:                                             false,
		`"$anchor":"a"`: false,
		`"$ref":"#/$defs/a%25b","$defs":{"a%b":true}`: false,
		`"multipleOf":2`:  false,
		`"minLength":1.0`: false,
		`"unheard-of":1`:  false,
	} {
		text := "{" + head + "," + inner + "}"
		made := assembledFrom(text)
		if (made != nil) != known {
			t.Errorf("%s: assembled: %v", inner, made != nil)
			continue
		}
		whole, err := Compile("s", []byte(text))
		must.Do(t, err)
		if made != nil {
			c := comparison{seen: map[*v5.Schema]bool{}}
			if where := c.differs(made.compiled(), whole.compiled()); where != "" {
				t.Errorf("%s differs from what v5 makes: %s", inner, where)
			}
		}
	}

	for _, text := range []string{"", "[]", "{}", `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`} {
		if assembledFrom(text) != nil {
			t.Errorf("%q passes for a schema of ours", text)
		}
	}
}

// comparison compares v5's schemas, which refer to each other in cycles.
type comparison struct{ seen map[*v5.Schema]bool }

// differs describes the difference between two schemas. It returns an empty string if there is
// none.
func (c comparison) differs(a, b *v5.Schema) string {
	if (a == nil) != (b == nil) {
		return "one of them is missing"
	}
	if a == nil || c.seen[a] {
		return ""
	}
	c.seen[a] = true
	left, right := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range left.NumField() {
		f := left.Type().Field(i)
		if !f.IsExported() || f.Name == "Draft" {
			continue
		}
		if why := c.values(left.Field(i).Interface(), right.Field(i).Interface()); why != "" {
			return a.Location + " " + f.Name + ": " + why
		}
	}

	return ""
}

func (c comparison) values(a, b any) string {
	switch a := a.(type) {
	case *v5.Schema:
		b, ok := b.(*v5.Schema)
		if !ok {
			return "one of them is no schema"
		}
		return c.differs(a, b)
	case []*v5.Schema:
		return c.lists(a, b.([]*v5.Schema))
	case map[string]*v5.Schema:
		return c.maps(a, b.(map[string]*v5.Schema))
	case map[*regexp.Regexp]*v5.Schema:
		return c.maps(byText(a), byText(b.(map[*regexp.Regexp]*v5.Schema)))
	case *regexp.Regexp:
		if other := b.(*regexp.Regexp); (a == nil) != (other == nil) || a != nil && a.String() != other.String() {
			return "the patterns differ"
		}
		return ""
	case *big.Rat:
		if other := b.(*big.Rat); (a == nil) != (other == nil) || a != nil && a.Cmp(other) != 0 {
			return "the bounds differ"
		}
		return ""
	}

	if !reflect.DeepEqual(a, b) {
		return "they differ"
	}
	return ""
}

func (c comparison) lists(a, b []*v5.Schema) string {
	if len(a) != len(b) {
		return "their numbers differ"
	}
	for i := range a {
		if why := c.differs(a[i], b[i]); why != "" {
			return why
		}
	}

	return ""
}

func (c comparison) maps(a, b map[string]*v5.Schema) string {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return "their numbers differ"
	}
	for name := range a {
		if why := c.differs(a[name], b[name]); why != "" {
			return name + ": " + why
		}
	}

	return ""
}

func byText(all map[*regexp.Regexp]*v5.Schema) map[string]*v5.Schema {
	if all == nil {
		return nil
	}
	out := map[string]*v5.Schema{}
	for re, s := range all {
		out[re.String()] = s
	}

	return out
}

// BenchmarkEmbedded measures the cost of a schema for each short command before it reads files.
func BenchmarkEmbedded(b *testing.B) {
	text := ours(b)["schema/agent.schema.json"]
	b.Run("assembled", func(b *testing.B) {
		for b.Loop() {
			assembledFrom(text)
		}
	})
	b.Run("compiled", func(b *testing.B) {
		for b.Loop() {
			must.Get(Compile("agent", []byte(text)))(b)
		}
	})
}
