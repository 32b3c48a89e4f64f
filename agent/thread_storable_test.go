package agent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func TestThreadsThatCantBeStored(t *testing.T) {
	store := func(t *testing.T, th *Thread) {
		t.Helper()
		raw, err := json.Marshal(th)
		if err != nil {
			t.Error("write:", err)
			return
		}
		if _, err := loaded(raw, "t"); err != nil {
			t.Error("read:", err)
		}
	}
	t.Run("text request of the model's side", func(t *testing.T) {
		a := chat(talk(t, said(&content.TextApprovalRequest{RequestID: "r", Text: "?"})), LoopConfig{}, nil)
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("arguments that are no JSON beside a request", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", ""), call("2", "look", "{oops"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("arguments that are no JSON in the history", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("2", "look", "{oops")), said(text("ok"))), LoopConfig{}, nil, c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("a list for arguments", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", ""), call("2", "look", "[1]"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("duplicate keys in arguments", func(t *testing.T) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", ""), call("2", "look", `{"a":1,"a":2}`))), LoopConfig{}, nil, RequireApproval(c.tool("pay")), c.tool("look"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("a result of the caller that is no JSON", func(t *testing.T) {
		a := chat(talk(t, said(call("1", "theirs", ""), call("2", "theirs", ""))), LoopConfig{}, nil, declaredTool("theirs"))
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1", Result: json.RawMessage(`oops`)}))
		store(t, th)
	})
	t.Run("a state that is no JSON", func(t *testing.T) {
		tool := &asking{name: "w", ask: func() *Suspend {
			return &Suspend{State: json.RawMessage(`oops`), Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}}
		a := chat(talk(t, said(call("1", "w", "")), said(text("ok"))), LoopConfig{}, nil, tool)
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
	t.Run("a schema that is no JSON", func(t *testing.T) {
		tool := &asking{name: "w", ask: func() *Suspend {
			return &Suspend{Requests: []content.InputRequest{&content.StructuredInputRequest{RequestID: "x", Schema: json.RawMessage(`oops`)}}}
		}}
		a := chat(talk(t, said(call("1", "w", "")), said(text("ok"))), LoopConfig{}, nil, tool)
		th := NewThread("t")
		mustRun(t, a, th, content.UserText("hi"))
		store(t, th)
	})
}

// What a tool (a remote service behind it) gives as JSON must not make the thread unreadable.
func TestResultsOfToolsThatCantBeStored(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for name, result := range map[string]string{
		"duplicate keys": `{"a":1,"a":2}`, "lone surrogate": `"\ud800"`, "no UTF-8": "\"\xff\"", "deep": deep, "huge number": `1e999`,
	} {
		t.Run(name, func(t *testing.T) {
			look := NewFunction("look", "", nil, func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(result), nil })
			var c counted
			t.Run("in the history", func(t *testing.T) {
				a := chat(talk(t, said(call("1", "look", "")), said(text("ok"))), LoopConfig{}, nil, look)
				th := NewThread("t")
				mustRun(t, a, th, content.UserText("x"))
				reviewStorable(t, th)
			})
			t.Run("beside a request", func(t *testing.T) {
				a := chat(talk(t, said(call("1", "look", ""), call("2", "pay", "")), said(text("ok"))), LoopConfig{}, nil, look, RequireApproval(c.tool("pay")))
				th := NewThread("t")
				q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
				reviewStorable(t, th)
				mustRun(t, a, th, answers(q.CreateApproval("")))
				reviewStorable(t, th)
			})
			t.Run("approved, with a store", func(t *testing.T) {
				ran := 0
				pay := NewFunction("pay", "", nil, func(context.Context, json.RawMessage) (any, error) { ran++; return json.RawMessage(result), nil })
				store := &keeper{}
				a := chat(talk(t, said(call("2", "pay", "")), said(text("ok"))), LoopConfig{}, store, RequireApproval(pay))
				th := NewThread("t")
				q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
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

// Arguments and names that a model may write.
func TestModelOutputThatCantBeStored(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 150) + "1" + strings.Repeat("}", 150)
	for name, c := range map[string]*content.FunctionCall{
		"no UTF-8 arguments": call("1", "look", "{\"a\":\"\xff\"}"), "deep": call("1", "look", deep), "surrogate": call("1", "look", `{"a":"\ud800"}`),
		"no UTF-8 name": call("1", "lo\xffok", `{}`), "no id": call("", "look", `{}`), "no name": call("1", "", `{}`), "null": call("1", "look", `null`), "blanks": call("1", "look", ` `),
		"bad id": call("a\xff", "look", `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			var n counted
			a := chat(talk(t, said(c, call("p", "pay", "")), said(text("ok"))), LoopConfig{}, nil, n.tool("look"), RequireApproval(n.tool("pay")))
			th := NewThread("t")
			q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
			reviewStorable(t, th)
			mustRun(t, a, th, answers(q.CreateApproval("")))
			reviewStorable(t, th)
		})
	}
}

// What a client or a model leaves out must not make the stored thread unreadable.
func TestMoreThatCantBeStored(t *testing.T) {
	ask := func(q content.InputRequest) []*content.Message {
		return []*content.Message{content.NewMessage(content.Assistant, q)}
	}
	for name, ms := range map[string][]*content.Message{
		"no role":               {{Contents: []content.Content{text("hi")}}},
		"blank id of a request": ask(mcpRequest(" ")),
		"no id of a request":    ask(mcpRequest("")),
		"no name of a tool":     ask(&content.ToolApprovalRequest{RequestID: "r", Call: &content.MCPCall{CallID: "c"}}),
		"schema twice a key":    ask(&content.StructuredInputRequest{RequestID: "r", Schema: json.RawMessage(`{"a":1,"a":1}`)}),
		"no schema":             ask(&content.StructuredInputRequest{RequestID: "r"}),
		"no UTF-8":              {content.AssistantText("a\xff")},
		"code interpreter":      ask(&content.ToolApprovalRequest{RequestID: "r", Call: &content.HostedCall{Kind: "codeInterpreterToolCall", CallID: "c"}}),
	} {
		t.Run(name, func(t *testing.T) {
			k := talk(t, saidAll(ms...))
			a := chat(k, LoopConfig{}, nil)
			th := NewThread("t")
			if _, err := a.Run(t.Context(), th, content.UserText("x")); err != nil {
				t.Log("refused at once:", err)
			}
			reviewStorable(t, th)
		})
	}
	t.Run("a user's message without a role", func(t *testing.T) {
		a := chat(talk(t, said(text("ok"))), LoopConfig{}, nil)
		th := NewThread("t")
		if _, err := a.Run(t.Context(), th, &content.Message{Contents: []content.Content{text("hi")}}); err != nil {
			t.Log("refused at once:", err)
		}
		reviewStorable(t, th)
	})
	t.Run("more than a reader takes", func(t *testing.T) {
		big := content.UserText(strings.Repeat("x", 23<<20))
		a := chat(talk(t, said(text("ok"))), LoopConfig{}, nil)
		th := NewThread("t")
		if _, err := a.Run(t.Context(), th, big, big, big); err != nil {
			t.Log("refused at once:", err)
		}
		if raw, err := json.Marshal(th); err == nil {
			if _, err := loaded(raw, "t"); err != nil {
				t.Errorf("written (%d MB), not read: %v", len(raw)>>20, err)
			}
		}
	})
}

func TestResultWithoutAValueIsStored(t *testing.T) {
	a := chat(talk(t, said(call("1", "theirs", ""), call("2", "theirs", "")), said(text("ok"))), LoopConfig{}, nil, declaredTool("theirs"))
	th := NewThread("t")
	mustRun(t, a, th, content.UserText("x"))
	mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "1"}))
	th = reload(t, th)
	mustRun(t, a, th, content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "2"}))
}

// Arguments come back to the letter, whatever letters they hold.
func TestArgumentsToTheLetter(t *testing.T) {
	var c counted
	a := chat(talk(t, said(call("1", "pay", `{"a":"<&>"}`)), said(text("ok"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	th := NewThread("t")
	q := approvalOf(t, mustRun(t, a, th, content.UserText("x")), 0)
	mustRun(t, a, reload(t, th), answers(q.CreateApproval("")))
	if c.runs[`pay{"a":"<&>"}`] != 1 {
		t.Error(c.runs)
	}
}

func reviewStorable(t *testing.T, th *Thread) {
	t.Helper()
	raw, err := json.Marshal(th)
	if err != nil {
		t.Errorf("the thread can't be written: %v", err)
		return
	}
	if _, err := loaded(raw, "t"); err != nil {
		t.Errorf("the thread can't be read back: %v", err)
	}
}
