package agui

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func TestShowsTheServerOfAHostedCall(t *testing.T) {
	for want, call := range map[string]content.ToolCall{
		`"hosted":true,"server_name":"docs"}`: &content.MCPCall{CallID: "c", Name: "search", ServerName: "docs"},
		`"arguments":{},"hosted":true}`:       &content.MCPCall{CallID: "c", Name: "search"},
		`"arguments":{}}`:                     &content.FunctionCall{CallID: "c", Name: "search"},
	} {
		i, err := InterruptOf(&content.ToolApprovalRequest{RequestID: "r", Call: call})
		if err != nil || !strings.Contains(string(i.Metadata), want) {
			t.Errorf("%s, %v\nwant %s", i.Metadata, err, want)
		}
		if words := "Approve running search" + content.ServerWords(call) + "?"; i.Message != words {
			t.Errorf("%s, want %s", i.Message, words)
		}
	}
}

// A reason must not be taken as an edit of an argument of that name, nor an edit as a reason.
func TestTellsAReasonFromAnArgumentOfThatName(t *testing.T) {
	q := &content.ToolApprovalRequest{
		RequestID: "r",
		Call: &content.FunctionCall{CallID: "c", Name: "refund",
			Arguments: json.RawMessage(`{"amount":5,"reason":"damaged"}`)},
	}
	for _, c := range []struct {
		payload  string
		approved bool
		args     string
		reason   string
		code     Code
	}{
		{payload: `{"approved":true,"reason":"looks fine"}`, code: CodeInvalidResponse},
		{payload: `{"approved":true,"reason":""}`, code: CodeInvalidResponse},
		{payload: `{"approved":true,"reason":5}`, code: CodeInvalidResponse},
		{payload: `{"approved":true,"amount":4,"reason":"looks fine"}`, code: CodeInvalidResponse},
		{payload: `{"approved":true,"amount":5,"reason":"damaged"}`, approved: true,
			args: `{"amount":5,"reason":"damaged"}`},
		{payload: `{"approved":true,"amount":4,"reason":"damaged"}`, approved: true,
			args: `{"amount":4,"reason":"damaged"}`},
		{payload: `{"approved":true,"reason":"looks fine","editedArgs":{"amount":5,"reason":"lost"}}`,
			approved: true, args: `{"amount":5,"reason":"lost"}`, reason: "looks fine"},
		{payload: `{"approved":true,"reason":"looks fine","editedArgs":{"amount":5,"reason":"damaged"}}`,
			approved: true, args: `{"amount":5,"reason":"damaged"}`, reason: "looks fine"},
		{payload: `{"approved":false,"reason":"not today"}`, args: `{"amount":5,"reason":"damaged"}`,
			reason: "not today"},
		{payload: `{"approved":false,"reason":5}`, code: CodeInvalid},
	} {
		resume := `[{"interruptId":"r","status":"resolved","payload":` + c.payload + `}]`
		got, err := Answers([]content.InputRequest{q}, json.RawMessage(resume))
		if c.code != "" {
			wantCode(t, err, c.code)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.payload, err)
			continue
		}
		answer := got[0].(*content.ToolApprovalResponse)
		runs := answer.Call.Args()
		if answer.Edited != nil {
			runs = answer.Edited.Arguments
		}
		if answer.Approved != c.approved || answer.Reason != c.reason || !content.SameArguments(runs, []byte(c.args)) {
			t.Errorf("%s: approved %v, reason %q, arguments %s", c.payload, answer.Approved, answer.Reason, runs)
		}
	}
}

// The schema has a field for the reason with our description, even if the call has an argument that
// is called reason.
func TestTheSchemaOffersAReasonForEveryCall(t *testing.T) {
	for _, args := range []string{`{"amount":5}`, `{"amount":5,"reason":"damaged"}`} {
		i := must.Get(InterruptOf(&content.ToolApprovalRequest{
			RequestID: "r",
			Call:      &content.FunctionCall{CallID: "c", Name: "f", Arguments: json.RawMessage(args)},
		}))(t)
		var schema struct {
			Properties map[string]struct{ Description string }
		}
		must.Do(t, json.Unmarshal(i.ResponseSchema, &schema))
		if words := schema.Properties["reason"].Description; !strings.HasPrefix(words, "What the agent is told") {
			t.Errorf("%s: %q", args, words)
		}
	}
}
