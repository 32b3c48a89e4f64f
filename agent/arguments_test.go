package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/content"
	"github.com/assent-dev/assent/value"
	"pgregory.net/rapid"
)

func TestArgumentsAreJudgedFirst(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	many := "{"
	for i := range 40 {
		many += fmt.Sprintf(`"k%d":%d,`, i, i)
	}
	for args, want := range map[string]string{
		`{"n":1}`:                      "",
		`{"n":"1"}`:                    "Error: arguments: n: expected a whole number",
		``:                             `Error: arguments: missing field "n"`,
		`{"n":1,"N":2}`:                `Error: arguments: the keys "n" and "N" differ only in upper and lower case: expected one of them`,
		`{"n":1,"a":[{"b":{},"B":1}]}`: `Error: arguments: the keys "b" and "B" differ only in upper and lower case: expected one of them`,
		many + `"n":1,"K3":1}`:         `Error: arguments: the keys "k3" and "K3" differ only in upper and lower case: expected one of them`,
		many + `"n":1}`:                "",
		`[1]`:                          "Error: arguments: expected an object, found an array",
	} {
		bothWays(t, func(t *testing.T, r runner) {
			var c counted
			pay := NewFunction("pay", "", schema, func(_ context.Context, args json.RawMessage) (any, error) {
				c.runs = map[string]int{string(args): 1}
				return 1, nil
			})
			k := talk(t, said(call("1", "pay", args)), said(text("ok")))
			resp := r.run(chat(k, LoopConfig{}, nil, RequireApproval(pay)), NewThread("t"), content.UserText("x"))
			asked := len(resp.UserInputRequests()) == 1
			if asked != (want == "") || want != "" && !strings.Contains(k.last(), string(jsonText(want))) || c.runs != nil {
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
		k := talk(t, said(call("1", "pay", `{}`)), said(text("ok")))
		mustRun(t, chat(k, LoopConfig{}, nil, RequireApproval(pay)), NewThread("t"), content.UserText("x"))
		if len(c.runs) != 0 || !strings.Contains(k.last(), "the schema of pay can't be used") {
			t.Error(schema, c.runs, k.last())
		}
	}
}

// TestSchemasAreKept: a loop that meets ever new tools does not grow for ever.
func TestSchemasAreKept(t *testing.T) {
	s := &schemas{}
	for i := range 2*maxSchemas + 3 {
		f := NewFunction("f", "", json.RawMessage(fmt.Sprintf(`{"maxProperties":%d}`, i)), nil)
		first, err := s.of(f)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := s.of(f); again != first {
			t.Fatal("compiled twice")
		}
	}
	if len(s.kept) > maxSchemas {
		t.Errorf("%d schemas are kept", len(s.kept))
	}
}

// TestMayFold: what is let pass without a closer look really holds no two keys that fold alike.
func TestMayFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-cA-C\\\\"é:]{0,3}`), 0, 4, rapid.ID[string]).Draw(t, "keys")
		values := map[string]any{}
		for _, k := range keys {
			values[k] = map[string]string{"x": `a"B":`}
		}
		raw, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		v, err := value.Parse(raw, value.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := folded(v); a != "" && !mayFold(raw) {
			t.Fatalf("%q and %q in %s", a, b, raw)
		}
	})
	if mayFold([]byte(`{"amount" : "ACME", "b":{"c\u0000":1}}`)) != true || mayFold([]byte(`{"amount" : "ACME","to":["É:"]}`)) {
		t.Error("keys and values are mixed up")
	}
}
