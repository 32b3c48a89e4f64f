package openai

import (
	"bytes"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

func (r responses) answer(opt *agent.Options) answer {
	return &responseAnswer{
		store:        r.cfg.Store,
		conversation: opt.ConversationID,
		streamed:     map[string]string{},
	}
}

// responseAnswer reads one response, whole or as events. From the first function call or
// approval request on, it holds everything back until the response is complete, because only
// then is it known whether the calls may be used.
type responseAnswer struct {
	store        bool
	conversation string

	head
	streamed map[string]string // text that was passed on, by item
	items    int               // number of finished items
	holds    bool
	held     []content.Content
	calls    []*content.FunctionCall
}

// whole reads a response as if its items had been streamed.
func (a *responseAnswer) whole(src []byte) ([]*agent.Update, error) {
	o := read(src)
	a.begin(o)
	var out []*agent.Update
	for _, item := range o.Objects("output") {
		out = append(out, a.item(item)...)
	}
	if o.Err() != nil {
		return nil, badMessage(o.Err())
	}
	last, err := a.finish(o)
	if err != nil {
		return nil, err
	}
	return append(out, last...), nil
}

// event reads one event. Events that only report progress return no update.
func (a *responseAnswer) event(src []byte) ([]*agent.Update, bool, error) {
	if string(bytes.TrimSpace(src)) == "[DONE]" {
		return nil, true, unfinished()
	}
	o := read(src)
	var out []*agent.Update
	switch o.Text("type") {
	case "response.created", "response.in_progress", "response.queued":
		a.begin(o.Object("response"))
	case "response.output_text.delta":
		out = a.text(o.Text("item_id"), o.Text("delta"))
	case "response.reasoning_summary_text.delta":
		out = a.thought(o.Text("item_id"), o.Text("delta"))
	case "response.reasoning_summary_part.added":
		if number(o, "summary_index") > 0 {
			out = a.thought(o.Text("item_id"), paragraph)
		}
	case "response.output_item.done":
		out = a.item(o.Object("item"))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return a.terminal(o)
	case "error":
		return nil, true, failureEvent(o)
	}

	return out, false, badMessage(o.Err())
}

// failureEvent returns the error of an event, which is the event itself or one of its members.
func failureEvent(o object) error {
	if o.Has("error") {
		return reported(o.Object("error"))
	}
	out := reported(o)
	out.Type = "" // this is the type of the event, not of the error
	return out
}

func (a *responseAnswer) terminal(o object) ([]*agent.Update, bool, error) {
	response := o.Object("response")
	items := response.Objects("output")
	if o.Err() != nil {
		return nil, true, badMessage(o.Err())
	}
	a.begin(response)
	out, err := a.finish(response)
	if err == nil && len(items) > a.items {
		return nil, true, bad(content.BadShape, "response.output", "the events told %d of %d items", a.items,
			len(items))
	}
	return out, true, err
}

func (a *responseAnswer) end() ([]*agent.Update, error) { return nil, unfinished() }

// paragraph separates the parts of a summary.
const paragraph = "\n\n"

func (a *responseAnswer) text(item, delta string) []*agent.Update {
	a.streamed[item] += delta
	return a.say(&content.Text{Text: delta})
}

func (a *responseAnswer) thought(item, delta string) []*agent.Update {
	a.streamed[item] += delta
	return a.say(&content.Reasoning{Text: delta})
}

// say passes contents on, or holds them back.
func (a *responseAnswer) say(contents ...content.Content) []*agent.Update {
	if a.holds {
		a.held = append(a.held, contents...)
		return nil
	}
	if len(contents) == 0 {
		return nil
	}
	return []*agent.Update{a.update(contents...)}
}

// item reads a finished item.
func (a *responseAnswer) item(o object) []*agent.Update {
	a.items++
	switch kind := o.NonEmpty("type"); kind {
	case "message":
		return a.say(a.message(o)...)
	case "reasoning":
		return a.say(a.reasoning(o)...)
	case "function_call":
		call := functionCall(o)
		a.calls, a.holds = append(a.calls, call), true
		return a.say(call)
	case "mcp_call":
		return a.say(mcpContents(o)...)
	case "mcp_approval_request":
		a.holds = true
		return a.say(requestOf(o))
	default:
		return a.say(&content.Unknown{Kind: kind, Raw: bytes.Clone(o.Source)})
	}
}

// functionCall reads a call. An incomplete call is never run.
func functionCall(o object) *content.FunctionCall {
	status := o.Text("status")
	return &content.FunctionCall{
		CallID:            o.NonEmpty("call_id"),
		Name:              o.NonEmpty("name"),
		Arguments:         arguments(o.Text("arguments")),
		InformationalOnly: status != "" && status != "completed",
	}
}

func (a *responseAnswer) message(o object) []content.Content {
	if role := o.Text("role"); role != "assistant" {
		o.Fail(bad(content.BadKind, o.Path, "expected an assistant's message, found the role %q", role))
	}

	var text string
	var refusals []content.Content
	parts := o.Objects("content")
	for _, p := range parts {
		switch kind := p.Text("type"); kind {
		case "output_text":
			text += p.Text("text")
		case "refusal":
			refusals = append(refusals, &content.Error{Message: p.Text("refusal"), Code: refusalCode})
		default:
			p.Fail(bad(content.BadKind, p.Path, "expected output_text or a refusal, found %q", kind))
		}
	}

	var out []content.Content
	if rest := a.rest(o, text); rest != "" {
		out = append(out, &content.Text{Text: rest})
	}
	out = append(out, refusals...)
	if phase := o.Text("phase"); phase != "" {
		out = append(out, &content.Text{Common: content.Common{Properties: properties(phaseKey, phase)}})
	}

	return out
}

// rest returns the part of an item's text that has not been passed on. It fails if the text
// doesn't begin with the pieces that were passed on, because these can't be taken back.
func (a *responseAnswer) rest(o object, whole string) string {
	id := o.Text("id")
	rest, ok := strings.CutPrefix(whole, a.streamed[id])
	delete(a.streamed, id)
	if !ok {
		o.Fail(bad(content.BadShape, o.Path, "the pieces of the text are not its beginning"))
	}
	return rest
}

// reasoning returns the rest of a reasoning item with its encrypted form.
func (a *responseAnswer) reasoning(o object) []content.Content {
	text := joined(o, "summary")
	if text == "" {
		text = joined(o, "content")
	}
	out := &content.Reasoning{Text: a.rest(o, text), Protected: o.Text("encrypted_content")}
	out.Properties = properties(itemKey, o.Text("id"))
	return []content.Content{out}
}

func joined(o object, key string) string {
	parts := o.Objects(key)
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text("text")
	}
	return strings.Join(texts, paragraph)
}

