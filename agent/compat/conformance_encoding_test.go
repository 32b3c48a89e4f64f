package compat_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
)

// conformanceCase is one case of the neutral encoding (docs/design/005-contents.md). A list of
// expectations is nil (null in JSON) if the case expects nothing. An unknown field makes the
// case fail.
type conformanceCase struct {
	Name           string `json:"name"`
	Component      string `json:"component"`
	Provenance     string `json:"provenance"`
	SourceFile     string `json:"source_file"`
	UpstreamMethod string `json:"upstream_method"`
	Notes          string `json:"notes"`
	Checked        string `json:"checked"` // also a note: what upstream checks

	Modes   []string    `json:"modes"`
	Tools   []*caseTool `json:"tools"`
	Options caseOptions `json:"options"`

	InputMessages           []caseMessage   `json:"input_messages"`
	ModelTurns              [][]caseMessage `json:"model_turns"`
	ModelStreamUpdates      []caseMessage   `json:"model_stream_updates"`
	ExpectedOutput          []caseMessage   `json:"expected_output"`
	ExpectedOutputStreaming []caseMessage   `json:"expected_output_streaming"`
	ExpectedDownstreamInput [][]caseMessage `json:"expected_downstream_input"`
	ExpectedStream          []caseUpdate    `json:"expected_stream"`
	ExpectedInnerCalls      *int            `json:"expected_inner_calls"`
	ExpectedInvocations     map[string]int  `json:"expected_invocations"`
	ExpectedLogs            []caseLog       `json:"expected_logs"`
	ExpectedStateAfter      map[string]any  `json:"expected_state_after"`

	ExpectedError               string `json:"expected_error"`
	ExpectedErrorKind           string `json:"expected_error_kind"`
	ExpectedErrorWithoutPreStep string `json:"expected_error_without_pre_step"`
	ExpectedFirstMessageIDNot   string `json:"expected_output_first_message_id_not"`
	PreStep                     string `json:"pre_step"`
	DistinctCallInstances       bool   `json:"distinct_call_instances"`

	// Layers: one step per run, all in one session.
	Steps             []caseStep         `json:"steps"`
	AutoApprovalRules []autoApprovalRule `json:"auto_approval_rules"`
	MaxAutoApproval   *int               `json:"max_auto_approval_iterations"`
	HasSession        *bool              `json:"has_session"` // nil means that there is one
	NoSession         bool               `json:"no_session"`
	Session           caseSession        `json:"session"`

	// content_json
	Payload json.RawMessage            `json:"payload"`
	Expect  map[string]json.RawMessage `json:"expect"`
}

// caseStep is one run of a layer.
type caseStep struct {
	Notes          string          `json:"notes"`
	Tools          []*caseTool     `json:"tools"`   // used from this step on; nil keeps the tools so far
	Options        *caseOptions    `json:"options"` // nil means those of the case
	StoredBefore   []caseContent   `json:"stored_requests_before"`
	PendingBefore  []caseContent   `json:"pending_requests_before"`
	HasSession     *bool           `json:"has_session"`
	NoSession      bool            `json:"no_session"`
	Session        caseSession     `json:"session"`
	InputMessages  []caseMessage   `json:"input_messages"`
	InnerReturns   [][]caseMessage `json:"inner_returns"`
	ExpectedInputs [][]caseMessage `json:"expected_inner_inputs"`
	ExpectedOutput []caseMessage   `json:"expected_output"`
	// ExpectedOutputStreaming replaces ExpectedOutput if the step is streamed.
	ExpectedOutputStreaming []caseMessage `json:"expected_output_streaming"`
	ExpectedInnerCalls      *int          `json:"expected_inner_calls"`
	ExpectedPending         []string      `json:"expected_pending_request_ids"`
	ExpectedStored          []string      `json:"expected_stored_request_ids"`
	ExpectedLogs            []caseLog     `json:"expected_logs"`
	ExpectedError           string        `json:"expected_error"`
	// MutateSurfaced are arguments that the caller writes into all calls that the step
	// returned, in the returned contents themselves.
	MutateSurfaced json.RawMessage `json:"then_mutate_surfaced_call_arguments"`
}

// caseSession is a session given as JSON. Null means no session.
type caseSession struct{ none bool }

func (s *caseSession) UnmarshalJSON(data []byte) error {
	s.none = string(data) == "null"
	if !s.none && data[0] != '{' && data[0] != '"' {
		return fmt.Errorf("session: expected null, an object or a name, found %s", data)
	}
	return nil
}

type autoApprovalRule struct {
	ToolName string `json:"approve_if_tool_name"`
	All      bool   `json:"approve_all"`
}

