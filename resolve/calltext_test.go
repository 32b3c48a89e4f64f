package resolve_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

func drawCall(t *rapid.T) *resolve.Call {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"trade", `","tool":"drop`, "a<b & \u2028", "\\"}),
		rapid.StringN(1, 20, 60),
	)
	maybe := rapid.OneOf(rapid.Just(""), name)
	c := &resolve.Call{
		Principal:      maybe.Draw(t, "principal"),
		Session:        maybe.Draw(t, "session"),
		ToolDefinition: maybe.Draw(t, "definition"),
	}
	switch c.Kind = rapid.SampledFrom([]resolve.Kind{
		resolve.Tool,
		resolve.MCPTool,
		resolve.Skill,
		resolve.Delegation,
	}).Draw(t, "kind"); c.Kind {
	case resolve.Tool:
		c.Tool = name.Draw(t, "tool")
	case resolve.MCPTool:
		c.Server, c.Tool = name.Draw(t, "server"), name.Draw(t, "tool")
	case resolve.Skill:
		c.Agent, c.Skill = name.Draw(t, "agent"), name.Draw(t, "skill")
	case resolve.Delegation:
		c.Agent = name.Draw(t, "agent")
		c.Remote = rapid.SampledFrom([]resolve.Remote{resolve.RemoteUnstated, resolve.RemoteYes, resolve.RemoteNo}).
			Draw(t, "remote")
	}

	texts := rapid.SampledFrom(
		[]string{`{}`, ` { "a" : 1.50 , "b":"\u00e9<" }`, `{"a":1,"a":2}`, `{"deep":[[{"x":null}]]}`},
	)
	if rapid.Bool().Draw(t, "has args") {
		c.Args = []byte(texts.Draw(t, "args"))
	}
	if (c.Kind == resolve.Skill || c.Kind == resolve.Delegation) && rapid.Bool().Draw(t, "has input") {
		c.ParentInput = []byte(texts.Draw(t, "input"))
	}
	if rapid.Bool().Draw(t, "hints") {
		c.Annotations = map[string]bool{"readOnlyHint": rapid.Bool().Draw(t, "hint")}
	}
	if c.Tool != "" && rapid.Bool().Draw(t, "declared") {
		c.Declared = []string{"amount", "to"}
	}
	return c
}

// TestCallJSON checks that ParseCall reads the same call back, with its arguments byte for byte.
func TestCallJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCall(t)
		text, err := c.JSON()
		must.Do(t, err)
		back, err := resolve.ParseCall(text, value.Limits{})
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if c.ParentInput != nil {
			if !bytes.Equal(bytes.TrimSpace(c.ParentInput), bytes.TrimSpace(back.ParentInput)) {
				t.Fatalf("input %q became %q", c.ParentInput, back.ParentInput)
			}
			back.ParentInput = c.ParentInput
		}

		if c.Args != nil && bytes.Equal(bytes.TrimSpace(c.Args), bytes.TrimSpace(back.Args)) {
			back.Args = c.Args
		}
		if !reflect.DeepEqual(c, back) {
			t.Fatalf("got %+v\nwant %+v\ntext %s", back, c, text)
		}
	})
}

// TestCallJSONRefuses checks that JSON returns an error if the text would not be the same call.
func TestCallJSONRefuses(t *testing.T) {
	for name, c := range map[string]*resolve.Call{
		"decoded arguments": {Kind: resolve.Tool, Tool: "trade", Values: map[string]any{"amount": 1}},
		"broken arguments":  {Kind: resolve.Tool, Tool: "trade", Args: []byte(`{"amount":`)},
		"a further field":   {Kind: resolve.Tool, Tool: "trade", Args: []byte(`{},"session":"mine"`)},
		"a broken name":     {Kind: resolve.Tool, Tool: "tr\xffde"},
		"a broken input":    {Kind: resolve.Delegation, Agent: "a", ParentInput: []byte(`{`)},
	} {
		if text, err := c.JSON(); err == nil {
			t.Errorf("%s: got %s", name, text)
		}
	}
}

// FuzzCallJSON checks that no content of a call can become a field of its JSON.
func FuzzCallJSON(f *testing.F) {
	f.Add("trade", `{"a":1}`, `{}`, "s")
	f.Add("tr\xffde", `{},"session":"x"`, `{}},"session":"x","parent":{"input":{}`, "")
	f.Add(`"`, `null`, ` `, "\u2028")
	f.Fuzz(func(t *testing.T, tool, args, input, session string) {
		c := &resolve.Call{
			Kind:        resolve.Tool,
			Tool:        tool,
			Args:        []byte(args),
			ParentInput: []byte(input),
			Session:     session,
		}
		text, err := c.JSON()
		if err != nil {
			return
		}
		var got struct {
			Kind, Tool, Session string
			Args                json.RawMessage
			Parent              struct{ Input json.RawMessage }
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil || dec.More() {
			t.Fatalf("%v: %s", err, text)
		}
		same := func(a json.RawMessage, b string) bool {
			return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace([]byte(b)))
		}
		if got.Kind != "tool" || got.Tool != tool || got.Session != session || !same(got.Args, args) ||
			!same(got.Parent.Input, input) {
			t.Fatalf("got %+v from %s", got, text)
		}
	})
}
