// Package reid copies requests for input, and the answers to them, under
// another request id: an agent shows what a nested agent, a function or a
// peer asks under ids of its own.
package reid

import "github.com/assent-dev/assent/agent/content"

// Request returns a copy of a request with another id. A request of an
// unknown kind is returned unchanged.
func Request(q content.InputRequest, id string) content.InputRequest {
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		return with(*q, func(out *content.ToolApprovalRequest) { out.RequestID = id })
	case *content.TextApprovalRequest:
		return with(*q, func(out *content.TextApprovalRequest) { out.RequestID = id })
	case *content.StructuredInputRequest:
		return with(*q, func(out *content.StructuredInputRequest) { out.RequestID = id })
	}
	return q
}

// Response returns a copy of an answer to the request with the given id.
// An answer of an unknown kind is returned unchanged.
func Response(a content.InputResponse, id string) content.InputResponse {
	switch a := a.(type) {
	case *content.ToolApprovalResponse:
		return with(*a, func(out *content.ToolApprovalResponse) { out.RequestID = id })
	case *content.TextApprovalResponse:
		return with(*a, func(out *content.TextApprovalResponse) { out.RequestID = id })
	case *content.StructuredInputResponse:
		return with(*a, func(out *content.StructuredInputResponse) { out.RequestID = id })
	}
	return a
}

func with[T any](out T, change func(*T)) *T {
	change(&out)
	return &out
}
