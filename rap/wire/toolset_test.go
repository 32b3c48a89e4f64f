package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/wire"
)

// manifest returns a manifest with the given tools.
func manifest(tools ...string) []byte {
	return fmt.Appendf(nil, `{"name":"n","endpoint":"https://a.example/","tools":[%s]}`, strings.Join(tools, ","))
}

func tool(name string) string {
	return `{"name":"` + name + `","description":"","inputSchema":{"type":"object"}}`
}

// If any part of a manifest is invalid, all of it is refused.
func TestToolsetRefused(t *testing.T) {
	with := func(members string) string {
		return `{"name":"t","description":"d","inputSchema":{}` + members + "}"
	}
	cases := map[string]struct{ tool, field string }{
		"no name":             {`{"description":"","inputSchema":{}}`, "tools[1].name"},
		"empty name":          {tool(""), "tools[1].name"},
		"long name":           {tool(strings.Repeat("a", 129)), "tools[1].name"},
		"space":               {tool("a b"), "tools[1].name"},
		"slash":               {tool("a/b"), "tools[1].name"},
		"letter beyond ASCII": {tool("écrire"), "tools[1].name"},
		"look-alike":          {tool("rеad"), "tools[1].name"},
		"control character":   {tool(`a\u0007`), "tools[1].name"},
		"bidi":                {tool(`a\u202e`), "tools[1].name"},
		"name twice":          {tool("first"), "tools[1].name"},
		"name not a string":   {`{"name":1,"description":"","inputSchema":{}}`, "tools[1].name"},
		"no description":      {`{"name":"t","inputSchema":{}}`, "tools[1].description"},
		"no schema":           {`{"name":"t","description":""}`, "tools[1].inputSchema"},
		"null schema":         {`{"name":"t","description":"","inputSchema":null}`, "tools[1].inputSchema"},
		"boolean schema":      {`{"name":"t","description":"","inputSchema":true}`, "tools[1].inputSchema"},
		"schema in a string":  {`{"name":"t","description":"","inputSchema":"{}"}`, "tools[1].inputSchema"},
		"input_schema":        {`{"name":"t","description":"","input_schema":{}}`, "tools[1].inputSchema"},
		"bad schema":          {`{"name":"t","description":"","inputSchema":{"type":"strnig"}}`, "tools[1].inputSchema"},
		"remote reference": {
			`{"name":"t","description":"","inputSchema":{"$ref":"https://a.example/s.json"}}`,
			"tools[1].inputSchema",
		},
		"costly schema": {
			`{"name":"t","description":"","inputSchema":{"pattern":"((a{1,100}){1,100}){1,100}"}}`,
			"tools[1].inputSchema",
		},
		"unknown draft": {
			`{"name":"t","description":"","inputSchema":{"$schema":"https://a.example/draft"}}`,
			"tools[1].inputSchema",
		},
		"annotations a list": {with(`,"annotations":[]`), "tools[1].annotations"},
		"readOnly a string":  {with(`,"annotations":{"readOnly":"false"}`), "tools[1].annotations.readOnly"},
		"destructive 0":      {with(`,"annotations":{"destructive":0}`), "tools[1].annotations.destructive"},
		"idempotent object":  {with(`,"annotations":{"idempotent":{}}`), "tools[1].annotations.idempotent"},
		"longRunning 1":      {with(`,"annotations":{"longRunning":1}`), "tools[1].annotations.longRunning"},
		"requiresAuth true":  {with(`,"annotations":{"requiresAuth":true}`), "tools[1].annotations.requiresAuth"},
		"displayScript 1":    {with(`,"displayScript":1`), "tools[1].displayScript"},
		"not an object":      {`"t"`, "tools[1]"},
	}
	for name, c := range cases {
		got, err := wire.ParseToolset(manifest(tool("first"), c.tool, tool("last")))
		var bad *wire.Error
		if got != nil || !errors.As(err, &bad) || bad.Field != c.field {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestToolsetAccepted(t *testing.T) {
	for _, name := range []string{"a", "A.b-C_9", strings.Repeat("a", 128)} {
		if got, err := wire.ParseToolset(manifest(tool(name), tool(name[1:]+"x"))); err != nil ||
			got.Tools[0].Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}

	src := `{"name":"t","description":"d","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#",` +
		`"definitions":{"a":{}},"$ref":"#/definitions/a"},` +
		`"annotations":{"Destructive":false,"x-acme":[],"readOnly":null,"destructive":true}}`
	got, err := wire.ParseToolset(manifest(src))
	if err != nil || !reflect.DeepEqual(got.Tools[0].Annotations, wire.Annotations{Destructive: ptr(true)}) {
		t.Errorf("%+v, %v", got, err)
	}
	long := strings.Repeat("é", 128)
	if got, err := wire.ParseToolset([]byte(strings.Replace(
		string(manifest(tool("t"))),
		`"n"`,
		`"`+long+`"`,
		1,
	))); err != nil || got.Name != long {
		t.Error(err)
	}
}

// The cost of a manifest and the length of lists are limited.
func TestBounds(t *testing.T) {
	times := func(n int, element string) string {
		return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
	}
	tools := func(n int, schema string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"name":"t%d","description":"","inputSchema":%s}`, i, schema))
		}
		return strings.Join(all, ",")
	}
	large := `{"description":"` + strings.Repeat("a", 200<<10) + `"}`
	choice := `{"type":"user_choice","group_id":"g","id":"c","prompt":"","default":0,"response_url":"http://a/",` +
		`"choices":[%s]}`
	result := `{"type":"tool_result","group_id":"g","id":"c","content":[%s]}`
	display := `{"type":"tool_result","group_id":"g","id":"c","text":"","display_as":[%s]}`
	invocation := `{"operation":"o","group_id":"g","id":"c","callback_url":"http://a/","thread_ancestors":[%s]}`
	cases := []struct {
		kind, good, bad, field string
	}{
		{"toolset/", string(manifest(tools(256, `{}`))), string(manifest(tools(257, `{}`))), "tools"},
		{"toolset/", string(manifest(tools(5, large))), string(manifest(tools(6, large))), "tools[5].inputSchema"},
		{"callback/", fmt.Sprintf(choice, times(10_000, `"a"`)), fmt.Sprintf(choice, times(10_001, `"a"`)), "choices"},
		{
			"callback/",
			fmt.Sprintf(result, times(1000, `{"type":"text","text":""}`)),
			fmt.Sprintf(result, times(1001, `{"type":"text","text":""}`)),
			"content",
		},
		{
			"callback/",
			fmt.Sprintf(display, times(1000, `{"type":"x"}`)),
			fmt.Sprintf(display, times(1001, `{"type":"x"}`)),
			"display_as",
		},
		{
			"invocation/",
			fmt.Sprintf(invocation, times(1000, `"a"`)),
			fmt.Sprintf(invocation, times(1001, `"a"`)),
			"thread_ancestors",
		},
		{
			"callback/",
			`{"type":"subscription_event","group_id":"g","tool_call_id":"c","text":"` + strings.Repeat("a", 15<<20) +
				`"}`,
			`{"type":"subscription_event","group_id":"g","tool_call_id":"c","text":"` + strings.Repeat(
				"a",
				16<<20,
			) + `"}`,
			"",
		},
	}
	for _, c := range cases {
		if _, err := parse(c.kind, []byte(c.good)); err != nil {
			t.Errorf("%.80s: %v", c.good, err)
		}
		_, err := parse(c.kind, []byte(c.bad))
		var bad *wire.Error
		if !errors.As(err, &bad) || bad.Field != c.field {
			t.Errorf("%.80s: %v", c.bad, err)
		}
	}
}

func parsedTool(t testing.TB, schema string) *wire.Tool {
	t.Helper()
	set := must.Get(wire.ParseToolset(manifest(`{"name":"t","description":"","inputSchema":` + schema + `}`)))(t)
	return &set.Tools[0]
}

// Arguments are checked against the schema, both for parsed tools and for those built in code.
func TestCheckArguments(t *testing.T) {
	schema := `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer",` +
		`"maximum":9007199254740992}},"required":["path"],"additionalProperties":false}`
	cases := []struct{ args, want string }{
		{`{"path":"/tmp/a"}`, ""},
		{` {"path":"/tmp/a","n":9007199254740992} `, ""},
		{`{"path":"/tmp/a","n":9007199254740993}`, "n: "},
		{`{"path":7}`, "path: "},
		{`{"path":"/tmp/a","Path":"/tmp/b"}`, `"Path"`},
		{`{}`, `"path"`},
		{``, `"path"`},
		{`null`, `"path"`},
		{`[]`, "arguments: expected an object, found a list"},
		{`"{}"`, "arguments: expected an object, found a string"},
		{`{"path":"a","path":"b"}`, "duplicate-key"},
		{`{"path":"` + "\xff" + `"}`, "invalid-utf8"},
		{`{"path":"a"}{}`, "trailing-data"},
		{`{`, "syntax"},
	}
	for _, tool := range []*wire.Tool{parsedTool(t, schema), {InputSchema: json.RawMessage(schema)}} {
		for _, c := range cases {
			err := tool.CheckArguments(json.RawMessage(c.args))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.args, err)
			}
		}
	}

	if err := parsedTool(t, `{}`).CheckArguments(nil); err != nil {
		t.Error(err)
	}
	if err := (&wire.Tool{}).CheckArguments(json.RawMessage(`{}`)); err == nil {
		t.Error("a tool without a schema takes arguments")
	}
}