// finish reads how the response ended and returns the last update.
func (a *responseAnswer) finish(o object) ([]*agent.Update, error) {
	if o.Has("error") {
		return nil, reported(o.Object("error"))
	}
	reason, err := a.reason(o)
	if err != nil {
		return nil, err
	}
	if isShort(reason) {
		for _, c := range a.calls {
			c.InformationalOnly = true
		}
	}
	last := a.update(a.held...)
	if o.Has("usage") {
		last.Contents = append(last.Contents, usage(o.Object("usage"), "input_tokens", "output_tokens"))
	}

	last.FinishReason = reason
	last.ConversationID = a.continues()
	return []*agent.Update{last}, badMessage(o.Err())
}

func (a *responseAnswer) reason(o object) (string, error) {
	switch status := o.Text("status"); status {
	case "completed":
		if len(a.calls) > 0 {
			return "tool_calls", nil
		}
		return "stop", nil
	case "incomplete":
		switch why := o.Object("incomplete_details").Text("reason"); why {
		case "max_output_tokens":
			return "length", nil
		case "", "stop", "tool_calls": // these values must not be taken for a reason that allows calls
			return "incomplete", nil
		default:
			return why, nil
		}
	default:
		return "", bad(content.BadShape, "status", "the response is %q, which is no answer", status)
	}
}

// continues returns the conversation that the next request continues, or an empty string if
// nothing is stored.
func (a *responseAnswer) continues() string {
	switch {
	case !a.store:
		return ""
	case strings.HasPrefix(a.conversation, namedConversation):
		return a.conversation
	}

	return a.id
}
