package jsonschema

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/assent-dev/assent/internal/must"
)

// assembledFrom assembles the schema of a text.
func assembledFrom(text string) *Schema {
	raw, err := decode([]byte(text))
	if err != nil {
		return nil
	}
	made := assembled(raw)
	if made == nil {
		return nil
	}

	return &Schema{raw: raw, compiled: func() *v5.Schema { return made }}
}

// TestQuickNeverAllowsWhatTheCompilerRefuses compares both on documents that are made from each of our
// schemas, with mistakes at random places.
func TestQuickNeverAllowsWhatTheCompilerRefuses(t *testing.T) {
	for name, text := range ours(t) {
		s := assembledFrom(text)
		w := writer{Rand: rand.New(rand.NewPCG(1, 2)), root: s.raw.(map[string]any)}
		var valid, quick int
		for range 4000 {
			w.mistakes = w.IntN(3)
			doc := w.document(w.root, 0)
			err := s.compiled().Validate(doc)
			switch fast := s.quick(doc); {
			case fast && err != nil:
				t.Fatalf("%s allows %s: %v", name, must.Get(json.Marshal(doc))(t), err)
			case fast:
				quick++
				valid++
			case err == nil:
				valid++
			}
		}
		if valid < 30 || quick < valid/2 {
			t.Errorf("%s: of %d valid documents %d are quick", name, valid, quick)
		}
	}
}

// TestQuickReadsEveryKeyword: each schema allows the first document, and v5 refuses the others. A
// document that quick can't judge is left to v5.
func TestQuickReadsEveryKeyword(t *testing.T) {
	for schema, docs := range map[string][]string{
		`"type":["integer","null"]`:                                  {`5`, `"a"`, `1.5`, `true`},
		`"type":"object","required":["a"]`:                           {`{"a":1}`, `{}`, `[]`},
		`"enum":["a",null,true]`:                                     {`"a"`, `"b"`, `{}`, `false`},
		`"const":"a"`:                                                {`"a"`, `"b"`},
		`"not":{"type":"string"}`:                                    {`[]`, `"a"`},
		`"allOf":[{"type":"string"},{"minLength":2}]`:                {`"äö"`, `"ä"`, `5`},
		`"anyOf":[{"type":"string"},{"type":"null"}]`:                {`null`, `5`},
		`"oneOf":[{"type":"string"},{"maxLength":2}]`:                {`"abc"`, `"a"`},
		`"if":{"type":"string"},"then":false`:                        {`[]`, `"a"`},
		`"if":{"type":"string"},"else":false`:                        {`"a"`, `[]`},
		`"then":false,"else":false`:                                  {`"a"`},
		`"pattern":"^a$","maxLength":1`:                              {`"a"`, `"b"`, `"ab"`},
		`"minProperties":1,"maxProperties":2`:                        {`{"a":1}`, `{}`, `{"a":1,"b":1,"c":1}`},
		`"propertyNames":{"maxLength":1}`:                            {`{"a":1}`, `{"aa":1}`},
		`"patternProperties":{"^x":{"type":"null"}}`:                 {`{"x":null,"y":1}`, `{"x":1}`},
		`"properties":{"a":true},"additionalProperties":false`:       {`{"a":1}`, `{"b":1}`},
		`"patternProperties":{"^x":{}},"additionalProperties":false`: {`{"x":1}`, `{"y":1}`},
		`"additionalProperties":{"type":"null"}`:                     {`{"a":null}`, `{"a":1}`},
		`"minItems":1,"maxItems":2,"items":{"type":"null"}`:          {`[null]`, `[]`, `[null,null,null]`, `[1]`},
		`"contains":{"type":"null"}`:                                 {`[1,null]`, `[1]`, `[]`},
		`"$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}`:           {`null`, `1`},
		`"properties":{"a":{"$ref":"#"}},"type":"object"`:            {`{"a":{}}`, `{"a":{"a":1}}`},
	} {
		text := `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://x.invalid/s",` + schema + "}"
		s := must.Get(Compile("s", []byte(text)))(t)
		for i, doc := range docs {
			v := must.Get(decode([]byte(doc)))(t)
			if valid := s.compiled().Validate(v) == nil; s.quick(v) != (i == 0) || valid != (i == 0) {
				t.Errorf("%s: %s: quick %v, v5 %v", schema, doc, s.quick(v), valid)
			}
		}
	}

	for schema, doc := range map[string]string{
		`"minimum":1`: `0`, `"uniqueItems":true`: `[1,1]`, `"multipleOf":2`: `1`, `"enum":[1]`: `2`,
		`"unevaluatedProperties":false`: `{"a":1}`, `"dependentRequired":{"a":["b"]}`: `{"a":1}`,
		`"not":{"not":{"minimum":1}}`: `0`, `"not":{"const":1.0}`: `1`, `"type":"integer"`: `1.5`,
		`"minLength":2.0`: `"a"`, `"$ref":"#/properties/a","properties":{"a":false}`: `1`,
		`"pattern":"[[:word:]]{1000}{1000}"`: `"a"`, `"minContains":2,"contains":true`: `[1]`,
	} {
		raw := must.Get(decode([]byte("{" + schema + "}")))(t)
		if (&Schema{raw: raw}).quick(must.Get(decode([]byte(doc)))(t)) {
			t.Errorf("%s allows %s", schema, doc)
		}
	}
	deep := any("")
	for range mostNested {
		deep = []any{deep}
	}
	loop := map[string]any{"$ref": "#"}
	if (&Schema{raw: loop}).quick("") || (&Schema{raw: map[string]any{"items": loop}}).quick(deep) {
		t.Error("what is nested too deeply is allowed")
	}
}

