package wire

import (
	"fmt"

	"github.com/assent-dev/assent/value"
)

// Types of callbacks.
const (
	typeResult = "tool_result"
	typeChoice = "user_choice"
	typeOAuth  = "oauth"
	typeEvent  = "subscription_event"
	typeView   = "view_update"
)

const maxChoices = 10_000

// ParseCallback parses a callback of any type. Errors are *Error.
func ParseCallback(body []byte) (Callback, error) {
	o := document(
		body,
		"type",
		"group_id",
		"id",
		"call_id", // except views and events
		"text",
		"content",
		"display_as",
		"subscription", // results only; text is also in events, and content in views
		"prompt",
		"choices",
		"default",
		"response_url",
		"auth_url",
		"tool_call_id",
		"associative",
		"final",
		"view_type",
	)
	return read(o, o.callback(o.Need("type")))
}

func (o object) callback(kind string) Callback {
	switch kind {
	case typeResult:
		return o.result()
	case typeChoice:
		return o.choice()
	case typeOAuth:
		return o.oauth()
	case typeEvent:
		return &Event{
			GroupID:     o.id("group_id"),
			ToolCallID:  o.id("tool_call_id"),
			Text:        o.Need("text"),
			Associative: o.set("associative"),
			Final:       o.set("final"),
		}
	case typeView:
		return &View{
			GroupID:  o.id("group_id"),
			ViewType: o.id("view_type"),
			Content:  o.rawObject("content"),
		}
	}

	o.Expect("type", fmt.Sprintf("%s, %s, %s, %s or %s", typeResult, typeChoice, typeOAuth, typeEvent, typeView))
	return nil
}

// choice reads a user_choice. A missing default is an error, not index 0.
func (o object) choice() *Choice {
	c := &Choice{
		GroupID:     o.id("group_id"),
		ID:          o.id("id"),
		CallID:      o.optionalID("call_id"),
		Prompt:      o.Need("prompt"),
		Choices:     o.strings("choices", maxChoices, o.str),
		Default:     o.index("default"),
		ResponseURL: o.url("response_url"),
	}
	if len(c.Choices) == 0 {
		o.Expect("choices", "at least one")
	}
	if c.Default >= len(c.Choices) {
		o.Expect("default", "the index of one of the choices")
	}
	return c
}

// oauth reads a request to sign in. The URL is for a browser: it may have a fragment, and must
// be https.
func (o object) oauth() *OAuth {
	c := &OAuth{
		GroupID: o.id("group_id"),
		ID:      o.id("id"),
		CallID:  o.optionalID("call_id"),
		AuthURL: o.Need("auth_url"),
	}
	if expected := badURL(c.AuthURL, "https"); expected != "" {
		o.Expect("auth_url", expected)
	}
	return c
}

// head begins a callback with type and group_id.
func head(dst []byte, kind, group string) writer {
	w := open(dst)
	w.str("type", kind)
	w.str("group_id", group)
	return w
}

// Append appends the encoded question to dst.
func (c *Choice) Append(dst []byte) []byte {
	w := head(dst, typeChoice, c.GroupID)
	w.str("id", c.ID)
	w.optional("call_id", c.CallID)
	w.str("prompt", c.Prompt)
	w.strings("choices", c.Choices)
	w.index("default", c.Default)
	w.str("response_url", c.ResponseURL)
	return w.close()
}

// Append appends the encoded request to sign in to dst.
func (o *OAuth) Append(dst []byte) []byte {
	w := head(dst, typeOAuth, o.GroupID)
	w.str("id", o.ID)
	w.optional("call_id", o.CallID)
	w.str("auth_url", o.AuthURL)
	return w.close()
}

// Append appends the encoded event to dst.
func (e *Event) Append(dst []byte) []byte {
	w := head(dst, typeEvent, e.GroupID)
	w.str("tool_call_id", e.ToolCallID)
	w.str("text", e.Text)
	w.set("associative", e.Associative)
	w.set("final", e.Final)
	return w.close()
}

// Append appends the encoded view to dst. Content that is not an object is written as false,
// which every reader refuses.
func (v *View) Append(dst []byte) []byte {
	w := head(dst, typeView, v.GroupID)
	w.str("view_type", v.ViewType)
	w.raw("content", v.Content, value.Object)
	return w.close()
}

// Group returns the thread's id.
func (r *Result) Group() string { return r.GroupID }

// Group returns the thread's id.
func (c *Choice) Group() string { return c.GroupID }

// Group returns the thread's id.
func (o *OAuth) Group() string { return o.GroupID }

// Group returns the thread's id.
func (e *Event) Group() string { return e.GroupID }

// Group returns the thread's id.
func (v *View) Group() string { return v.GroupID }

// Call returns the call's id.
func (r *Result) Call() string { return r.ID }

// Call returns the call's id.
func (c *Choice) Call() string { return c.ID }

// Call returns the call's id.
func (o *OAuth) Call() string { return o.ID }

// Call returns the original call's id.
func (e *Event) Call() string { return e.ToolCallID }

// Call returns an empty string, because views belong to threads.
func (v *View) Call() string { return "" }