// Errors about arguments are short and printable, whatever schema and arguments contain.
func TestCheckArgumentsErrors(t *testing.T) {
	var props, args []string
	for i := range 50 {
		props = append(props, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		args = append(args, fmt.Sprintf(`"p%d":%d`, i, i))
	}
	err := parsedTool(
		t,
		`{"properties":{`+strings.Join(props, ",")+`}}`,
	).CheckArguments(json.RawMessage("{" + strings.Join(args, ",") + "}"))
	if err == nil || !strings.HasSuffix(err.Error(), "; and 45 more") {
		t.Error(err)
	}
	odd := json.RawMessage(`{"a\u001b[31m\u202e` + strings.Repeat("é", 5000) + `":"\u0000"}`)
	err = parsedTool(t, `{"additionalProperties":{"type":"object"}}`).CheckArguments(odd)
	if err == nil || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\x00\u202e") ||
		!strings.Contains(err.Error(), "éé…: ") {
		t.Errorf("%q", err)
	}
}

// An untrusted schema can't make a check run forever; the check returns ErrCostly.
func TestCheckArgumentsCostly(t *testing.T) {
	deep := `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"items":{"$ref":"#/$defs/a"},"minItems":9},` +
		`{"items":{"$ref":"#/$defs/a"},"minItems":9}],"additionalProperties":{"$ref":"#/$defs/a"}}}}`
	args := `{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`
	if err := parsedTool(t, deep).CheckArguments(json.RawMessage(args)); !errors.Is(err, jsonschema.ErrCostly) {
		t.Error(err)
	}
}

// A digest depends on a tool's content, not on its spelling.
func TestDigest(t *testing.T) {
	base := wire.Tool{
		Name:        "t",
		Description: "d",
		InputSchema: json.RawMessage(`{"type":"object","maxProperties":1}`),
		Annotations: wire.Annotations{Destructive: ptr(false)},
	}
	digest := base.Digest()
	if !strings.HasPrefix(digest, "sha256:") || len(digest) != 7+64 {
		t.Fatal(digest)
	}
	change := func(f func(*wire.Tool)) string {
		other := base
		f(&other)
		return other.Digest()
	}
	same := map[string]func(*wire.Tool){
		"spelling": func(t *wire.Tool) {
			t.InputSchema = json.RawMessage(` { "maxProperties":1.0, "type":"\u006fbject" } `)
		},
		"display": func(t *wire.Tool) { t.DisplayScript = "x" },
	}
	for name, f := range same {
		if change(f) != digest {
			t.Errorf("%s changes the digest", name)
		}
	}
	other := map[string]func(*wire.Tool){
		"name":        func(t *wire.Tool) { t.Name = "T" },
		"description": func(t *wire.Tool) { t.Description = "d " },
		"schema": func(t *wire.Tool) {
			t.InputSchema = json.RawMessage(`{"type":"object","maxProperties":2}`)
		},
		"no schema":   func(t *wire.Tool) { t.InputSchema = nil },
		"bad schema":  func(t *wire.Tool) { t.InputSchema = json.RawMessage(`{`) },
		"destructive": func(t *wire.Tool) { t.Annotations.Destructive = ptr(true) },
		"not said":    func(t *wire.Tool) { t.Annotations.Destructive = nil },
		"read-only":   func(t *wire.Tool) { t.Annotations.ReadOnly = ptr(false) },
		"auth":        func(t *wire.Tool) { t.Annotations.RequiresAuth = "oauth" },
		"idempotent":  func(t *wire.Tool) { t.Annotations.Idempotent = ptr(true) },
		"longRunning": func(t *wire.Tool) { t.Annotations.LongRunning = ptr(true) },
	}
	seen := map[string]string{digest: "nothing"}
	for name, f := range other {
		d := change(f)
		if seen[d] != "" {
			t.Errorf("changing %s is like changing %s", name, seen[d])
		}
		seen[d] = name
	}
}
