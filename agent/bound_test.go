package agent

import (
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func newTestAgent(model ChatClient, cfg LoopConfig, tools ...Tool) Agent {
	cfg.RequestID = plainIDs
	return NewChatAgent(NewFunctionInvoking(model, cfg), ChatAgentConfig{Name: "test", Tools: tools})
}

func TestApprovalInAnotherProcess(t *testing.T) {
	var c counted
	model := script(t, says(text("Let me."), call("1", "pay", `{"to":"bob"}`), call("2", "look", "")), says(text("Done.")))
	a := newTestAgent(model, LoopConfig{}, RequireApproval(c.tool("pay")), c.tool("look"))
	thread := NewThread("t")

	resp := mustRun(t, a, thread, content.UserText("pay bob"))
	expect(t, "first response", tell(resp.Messages), "assistant: \"Let me.\" ficc_1?[1=pay({\"to\":\"bob\"})]\n")
	expect(t, "history", tell(thread.Messages), "user: \"pay bob\"\nassistant: \"Let me.\"\n")
	if c.runs["look"] != 1 || len(thread.Pending()) != 1 {
		t.Fatalf("runs %v, pending %v", c.runs, thread.Pending())
	}

	thread = reload(t, thread)
	resp = mustRun(t, a, thread, answers(approvalOf(t, resp, 0).CreateApproval("")))
	want := "assistant: 1=pay({\"to\":\"bob\"}) 2=look()\ntool: 1→\"did pay\" 2→\"did look\"\nassistant: \"Done.\"\n"
	expect(t, "second response", tell(resp.Messages), want)
	expect(t, "history", tell(thread.Messages), "user: \"pay bob\"\nassistant: \"Let me.\"\n"+want)
	if c.runs["look"] != 1 || c.runs[`pay{"to":"bob"}`] != 1 || len(thread.Pending()) != 0 {
		t.Fatalf("runs %v, pending %v", c.runs, thread.Pending())
	}
}
