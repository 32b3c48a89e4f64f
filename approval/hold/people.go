package hold

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/resolve"
)

// People reaches the people who answer for one agent.
type People interface {
	// As returns the requests of one asker. They contain only what this asker asked. The principal
	// is in each call.
	As(who approval.Asker) Requests

	// Watch calls changed with the reference of every request that may have changed, until ctx
	// ends. An empty reference means that any request may have changed; Watch calls changed with it
	// at least once, at the start.
	Watch(ctx context.Context, changed func(ref string)) error
}

// Requests makes one asker's requests: approvals of calls (Holder) and questions of tools.
type Requests interface {
	Holder // Cancel also withdraws questions

	// Ask puts a question to people. The same key always means the same question.
	Ask(ctx context.Context, key string, q Question) (ref string, err error)

	// Answer returns the state of a question. ErrNoRequest means that the question does not exist
	// and never will.
	Answer(ctx context.Context, ref string) (Answer, error)
}

// Question is a question of a tool during a call, or of an agent itself.
type Question struct {
	Call    *resolve.Call // has no kind if the agent itself asks, for its principal
	Server  string        // registered name of the tool server, or name of the agent
	Prompt  string        // untrusted
	Choices []string
	Default int
	// Schema describes a text or a form instead of a choice (package approval/form).
	Schema  json.RawMessage
	Context []info.Item   // what the agent adds to the question
	Groups  []string      // who may answer; if empty, the principal
	Within  time.Duration // time until it expires
}

// Answer is the state of a question: Pending, Chosen, Submitted, Dismissed, Expired, Cancelled or
// Denied. Expired, Cancelled and Denied never count as an answer.
type Answer struct {
	State    State
	Selected int    // index of the choice, if chosen or if a choice was dismissed
	Data     string // if submitted: JSON text that the question's schema accepts
	By       string // who answered
	Reason   string // reason of the person who answered, or why it ended without an answer
}
