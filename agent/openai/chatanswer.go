package openai

import (
	"bytes"
	"fmt"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

func (chat) answer(*agent.Options) answer { return &chatAnswer{} }

// chatAnswer reads one answer. It passes texts on as they arrive, and calls only at the end,
// when they are known to be complete.
type chatAnswer struct {
	head
	refusal string
	finish  string
	usage   *content.Usage
	calls   []*chatCall
	last    *chatCall
}

// chatCall is a call that may be incomplete.
type chatCall struct {
	index     int64 // -1 if the service sent none
	id, name  string
	arguments []byte
}

func (a *chatAnswer) whole(src []byte) ([]*agent.Update, error) {
	updates, err := a.piece(src, "message")
	if err != nil {
		return nil, err
	}
	if a.finish == "" {
		return nil, bad(content.BadShape, "choices", "the answer has no finish reason")
	}
	last, err := a.end()
	if err != nil {
		return nil, err
	}
	return append(updates, last...), nil
}

func (a *chatAnswer) event(src []byte) ([]*agent.Update, bool, error) {
	if string(bytes.TrimSpace(src)) == "[DONE]" {
		updates, err := a.end()
		return updates, true, err
	}
	updates, err := a.piece(src, "delta")
	return updates, false, err
}

// piece reads one chunk, or a whole answer, whose message has the same form as a single delta.
func (a *chatAnswer) piece(src []byte, member string) ([]*agent.Update, error) {
	o := read(src)
	if o.Has("error") {
		return nil, reported(o.Object("error"))
	}
	a.begin(o)
	if o.Has("usage") {
		a.usage = usage(o.Object("usage"), "prompt_tokens", "completion_tokens")
	}
	var out []*agent.Update
	choices := o.Objects("choices")
	for _, c := range choices {
		if number(c, "index") != 0 {
			o.Fail(bad(content.BadShape, c.Path, "expected one choice"))
		}
		keep(&a.finish, c.Text("finish_reason"))
		if text := a.delta(c.Object(member), member == "message"); text != "" {
			out = append(out, a.update(&content.Text{Text: text}))
		}
	}

	return out, badMessage(o.Err())
}

// reported converts an error in the body of an answer.
func reported(e object) *StatusError {
	out := &StatusError{
		Type:    e.Text("type"),
		Param:   e.Text("param"),
		Message: e.Text("message"),
	}
	code := e.Raw("code") // may be a number; any value is a failure
	text, ok := jsonmsg.ReadString(code)
	if !ok {
		text = string(code)
	}
	out.Code = text
	return out
}

func keep(to *string, v string) {
	if v != "" {
		*to = v
	}
}

// delta adds a piece of the message and returns its text.
func (a *chatAnswer) delta(d object, whole bool) string {
	if role := d.Text("role"); role != "" && role != "assistant" {
		d.Fail(bad(content.BadKind, d.Path, "expected an assistant's message, found the role %q", role))
	}

	if d.Has("function_call") {
		d.Fail(bad(content.BadKind, d.Path, "expected tool_calls, found a function_call"))
	}
	a.refusal += d.Text("refusal")
	calls := d.Objects("tool_calls")
	for i, c := range calls {
		if kind := c.Text("type"); kind != "" && kind != "function" {
			c.Fail(bad(content.BadKind, c.Path, "expected a call of a function, found one of kind %q", kind))
		}

		a.grow(c, a.place(c, i, whole))
	}

	return d.Text("content")
}

// place returns the index of the call that a piece belongs to. If the service sends no index,
// it is determined from the order or from a new id.
func (a *chatAnswer) place(c object, i int, whole bool) int64 {
	id := c.Text("id")
	switch {
	case c.Has("index"):
		return number(c, "index")
	case whole:
		return int64(i)
	case a.last == nil || id != "" && id != a.last.id:
		return int64(len(a.calls))
	}

	return a.last.index
}

func (a *chatAnswer) grow(c object, index int64) {
	call := a.at(index)
	a.last = call
	id := c.Text("id")
	if call.id != "" && id != "" && id != call.id {
		c.Fail(bad(content.BadShape, c.Path, "one call has two ids"))
	}
	keep(&call.id, id)
	f := c.Object("function")
	if name := f.Text("name"); name != call.name { // some services repeat it
		call.name += name
	}
	call.arguments = append(call.arguments, f.Text("arguments")...)
}

func (a *chatAnswer) at(index int64) *chatCall {
	for _, c := range a.calls {
		if c.index == index {
			return c
		}
	}
	c := &chatCall{index: index}
	a.calls = append(a.calls, c)
	return c
}

// end returns the last update. It returns an error if the answer is incomplete.
func (a *chatAnswer) end() ([]*agent.Update, error) {
	if a.finish == "" {
		return nil, unfinished()
	}
	u := a.update()
	if a.refusal != "" {
		u.Contents = append(u.Contents, &content.Error{Message: a.refusal, Code: refusalCode})
	}
	for i, c := range a.calls {
		if c.id == "" || c.name == "" {
			return nil, bad(content.BadShape, fmt.Sprintf("tool_calls[%d]", i), "the call has no id or no name")
		}

		u.Contents = append(u.Contents, &content.FunctionCall{
			CallID:            c.id,
			Name:              c.name,
			Arguments:         arguments(string(c.arguments)),
			InformationalOnly: isShort(a.finish),
		})
	}

	if a.usage != nil {
		u.Contents = append(u.Contents, a.usage)
	}
	u.FinishReason = a.finish
	return []*agent.Update{u}, nil
}

// isShort reports whether an answer ended before the model was done.
func isShort(finish string) bool { return finish != "stop" && finish != "tool_calls" }
