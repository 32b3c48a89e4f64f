package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// wireMessage is an answer without its blocks. The first event of a stream contains one too.
type wireMessage struct {
	Type    string                     `json:"type"`
	ID      string                     `json:"id"`
	Role    string                     `json:"role"`
	Model   string                     `json:"model"`
	Usage   map[string]json.RawMessage `json:"usage"`
	Content []json.RawMessage          `json:"content"`
	ending
}

// ending contains the reason why the message ended.
type ending struct {
	StopReason  string       `json:"stop_reason"`
	StopDetails *stopDetails `json:"stop_details"`
}

type stopDetails struct {
	Type        string `json:"type"`
	Category    string `json:"category"`
	Explanation string `json:"explanation"`
}

func (m *wireMessage) check() error {
	if m.Type != "message" || m.Role != assistant {
		return badResponse("a %q of role %q", m.Type, m.Role)
	}
	return nil
}

// parseResponse reads a whole answer. Its errors wrap ErrBadResponse.
func parseResponse(raw []byte) (*agent.Response, error) {
	var m wireMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, badResponse("%v", err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if m.StopReason == "" {
		return nil, badResponse("it does not say why it ended")
	}
	out := &content.Message{ID: m.ID, Role: content.Assistant}
	for _, b := range m.Content {
		c, err := parseBlock(b)
		if err != nil {
			return nil, err
		}
		out.Contents = append(out.Contents, c)
	}

	out.Contents = append(out.Contents, m.StopDetails.contents()...)
	usage, err := usageOf(m.Usage)
	if err != nil {
		return nil, err
	}
	return &agent.Response{
		Messages:     []*content.Message{out},
		ID:           m.ID,
		Model:        m.Model,
		FinishReason: finishReason(m.StopReason),
		Usage:        usage,
	}, nil
}

// contents returns the reason of a refusal, if the service sent one.
func (d *stopDetails) contents() []content.Content {
	if d == nil || d.Type != "refusal" {
		return nil
	}
	return []content.Content{&content.Error{
		Message: d.Explanation,
		Code:    d.Type,
		Details: d.Category,
	}}
}

// finishReason translates a stop reason. It returns unknown reasons unchanged.
func finishReason(stop string) string {
	switch stop {
	case "end_turn", "stop_sequence":
		return "stop"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}

	return stop
}

// usageOf counts all input tokens, cached or not. The API's separate counts are in the
// properties.
func usageOf(counts map[string]json.RawMessage) (*content.Usage, error) {
	if len(counts) == 0 {
		return nil, nil
	}
	out := &content.Usage{}
	var pairs []pair
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if isNull(counts[name]) || !strings.HasSuffix(name, "_tokens") {
			continue
		}
		var n int64
		if err := json.Unmarshal(counts[name], &n); err != nil {
			return nil, badResponse("the count of %s: %v", name, err)
		}
		switch name {
		case "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens":
			out.Input += n
		case "output_tokens":
			out.Output = n
		}

		pairs = append(pairs, pair{name, counts[name]})
	}

	out.Total = out.Input + out.Output
	out.Properties = object(pairs...)
	return out, nil
}

// wireBlock is a block of a type that this package knows.
type wireBlock struct {
	Text       string          `json:"text"`
	Citations  json.RawMessage `json:"citations"`
	Thinking   string          `json:"thinking"`
	Signature  string          `json:"signature"`
	Data       string          `json:"data"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	ServerName string          `json:"server_name"`
	Input      json.RawMessage `json:"input"`
	Caller     json.RawMessage `json:"caller"`
	ToolUseID  string          `json:"tool_use_id"`
	IsError    json.RawMessage `json:"is_error"`
	Content    json.RawMessage `json:"content"`
}

// parseBlock reads one block. Blocks of unknown types are kept unchanged.
func parseBlock(raw json.RawMessage) (content.Content, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil || head.Type == "" {
		return nil, badResponse("a block without a type")
	}
	read, ok := reader(head.Type)
	if !ok {
		return &content.Unknown{Kind: head.Type, Raw: raw}, nil
	}
	var b wireBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, badResponse("a block of type %s: %v", head.Type, err)
	}
	return read(&b)
}

// reader returns the function that converts a block of a type to a content.
func reader(kind string) (func(*wireBlock) (content.Content, error), bool) {
	switch kind {
	case "text":
		return (*wireBlock).text, true
	case "thinking":
		return (*wireBlock).thinking, true
	case "redacted_thinking":
		return (*wireBlock).redacted, true
	case "tool_use":
		return (*wireBlock).call, true
	case "mcp_tool_use":
		return (*wireBlock).mcpCall, true
	case "mcp_tool_result":
		return (*wireBlock).mcpResult, true
	}

	return nil, false
}

func (b *wireBlock) text() (content.Content, error) {
	return &content.Text{Text: b.Text, Common: keep("citations", b.Citations)}, nil
}

// keep returns a Common with a member that must be sent back with its content.
func keep(key string, raw json.RawMessage) content.Common {
	if isNull(raw) || string(raw) == "[]" {
		return content.Common{}
	}
	return content.Common{Extra: []content.Member{{Key: key, Raw: raw}}}
}

func (b *wireBlock) thinking() (content.Content, error) {
	out := &content.Reasoning{Text: b.Thinking, Protected: b.Signature}
	if b.Thinking == "" {
		out.Common = sealOf("thinking")
	}
	return out, nil
}

func (b *wireBlock) redacted() (content.Content, error) {
	return &content.Reasoning{Protected: b.Data, Common: sealOf("redacted_thinking")}, nil
}

// sealOf records the type of the block that contained encrypted reasoning without text.
func sealOf(kind string) content.Common {
	return content.Common{Properties: object(text(sealKind, kind))}
}

func (b *wireBlock) call() (content.Content, error) {
	if b.ID == "" || b.Name == "" {
		return nil, badResponse("a call without an id or a name")
	}
	return &content.FunctionCall{
		CallID:    b.ID,
		Name:      b.Name,
		Arguments: arguments(b.Input),
		Common:    keep("caller", b.Caller),
	}, nil
}

func (b *wireBlock) mcpCall() (content.Content, error) {
	if b.ID == "" || b.Name == "" {
		return nil, badResponse("a call without an id or a name")
	}
	return &content.MCPCall{
		CallID:     b.ID,
		Name:       b.Name,
		ServerName: b.ServerName,
		Arguments:  arguments(b.Input),
	}, nil
}

// arguments returns the arguments of a call. Missing arguments become an empty object.
func arguments(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return json.RawMessage("{}")
	}
	return raw
}

func (b *wireBlock) mcpResult() (content.Content, error) {
	out := &content.MCPResult{CallID: b.ToolUseID, Common: keep("is_error", b.IsError)}
	if isNull(b.Content) {
		return out, nil
	}
	var s string
	if json.Unmarshal(b.Content, &s) == nil {
		out.Outputs = []content.Content{&content.Text{Text: s}}
		return out, nil
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(b.Content, &blocks); err != nil {
		return nil, badResponse("the result of %q: %v", b.ToolUseID, err)
	}
	for _, raw := range blocks {
		c, err := parseBlock(raw)
		if err != nil {
			return nil, err
		}
		out.Outputs = append(out.Outputs, c)
	}

	return out, nil
}
