package agent

import (
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// history is the part that one run adds to the history of its thread. An agent makes one for
// each run and passes it down in the options. The loop fills it in, and the agent keeps it if
// the run succeeds. It differs from the response: the caller sees requests that the history
// doesn't contain, and doesn't see the requests and answers between the model's service and
// its user. All methods accept a nil receiver, for a run without an agent.
type history struct {
	thread   *Thread
	said     []*content.Message // the user's messages in this run
	made     []*content.Message // messages of the model and of functions
	before   int                // number of messages in made that precede said
	placed   bool               // the loop has set before
	ran      bool               // some loop ran the calls
	finished []*batch           // finished batches whose messages are in made
}

// historyOf returns the history in which a loop records its additions to a thread, or nil if no
// agent keeps that thread.
func (o *Options) historyOf(t *Thread) *history {
	if o == nil || o.history == nil || o.history.thread != t {
		return nil
	}
	return o.history
}

// messages returns the messages to add to the thread. Batches that answers finished come before
// the other messages of the user in the same run.
func (h *history) messages() []*content.Message {
	return slices.Concat(h.made[:h.before], h.said, h.made[h.before:])
}

func (h *history) add(messages ...*content.Message) {
	if h != nil {
		h.made = append(h.made, messages...)
	}
}

// loopRuns records that a loop runs the calls.
func (h *history) loopRuns() {
	if h != nil {
		h.ran = true
	}
}

// userSpeaks records that the user's messages follow the messages made so far. Only the first
// call has an effect, since a layer may run the loop several times.
func (h *history) userSpeaks() {
	if h != nil && !h.placed {
		h.before, h.placed = len(h.made), true
	}
}

func (h *history) hasBatch(b *batch) bool { return h != nil && slices.Contains(h.finished, b) }

// recordFinished records which batches have become messages. Without an agent they are dropped
// immediately. With an agent they are kept until the agent has succeeded: if it fails, the next
// run must add the results again.
func (h *history) recordFinished(t *Thread) {
	if h == nil {
		t.batches = slices.DeleteFunc(t.batches, (*batch).finished)
		return
	}
	h.finished = slices.DeleteFunc(slices.Clone(t.batches), func(b *batch) bool { return !b.finished() })
}

// checkpoint adds the messages of the run so far to the thread, so that a call that begins in
// the middle of a run is not saved without the messages that led to it. The returned function
// undoes this.
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
