package compat_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// listedMessage returns a message in the neutral encoding, with every field.
func listedMessage(m *content.Message) map[string]any {
	return map[string]any{
		"role":                  string(m.Role),
		"message_id":            m.ID,
		"author_name":           m.AuthorName,
		"created_at":            m.CreatedAt,
		"additional_properties": jsonOf(m.Properties),
		"contents":              listedContents(m.Contents),
	}
}

func listedMessages(in []*content.Message) []any {
	out := []any{}
	for _, m := range in {
		out = append(out, listedMessage(m))
	}
	return out
}

func listedContents(in []content.Content) []any {
	out := []any{}
	for _, c := range in {
		out = append(out, listedContent(c))
	}
	return out
}

func listedContent(c content.Content) map[string]any {
	out := listedFields(c)
	if p := content.CommonOf(c).Properties; p != nil {
		out["additional_properties"] = jsonOf(p)
	}
	return out
}

func listedFields(c content.Content) map[string]any {
	switch c := c.(type) {
	case *content.Text:
		return map[string]any{"type": "text", "text": c.Text}
	case *content.Reasoning:
		return map[string]any{"type": "reasoning", "text": c.Text}
	case *content.FunctionResult:
		return map[string]any{"type": "function_result", "call_id": c.CallID, "result": jsonOf(c.Result)}
	case *content.MCPResult:
		return map[string]any{
			"type":    "mcp_server_tool_result",
			"call_id": c.CallID,
			"outputs": listedContents(c.Outputs),
		}
	case *content.ToolApprovalRequest:
		return map[string]any{
			"type":                  "approval_request",
			"request_id":            c.RequestID,
			"requires_confirmation": !c.NoConfirmation,
			"tool_call":             listedCall(c.Call),
		}
	case *content.ToolApprovalResponse:
		return listedResponse(c)
	case content.ToolCall:
		return listedCall(c).(map[string]any)
	}

	return map[string]any{"type": fmt.Sprintf("%T", c)}
}

func listedResponse(c *content.ToolApprovalResponse) map[string]any {
	plain := map[string]any{
		"type":       "approval_response",
		"request_id": c.RequestID,
		"approved":   c.Approved,
		"reason":     c.Reason,
		"tool_call":  listedCall(c.Call),
	}
	if c.Always == content.AlwaysNot {
		return plain
	}
	return map[string]any{
		"type":                               "always_approve_response",
		"inner_response":                     plain,
		"always_approve_tool":                c.Always == content.AlwaysTool,
		"always_approve_tool_with_arguments": c.Always == content.AlwaysArguments,
	}
}

func listedCall(c content.ToolCall) any {
	switch c := c.(type) {
	case *content.FunctionCall:
		return map[string]any{
			"type":               "function_call",
			"call_id":            c.CallID,
			"name":               c.Name,
			"arguments":          jsonOf(c.Arguments),
			"informational_only": c.InformationalOnly,
		}
	case *content.MCPCall:
		return map[string]any{
			"type":        "mcp_server_tool_call",
			"call_id":     c.CallID,
			"name":        c.Name,
			"server_name": c.ServerName,
			"arguments":   jsonOf(c.Arguments),
		}
	case *content.HostedCall:
		for name, kind := range hostedCalls {
			if kind == c.Kind {
				return map[string]any{"type": name, "call_id": c.CallID}
			}
		}
	}

	return map[string]any{"type": fmt.Sprintf("%T", c)}
}

func jsonOf(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	v, err := looseJSON(raw)
	if err != nil {
		return "no JSON: " + string(raw)
	}
	return v
}

// matchMessages compares role, order and all listed fields. It compares message_id only if the
// case expects one, and informational_only only if it is true.
func matchMessages(want []caseMessage, got []*content.Message) error {
	listed := []any{}
	for _, m := range want {
		listed = append(listed, m.listedAll())
	}
	if err := match("", listed, listedMessages(got)); err != nil {
		text, _ := json.Marshal(listedMessages(got))
		return fmt.Errorf("%w\n  got: %s", err, text)
	}
	return nil
}

func (m caseMessage) listedAll() map[string]any {
	contents := []any{}
	for _, c := range m.Contents {
		contents = append(contents, c.listed)
	}
	out := map[string]any{"role": m.Role, "contents": contents}
	if m.MessageID != "" {
		out["message_id"] = m.MessageID
	}
	if m.AuthorName != "" {
		out["author_name"] = m.AuthorName
	}
	if m.CreatedAt != "" {
		out["created_at"] = m.CreatedAt
	}
	if p := nullable(m.Properties); p != nil {
		out["additional_properties"] = jsonOf(p)
	}
	return out
}

// match compares an expected value, as the case lists it, with the actual value.
func match(where string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return mismatch(where, want, got)
		}
		return matchMap(where, want, have)
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return mismatch(where, want, got)
		}
		for i := range want {
			if err := match(fmt.Sprintf("%s[%d]", where, i), want[i], have[i]); err != nil {
				return err
			}
		}
		return nil
	}

	if !reflect.DeepEqual(want, got) {
		return mismatch(where, want, got)
	}
	return nil
}

func matchMap(where string, want, got map[string]any) error {
	for _, key := range sortedKeys(want) {
		at := where + "." + key
		switch {
		case key == "informational_only" && want[key] != true:
		case key == "arguments":
			if !sameJSONArguments(want[key], got[key]) {
				return mismatch(at, want[key], got[key])
			}
		case key != "result" && (want[key] == nil || want[key] == "") && got[key] == "":
		default:
			if err := match(at, want[key], got[key]); err != nil {
				return err
			}
		}
	}

	return nil
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sameJSONArguments(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && content.SameArguments(x, y)
}

func mismatch(where string, want, got any) error {
	w, _ := json.Marshal(want)
	g, _ := json.Marshal(got)
	return fmt.Errorf("%s: want %s, got %s", strings.TrimPrefix(where, "."), w, g)
}
