package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

const foundryID = "mcpr_5B93E5CDC9D471BE467A363EBC4252FB797FAFCA54AD45783C" // for ficc_call_1

func transfer() *content.ToolApprovalRequest {
	return &content.ToolApprovalRequest{RequestID: "ficc_call_1",
		Call: &content.FunctionCall{CallID: "call_1", Name: "transfer", Arguments: []byte(`{"amount":5}`)}}
}

// An agent that Foundry hosts shows its own functions as calls of a server, and accepts the
// answer under the id that it made.
func TestFoundryAsks(t *testing.T) {
	m := responsesOn(t, "foundry.json", Config{Model: "bank", Store: true})
	r := ask(t, m, nil, content.UserText("Pay."))
	shows(t, r, "caresp_1 bank stop", "goes on with caresp_1", "assistant caresp_1",
		`  asks `+foundryID+`: mcp `+foundryID+` agent_framework.transfer "{\"amount\":5}"`)
	no := r.UserInputRequests()[0].(*content.ToolApprovalRequest).CreateRejection("over the limit")
	r = ask(t, m, &agent.Options{ConversationID: r.ConversationID}, content.NewMessage(content.User, no))
	consent, ok := content.ConsentOf(r.Messages[0].Contents[0])
	if !ok || consent.Host != "login.example" || consent.Server != "drive" {
		t.Errorf("%+v, %v", consent, ok)
	}
}

// Requests of agents that we host have the same form.
func TestApprovalItemIsFoundrys(t *testing.T) {
	item := must.Get(ApprovalItem(transfer()))(t)
	want := `{"type":"mcp_approval_request","id":"` + foundryID + `","server_label":"agent_framework",` +
		`"name":"transfer","arguments":"{\"amount\":5}"}`
	if string(item) != want {
		t.Errorf("got  %s\nwant %s", item, want)
	}

	mcp := &content.ToolApprovalRequest{RequestID: "r",
		Call: &content.MCPCall{CallID: "r", Name: "list", ServerName: "drive"}}
	if item := must.Get(ApprovalItem(mcp))(t); !strings.Contains(string(item), `"server_label":"drive"`) {
		t.Errorf("%s", item)
	}
}

func TestApprovalItemRefuses(t *testing.T) {
	for name, q := range map[string]*content.ToolApprovalRequest{
		"no id":     {Call: transfer().Call},
		"no name":   {RequestID: "r", Call: &content.FunctionCall{CallID: "c"}},
		"no server": {RequestID: "r", Call: &content.MCPCall{CallID: "c", Name: "list"}},
		"hosted":    {RequestID: "r", Call: &content.HostedCall{Kind: "webSearchToolCall", CallID: "c"}},
	} {
		if item, err := ApprovalItem(q); !errors.As(err, new(*content.BadError)) {
			t.Errorf("%s: %s, %v", name, item, err)
		}
	}
}

// The call is taken from the open request, not from the caller's answer.
func TestApprovalAnswerIsBoundToAnOpenRequest(t *testing.T) {
	open := []*content.ToolApprovalRequest{{RequestID: "ficc_other", Call: transfer().Call}, transfer()}
	for item, want := range map[string]string{
		`{"type":"mcp_approval_response","approval_request_id":"` + foundryID + `","approve":true}`:                  "true ",
		`{"type":"mcp_approval_response","approval_request_id":"` + foundryID + `","approve":false,"reason":"no"}`:   "false no",
		`{"type":"mcp_approval_response","approval_request_id":"ficc_call_1","approve":true}`:                        "bad_id",
		`{"type":"mcp_approval_response","approval_request_id":"` + strings.ToLower(foundryID) + `","approve":true}`: "bad_id",
		`{"type":"mcp_approval_response","approval_request_id":"` + foundryID + `"}`:                                 "bad_shape",
		`{"type":"mcp_approval_response","approval_request_id":"` + foundryID + `","approve":"yes"}`:                 "bad_shape",
		`{"type":"mcp_approval_response","approve":true}`:                                                            "bad_shape",
		`{"type":"mcp_call","approval_request_id":"` + foundryID + `","approve":true}`:                               "bad_kind",
		`{"type":"mcp_approval_response","approve":true,"approve":false}`:                                            "bad_json",
	} {
		a, err := ApprovalAnswer([]byte(item), open)
		got := ""
		var bad *content.BadError
		switch {
		case errors.As(err, &bad):
			got = string(bad.Code)
		case a != nil && a.RequestID == "ficc_call_1" && content.SameCall(a.Call, transfer().Call):
			got = fmt.Sprint(a.Approved, " ") + a.Reason
		}

		if got != want {
			t.Errorf("%s\ngot %q, want %q (%v)", item, got, want, err)
		}
	}
}
