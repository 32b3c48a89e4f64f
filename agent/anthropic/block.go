package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// invalidJSON is the only member of the input if the arguments are not a JSON object. The API
// accepts only objects, and the model must see what it wrote.
const invalidJSON = "INVALID_JSON"

// sealKind is the key of a Reasoning property. It distinguishes two kinds of encrypted
// reasoning without text.
const sealKind = "anthropic_type"

// block writes a content. It returns nil if the content is not sent to a model.
func block(where, role string, c content.Content) ([]byte, error) {
	switch c := c.(type) {
	case *content.Text:
		return textBlock(c), nil
	case *content.Unknown:
		return unknownBlock(where, c)
	case *content.Data:
		if role == user {
			return dataBlock(where, c)
		}
	case *content.URI:
		if role == user {
			return linkBlock(where, c)
		}
	case *content.Reasoning:
		if role == assistant {
			return thinkingBlock(c), nil
		}
	case *content.MCPCall:
		if role == assistant {
			return mcpCallBlock(c), nil
		}
	case *content.MCPResult:
		if role == assistant {
			return mcpResultBlock(where, c)
		}
	case *content.ToolApprovalRequest:
		return nil, localApproval(where, c.Call)
	case *content.ToolApprovalResponse:
		return nil, localApproval(where, c.Call)
	case *content.TextApprovalRequest, *content.TextApprovalResponse, *content.StructuredInputRequest,
		*content.StructuredInputResponse, *content.Usage, *content.Error:
		return nil, nil
	}

	return nil, unsupported(where, fmt.Sprintf("%T in a message of the %s", c, role))
}

// localApproval allows approvals of functions, which are left out because they are between the
// loop and its user. It returns an error for other approvals: they would have to be sent to the
// service, which has none.
func localApproval(where string, call content.ToolCall) error {
	switch call.(type) {
	case nil, *content.FunctionCall:
		return nil
	}
	return unsupported(where, "the service does not ask for approvals")
}

// textBlock writes a text with its citations. It returns nil for a blank text, because the API
// rejects it.
func textBlock(c *content.Text) []byte {
	if blank(c.Text) {
		return nil
	}
	return object(text("type", "text"), text("text", c.Text), pair{"citations", extraOf(c, "citations")})
}

// extraOf returns a member that was read with a content and is sent back with it.
func extraOf(c content.Content, key string) []byte {
	for _, m := range content.CommonOf(c).Extra {
		if m.Key == key && json.Valid(m.Raw) {
			return m.Raw
		}
	}
	return nil
}

// callBlock writes a call with the arguments as the model wrote them.
func callBlock(c *content.FunctionCall) []byte {
	return object(text("type", "tool_use"), text("id", c.CallID), text("name", c.Name), pair{"input",
		input(c.Arguments)},
		pair{"caller", extraOf(c, "caller")})
}

func input(arguments []byte) []byte {
	switch {
	case isNull(arguments):
		return []byte("{}")
	case isObject(arguments):
		return arguments
	}

	return object(text(invalidJSON, string(arguments)))
}

// resultBlock writes a result: a string as its text, other JSON unchanged. It doesn't mark
// errors, since only the tool knows whether a result is one.
func resultBlock(r *content.FunctionResult) []byte {
	out := string(r.Result)
	var s string
	if json.Unmarshal(r.Result, &s) == nil && string(r.Result) != "null" {
		out = s
	}
	return object(text("type", "tool_result"), text("tool_use_id", r.CallID), optional("content", out))
}

func mcpCallBlock(c *content.MCPCall) []byte {
	return object(text("type", "mcp_tool_use"), text("id", c.CallID), text("name", c.Name), text("server_name",
		c.ServerName),
		pair{"input", input(c.Arguments)})
}

// thinkingBlock writes a signed thought. Protected is either the signature of a text or, if the
// provider hides the text, the encrypted thought.
func thinkingBlock(c *content.Reasoning) []byte {
	if c.Protected == "" {
		return nil
	}
	if c.Text == "" && !sealedThinking(c) {
		return object(text("type", "redacted_thinking"), text("data", c.Protected))
	}
	return object(text("type", "thinking"), text("thinking", c.Text), text("signature", c.Protected))
}