// writer writes documents that a schema allows, except for some mistakes.
type writer struct {
	*rand.Rand

	root     map[string]any
	mistakes int
}

// document writes a value for a schema.
func (w *writer) document(schema any, depth int) any {
	s, _ := schema.(map[string]any)
	if w.mistakes > 0 && w.IntN(12) == 0 {
		w.mistakes--
		s = nil
	}
	if ref, ok := s["$ref"].(string); ok {
		defs, _ := w.root["$defs"].(map[string]any)
		if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
			return w.document(defs[name], depth+1)
		}
		return w.document(w.root, depth+1)
	}
	for _, keyword := range []string{"oneOf", "anyOf", "enum"} {
		if all, ok := s[keyword].([]any); ok && len(all) > 0 {
			one := all[w.IntN(len(all))]
			if keyword == "enum" {
				return one
			}
			if inner, ok := w.document(one, depth+1).(map[string]any); !ok || s["properties"] == nil {
				return inner
			}
		}
	}
	if c, ok := s["const"]; ok {
		return c
	}
	kind, _ := s["type"].(string)
	if kinds, ok := s["type"].([]any); ok {
		kind, _ = kinds[w.IntN(len(kinds))].(string)
	}
	if kind == "" {
		kind = []string{"object", "array", "string", "integer", "number", "boolean", "null"}[w.IntN(7)]
		if s["properties"] != nil {
			kind = "object"
		}
	}

	return w.value(kind, s, depth)
}

func (w *writer) value(kind string, s map[string]any, depth int) any {
	switch kind {
	case "object":
		out := map[string]any{}
		required, _ := s["required"].([]any)
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			needed := slices.Contains(required, any(name))
			if needed || depth < 4 && w.IntN(4) == 0 {
				out[name] = w.document(p, depth+1)
			}
		}
		if additional := s["additionalProperties"]; additional != nil && depth < 6 && w.IntN(3) == 0 {
			out[w.word()] = w.document(additional, depth+1)
		}
		return out
	case "array":
		out := []any{}
		for range w.IntN(3) {
			out = append(out, w.document(s["items"], depth+1))
		}
		return out
	case "integer":
		return json.Number([]string{"1", "0", "30", "-1"}[w.IntN(4)])
	case "number":
		return json.Number([]string{"1", "0.5", "1e3"}[w.IntN(3)])
	case "boolean":
		return w.IntN(2) == 0
	case "null":
		return nil
	}

	return w.word()
}

func (w *writer) word() string {
	return []string{"a", "1.0.0", "x-y", "5m", "agf.react", "", "any", "ask", "https://a.example/b", "v 1"}[w.IntN(10)]
}
