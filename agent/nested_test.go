package agent

import (
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func TestNestedTwoDeep(t *testing.T) {
	var c counted
	inner := NewChatAgent(NewFunctionInvoking(script(t, says(call("i1", "pay", `{"to":"bob"}`)), says(text("paid"))), LoopConfig{RequestID: plainIDs}),
		ChatAgentConfig{Name: "teller", Tools: []Tool{RequireApproval(c.tool("pay"))}})
	middle := NewChatAgent(NewFunctionInvoking(script(t, says(call("m1", "teller", `{"input":"pay bob"}`)), says(text("the teller paid"))), LoopConfig{RequestID: plainIDs}),
		ChatAgentConfig{Name: "bank", Tools: []Tool{AsTool(inner, NestedConfig{})}})
	outer := newTestAgent(script(t, says(call("o1", "bank", `{"input":"pay bob"}`)), says(text("all done"))), LoopConfig{}, AsTool(middle, NestedConfig{}))

	thread := NewThread("t")
	resp := mustRun(t, outer, thread, content.UserText("pay bob"))
	q := approvalOf(t, resp, 0)
	if q.Note.Agent != "bank/teller" || q.Call.ToolName() != "pay" {
		t.Fatalf("asked by %q about %q", q.Note.Agent, q.Call.ToolName())
	}
	thread = reload(t, thread)
	resp = mustRun(t, outer, thread, answers(q.CreateApproval("")))
	expect(t, "last", tell(resp.Messages), "assistant: o1=bank({\"input\":\"pay bob\"})\ntool: o1→\"the teller paid\"\nassistant: \"all done\"\n")
	if c.runs[`pay{"to":"bob"}`] != 1 {
		t.Fatal(c.runs)
	}
}
