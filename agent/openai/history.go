package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// refusalCode marks an Error content as a refusal of the model, as in the .NET library.
const refusalCode = "Refusal"

// history matches results to calls and answers to requests while messages are written.
type history struct {
	kept            bool // the service keeps the history, so it may know contents that are missing here
	open            map[string]int
	handled         map[[2]int]bool               // positions of calls that have a later result
	inert           map[string]bool               // ids of calls that were handled elsewhere
	results         map[string]*content.MCPResult // by call id
	asked, answered map[string]bool               // MCP approvals
}

func newHistory(messages []*content.Message, kept bool) *history {
	h := &history{
		kept:     kept,
		open:     map[string]int{},
		handled:  map[[2]int]bool{},
		inert:    map[string]bool{},
		results:  map[string]*content.MCPResult{},
		asked:    map[string]bool{},
		answered: map[string]bool{},
	}
	waiting := map[string]int{} // number of results for which no earlier call has been found yet
	for i, m := range slices.Backward(messages) {
		if m == nil {
			continue
		}
		for j, c := range slices.Backward(m.Contents) {
			h.look([2]int{i, j}, c, waiting)
		}
	}

	return h
}

func (h *history) look(at [2]int, c content.Content, waiting map[string]int) {
	switch c := c.(type) {
	case *content.FunctionResult:
		waiting[c.CallID]++
	case *content.FunctionCall:
		if waiting[c.CallID] > 0 {
			waiting[c.CallID]--
			h.handled[at] = true
		}
		if c.InformationalOnly {
			h.inert[c.CallID] = true
		}
	case *content.MCPResult:
		h.results[c.CallID] = c
	}
}

// skips reports whether a content is not sent. Loops mark calls that they have run, and these
// are sent with their results. A marked call without a result was handled elsewhere and is not
// sent.
func (h *history) skips(i, j int, c content.Content) bool {
	if call, ok := c.(*content.FunctionCall); ok {
		return call.InformationalOnly && !h.handled[[2]int{i, j}]
	}
	return silent(c)
}

// result reports whether a result is sent. Results of marked calls that were not sent are
// skipped. A result without an open call is an error.
func (h *history) result(where string, c *content.FunctionResult) (bool, error) {
	switch {
	case c.CallID == "":
		return false, bad(content.BadID, where, "expected a call id, found none")
	case h.open[c.CallID] > 0:
		h.open[c.CallID]--
		return true, nil
	case h.inert[c.CallID]:
		return false, nil
	case h.kept:
		return true, nil
	}

	return false, bad(content.BadShape, where, "expected a call %q before its only result", c.CallID)
}

// answer checks that an answer about an MCP call has a request, and is the only answer to it.
func (h *history) answer(where string, c *content.ToolApprovalResponse) error {
	switch {
	case c.RequestID == "":
		return bad(content.BadID, where, "expected the id of a request, found none")
	case c.Edited != nil:
		return bad(content.BadKind, where, "a call of an MCP server can't be edited")
	case h.answered[c.RequestID] || !h.asked[c.RequestID] && !h.kept:
		return bad(content.BadShape, where, "expected the request %q before its only answer", c.RequestID)
	}

	h.answered[c.RequestID] = true
	return nil
}

// silent reports whether a content is never sent to a model.
func silent(c content.Content) bool {
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		_, mcp := c.Call.(*content.MCPCall)
		return !mcp
	case *content.ToolApprovalResponse:
		_, function := c.Call.(*content.FunctionCall)
		return function
	case *content.Error:
		return c.Code != refusalCode
	case *content.Usage, *content.TextApprovalRequest, *content.TextApprovalResponse,
		*content.StructuredInputRequest, *content.StructuredInputResponse:
		return true
	}

	return false
}

// place returns the position of a content for errors.
func place(message, i int) string { return fmt.Sprintf("messages[%d].contents[%d]", message, i) }

// misplaced returns the error for a content that is not allowed in a message of this role.
func misplaced(where string, c content.Content, role content.Role) error {
	return bad(content.BadKind, where, "a %s can't be sent in a message of role %q", kindOf(c), role)
}

func kindOf(c content.Content) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", c), "*content.")
}

// resultText returns the text of a result for the model: a string without quotes, everything
// else as JSON.
func resultText(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// argumentsText returns the arguments for the API, which requires an object even if there are
// none.
func argumentsText(args []byte) string {
	if len(args) == 0 {
		return "{}"
	}
	return string(args)
}

// arguments returns the text that a model wrote, or nil if it is empty.
func arguments(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// mediaType returns the media type of inline data. If it is not set, it is taken from the data
// URI.
func mediaType(c *content.Data) string {
	if c.MediaType != "" {
		return c.MediaType
	}
	rest, ok := strings.CutPrefix(c.URI, "data:")
	if !ok {
		return ""
	}
	head, _, _ := strings.Cut(rest, ",")
	kind, _, _ := strings.Cut(head, ";")
	return kind
}

func isImage(mediaType string) bool { return strings.HasPrefix(mediaType, "image/") }

// fileName returns the name of inline data, or a default because the service requires one.
func fileName(c *content.Data) string {
	if c.Name == "" {
		return "file"
	}
	return c.Name
}