type caseTool struct {
	Name             string          `json:"name"`
	RequiresApproval bool            `json:"requires_approval"`
	Kind             string          `json:"kind"`
	Params           []caseParam     `json:"params"`
	Returns          json.RawMessage `json:"returns"` // a template if it is a string
	Source           string          `json:"source"`
	ServerName       string          `json:"server_name"`
	Decorated        bool            `json:"wrapped_by_decorator"`
	Terminates       bool            `json:"terminates"`
	Throws           json.RawMessage `json:"throws"` // true or a message
	OnInvoke         *caseOnInvoke   `json:"on_invoke"`
}

type caseParam struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type caseOnInvoke struct {
	AddTool     *caseTool `json:"add_tool"`
	ReplaceTool *caseTool `json:"replace_tool"`
	RemoveTool  string    `json:"remove_tool"`
}

// caseOptions are the options of a case. Some options have several accepted names.
type caseOptions struct {
	ConversationID string `json:"conversation_id"`
	// ResponseConversationID is the conversation id of the model's responses. By default the
	// fake model returns none.
	ResponseConversationID string `json:"response_conversation_id"`
	Concurrent             bool   `json:"allow_concurrent_invocation"`
	Concurrent2            bool   `json:"concurrent"`
	MaxTurns               *int   `json:"maximum_iterations"`
	MaxTurns2              *int   `json:"maximum_iterations_per_request"`
	MaxTurns3              *int   `json:"max_iterations"`
	DetailedErrors         bool   `json:"detailed_errors"`
	DetailedErrors2        bool   `json:"include_detailed_errors"`
	MaxErrors              *int   `json:"max_consecutive_errors"`
	MaxErrors2             *int   `json:"maximum_consecutive_errors_per_request"`
	MaxErrors3             *int   `json:"maximum_consecutive_errors"`
	HasSession             *bool  `json:"has_session"`
	NoSession              bool   `json:"no_session"`

	Session caseSession `json:"session"`
	// Release is the .NET release whose rules the case is about. It is empty for rules that all
	// releases have.
	Release string `json:"release"`
}

// config converts the options to a loop configuration. Zero in a case means none, which is -1
// in LoopConfig.
func (o caseOptions) config() compat.Config {
	cfg := compat.Config{Concurrent: o.Concurrent || o.Concurrent2,
		DetailedErrors: o.DetailedErrors || o.DetailedErrors2}
	for _, n := range []*int{o.MaxTurns, o.MaxTurns2, o.MaxTurns3} {
		if n != nil {
			cfg.MaxTurns = *n
		}
	}
	for _, n := range []*int{o.MaxErrors, o.MaxErrors2, o.MaxErrors3} {
		if n != nil {
			cfg.MaxErrors = *n
			if *n == 0 {
				cfg.MaxErrors = -1
			}
		}
	}

	return cfg
}

type caseLog struct {
	Level    string `json:"level"`
	Contains string `json:"contains"`
}

type caseUpdate struct {
	Update   caseMessage `json:"update"`
	Consumed *int        `json:"inner_updates_consumed_when_yielded"`
}

type caseMessage struct {
	Role       string          `json:"role"`
	MessageID  string          `json:"message_id"`
	AuthorName string          `json:"author_name"`
	CreatedAt  string          `json:"created_at"`
	Properties json.RawMessage `json:"additional_properties"`
	Contents   []caseContent   `json:"contents"`
}

// caseContent is a content of any type. listed contains the members in the case, which are the
// ones that are compared.
type caseContent struct {
	contentFields
	listed map[string]any
}

type contentFields struct {
	Type                 string          `json:"type"`
	Text                 string          `json:"text"`
	CallID               string          `json:"call_id"`
	Name                 string          `json:"name"`
	ServerName           string          `json:"server_name"`
	Arguments            json.RawMessage `json:"arguments"`
	InformationalOnly    bool            `json:"informational_only"`
	Result               json.RawMessage `json:"result"`
	Outputs              []caseContent   `json:"outputs"`
	RequestID            string          `json:"request_id"`
	RequiresConfirmation *bool           `json:"requires_confirmation"`
	Approved             bool            `json:"approved"`
	Reason               string          `json:"reason"`
	ToolCall             *caseContent    `json:"tool_call"`
	InnerResponse        *caseContent    `json:"inner_response"`
	AlwaysTool           bool            `json:"always_approve_tool"`
	AlwaysArguments      bool            `json:"always_approve_tool_with_arguments"`
	Properties           json.RawMessage `json:"additional_properties"`
}

func (c *caseContent) UnmarshalJSON(data []byte) error {
	if err := strictJSON(data, &c.contentFields); err != nil {
		return err
	}
	listed, err := looseJSON(data)
	if err != nil {
		return err
	}
	c.listed, _ = listed.(map[string]any)
	_, err = c.content()
	return err
}

