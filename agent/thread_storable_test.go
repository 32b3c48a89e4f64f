package agent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

// storable fails the test unless the stored form of a thread can be read again.
func storable(t testing.TB, th *Thread) {
	t.Helper()
	raw, err := json.Marshal(th)
	if err != nil {
		t.Errorf("the thread can't be written: %v", err)
		return
	}
	if _, err := loaded(raw, "t"); err != nil {
		t.Errorf("the thread can't be read back (%d bytes): %v", len(raw), err)
	}
}

// TestWhateverIsSaidCanBeStored runs turns with unusual output of models, services and tools. A
// run may refuse it, but the thread must stay readable.
func TestWhateverIsSaidCanBeStored(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 150) + "1" + strings.Repeat("}", 150)
	schema := json.RawMessage(`oops`)
	one := func(contents ...content.Content) []*content.Message {
		return []*content.Message{content.NewMessage(content.Assistant, contents...)}
	}
	for name, turn := range map[string][]*content.Message{
		"text request of the model's side": one(&content.TextApprovalRequest{RequestID: "r", Text: "?"}),
		"no JSON":                          one(call("2", "look", "{oops")),
		"a list for arguments":             one(call("2", "look", "[1]")),
		"duplicate keys":                   one(call("2", "look", `{"a":1,"a":2}`)),
		"no UTF-8 arguments":               one(call("2", "look", "{\"a\":\"\xff\"}")),
		"deep":                             one(call("2", "look", deep)),
		"surrogate":                        one(call("2", "look", `{"a":"\ud800"}`)),
		"no UTF-8 name":                    one(call("2", "lo\xffok", `{}`)),
		"no id":                            one(call("", "look", `{}`)),
		"no name":                          one(call("2", "", `{}`)),
		"null":                             one(call("2", "look", `null`)),
		"blanks":                           one(call("2", "look", ` `)),
		"bad id":                           one(call("a\xff", "look", `{}`)),
		"no role":                          {{Contents: []content.Content{text("hi")}}},
		"blank id of a request":            one(mcpRequest(" ")),
		"no id of a request":               one(mcpRequest("")),
		"no name of a tool": one(&content.ToolApprovalRequest{RequestID: "r",
			Call: &content.MCPCall{CallID: "c"}}),
		"schema twice a key": one(&content.StructuredInputRequest{RequestID: "r",
			Schema: json.RawMessage(`{"a":1,"a":1}`)}),
		"no schema": one(&content.StructuredInputRequest{RequestID: "r"}),
		"no UTF-8":  one(text("a\xff")),
		"code interpreter": one(&content.ToolApprovalRequest{RequestID: "r",
			Call: &content.HostedCall{Kind: "codeInterpreterToolCall", CallID: "c"}}),
		"a state that is no JSON":  one(call("2", "state", "")),
		"a schema that is no JSON": one(call("2", "schema", "")),
	} {
		for _, beside := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var c counted
				state := suspending("wait", Suspend{State: schema,
					Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}})
				form := suspending("wait", Suspend{
					Requests: []content.InputRequest{
						&content.StructuredInputRequest{RequestID: "x", Schema: schema},
					},
				})
				state.name, form.name = "state", "schema"
				said := turn
				if beside {
					said = append(one(call("p", "pay", "")), turn...)
				}
				a := chat(talk(t, saidAll(said...), saidAll(content.AssistantText("ok"))), LoopConfig{}, nil,
					c.tool("look"), RequireApproval(c.tool("pay")), state, form)
				th := NewThread("t")
				resp, err := a.Run(t.Context(), th, content.UserText("x"))
				storable(t, th)
				if err != nil || !beside {
					return
				}
				mustRun(t, a, th, answers(approvalOf(t, resp, 0).CreateApproval("")))
				storable(t, th)
			})
		}
	}
}

