package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func TestChatAgentOptions(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := talk(t, said(text("ok")))
		heat := 0.5
		cfg := ChatAgentConfig{
			Name:         "n",
			Instructions: "be kind",
			Model:        "big",
			Tools:        []Tool{c.tool("a")},
			Options: Options{
				Instructions: "x",
				Model:        "y",
				Temperature:  &heat,
				MaxTokens:    7,
				Tools:        []Tool{c.tool("b")},
				Extra:        map[string]any{"z": 1},
			},
		}
		a := NewChatAgent(k, cfg)
		th := t.begin(a, "x")
		got := k.options[0]
		if a.Name() != "n" || got.Instructions != "be kind" || got.Model != "big" || *got.Temperature != 0.5 ||
			got.MaxTokens != 7 ||
			len(got.Tools) != 2 ||
			got.Extra["z"] != 1 ||
			got.Thread != th {
			t.Errorf("%+v", got)
		}

		if len(cfg.Options.Tools) != 1 {
			t.Error("the configuration was changed")
		}
		expect(t, "kept", tell(th.Messages), "user: \"x\"\nassistant: \"ok\"\n")
	})
}

func TestChatAgentKeepsItsOptions(t *testing.T) {
	k := talk(t, said(text("ok")))
	mustRun(t, NewChatAgent(k, ChatAgentConfig{Options: Options{Instructions: "x", Model: "y"}}), NewThread("t"),
		content.UserText("x"))
	if got := k.options[0]; got.Instructions != "x" || got.Model != "y" {
		t.Errorf("%+v", got)
	}
}

func TestChatAgentSaves(t *testing.T) {
	bothWays(t, func(t runner) {
		store := &keeper{}
		a := chat(talk(t, said(text("one")), said(text("two")), said(text("three"))), LoopConfig{}, store)
		th := t.begin(a, "x")
		again := sure(store.Load(t.Context(), "t"))
		t.run(a, again, content.UserText("y"))
		expect(t, "kept", tell(again.Messages), "user: \"x\"\nassistant: \"one\"\nuser: \"y\"\nassistant: \"two\"\n")
		if _, err := t.try(a, th, content.UserText("z")); !errors.Is(err, ErrConflict) {
			t.Error("an older copy of the thread was saved over a newer one:", err)
		}
		if _, err := (&keeper{}).Load(t.Context(), "t"); !errors.Is(err, ErrNoThread) {
			t.Error(err)
		}
	})
}

func TestRunToEnd(t *testing.T) {
	var c counted
	turns := []func([]*content.Message, *Options) ([]*content.Message, error){
		said(text("?"), call("1", "pay", `{"n":1}`),
			call("2", "pay", `{"n":2}`)), said(call("3", "pay", `{"n":3}`)), said(text("all paid"))}
	agentOf := func() Agent {
		return chat(talk(t, turns...), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	}
	yes := func(_ context.Context, q content.InputRequest) (content.InputResponse, error) {
		return q.(*content.ToolApprovalRequest).CreateApproval(""), nil
	}
	resp, err := RunToEnd(t.Context(), agentOf(), NewThread("t"), []*content.Message{content.UserText("x")}, yes)
	if err != nil || len(c.runs) != 3 || resp.Text() != "?\nall paid" {
		t.Fatal(err, c.runs, resp)
	}
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		answer content.InputResponse
		err    error
		want   error
	}{
		"an error":  {nil, boom, boom},
		"no answer": {nil, nil, ErrUnanswered},
	} {
		th := NewThread("t")
		_, err := RunToEnd(t.Context(), agentOf(), th, []*content.Message{content.UserText("x")},
			func(context.Context, content.InputRequest) (content.InputResponse, error) { return tt.answer, tt.err })
		if !errors.Is(err, tt.want) || len(th.Pending()) != 2 {
			t.Errorf("%s: %v, pending %v", name, err, th.Pending())
		}
	}

	if _, err := RunToEnd(t.Context(), chat(talk(t, fails), LoopConfig{}, nil), NewThread("t"), nil, yes); !errors.Is(
		err,
		errModel,
	) {
		t.Error(err)
	}
}

func TestOptionsClone(t *testing.T) {
	var none *Options
	if got := none.Clone(); got == nil || got.Tools != nil {
		t.Error(got)
	}
	if (&Response{
		Messages: []*content.Message{
			content.AssistantText("a"),
			content.NewMessage(content.ToolRole),
			content.AssistantText("b"),
		},
	}).Text() != "a\nb" {
		t.Error("texts")
	}

	raw, err := json.Marshal(Event{Type: "lost", CallID: "1"})
	if err != nil || string(raw) != `{"at":"0001-01-01T00:00:00Z","type":"lost","thread":"","call_id":"1"}` {
		t.Error(string(raw), err)
	}
}

func TestRunToEndForEver(t *testing.T) {
	var c counted
	a := chat(talk(t, said(call("1", "pay", ""))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
	n := 0
	_, err := RunToEnd(t.Context(), a, NewThread("t"), []*content.Message{content.UserText("x")},
		func(_ context.Context, q content.InputRequest) (content.InputResponse, error) {
			if n++; n > 50 {
				return nil, errors.New("for ever")
			}
			return &content.TextApprovalResponse{RequestID: q.InputRequestID()}, nil
		})
	if n > 50 {
		t.Error("answers that are all refused, again and again:", err)
	}
}