// strictJSON rejects fields that the type doesn't have.
func strictJSON(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

func looseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// decodeCases reads a case file. A case that can't be read is returned with its error.
func decodeCases(data []byte) ([]*conformanceCase, []error, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return nil, nil, err
	}
	cases, errs := make([]*conformanceCase, len(raws)), make([]error, len(raws))
	for i, raw := range raws {
		cases[i] = &conformanceCase{}
		if errs[i] = strictJSON(raw, cases[i]); errs[i] != nil {
			var named struct {
				Name string `json:"name"`
			}
			_ = json.Unmarshal(raw, &named)
			cases[i].Name = named.Name
		}
	}

	return cases, errs, nil
}

// content makes the content of a case.
func (c *caseContent) content() (content.Content, error) {
	out, err := c.bare()
	if err == nil && nullable(c.Properties) != nil {
		content.CommonOf(out).Properties = c.Properties
	}
	return out, err
}

func (c *caseContent) bare() (content.Content, error) {
	switch c.Type {
	case "text":
		return &content.Text{Text: c.Text}, nil
	case "reasoning":
		return &content.Reasoning{Text: c.Text}, nil
	case "function_result":
		return &content.FunctionResult{CallID: c.CallID, Result: nullable(c.Result)}, nil
	case "mcp_server_tool_result":
		out, err := contentsOf(c.Outputs)
		return &content.MCPResult{CallID: c.CallID, Outputs: out}, err
	case "approval_request":
		call, err := c.ToolCall.call()
		return &content.ToolApprovalRequest{
			RequestID:      c.RequestID,
			Call:           call,
			NoConfirmation: c.RequiresConfirmation != nil && !*c.RequiresConfirmation,
		}, err
	case "approval_response":
		call, err := c.ToolCall.call()
		return &content.ToolApprovalResponse{
			RequestID: c.RequestID,
			Approved:  c.Approved,
			Call:      call,
			Reason:    c.Reason,
		}, err
	case "always_approve_response":
		return c.always()
	}

	return c.call()
}

func (c *caseContent) always() (content.Content, error) {
	if c.InnerResponse == nil {
		return nil, fmt.Errorf("%s without inner_response", c.Type)
	}
	inner, err := c.InnerResponse.content()
	if err != nil {
		return nil, err
	}
	out, ok := inner.(*content.ToolApprovalResponse)
	if !ok {
		return nil, fmt.Errorf("%s around a %s", c.Type, c.InnerResponse.Type)
	}
	switch {
	case c.AlwaysArguments:
		out.Always = content.AlwaysArguments
	case c.AlwaysTool:
		out.Always = content.AlwaysTool
	}

	return out, nil
}

var hostedCalls = map[string]string{
	"tool_call":                  "toolCall",
	"code_interpreter_tool_call": "codeInterpreterToolCall",
	"image_generation_tool_call": "imageGenerationToolCall",
	"web_search_tool_call":       "webSearchToolCall",
}

func (c *caseContent) call() (content.ToolCall, error) {
	if c == nil {
		return nil, fmt.Errorf("an approval without tool_call")
	}
	switch c.Type {
	case "function_call":
		return &content.FunctionCall{
			CallID:            c.CallID,
			Name:              c.Name,
			Arguments:         nullable(c.Arguments),
			InformationalOnly: c.InformationalOnly,
		}, nil
	case "mcp_server_tool_call":
		return &content.MCPCall{
			CallID:     c.CallID,
			Name:       c.Name,
			ServerName: c.ServerName,
			Arguments:  nullable(c.Arguments),
		}, nil
	}

	if kind, ok := hostedCalls[c.Type]; ok {
		return &content.HostedCall{Kind: kind, CallID: c.CallID}, nil
	}
	return nil, fmt.Errorf("unknown type of content %q", c.Type)
}

func nullable(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func contentsOf(in []caseContent) ([]content.Content, error) {
	var out []content.Content
	for _, c := range in {
		made, err := c.content()
		if err != nil {
			return nil, err
		}
		out = append(out, made)
	}

	return out, nil
}

// messagesOf makes new messages. The contents were checked when the case was read.
func messagesOf(in []caseMessage) []*content.Message {
	var out []*content.Message
	for _, m := range in {
		contents, err := contentsOf(m.Contents)
		if err != nil {
			panic(err)
		}
		out = append(out, &content.Message{
			ID:         m.MessageID,
			AuthorName: m.AuthorName,
			CreatedAt:  m.CreatedAt,
			Role:       content.Role(m.Role),
			Contents:   contents,
			Common:     content.Common{Properties: nullable(m.Properties)},
		})
	}

	return out
}
