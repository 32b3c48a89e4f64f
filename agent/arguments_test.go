package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

func TestArgumentsAreJudgedFirst(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	many := "{"
	for i := range 40 {
		many += fmt.Sprintf(`"k%d":%d,`, i, i)
	}
	alike := func(place, first, second, column string) string {
		return "Error: arguments: line 1, column " + place + `: the keys "` + first + `" and "` + second +
			`" differ in upper and lower case alone, so some readers take them for one: expected one of them (first ` +
			`at column ` + column + ")"
	}
	for args, want := range map[string]string{
		`{"n":1}`:                      "",
		`{"n":"1"}`:                    "Error: arguments: n: expected a whole number",
		``:                             `Error: arguments: missing field "n"`,
		`{"n":1,"N":2}`:                alike("8", "n", "N", "2"),
		`{"n":1,"a":[{"b":{},"B":1}]}`: alike("21", "b", "B", "14"),
		many + `"n":1,"K3":1}`:         alike(fmt.Sprint(len(many)+7), "k3", "K3", "23"),
		many + `"n":1}`:                "",
		`[1]`:                          "Error: arguments: expected an object, found an array",
	} {
		bothWays(t, func(t runner) {
			var c counted
			pay := NewFunction("pay", "", schema, func(_ context.Context, args json.RawMessage) (any, error) {
				c.runs = map[string]int{string(args): 1}
				return 1, nil
			})
			k := paying(t, args)
			resp := t.run(chat(k, LoopConfig{}, nil, RequireApproval(pay)), NewThread("t"), content.UserText("x"))
			asked := len(resp.UserInputRequests()) == 1
			if asked != (want == "") || want != "" && !strings.Contains(k.last(), string(jsonText(want))) ||
				c.runs != nil {
				t.Errorf("%s: asked %v\n%s", args, asked, k.last())
			}
		})
	}
}

func TestSchemasThatCantBeUsed(t *testing.T) {
	for _, schema := range []string{`{`, `{"type":"objekt"}`, `{"$ref":"https://example.com/x.json"}`} {
		var c counted
		pay := c.tool("pay").(*function)
		pay.def.Schema = json.RawMessage(schema)
		k := paying(t, `{}`)
		mustRun(t, chat(k, LoopConfig{}, nil, RequireApproval(pay)), NewThread("t"), content.UserText("x"))
		if len(c.runs) != 0 || !strings.Contains(k.last(), "the schema of pay can't be used") {
			t.Error(schema, c.runs, k.last())
		}
	}
}

// TestSchemasAreKept checks that the cache doesn't grow without bound in a loop whose tools
// keep changing.
func TestSchemasAreKept(t *testing.T) {
	s := &schemas{}
	for i := range 2*maxSchemas + 3 {
		f := NewFunction("f", "", json.RawMessage(fmt.Sprintf(`{"maxProperties":%d}`, i)), nil)
		first := must.Get(s.of(f))(t)
		if again, _ := s.of(f); again != first {
			t.Fatal("compiled twice")
		}
	}

	if len(s.kept) > maxSchemas {
		t.Errorf("%d schemas are kept", len(s.kept))
	}
}

// TestThePlanSaysWhichFunctionsTellKeysApart checks that the loop rejects keys that differ only
// in case if the call is decided, except for functions that the owner of the plan has listed.
// Without a decider the function gets the arguments as the model wrote them.
func TestThePlanSaysWhichFunctionsTellKeysApart(t *testing.T) {
	const file = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Looks.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Look., model: any}}
action_space: {local_tools: [{alias: grep}]}
`
	parsed, findings := schema.Parse("desk.agf.yaml", []byte(file))
	if parsed == nil {
		t.Fatal(findings)
	}
	planned := func(opt resolve.Options) Decider {
		plan := must.Get(resolve.Compile(parsed, nil, opt))(t)
		return ByPlan(plan, PlanOptions{})
	}
	const refused = "the keys \"i\" and \"I\" differ in upper and lower case alone"
	for name, tt := range map[string]struct {
		decider Decider
		marked  bool
		runs    bool
	}{
		"a plan": {decider: planned(resolve.Options{})},
		"a plan that names it": {decider: planned(resolve.Options{CaseSensitive: []string{"tool grep"}}),
			runs: true},
		"a plan that names others": {decider: planned(resolve.Options{CaseSensitive: []string{"tool other"}})},
		"a mark alone":             {marked: true},
		"nobody":                   {runs: true},
	} {
		var c counted
		grep := Tool(c.tool("grep"))
		if tt.marked {
			grep = RequireApproval(c.tool("grep"))
		}
		k := talk(t, said(call("1", "grep", `{"i":1,"I":2}`)), said(text("ok")))
		mustRun(t, chat(k, LoopConfig{Decider: tt.decider}, nil, grep), NewThread("t"), content.UserText("x"))
		if ran := len(c.runs) == 1; ran != tt.runs ||
			!ran && !strings.Contains(k.last(), strings.ReplaceAll(refused, `"`, `\"`)) {
			t.Errorf("%s: ran %v\n%s", name, ran, k.last())
		}
	}
}
