package agent

import (
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// release shows the messages and held updates of a turn that contains no calls for the loop.
func (r *run) release(a *answer) error {
	r.out.resp.Messages = append(r.out.resp.Messages, a.resp.Messages...)
	if r.out.yield == nil {
		return nil
	}
	for _, u := range a.held {
		if err := r.out.update(u); err != nil {
			return err
		}
	}
	return nil
}

// pass shows a turn in which all calls have results, and adds the calls and results to the
// history.
func (r *run) pass(a *answer, b *batch) error {
	if err := r.release(a); err != nil {
		return err
	}
	results := make([]content.Content, len(b.Items))
	for i, it := range b.Items {
		results[i] = &content.FunctionResult{CallID: it.Call.ID(), Result: it.Result}
	}
	last := content.NewMessage(content.ToolRole, results...)
	said := tidy(append(slices.Clip(a.resp.Messages), last)) // the calls may be in several messages
	r.adds.add(said...)
	if r.opt.ConversationID != "" {
		r.history = []*content.Message{last}
	} else {
		r.history = append(r.history, said...)
	}
	r.unsent = true
	return r.out.message(last)
}

// keep shows requests in place of the calls of a batch that waits in the thread. It reports
// whether the model continues, which it does if all requests of the batch were answered
// immediately.
func (r *run) keep(a *answer, b *batch) (bool, error) {
	said := present(a.resp.Messages, b)
	r.out.resp.Messages = append(r.out.resp.Messages, said...)
	for _, u := range presentUpdates(a.held, b) {
		if err := r.out.update(u); err != nil {
			return false, err
		}
	}
	left := leftOf(a.resp.Messages, b)
	r.adds.add(left...)
	if !b.finished() {
		return false, nil
	}
	r.unsent = true
	if r.opt.ConversationID != "" {
		r.history = nil
	} else {
		r.history = append(r.history, left...)
	}
	return !r.stopped, r.addBatch(b)
}

// leftOf returns the part of a turn that the model may see while the calls of the turn wait.
func leftOf(messages []*content.Message, b *batch) []*content.Message {
	var out []*content.Message
	for _, m := range messages {
		left := slices.DeleteFunc(slices.Clone(m.Contents), b.holds)
		if len(left) > 0 {
			out = append(out, m.With(left))
		}
	}

	return out
}

func (b *batch) holds(c content.Content) bool {
	return slices.ContainsFunc(b.Items, func(it *item) bool { return it.is(c) || slices.Contains(it.Lead, c) })
}

// present replaces the calls in messages with the requests that the user must answer, and drops
// messages that become empty.
func present(messages []*content.Message, b *batch) []*content.Message {
	var out []*content.Message
	for _, m := range messages {
		if contents := presentContents(m.Contents, b); len(contents) > 0 || len(m.Contents) == 0 {
			out = append(out, m.With(contents))
		}
	}
	return out
}

func presentUpdates(updates []*Update, b *batch) []*Update {
	var out []*Update
	for _, u := range updates {
		shown := *u
		shown.Contents = presentContents(u.Contents, b)
		if len(shown.Contents) > 0 || len(u.Contents) == 0 || u.FinishReason != "" || u.ConversationID != "" ||
			u.ID != "" {
			out = append(out, &shown)
		}
	}

	return out
}

func presentContents(contents []content.Content, b *batch) []content.Content {
	var out []content.Content
	for _, c := range contents {
		i := slices.IndexFunc(b.Items, func(it *item) bool { return it.is(c) })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out = append(out, b.Items[i].visible()...)
	}

	return out
}

// is reports whether c is the content that the item was made from.
func (it *item) is(c content.Content) bool {
	return c == it.origin
}
