package resolve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// TestRecordedCalls checks that a document preserves the bytes of a call's arguments with any
// encoder.
func TestRecordedCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCall(t).Recorded()
		text, err := json.Marshal(map[string]any{"call": c})
		must.Do(t, err)
		var indented bytes.Buffer
		must.Do(t, json.Indent(&indented, text, "", "  "))
		var back struct{ Call resolve.Call }
		if err := json.Unmarshal(indented.Bytes(), &back); err != nil || !reflect.DeepEqual(back.Call, c) {
			t.Fatalf("got %+v, %v\nwant %+v\ntext %s", back.Call, err, c, text)
		}
	})
}

// TestRecordedForm checks the form in which stores and API answers contain a call.
func TestRecordedForm(t *testing.T) {
	for want, c := range map[string]resolve.Call{
		`{"kind":"","args":""}`:                {},
		`{"kind":"","args":"","remote":true}`:  {Remote: resolve.RemoteYes},
		`{"kind":"","args":"","remote":false}`: {Remote: resolve.RemoteNo},
		`{"kind":"mcp_tool","tool":"t","server":"s","args":"{ \"a\":1 ` +
			`}","annotations":{"h":true},"principal":"p","session":"i",` +
			`"tool_definition":"d"}`: {
			Kind:           resolve.MCPTool,
			Tool:           "t",
			Server:         "s",
			Args:           resolve.Raw(`{ "a":1 }`),
			Values:         map[string]any{"never": "recorded"},
			Annotations:    map[string]bool{"h": true},
			Principal:      "p",
			Session:        "i",
			ToolDefinition: "d",
		},
		`{"kind":"skill","agent":"a","skill":"s","args":"{}","parent_input":"[1]"}`: {
			Kind:        resolve.Skill,
			Agent:       "a",
			Skill:       "s",
			Args:        resolve.Raw(`{}`),
			ParentInput: resolve.Raw(`[1]`),
		},
	} {
		if text, err := json.Marshal(c); err != nil || string(text) != want {
			t.Errorf("got %s, %v\nwant %s", text, err, want)
		}
	}

	for _, wrong := range []string{
		`{"remote":1}`,
		`{"remote":"true"}`,
		`{"args":{}}`,
		`{"args":[1]}`,
		`{"parent_input":1}`,
	} {
		if err := json.Unmarshal([]byte(wrong), new(resolve.Call)); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}

// TestRecordedSharesNothing checks that a record doesn't change if the caller modifies its bytes
// later.
func TestRecordedSharesNothing(t *testing.T) {
	c := resolve.Call{Args: []byte(`{}`), ParentInput: []byte(`{}`), Annotations: map[string]bool{"h": true}}
	kept := c.Recorded()
	c.Args[0] = 'x'
	c.ParentInput[0] = 'x'
	c.Annotations["h"] = false
	if string(kept.Args) != `{}` || string(kept.ParentInput) != `{}` || !kept.Annotations["h"] {
		t.Errorf("got %+v", kept)
	}
}

func TestTargets(t *testing.T) {
	for want, c := range map[[2]string]resolve.Call{
		{"no call", ""}:                 {},
		{"tool trade", ""}:              {Kind: resolve.Tool, Tool: "trade"},
		{"mcp_tool s/t", "s"}:           {Kind: resolve.MCPTool, Server: "s", Tool: "t"},
		{"skill a/s", "a"}:              {Kind: resolve.Skill, Agent: "a", Skill: "s"},
		{"delegation remote", "remote"}: {Kind: resolve.Delegation, Agent: "remote", Remote: resolve.RemoteYes},
		{"delegation either", "either"}: {Kind: resolve.Delegation, Agent: "either"},
		{"delegation local", ""}:        {Kind: resolve.Delegation, Agent: "local", Remote: resolve.RemoteNo},
	} {
		if got := [2]string{c.Target(), c.Container()}; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRawArgumentsPrintAsTheirText(t *testing.T) {
	if got := fmt.Sprintf("%v", resolve.Raw(`{"a":1}`)); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
}
