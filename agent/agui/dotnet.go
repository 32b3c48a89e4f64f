package agui

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// RequestApprovalTool is the name of the tool that the .NET sample uses for requests.
const RequestApprovalTool = "request_approval"

// asCall returns the request_approval call for a request. It returns false if the run doesn't
// use the .NET format or if the request can't be written in it. Such requests are interrupts.
func (r Run) asCall(q content.InputRequest) (*content.FunctionCall, bool) {
	approval, ok := q.(*content.ToolApprovalRequest)
	if !ok || !r.DotNet {
		return nil, false
	}
	call, err := RequestApproval(approval)
	return call, err == nil
}

// RequestApproval returns the request_approval call that asks an AG-UI client as in the .NET
// sample. Its call id is the id of the request. It returns an error for requests that are not
// about function calls.
func RequestApproval(q *content.ToolApprovalRequest) (*content.FunctionCall, error) {
	if _, ok := q.Call.(*content.FunctionCall); !ok || q.RequestID == "" {
		return nil, fmt.Errorf(
			"the request %q: request_approval asks about calls of functions only",
			q.RequestID,
		)
	}

	args := parseArguments(q.Call)
	if !args.readable {
		return nil, fmt.Errorf("the request %q: its arguments are no JSON object", q.RequestID)
	}
	message := cmp.Or(q.Note.Message, "Approve execution of '"+q.Call.ToolName()+"'?")
	doc, err := jsonmsg.Marshal(obj{{"request", obj{
		{"approval_id", q.RequestID},
		{"function_name", q.Call.ToolName()},
		{"function_arguments", args.shown},
		{"message", message},
	}}})
	if err != nil {
		return nil, fmt.Errorf("the request %q: %w", q.RequestID, err)
	}
	return &content.FunctionCall{
		CallID:    q.RequestID,
		Name:      RequestApprovalTool,
		Arguments: doc,
	}, nil
}

// ApprovalResult reads the result of a request_approval call, {"approval_id": …, "approved": …}
// or the same as a string, and answers the open request with that id. Errors are of type
// *ResumeError. After an error no answer may be used.
func ApprovalResult(
	pending []content.InputRequest, result *content.FunctionResult,
) (*content.ToolApprovalResponse, error) {
	doc, err := value.Parse(orNull(result.Result), value.Limits{})
	if err != nil {
		return nil, &ResumeError{
			Code:        CodeInvalid,
			InterruptID: result.CallID,
			Detail:      err.Error(),
			Err:         err,
		}
	}

	doc = unwrap(doc)
	id, approved, err := readApprovalResult(doc)
	if err != nil {
		return nil, err
	}
	if result.CallID != id {
		return nil, refuse(CodeInvalid, id, "it answers the call %q", result.CallID)
	}
	for _, q := range pending {
		r, ok := q.(*content.ToolApprovalRequest)
		if !ok || r.RequestID != id || r.Call == nil {
			continue
		}
		if approved {
			return r.CreateApproval(""), nil
		}
		return r.CreateRejection(""), nil
	}

	return nil, refuse(CodeNotFound, id, "no such approval is open")
}

func readApprovalResult(doc value.Value) (id string, approved bool, err error) {
	idValue, _ := doc.Get("approval_id")
	if doc.Kind != value.Object || idValue.Kind != value.String || idValue.Text == "" {
		return "", false, refuse(CodeInvalid, "", "expected an object with approval_id")
	}
	v, _ := doc.Get(approvedKey)
	if v.Kind != value.Bool {
		return "", false, refuse(
			CodeInvalid,
			idValue.Text,
			"approved must be true or false, found a %s",
			v.Kind,
		)
	}

	if len(doc.Members) != 2 {
		return "", false, refuse(
			CodeInvalid,
			idValue.Text,
			"expected approval_id and approved and nothing else",
		)
	}

	return idValue.Text, v.Bool, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
