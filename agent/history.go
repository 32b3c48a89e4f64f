package agent

import (
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// history is what one run adds to the history of its thread. An agent
// makes one for each run and hands it down in the options; the loop
// fills it in, and the agent keeps it when the run has gone well. It is
// not what the caller is shown: the caller sees requests in places
// where the history has none, and nothing of what passes between the
// model's side and its user. All methods take nil for a run without an
// agent.
type history struct {
	thread *Thread
	said   []*content.Message // by the user in this run
	made   []*content.Message // by the model and by functions
	before int                // so many of those made stand before what the user said
	placed bool               // the loop has set before
	ran    bool               // some loop ran the calls
	told   []*batch           // finished batches whose messages are among those made
}

// historyOf is where a loop records what it adds to a thread; nil when
// no agent keeps that thread.
func (o *Options) historyOf(t *Thread) *history {
	if o == nil || o.history == nil || o.history.thread != t {
		return nil
	}
	return o.history
}

// messages are those that the thread gets. What was finished by answers
// stands before what the user wrote beside them.
func (h *history) messages() []*content.Message {
	return slices.Concat(h.made[:h.before], h.said, h.made[h.before:])
}

func (h *history) add(messages ...*content.Message) {
	if h != nil {
		h.made = append(h.made, messages...)
	}
}

// loopRuns notes that a loop runs the calls.
func (h *history) loopRuns() {
	if h != nil {
		h.ran = true
	}
}

// userSpeaks notes that what the user said stands after what was made
// so far. The first call counts, since a layer may run the loop several
// times.
func (h *history) userSpeaks() {
	if h != nil && !h.placed {
		h.before, h.placed = len(h.made), true
	}
}

func (h *history) hasTold(b *batch) bool { return h != nil && slices.Contains(h.told, b) }

// tellFinished notes the batches that have become messages. Without an
// agent they are forgotten at once. An agent may still fail, and then
// the next run must tell the results again.
func (h *history) tellFinished(t *Thread) {
	if h == nil {
		t.batches = slices.DeleteFunc(t.batches, (*batch).finished)
		return
	}
	h.told = slices.DeleteFunc(slices.Clone(t.batches), func(b *batch) bool { return !b.finished() })
}

// checkpoint puts what a run has come to so far into the thread: a call
// that begins in the middle of a run must not be stored there without
// what led to it. The returned function takes it back.
func (h *history) checkpoint(t *Thread) (undo func()) {
	if h == nil || !h.placed || t.ConversationID != "" {
		return func() {}
	}
	before := *h
	messages := t.Messages
	batches := t.batches
	t.Messages = slices.Concat(t.Messages, h.messages())
	t.batches = slices.DeleteFunc(slices.Clone(t.batches), (*batch).finished)
	*h = history{thread: t, placed: true, ran: true}
	return func() {
		*h = before
		t.Messages = messages
		t.batches = batches
	}
}
