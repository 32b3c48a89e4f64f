package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// HostLabel is the server label that agent hosts use for functions that run in the agent
// itself.
const HostLabel = "agent_framework"

// WireID returns the id under which an agent host (Microsoft's Foundry) shows a request.
// Services only accept ids of the form mcpr_ and 50 digits.
func WireID(requestID string) string {
	sum := sha256.Sum256([]byte(requestID))
	return "mcpr_" + strings.ToUpper(hex.EncodeToString(sum[:25]))
}

// ApprovalItem writes a request in the form that an agent host sends: as an
// mcp_approval_request, for any kind of call. It returns a *content.BadError if the request
// can't be expressed in this form.
func ApprovalItem(q *content.ToolApprovalRequest) (json.RawMessage, error) {
	label, call := HostLabel, q.Call
	switch c := call.(type) {
	case *content.FunctionCall:
	case *content.MCPCall:
		label = c.ServerName
	default:
		return nil, bad(content.BadKind, "toolCall", "a %T has no name and no arguments to show", call)
	}

	if q.RequestID == "" || call.ToolName() == "" || label == "" {
		return nil, bad(content.BadID, "toolCall", "expected a request with an id, a name and a server")
	}

	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("type", "mcp_approval_request")
		w.Member("id", WireID(q.RequestID))
		w.Member("server_label", label)
		w.Member("name", call.ToolName())
		w.Member("arguments", argumentsText(call.Args()))
	})
}

// ApprovalAnswer reads an mcp_approval_response from a caller of a hosted agent. It must answer
// one of the open requests, from which the call is taken. The error is a *content.BadError,
// with code BadID if no open request matches.
func ApprovalAnswer(item []byte, open []*content.ToolApprovalRequest) (*content.ToolApprovalResponse, error) {
	o := read(item)
	if o.Err() == nil && o.Text("type") != "mcp_approval_response" {
		return nil, bad(content.BadKind, "type", "expected mcp_approval_response, found %q", o.Text("type"))
	}

	id, reason := o.NonEmpty("approval_request_id"), o.Text("reason")
	approved := o.Bool("approve")
	if o.Err() == nil && approved == nil {
		return nil, bad(content.BadShape, "approve", "expected true or false, found none")
	}
	if err := badMessage(o.Err()); err != nil {
		return nil, err
	}

	for _, q := range open {
		switch {
		case WireID(q.RequestID) != id:
		case *approved:
			return q.CreateApproval(reason), nil
		default:
			return q.CreateRejection(reason), nil
		}
	}

	return nil, bad(content.BadID, "approval_request_id", "no open request has the id %q", id)
}
