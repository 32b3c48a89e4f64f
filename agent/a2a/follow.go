package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/wait"
)

// conversation is the state of one remote task. It is stored as JSON in the thread of the call
// and in the journal.
type conversation struct {
	MessageID string          `json:"message_id"` // id of the first message
	ContextID string          `json:"context_id"`
	Begun     time.Time       `json:"begun"`
	Task      json.RawMessage `json:"task,omitempty"`     // the last known state
	Sending   *Message        `json:"sending,omitempty"`  // an answer that may have arrived
	Answered  []string        `json:"answered,omitempty"` // digests of questions that have been answered
	Waiting   bool            `json:"waiting,omitempty"`  // the user is asked whether to keep waiting
	Place     string          `json:"place,omitempty"`    // id in the journal

	task *Task // the decoded Task
}

// decodeConversation reads the output of encode.
func decodeConversation(text []byte) (*conversation, error) {
	out := &conversation{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, wrap(BadMessage, "", err)
	}
	if out.Task == nil {
		return out, nil
	}
	var err error
	out.task, err = DecodeTask(out.Task)
	return out, err
}

// encode writes a conversation.
func (c *conversation) encode() (json.RawMessage, error) {
	if c.task != nil {
		text, err := json.Marshal(c.task)
		if err != nil {
			return nil, wrap(BadMessage, "", err)
		}
		c.Task = text
	}

	return json.Marshal(c)
}

// take stores a new state of the task. It returns an error if the state contradicts what the
// peer sent before.
func (c *conversation) take(t *Task) error {
	switch before := c.task; {
	case before != nil && before.ID != t.ID:
		return refuse(WrongTask, "", "the peer goes on with another task than it began")
	case t.ContextID != "" && t.ContextID != c.ContextID:
		return refuse(WrongTask, "", "the peer's task is in another context than our message")
	case !t.Status.State.known():
		return refuse(UnknownState, "", "the peer's task is in no state of A2A 1.0")
	case t.ID == "" && !t.Status.State.Ended():
		return refuse(BadMessage, "", "the peer's task has no id")
	case before != nil && before.Status.State.Ended() && before.Status.State != t.Status.State:
		return refuse(Contradiction, "", "the peer's task goes on after its end")
	case before != nil && before.Status.State != Submitted && t.Status.State == Submitted:
		return refuse(Contradiction, "", "the peer's task was under way and is only submitted now")
	case before != nil && older(t.Status.Timestamp, before.Status.Timestamp):
		return refuse(Contradiction, "", "the peer's task has an older status than it had before")
	}

	c.task = t
	if c.Sending != nil && !c.isAnswered(t) {
		c.Sending = nil // the earlier question is no longer asked, so its answer has arrived
	}
	return nil
}

// older reports whether one time is before another. It returns false if one of them can't be
// parsed.
func older(now, before string) bool {
	a, errA := time.Parse(time.RFC3339Nano, now)
	b, errB := time.Parse(time.RFC3339Nano, before)
	return errA == nil && errB == nil && a.Before(b)
}

// digestOf identifies the question of a task: the same status message is the same question.
func digestOf(t *Task) string {
	text, err := json.Marshal(t.Status.Message)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// isAnswered reports whether a task still asks a question that has been answered.
func (c *conversation) isAnswered(t *Task) bool {
	return t.Status.State == InputRequired && slices.Contains(c.Answered, digestOf(t))
}

// rests reports whether waiting is pointless: the task has ended, needs a sign-in or asks
// something new.
func (c *conversation) rests() bool {
	s := c.task.Status.State
	return s.Ended() || s == AuthRequired || s == InputRequired && !c.isAnswered(c.task)
}

// follow polls a task until it rests, for at most the configured time. It returns false if the
// task is still working then.
func (r *Remote) follow(ctx context.Context, c *conversation) (bool, error) {
	over := r.cfg.Now().Add(r.cfg.Wait)
	for attempt := 1; !c.rests(); attempt++ {
		if !r.cfg.Now().Before(over) {
			return false, nil
		}
		if err := wait.Pause(ctx, backoff.Jitter(100*time.Millisecond, 5*time.Second, attempt)); err != nil {
			return false, err
		}
		t, err := r.client.Task(ctx, c.task.ID)
		if err != nil {
			return false, err
		}
		if err := c.take(t); err != nil {
			return false, err
		}
	}

	return true, nil
}