// sealedThinking distinguishes a thought whose text was not sent from one that is hidden in its
// encrypted form.
func sealedThinking(c *content.Reasoning) bool {
	var p map[string]any
	return json.Unmarshal(c.Properties, &p) == nil && p[sealKind] == "thinking"
}

func mcpResultBlock(where string, c *content.MCPResult) ([]byte, error) {
	outputs := [][]byte{}
	for i, o := range c.Contents() {
		raw, err := block(fmt.Sprintf("%s.outputs[%d]", where, i), assistant, o)
		if err != nil {
			return nil, err
		}
		if raw != nil {
			outputs = append(outputs, raw)
		}
	}

	return object(text("type", "mcp_tool_result"), text("tool_use_id", c.CallID), pair{"is_error", extraOf(c,
		"is_error")},
		pair{"content", array(outputs)}), nil
}

// unknownBlock returns a block unchanged. It fails for calls and results: they are never
// *content.Unknown, and sending them in this form would bypass the checks for them.
func unknownBlock(where string, c *content.Unknown) ([]byte, error) {
	kind, err := typeOf(c.Raw)
	if err != nil {
		return nil, badContent(where, err.Error())
	}
	if kind == "" || slices.Contains([]string{"tool_use", "tool_result"}, kind) {
		return nil, badContent(where, fmt.Sprintf("a block of type %q can't be passed on unread", kind))
	}
	return c.Raw, nil
}

// linkBlock writes a link to an image or a document.
func linkBlock(where string, c *content.URI) ([]byte, error) {
	kind := blockOf(c.MediaType)
	if kind == "" {
		return nil, unsupported(where, fmt.Sprintf("a link to %q", c.MediaType))
	}
	return object(text("type", kind), pair{"source", object(text("type", "url"), text("url", c.URI))}), nil
}

// dataBlock writes an image or a document with its data.
func dataBlock(where string, c *content.Data) ([]byte, error) {
	media, data, err := dataOf(c)
	if err != nil {
		return nil, badContent(where, err.Error())
	}
	if media == "text/plain" {
		source := object(text("type", "text"), text("media_type", media), text("data", string(data)))
		return object(text("type", "document"), pair{"source", source}, optional("title", c.Name)), nil
	}

	source := object(text("type", "base64"), text("media_type", media), text("data",
		base64.StdEncoding.EncodeToString(data)))
	switch blockOf(media) {
	case "image":
		return object(text("type", "image"), pair{"source", source}), nil
	case "document":
		return object(text("type", "document"), pair{"source", source}, optional("title", c.Name)), nil
	}

	return nil, unsupported(where, fmt.Sprintf("data of type %q", media))
}

// blockOf returns the type of block for a media type, or an empty string.
func blockOf(media string) string {
	switch {
	case strings.HasPrefix(strings.ToLower(media), "image/"):
		return "image"
	case strings.EqualFold(media, "application/pdf"):
		return "document"
	}

	return ""
}

// dataOf reads a data URI. The content's media type takes precedence over the one in the URI.
func dataOf(c *content.Data) (string, []byte, error) {
	head, body, ok := strings.Cut(c.URI, ",")
	if !ok || len(head) < 5 || !strings.EqualFold(head[:5], "data:") {
		return "", nil, fmt.Errorf("not a data URI")
	}
	head, encoded := strings.CutSuffix(head[5:], ";base64")
	if c.MediaType != "" {
		head = c.MediaType
	}
	media, _, err := mime.ParseMediaType(head)
	if err != nil {
		return "", nil, fmt.Errorf("the media type: %w", err)
	}
	plain, err := url.PathUnescape(body)
	if err != nil {
		return "", nil, fmt.Errorf("the data: %w", err)
	}
	if !encoded {
		return media, []byte(plain), nil
	}
	data, err := base64.StdEncoding.DecodeString(plain)
	if err != nil {
		return "", nil, fmt.Errorf("the data: %w", err)
	}
	return media, data, nil
}
