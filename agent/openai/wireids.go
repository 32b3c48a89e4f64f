package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// HostLabel is the server that hosts of agents name in place of one for
// the functions that run in the agent itself.
const HostLabel = "agent_framework"

// WireID is the id under which a host of agents (Microsoft's Foundry)
// shows a request: services take no other ids than mcpr_ and 50 digits.
func WireID(requestID string) string {
	sum := sha256.Sum256([]byte(requestID))
	return "mcpr_" + strings.ToUpper(hex.EncodeToString(sum[:25]))
}

// ApprovalItem writes a request as a host of agents sends it: an
// mcp_approval_request, whatever the call is. The error is a
// *content.BadError when nothing of that kind can say what is asked.
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

// ApprovalAnswer reads an mcp_approval_response that a caller of a
// hosted agent sent. It answers one of the open requests, which alone
// say what the call is. The error is a *content.BadError: BadID when it
// answers none of them.
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
