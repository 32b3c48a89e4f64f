package compat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

// runContentCase runs a case of content_json. A payload with a $type is a content in wire
// format. A payload without one contains arguments of a constructor, and is written as a
// request and as a response.
func runContentCase(t *testing.T, c *conformanceCase) {
	payload, err := looseJSON(c.Payload)
	fields, ok := payload.(map[string]any)
	if err != nil || !ok || c.Expect == nil {
		t.Fatalf("a case of content_json needs payload and expect: %v", err)
	}
	wires := []json.RawMessage{c.Payload}
	if _, typed := fields["$type"]; !typed {
		if wires, err = constructed(c.Payload); err != nil {
			t.Fatal(err)
		}
	}
	for _, wire := range wires {
		if err := checkWire(wire, c.Expect); err != nil {
			t.Errorf("%s: %v", wire, err)
		}
	}
}

// constructed writes the arguments of a constructor as a request and as a response.
func constructed(payload json.RawMessage) ([]json.RawMessage, error) {
	var args struct {
		RequestID json.RawMessage `json:"request_id"`
		ToolCall  *caseContent    `json:"tool_call"`
	}
	if err := strictJSON(payload, &args); err != nil {
		return nil, err
	}
	var out []json.RawMessage
	for _, kind := range []string{"toolApprovalRequest", "toolApprovalResponse"} {
		fields := map[string]any{"$type": kind, "requestId": args.RequestID, "approved": true}
		if kind == "toolApprovalRequest" {
			delete(fields, "approved")
		}
		if args.ToolCall != nil {
			made, err := args.ToolCall.content()
			if err != nil {
				return nil, err
			}
			raw, err := content.DotNet().AppendContent(nil, made)
			if err != nil {
				return nil, err
			}
			fields["toolCall"] = json.RawMessage(raw)
		}

		raw, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}

	return out, nil
}

// checkWire reads a content and checks it, and checks it again after writing and reading it.
func checkWire(wire []byte, expect map[string]json.RawMessage) error {
	got, err := content.DotNet().DecodeContent(wire)
	if raw, ok := expect["error"]; ok {
		return checkRefusal(string(raw), err)
	}
	if err != nil {
		return err
	}
	want := map[string]any{}
	for key, raw := range expect {
		want[key] = jsonOf(raw)
	}
	if err := match("", want, listedContent(got)); err != nil {
		return err
	}
	again, err := content.DotNet().AppendContent(nil, got)
	if err != nil {
		return err
	}
	if got, err = content.DotNet().DecodeContent(again); err != nil {
		return fmt.Errorf("what was written, %s: %w", again, err)
	}
	return match("written", want, listedContent(got))
}

// checkRefusal compares the kind of error. The expected text names the argument.
func checkRefusal(want string, err error) error {
	bad, ok := errors.AsType[*content.BadError](err)
	switch {
	case !ok:
		return fmt.Errorf("want an %s, got %v", want, err)
	case strings.Contains(want, "requestId") && bad.Code != content.BadID:
		return fmt.Errorf("want an %s, got %s: %v", want, bad.Code, err)
	case strings.Contains(want, "toolCall") && !strings.Contains(bad.Error(), "toolCall"):
		return fmt.Errorf("want an %s, got %s: %v", want, bad.Code, err)
	}

	return nil
}
