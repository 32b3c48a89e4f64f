package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func list(n int, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

func doubling(keyword, wrap string) string {
	return `{"$ref":"#/$defs/a0","$defs":{` + list(40, func(i int) string {
		next := fmt.Sprintf(wrap, i+1)
		return fmt.Sprintf(`"a%d":{"%s":[%s,%s]}`, i, keyword, next, next)
	}) + `,"a40":{}}}`
}

const ref = `{"$ref":"#/$defs/a%d"}`

func nested(open, inner, shut string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// judge compiles and validates, and returns the error of either.
func judge(schema, doc string) ([]Failure, error) {
	u, err := CompileUntrusted("test", []byte(schema))
	if err != nil {
		return nil, err
	}
	v, err := decode([]byte(doc))
	if err != nil {
		return nil, err
	}
	return u.Validate(v)
}

func TestCostlySchemas(t *testing.T) {
	deep := nested(`{"a":`, "1", `}`, 100)
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ schema, doc string }{
		"doubling allOf":   {doubling("allOf", ref), `"x"`},
		"doubling anyOf":   {doubling("anyOf", ref), `{}`},
		"doubling not":     {doubling("oneOf", `{"not":`+ref+`}`), `[]`},
		"doubling failing": {strings.Replace(doubling("anyOf", ref), `"a40":{}`, `"a40":{"type":"null"}`, 1), `1`},
		"doubling items":   {`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, nested("[", "", "]", 100)},
		"doubling draft 7": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"allOf":[{"$ref":"#"},` +
				`{"$ref":"#"}]}}}`,
			deep,
		},
		"doubling members": {`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, deep},
		"doubling dynamic": {
			`{"$dynamicAnchor":"n","properties":{"a":{"allOf":[{"$dynamicRef":"#n"},{"$dynamicRef":"#n"}]}}}`,
			deep,
		},
		"doubling earlier": {
			`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,` +
				`"properties":{"a":{"allOf":[{"$recursiveRef":"#"},{"$recursiveRef":"#"}]}}}`,
			deep,
		},
		"repeats": {`{"pattern":"` + strings.Repeat("((a{30}){30}|[^x]{1000})", 10) + `"}`, `"x"`},
		"many repeats": {`{"patternProperties":{` + list(100, func(i int) string {
			return fmt.Sprintf(`"x{1000}%d":{}`, i)
		}) + `}}`, `{}`},
		"long pattern":  {`{"pattern":"` + strings.Repeat("a", 3000) + `"}`, `"x"`},
		"slow match":    {`{"pattern":"(x?){900}y"}`, `"` + long + `"`},
		"slow names":    {`{"patternProperties":{"(x?){900}y":{}}}`, `{"` + long + `":1}`},
		"large":         {`{"title":"` + long + `"}`, `1`},
		"deep":          {nested(`{"not":`, "true", `}`, 100), `1`},
		"many values":   {`{"enum":[` + list(30_000, func(i int) string { return fmt.Sprint(i) }) + `]}`, `1`},
		"many schemas":  {`{"allOf":[` + list(4000, func(int) string { return "{}" }) + `]}`, `1`},
		"many booleans": {`{"allOf":[` + list(4000, func(int) string { return "true" }) + `]}`, `1`},
		"many anchors": {`{"allOf":[` + list(40, func(i int) string {
			return fmt.Sprintf(`{"$dynamicAnchor":"a%d"}`, i)
		}) + `]}`, `1`},
		"many references": {`{"$defs":{` + list(600, func(i int) string {
			return fmt.Sprintf(`"a%d":{"$ref":"#/$defs/a%d"}`, i, i+1)
		}) + `,"a600":{}}}`, `1`},
		"spellings": {
			`{"$defs":{"abcdefghij":[` + list(900, func(int) string {
				return "{}"
			}) + `]},"allOf":[{"$ref":"#/$defs/%61bcdefghij"},{"$ref":"#/$defs/a%62cdefghij"},` +
				`{"$ref":"#/$defs/ab%63defghij"},{"$ref":"#/$defs/abc%64efghij"},{"$ref":"#/$defs/abcd%65fghij"}]}`,
			`1`,
		},
		"large enum": {`{"items":{"enum":[` + list(10_000, func(i int) string {
			return fmt.Sprint(i)
		}) + `]}}`, `[` + list(1000, func(int) string {
			return "-1"
		}) + `]`},
		"long number":    {`{"type":"integer"}`, strings.Repeat("1", 1000)},
		"great exponent": {`{"type":"integer"}`, `1e1000000000`},
		"odd exponent":   {`{"type":"integer"}`, `1e99999999999999999999`},
		"long paths":     {`{}`, `{"` + long + `":[` + list(100, func(int) string { return "1" }) + `]}`},
		"chain and depth": {`{"$ref":"#/$defs/a0","$defs":{` + list(20, func(i int) string {
			return fmt.Sprintf(`"a%d":{"$ref":"#/$defs/a%d"}`, i, i+1)
		}) + `,"a20":{"properties":{"a":{"$ref":"#"}}}}}`, deep},
		"wide": {`{"allOf":[` + list(2500, func(int) string { return `{"type":"string"}` }) + `]}`,
			`[` + list(10_000, func(int) string { return "1" }) + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := judge(c.schema, c.doc); !errors.Is(err, ErrCostly) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestUntrustedRefuses(t *testing.T) {
	for name, schema := range map[string]string{
		"itself":       `{"$ref":"#"}`,
		"allOf itself": `{"allOf":[{"$ref":"#"}]}`,
		"two":          `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
		"two, later": `{"properties":{"b":{"allOf":[{"$ref":"#/$defs/a"}]}},` +
			`"$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/b"}},"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"elsewhere":   `{"$ref":"http://127.0.0.1:1/x.json"}`,
		"file":        `{"$ref":"file:///etc/passwd"}`,
		"meta-schema": `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		"draft":       `{"$schema":"http://127.0.0.1:1/s"}`,
		"id below":    `{"properties":{"a":{"$id":"b.json"}}}`,
		"old id":      `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"id":"b.json"}}}`,
		"content": `{"$schema":"http://json-schema.org/draft-07/schema#","contentMediaType":"application/json",` +
			`"contentSchema":{}}`,
		"regexes":    `{"regexProperties":true}`,
		"pattern":    `{"pattern":"("}`,
		"no pattern": `{"patternProperties":{"(":{}}}`,
		"nowhere":    `{"$ref":"#/$defs/a/b"}`,
		"no item":    `{"allOf":[{"$ref":"#/allOf/x"}]}`,
		"no member":  `{"title":"t","$ref":"#/title/x"}`,
		"escape":     `{"$ref":"#/%zz"}`,
		"no schema":  `[]`,
		"no JSON":    `{`,
		"twice":      `{"type":"string","type":"object"}`,
	} {
		if _, err := CompileUntrusted("test", []byte(schema)); err == nil || errors.Is(err, ErrCostly) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A dynamic reference can form a loop that only validation detects.
func TestUntrustedDynamicLoop(t *testing.T) {
	_, err := judge(`{"$dynamicAnchor":"n","$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$dynamicRef":"#n"}]}}}`, `1`)
	if err == nil || errors.Is(err, ErrCostly) {
		t.Error(err)
	}
}

func TestOrdinarySchemas(t *testing.T) {
	kinds := `{"oneOf":[` + list(20, func(i int) string {
		return fmt.Sprintf(
			`{"type":"object","required":["kind"],"properties":{"kind":{"const":"k%d"},"n":{"type":"integer",`+
				`"minimum":0}},"additionalProperties":false}`,
			i,
		)
	}) + `]}`
	form := `{"type":"object","additionalProperties":false,"properties":{` + list(60, func(i int) string {
		return fmt.Sprintf(
			`"p%d":{"type":"string","maxLength":200,"pattern":"^[\\p{L}\\w .-]{1,200}$","description":"d"}`,
			i,
		)
	}) + `}}`
	tree := `{"$id":"https://example.com/tree.json","$ref":"https://example.com/tree.json#/$defs/node","$defs":{"node":{"type":"object","required":["name"],
		"properties":{"name":{"type":"string","format":"regex"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"unevaluatedProperties":false}}}`
	filter := `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"f":{"anyOf":[{"type":"object","required":["and"],"properties":{"and":{"type":"array","items":{"$ref":"#/definitions/f"}}}},
		{"type":"object","required":["eq"],"properties":{"eq":{"type":["string","number"],"format":"regex"}}}]}},"$ref":"#/definitions/f"}`
	for name, c := range map[string]struct {
		schema, doc string
		fails       bool
	}{
		"kinds": {`{"items":` + kinds + `}`, `[` + list(200, func(i int) string {
			return fmt.Sprintf(`{"kind":"k%d","n":%d}`, i%20, i)
		}) + `]`, false},
		"no kind": {kinds, `{"kind":"k77"}`, true},
		"form": {form, `{` + list(60, func(i int) string {
			return fmt.Sprintf(`"p%d":"Some words of %d"`, i, i)
		}) + `}`, false},
		"unknown": {form, `{"p1":"a","pp2":"b"}`, true},
		"tree": {tree, `{"name":"r","children":[` + list(1500, func(i int) string {
			return fmt.Sprintf(`{"name":"n%d","children":[{"name":"x"}]}`, i)
		}) + `]}`, false},
		"deep tree":  {tree, nested(`{"name":"n","children":[`, `{"name":"l"}`, `]}`, 45), false},
		"filter":     {filter, nested(`{"and":[{"eq":"a"},`, `{"eq":5}`, `]}`, 12), false},
		"bad filter": {filter, nested(`{"and":[{"eq":"a"},`, `{"eq":true}`, `]}`, 6), true},
		"bad regex":  {filter, `{"eq":"("}`, true},
		"large regex": {
			filter,
			`{"eq":"((a{30}){30}){1}(.{1000}b{1000}){1}((c{30}){30}){1}` + strings.Repeat("x{1000}", 20) + `"}`,
			true,
		},
		"countries": {`{"items":{"enum":[` + list(250, func(i int) string {
			return fmt.Sprintf(`"C%d"`, i)
		}) + `]},"uniqueItems":true}`, `[` + list(250, func(i int) string {
			return fmt.Sprintf(`"C%d"`, i)
		}) + `]`, false},
		"text": {
			`{"properties":{"title":{"pattern":"^.{1,200}$"},"body":{"type":"string"}}}`,
			`{"title":"t","body":"` + strings.Repeat("words ", 100_000) + `"}`,
			false,
		},
		"rows": {
			`{"items":{"type":"array","items":{"type":["number","null"],"minimum":0}}}`,
			`[` + list(2000, func(int) string {
				return "[1,2.5,null,4e2]"
			}) + `]`,
			false,
		},
		"dependencies": {
			`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"required":["b"]}},"if":{"required":["a"]},` +
				`"then":{"minProperties":2},"else":false}`,
			`{"a":1,"b":2}`,
			false,
		},
		"older": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"b":{"required":["a"]}},` +
				`"properties":{"a":{"items":[{"type":"string"}],"additionalItems":{"type":"null"}}}}`,
			`{"a":["x",null],"b":1}`,
			false,
		},
		"names": {
			`{"propertyNames":{"maxLength":3},"patternProperties":{"^a":{"const":{"x":[1,"y"]}}},` +
				`"additionalProperties":{"contains":{"const":1}}}`,
			`{"a":{"x":[1,"y"]},"b":[1]}`,
			false,
		},
		"dynamic": {
			`{"$dynamicAnchor":"n","properties":{"v":{"type":"integer"},"next":{"$dynamicRef":"#n"}}}`,
			`{"v":1,"next":{"v":2,"next":{"v":3}}}`,
			false,
		},
		"anchor": {`{"$defs":{"a":{"$anchor":"x","type":"string"}},"$ref":"#x"}`, `"x"`, false},
		"property id": {
			`{"properties":{"$id":{"type":"string"},"$ref":{"type":"string"},"pattern":{"type":"string"},` +
				`"id":{"default":{"id":"x"}}}}`,
			`{"$id":"x","$ref":"y","pattern":"("}`,
			false,
		},
		"anything": {`true`, `{"a":[1]}`, false},
		"nothing":  {`false`, `1`, true},
	} {
		fs, err := judge(c.schema, c.doc)
		if err != nil || (len(fs) > 0) != c.fails {
			t.Errorf("%s: %v %v", name, fs, err)
		}
	}
}

// A document whose failures are not explained is refused nevertheless.
func TestTooMuchToExplain(t *testing.T) {
	names := list(3000, func(i int) string { return fmt.Sprintf(`"name %d":1`, i) })
	for name, c := range map[string]struct{ schema, doc string }{
		"items":   {`{"items":{"type":"string"}}`, `[` + list(5000, func(int) string { return "1" }) + `]`},
		"unknown": {`{"additionalProperties":false,"properties":{"a":{}}}`, `{` + names + `}`},
		"nearest": {`{"enum":["` + strings.Repeat("a", 10_000) + `"]}`, `"` + strings.Repeat("b", 10_001) + `"`},
		"patterns": {
			`{"additionalProperties":false,"patternProperties":{"^(x{900})$":{}}}`,
			`{` + list(500, func(i int) string {
				return fmt.Sprintf(`"%d":1`, i)
			}) + `}`,
		},
	} {
		fs, err := judge(c.schema, c.doc)
		if err != nil || len(fs) != 1 || fs[0].Keyword != "schema" || fs[0].Expected == "" {
			t.Errorf("%s: %d %v", name, len(fs), err)
		}
	}
}

// For cheap schemas, both ways of compiling give the same result.
func TestUntrustedAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema, doc := anySchema(4).Draw(t, "schema"), anyDoc(4).Draw(t, "doc")
		u, err := CompileUntrusted("test", []byte(schema))
		if err != nil {
			return
		}
		s, err := Compile("test", []byte(schema))
		if err != nil {
			t.Fatalf("only untrusted: %v", err)
		}
		v, _ := decode([]byte(doc))
		got, err := u.Validate(v)
		if err != nil {
			return
		}
		if want := s.Validate(v); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func anyDoc(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind = min(kind, 3)
		}
		switch kind {
		case 0, 1, 2, 3:
			return rapid.SampledFrom([]string{"null", "1", `"a"`, "true", "2.5", `""`}).Draw(t, "scalar")
		case 4:
			return "[" + strings.Join(rapid.SliceOfN(anyDoc(depth-1), 0, 4).Draw(t, "items"), ",") + "]"
		}

		return `{"a":` + anyDoc(depth-1).Draw(t, "a") + `,"b":` + anyDoc(depth-1).Draw(t, "b") + "}"
	})
}

// anySchema generates schemas with many references; many loop or grow exponentially.
func anySchema(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 11).Draw(t, "kind")
		if depth == 0 {
			kind = min(kind, 4)
		}
		sub := func(name string) string { return anySchema(depth-1).Draw(t, name) }
		switch kind {
		case 0, 1:
			return rapid.SampledFrom([]string{
				"true",
				"false",
				"{}",
				`{"type":"string"}`,
				`{"type":["object","array"]}`,
				`{"uniqueItems":true}`,
				`{"enum":[1,"a",null]}`,
			}).
				Draw(t, "leaf")
		case 2, 3, 4:
			return `{"$ref":"` + rapid.SampledFrom([]string{
				"#",
				"#/properties/a",
				"#/allOf/0",
				"#/allOf/1",
				"#/items",
				"#/anyOf/0/allOf/1",
			}).
				Draw(t, "ref") +
				`"}`
		case 5, 6:
			return `{"properties":{"a":` + sub("a") + `,"b":` + sub("b") + `}}`
		case 7, 8:
			return `{"allOf":[` + sub("0") + "," + sub("1") + `],"items":` + sub("items") + `}`
		case 9:
			return `{"anyOf":[` + sub("0") + "," + sub("1") + `]}`
		case 10:
			return `{"not":` + sub("not") + `,"additionalProperties":` + sub("others") + `}`
		}

		return `{"if":` + sub("if") + `,"then":` + sub("then") + `,"unevaluatedProperties":` + sub("left") + `}`
	})
}

// FuzzUntrusted looks for small schemas and documents that cause a panic or never end. The
// fuzzing engine reports an input that hangs.
func FuzzUntrusted(f *testing.F) {
	f.Add(doubling("allOf", ref), `"x"`)
	f.Add(`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, nested("[", "", "]", 60))
	f.Add(
		`{"$dynamicAnchor":"n","properties":{"a":{"anyOf":[{"$dynamicRef":"#n"},{"$ref":"#"}]}},`+
			`"unevaluatedProperties":false}`,
		nested(`{"a":`, "1", "}", 60),
	)
	f.Add(`{"pattern":"(a?){900}","patternProperties":{"x{9}":{"format":"regex"}}}`, `"aaaaaaaaaaaaaaaaaa"`)
	f.Add(`{"enum":[1,2,3e300],"uniqueItems":true,"contains":{"minimum":1e-300}}`, `[1,1.0,1e0,2e300]`)
	f.Fuzz(func(t *testing.T, schema, doc string) {
		if len(schema)+len(doc) > 4096 || !json.Valid([]byte(doc)) {
			return
		}
		_, _ = judge(schema, doc)
	})
}