// TestWhateverCallersSendCanBeStored gives a run messages with missing or wrong parts.
func TestWhateverCallersSendCanBeStored(t *testing.T) {
	result := func(id, raw string) *content.Message {
		return content.NewMessage(content.ToolRole,
			&content.FunctionResult{CallID: id, Result: json.RawMessage(raw)})
	}
	for name, message := range map[string]*content.Message{
		"a result that is no JSON": result("1", `oops`),
		"a result without a value": result("1", ``),
		"a message without a role": {Contents: []content.Content{text("hi")}},
	} {
		t.Run(name, func(t *testing.T) {
			k := talk(t, said(call("1", "theirs", ""), call("2", "theirs", "")), said(text("ok")))
			a := chat(k, LoopConfig{}, nil, declaredTool("theirs"))
			th := runner{T: t}.begin(a, "hi")
			_, _ = a.Run(t.Context(), th, message) // the run may refuse it
			storable(t, th)
			mustRun(t, a, reload(t, th), result("2", ``))
		})
	}
}

// TestMoreThanAReaderTakes checks that storing a thread that is too large to be read returns an
// error, so that loading doesn't fail later.
func TestMoreThanAReaderTakes(t *testing.T) {
	big := content.UserText(strings.Repeat("x", 23<<20))
	th := NewThread("t")
	_, _ = chat(talk(t, said(text("ok"))), LoopConfig{}, nil).Run(t.Context(), th, big, big, big)
	if _, err := json.Marshal(th); err == nil {
		storable(t, th)
	}
}

// A JSON result of a tool or its remote service must not make the thread unreadable.
func TestResultsOfToolsThatCantBeStored(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for name, result := range map[string]string{
		"duplicate keys": `{"a":1,"a":2}`,
		"lone surrogate": `"\ud800"`,
		"no UTF-8":       "\"\xff\"",
		"deep":           deep,
		"huge number":    `1e999`,
	} {
		t.Run(name, func(t *testing.T) {
			look := NewFunction("look", "", nil, func(context.Context, json.RawMessage) (any, error) {
				return json.RawMessage(result), nil
			})
			var c counted
			t.Run("in the history", func(t *testing.T) {
				a := chat(talk(t, said(call("1", "look", "")), said(text("ok"))), LoopConfig{}, nil, look)
				th := runner{T: t}.begin(a, "x")
				storable(t, th)
			})
			t.Run("beside a request", func(t *testing.T) {
				a := chat(talk(t, said(call("1", "look", ""), call("2", "pay", "")), said(text("ok"))),
					LoopConfig{}, nil, look, RequireApproval(c.tool("pay")))
				th, q := runner{T: t}.asks(a, "x")
				storable(t, th)
				mustRun(t, a, th, answers(q.CreateApproval("")))
				storable(t, th)
			})
			t.Run("approved, with a store", func(t *testing.T) {
				ran := 0
				pay := NewFunction("pay", "", nil, func(context.Context, json.RawMessage) (any, error) {
					ran++
					return json.RawMessage(result), nil
				})
				store := &keeper{}
				a := chat(talk(t, said(call("2", "pay", "")), said(text("ok"))), LoopConfig{}, store,
					RequireApproval(pay))
				th, q := runner{T: t}.asks(a, "x")
				if _, err := a.Run(t.Context(), th, answers(q.CreateApproval(""))); err != nil {
					t.Error("run:", err)
				}
				if _, err := store.Load(t.Context(), "t"); err != nil {
					t.Error("load:", err)
				}
			})
		})
	}
}

// Arguments are returned letter by letter, with any characters.
func TestArgumentsToTheLetter(t *testing.T) {
	var c counted
	a := c.asked(paying(t, `{"a":"<&>"}`), LoopConfig{})
	th, q := runner{T: t}.asks(a, "x")
	mustRun(t, a, reload(t, th), answers(q.CreateApproval("")))
	if c.runs[`pay{"a":"<&>"}`] != 1 {
		t.Error(c.runs)
	}
}
