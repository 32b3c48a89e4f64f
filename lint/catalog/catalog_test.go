package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/value"
)

// TestParse: the form of a list is recognized by its members.
func TestParse(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	for _, c := range []struct {
		name, text, server string
		mcp                bool
		tools              string
	}{
		{
			"tools/list",
			`{"tools":[{"name":"x","description":"X.","inputSchema":` + schema + `,"annotations":{"destructiveHint":true}}]}`,
			"",
			true,
			"x(a) destructive",
		},
		{
			"the whole response",
			`{"jsonrpc":"2.0","id":1,"result":{"nextCursor":null,"tools":[{"name":"x","inputSchema":` + schema + `}]}}`,
			"",
			true,
			"x(a)",
		},
		{
			"with the server's name",
			`{"serverInfo":{"name":"github"},"tools":[{"name":"x","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`,
			"github",
			true,
			"x(…) read-only",
		},
		{"an array of MCP", `[{"name":"x","inputSchema":` + schema + `}]`, "", true, "x(a)"},
		{"no tools", `{"server":"s","tools":[]}`, "s", true, ""},
		{
			"OpenAI, chat completions",
			`[{"type":"function","function":{"name":"x","parameters":` + schema + `}},
			  {"type":"function","function":{"name":"y"}}]`,
			"",
			false,
			"x(a) y()",
		},
		{
			"OpenAI, responses",
			`{"tools":[{"type":"function","name":"x","parameters":` + schema + `},{"type":"web_search"},
			  {"type":"function","name":"y","parameters":null}]}`,
			"",
			false,
			"x(a) y()",
		},
		{
			"Anthropic",
			`[{"name":"x","input_schema":` + schema + `},{"type":"bash_20250124","name":"bash"}]`,
			"",
			false,
			"x(a) bash(…)",
		},
	} {
		got, err := Parse("tools.json", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var tools []string
		for _, tool := range got.Tools {
			args := strings.Join(tool.Args.Names(), ",")
			if !tool.Args.sealed() {
				args += "…"
			}
			text := tool.Name + "(" + args + ")"
			if tool.Hints.Destructive != nil {
				text += " destructive"
			}
			if tool.Hints.ReadOnly != nil {
				text += " read-only"
			}
			tools = append(tools, text)
		}

		if text := strings.Join(tools, " "); text != c.tools || got.Server != c.server || got.MCP != c.mcp {
			t.Errorf("%s: %q of %q, MCP %v", c.name, text, got.Server, got.MCP)
		}
	}
}

// TestParseRefuses: an error in a list is reported with its position.
func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat(`{"anyOf":[`, 200) + `{}` + strings.Repeat(`]}`, 200)
	var bomb strings.Builder
	bomb.WriteString(`[{"name":"x","inputSchema":{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 20 {
		next := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"$ref":"#/$defs/d%d"},`, i+1), 8), ",")
		fmt.Fprintf(&bomb, `"d%d":{"anyOf":[%s]},`, i, next)
	}
	bomb.WriteString(`"d20":{}}}}]`)
	many := func(n int, part string) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	var tools []string
	for i := range 27 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"enum":[%s]}}`, i, many(19_000, "1")))
	}
	heavy := "[" + strings.Join(tools, ",") + "]"
	var fields []string
	for i := range 2001 {
		fields = append(fields, fmt.Sprintf(`"f%d":{}`, i))
	}
	for _, c := range []struct{ text, want string }{
		{``, `tools.json:1:1: no list of tools`},
		{"{\"tools\":[\n{\"name\":\"x\",\"inputSch", `tools.json:2:13: no list of tools`},
		{`{"tools":[],"tools":[]}`, `tools.json:1:13: no list of tools`},
		{`7`, `tools.json:1:1: expected an array of tools, found a number`},
		{`{"tool":[]}`, `tools.json:1:1: expected the result of tools/list`},
		{`{"result":{}}`, `tools.json:1:11: result: expected the result of tools/list`},
		{`{"error":{"code":1}}`, `tools.json:1:10: error: the server answered with an error`},
		{`{"tools":[],"nextCursor":"p2"}`, `tools.json:1:26: nextCursor: the list goes on`},
		{`{"tools":{"a":1}}`, `tools.json:1:10: tools: expected an array of tools, found an object`},
		{`[1]`, `tools.json:1:2: [0]: expected a tool, an object; found a number`},
		{`{"tools":[{"inputSchema":{}}]}`, `tools.json:1:11: tools[0]: a tool without a name`},
		{`[{"name":7,"inputSchema":{}}]`, `tools.json:1:10: [0].name: expected the name of the tool, a string; found a number`},
		{`[{"name":"x"}]`, `tools.json:1:2: [0]: the tool "x" has no inputSchema`},
		{`[{"name":"x","inputSchema":[]}]`, `tools.json:1:28: [0].inputSchema: expected a JSON Schema, an object; found an array`},
		{"[{\"name\":\"x\",\"inputSchema\":{}},\n {\"name\":\"x\",\"inputSchema\":{}}]", `tools.json:2:10: [1].name: the tool "x" stands in line 1 already`},
		{`[{"type":"function","function":{"name":"x"}},{"type":"function","function":{"name":"x"}}]`, `[1].function.name: the tool "x" stands`},
		{`[{"name":"x","inputSchema":{}},{"name":"y","input_schema":{}}]`, `[1]: a tool as Anthropic has it, in a list as MCP has it`},
		{`[{"function":7}]`, `[0].function: expected an object, found a number`},
		{`[{"name":"x","inputSchema":{},"annotations":[]}]`, `[0].annotations: expected an object, found an array`},
		{`[{"name":"x","inputSchema":{},"annotations":{"destructiveHint":"yes"}}]`, `[0].annotations.destructiveHint: expected true or false, found a string`},
		{`[{"name":"x","inputSchema":{"type":"objekt"}}]`, `[0].inputSchema.type: expected types of JSON Schema, such as string; found "objekt"`},
		{`[{"name":"x","inputSchema":{"properties":{"a":{"enum":7}}}}]`, `[0].inputSchema.properties.a.enum: expected a list of values, found a number`},
		{`[{"name":"x","inputSchema":{"properties":[]}}]`, `[0].inputSchema.properties: expected the fields of an object, found an array`},
		{`[{"name":"x","inputSchema":{"anyOf":[]}}]`, `[0].inputSchema.anyOf: expected a list of JSON Schemas`},
		{`[{"name":"x","inputSchema":{"allOf":[7]}}]`, `[0].inputSchema.allOf[0]: expected a JSON Schema, an object; found a number`},
		{`[{"name":"x","inputSchema":{"$ref":"#/$defs/none"}}]`, `[0].inputSchema.$ref: nothing stands at "#/$defs/none"`},
		{`[{"name":"` + strings.Repeat("x", 1001) + `","inputSchema":{}}]`, `is no name of a tool`},
		{`[{"name":"x","inputSchema":` + deep + `}]`, `no list of tools`},
		{bomb.String(), `has more than 20000 parts, which is too much to read`},
		{`[{"name":"x","inputSchema":{"enum":[` + many(20_001, "1") + `]}}]`, `has more than 20000 parts`},
		{`[{"name":"x","inputSchema":{"required":[` + many(2_001, `"a"`) + `]}}]`, `2001 fields are more than the 2000`},
		{`[{"name":"x","inputSchema":{"properties":{` + strings.Join(fields, ",") + `}}}]`, `2001 fields are more than`},
		{heavy, `have more than 500000 parts`},
		{"[" + strings.Repeat("{},", 10_000) + "{}]", `10001 tools are more than the 10000`},
	} {
		got, err := Parse("tools.json", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, %v, expected %s", c.text, got, err, c.want)
		}
	}
}

// TestPlaces: tools have the right positions, counted in characters.
func TestPlaces(t *testing.T) {
	got, err := Parse(
		"t",
		[]byte("{\"é\": 1, \"tools\": [{\"name\":\"a\",\"inputSchema\":{}}, {\"name\":\"b\",\"inputSchema\":{}},\n"+
			"  {\"name\":\"ü\",\"inputSchema\":{}}]}"),
	)
	must.Do(t, err)
	var places []string
	for _, tool := range got.Tools {
		places = append(places, fmt.Sprintf("%s %d:%d", tool.Name, tool.Range.Start.Line, tool.Range.Start.Column))
	}
	if text := strings.Join(places, ", "); text != "a 1:20, b 1:51, ü 2:3" {
		t.Error(text)
	}
}

// TestAt checks the values that At finds in schemas like those of real servers.
func TestAt(t *testing.T) {
	const text = `[{"name":"x","inputSchema":{"type":"object","required":["id","order"],
		"$defs":{"Order":{"type":"object","properties":{"n":{"type":"integer","minimum":1},"self":{"$ref":"#/$defs/Order"}},"required":["n"]}},
		"properties":{
			"id":{"type":"string"},
			"limit":{"anyOf":[{"type":"integer","exclusiveMaximum":10},{"type":"null"}],"default":null},
			"mode":{"$ref":"#/$defs/~1m"},
			"order":{"$ref":"#/$defs/Order"},
			"state":{"enum":["open","closed",null]},
			"old":{"type":"number","minimum":3,"exclusiveMinimum":true,"nullable":true},
			"list":{"type":["array","object"],"items":{"type":"string"}},
			"both":{"allOf":[{"type":"object","properties":{"p":{"type":"string"}}},{"properties":{"p":{"const":"q"},"r":true}}]},
			"one":{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"number"}},"required":["k","v"]},
				{"type":"object","properties":{"k":{"const":"b"},"w":{}},"required":["k"]},{"type":"string"}]},
			"no":false,
			"long":{"enum":[LONG]},
			"far":{"$ref":"https://example.com/schema"},
			"free":{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}}
		}}}]`
	src := strings.Replace(text, `"$defs":{`, `"$defs":{"/m":{"type":"string"},`, 1)
	src = strings.Replace(src, "LONG", strings.TrimSuffix(strings.Repeat("1,", 2001), ","), 1)
	got, err := Parse("t", []byte(src))
	must.Do(t, err)
	args := got.Tools[0].Args
	n := func(s string) condition.Scalar {
		num, _ := value.ParseNum(s)
		return condition.Scalar{Kind: value.Number, Num: num}
	}
	missing := func(v condition.Values) bool { return !v.And(condition.Missing()).Empty() }
	for _, c := range []struct {
		place, words string
		optional     bool
	}{
		{"id", "a string", false},
		{"limit", "an integer or null", true},
		{"mode", "a string", true},
		{"order", "an object", false},
		{"order.n", "an integer", false},
		{"order.self", "an object", true},
		{"order.self.n", "an integer", true},
		{"state", "one of open, closed, null", true},
		{"old", "a number or null", true},
		{"list", "an array", true},
		{"both.p", "one of q", true},
		{"one", "a string or an object", true},
		{"one.k", "one of a, b", true},
		{"one.v", "a number", true},
		{"no", "nothing", true},
		{"long", "a string or a number or true or false or an array or null", true},
		{"far", "a string or a number or true or false or an array or null", true},
		{"nowhere", "", true},
		{"order.nowhere", "", true},
		{"free.b", "?", true},
		{"list.b", "?", true},
	} {
		values, typ := args.At(strings.Split(c.place, "."))
		words := "?"
		if typ != nil {
			words = typ.String()
		} else if values.And(condition.AnyValue()).Empty() {
			words = ""
		}
		if words != c.words || missing(values) != c.optional {
			t.Errorf("%s: %q, optional %v", c.place, words, missing(values))
		}
	}

	for _, c := range []struct {
		place string
		n     condition.Scalar
		holds bool
	}{
		{"limit", n("9"), true}, {"limit", n("10"), false}, {"limit", n("1.5"), false},
		{"old", n("3"), false}, {"old", n("3.01"), true}, {"order.n", n("0"), false}, {"order.n", n("1"), true},
	} {
		if values, _ := args.At(strings.Split(c.place, ".")); values.Holds(c.n) != c.holds {
			t.Errorf("%s: %s is in it: %v", c.place, c.n.Num, !c.holds)
		}
	}
}

// schemas generates JSON Schemas over small values.
func schemas(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{}
		may := func(key string, draw func() any) {
			if rapid.IntRange(0, 3).Draw(t, key) == 0 {
				s[key] = draw()
			}
		}
		kinds := rapid.SampledFrom([]any{"null", "boolean", "integer", "number", "string", "array", "object"})
		values := rapid.SampledFrom(testValues())
		may("type", func() any { return rapid.SliceOfNDistinct(kinds, 1, 3, rapid.ID[any]).Draw(t, "types") })
		may("enum", func() any { return rapid.SliceOfN(values, 1, 4).Draw(t, "values") })
		may("const", func() any { return values.Draw(t, "value") })
		for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
			may(key, func() any { return rapid.SampledFrom([]float64{0, 1, 1.5, 2}).Draw(t, "limit") })
		}
		may("minLength", func() any { return 2 })
		if depth > 0 {
			for _, key := range []string{"allOf", "anyOf", "oneOf"} {
				may(key, func() any {
					var all []any
					for range rapid.IntRange(1, 3).Draw(t, "schemas") {
						all = append(all, schemas(depth-1).Draw(t, "schema"))
					}
					return all
				})
			}

			may("not", func() any { return schemas(depth-1).Draw(t, "schema") })
			may("properties", func() any {
				return map[string]any{"k": schemas(depth-1).Draw(t, "k"), "l": schemas(depth-1).Draw(t, "l")}
			})
			required := rapid.SampledFrom([]any{[]any{"k"}, []any{"l", "k"}})
			may("required", func() any { return required.Draw(t, "required") })
			may("additionalProperties", func() any { return rapid.Bool().Draw(t, "more") })
		}

		return s
	})
}

func testValues() []any {
	return []any{nil, true, false, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, "", "a", "bb", []any{}, map[string]any{}}
}

// TestTypesAreSound: if a schema accepts a value at a place, the type's set has that value.
// This includes a missing value, and values further down. So claims about all arguments are
// true. Another JSON Schema implementation decides which values are valid.
func TestTypesAreSound(t *testing.T) {
	checked, excluded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		field := schemas(2).Draw(t, "field")
		root := map[string]any{"type": "object", "properties": map[string]any{"a": field}}
		if rapid.Bool().Draw(t, "required") {
			root["required"] = []any{"a"}
		}
		text, err := json.Marshal(root)
		must.Do(t, err)
		list, err := Parse("t", fmt.Appendf(nil, `[{"name":"x","inputSchema":%s}]`, text))
		must.Do(t, err)
		args := list.Tools[0].Args
		valid, err := jsonschema.Compile("t", text)
		must.Do(t, err)
		documents := []map[string]any{{}}
		for _, v := range testValues() {
			documents = append(documents, map[string]any{"a": v}, map[string]any{"a": map[string]any{"k": v}})
			documents = append(documents, map[string]any{"a": map[string]any{"l": v, "k": v}})
			documents = append(documents, map[string]any{"a": map[string]any{"l": v}})
		}

		for _, d := range documents {
			fits := len(valid.Validate(d)) == 0
			doc, err := value.FromGo(d, value.Limits{})
			must.Do(t, err)
			inside := true
			for _, place := range [][]string{{"a"}, {"a", "k"}, {"a", "l"}} {
				v, _ := doc.Get(place...)
				set, typ := args.At(place)
				if typ == nil && len(place) > 1 {
					continue // our own assumption: undeclared fields don't exist
				}
				inside = inside && !set.And(condition.Exactly(v)).Empty()
			}

			if fits && !inside {
				t.Fatalf("%s\nlets %s through, and it is left out", text, doc.AppendJSON(nil))
			}

			checked++
			if !inside {
				excluded++
			}
		}
	})
	if excluded*10 < checked {
		t.Errorf("of %d documents only %d are left out", checked, excluded)
	}
}

// TestParseAll: a file of pins has one list for each of its servers.
func TestParseAll(t *testing.T) {
	const pins = `{"assent_mcp_pins":1,"servers":{
		"files":{"server":{"command":"x"},"tools":[
			{"digest":"sha256:1","definition":{"name":"get","inputSchema":{"properties":{"a":{"type":"string"}},"additionalProperties":false}}},
			{"digest":"sha256:2","definition":{"name":"get","inputSchema":{"properties":{"b":{}},"additionalProperties":false},
				"annotations":{"destructiveHint":true}}},
			{"digest":"sha256:3","definition":{"name":"put","inputSchema":{}}}]},
		"web":{"tools":[]}}}`
	lists, err := ParseAll("pins.json", []byte(pins))
	if err != nil || len(lists) != 2 || lists[0].Server != "files" || lists[1].Server != "web" || !lists[1].MCP {
		t.Fatal(lists, err)
	}
	get := lists[0].Tools[0]
	if len(lists[0].Tools) != 2 || strings.Join(get.Args.Names(), ",") != "a,b" || !*get.Hints.Destructive ||
		get.Range.Start.Line != 3 {
		t.Errorf("%+v", lists[0].Tools)
	}
	one, err := ParseAll("tools.json", []byte(`[{"name":"x","inputSchema":{}}]`))
	if err != nil || len(one) != 1 || one[0].Server != "" {
		t.Error(one, err)
	}

	const bare = `{"assent_mcp_pins":1,"servers":{"a":{"tools":[{"definition":{"name":"x"}}]}}}`
	for text, want := range map[string]string{
		bare:                    `the tool "x" has no inputSchema`,
		`{"assent_mcp_pins":1}`: "p:1:1: servers: expected the servers",
		`{"assent_mcp_pins":1,"servers":{"a":{}}}`:             "p:1:37: servers.a.tools: expected the accepted definitions",
		`{"assent_mcp_pins":1,"servers":{"a":{"tools":[{}]}}}`: "p:1:47: servers.a.tools[0].definition: expected the definition",
		`{"assent_mcp_pins":1,`:                                "p:1:22: no list of tools",
		`{"assent":1}`:                                         "p:1:1: expected the result of tools/list",
	} {
		if lists, err := ParseAll("p", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", text, lists, err)
		}
	}
}

// FuzzParse reads any text. Nothing panics, every error has a position, and every tool has a
// unique name and a position inside the text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}}]}`,
		`[{"type":"function","function":{"name":"x","parameters":{"$ref":"#"}}}]`,
		`[{"name":"x","input_schema":{"enum":[1,[],{}],"allOf":[{"required":["a"]}]}}]`,
		`{"result":{"tools":[]}}`, `[`, `{"tools":[],"nextCursor":"x"}`,
		`{"assent_mcp_pins":1,"servers":{"a":{"tools":[{"definition":{"name":"x","inputSchema":{}}}]}}}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, src []byte) {
		if _, err := ParseAll("t", src); err != nil && !strings.HasPrefix(err.Error(), "t:") {
			t.Errorf("%q: %v has no place", src, err)
		}
		list, err := Parse("t", src)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "t:") {
				t.Errorf("%q: %v has no place", src, err)
			}
			return
		}

		names := map[string]bool{}
		lines := strings.Count(string(src), "\n") + 1
		for _, tool := range list.Tools {
			if names[tool.Name] || tool.Name == "" || tool.Range.Start.Line < 1 || tool.Range.Start.Line > lines {
				t.Errorf("odd tool %q at %v", tool.Name, tool.Range)
			}
			names[tool.Name] = true
			for _, name := range tool.Args.Names() {
				tool.Args.At(strings.Split(name, "."))
			}
			_ = tool.Args.String()
		}
	})
}
