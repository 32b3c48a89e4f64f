package rounds

import (
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/agent/content"
)

// kept is a content in a state. The arguments of its call are stored separately as text,
// because they must stay unchanged and may not be a JSON object.
type kept struct {
	Content   json.RawMessage `json:"content"`
	Arguments *string         `json:"arguments,omitempty"`
}

// WriteContent writes a content for the state of a layer.
func WriteContent(c content.Content) ([]byte, error) {
	var k kept
	if call := CallOf(c); call != nil && call.Args() != nil {
		text := string(call.Args())
		k.Arguments = &text
		c = withCall(c, withArguments(call, nil))
	}
	raw, err := content.DotNet().AppendContent(nil, c)
	if err != nil {
		return nil, err
	}
	k.Content = raw
	return json.Marshal(k)
}

// readContent reads the output of WriteContent.
func readContent(raw []byte) (content.Content, error) {
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, err
	}
	c, err := content.DotNet().DecodeContent(k.Content)
	if err != nil || k.Arguments == nil {
		return c, err
	}
	call := CallOf(c)
	if call == nil {
		return nil, fmt.Errorf("arguments for a %T", c)
	}
	return withCall(c, withArguments(call, []byte(*k.Arguments))), nil
}

// withCall returns a copy of an approval request or answer with another call.
func withCall(c content.Content, call content.ToolCall) content.Content {
	switch c := c.(type) {
	case *content.ToolApprovalRequest:
		out := *c
		out.Call = call
		return &out
	case *content.ToolApprovalResponse:
		out := *c
		out.Call = call
		return &out
	}

	return c
}

// withArguments returns a copy of a call with other arguments.
func withArguments(call content.ToolCall, arguments []byte) content.ToolCall {
	out := content.CloneCall(call)
	switch out := out.(type) {
	case *content.FunctionCall:
		out.Arguments = arguments
	case *content.MCPCall:
		out.Arguments = arguments
	}

	return out
}
