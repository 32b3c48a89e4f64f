package agent

import (
	"iter"

	"github.com/assent-dev/assent/agent/content"
)

// StreamOf returns a complete response as a stream, for models and agents that produce no
// partial output.
func StreamOf(resp *Response, err error) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, m := range resp.Messages {
			if !yield(&Update{
				Role:       m.Role,
				AuthorName: m.AuthorName,
				MessageID:  m.ID,
				Contents:   m.Contents,
			}, nil) {
				return
			}
		}

		u := &Update{
			ID:             resp.ID,
			Model:          resp.Model,
			ConversationID: resp.ConversationID,
			FinishReason:   resp.FinishReason,
			Refused:        resp.Refused,
		}
		if resp.Usage != nil {
			u.Contents = []content.Content{resp.Usage}
		}
		yield(u, nil)
	}
}

// Join combines the updates of one response. Consecutive texts and pieces of reasoning are
// joined, and updates with the same message id, or without ids those of one role, become one
// message.
func Join(updates []*Update) *Response {
	r := &Response{}
	var last *content.Message
	for _, u := range updates {
		r.note(u)
		last = r.extend(last, u)
	}
	for _, m := range r.Messages {
		m.Contents = joinTexts(m.Contents)
	}
	return r
}

// note copies the fields of an update that describe the whole response.
func (r *Response) note(u *Update) {
	r.Add(&Response{
		ID:             u.ID,
		Model:          u.Model,
		ConversationID: u.ConversationID,
		FinishReason:   u.FinishReason,
		Refused:        u.Refused,
	})
}

// Add merges another part of a run into the response, except for its messages: the latest
// names, all refusals, and the sum of the usage.
func (r *Response) Add(part *Response) {
	set := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	set(&r.ID, part.ID)
	set(&r.Model, part.Model)
	set(&r.ConversationID, part.ConversationID)
	set(&r.FinishReason, part.FinishReason)
	r.Refused = append(r.Refused, part.Refused...)
	if part.Usage != nil {
		r.Usage = addUsage(r.Usage, part.Usage)
	}
}

// extend appends the contents of an update to the last message or starts a new one.
func (r *Response) extend(last *content.Message, u *Update) *content.Message {
	var contents []content.Content
	for _, c := range u.Contents {
		if usage, ok := c.(*content.Usage); ok {
			r.Usage = addUsage(r.Usage, usage)
			continue
		}
		contents = append(contents, c)
	}

	if last == nil || startsMessage(last, u) {
		if len(contents) == 0 && u.MessageID == "" {
			return last
		}
		last = &content.Message{
			ID:         u.MessageID,
			Role:       u.Role,
			AuthorName: u.AuthorName,
		}
		if last.Role == "" {
			last.Role = content.Assistant
		}
		r.Messages = append(r.Messages, last)
	}

	if last.ID == "" {
		last.ID = u.MessageID
	}
	last.Contents = append(last.Contents, contents...)
	return last
}

func startsMessage(last *content.Message, u *Update) bool {
	return last.ID != "" && u.MessageID != "" && last.ID != u.MessageID || u.Role != "" && u.Role != last.Role ||
		u.AuthorName != "" && last.AuthorName != "" && u.AuthorName != last.AuthorName
}

func addUsage(a, b *content.Usage) *content.Usage {
	sum := *b
	if a != nil {
		sum.Input = a.Input + b.Input
		sum.Output = a.Output + b.Output
		sum.Total = a.Total + b.Total
	}
	return &sum
}

// joinTexts joins consecutive texts and consecutive pieces of reasoning.
func joinTexts(in []content.Content) []content.Content {
	var out []content.Content
	for _, c := range in {
		if len(out) > 0 && glue(out, c) {
			continue
		}
		out = append(out, c)
	}

	return out
}

func glue(out []content.Content, c content.Content) bool {
	end := len(out) - 1
	switch c := c.(type) {
	case *content.Text:
		if last, ok := out[end].(*content.Text); ok && plain(last) && plain(c) {
			out[end] = &content.Text{Text: last.Text + c.Text}
			return true
		}
	case *content.Reasoning:
		if last, ok := out[end].(*content.Reasoning); ok && plain(last) && last.Protected == "" {
			joined := *c
			joined.Text = last.Text + c.Text
			out[end] = &joined
			return true
		}
	}

	return false
}

// plain reports whether a content has neither properties nor extra members.
func plain(c content.Content) bool {
	common := content.CommonOf(c)
	return common.Properties == nil && len(common.Extra) == 0
}
