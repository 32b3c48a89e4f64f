package hold

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/resolve"
)

// People is where the people of one agent are asked.
type People interface {
	// As returns the requests of one asker: what this asker asked is
	// there, and nothing else. Whom an asker acts for is in each call.
	As(who approval.Asker) Requests

	// Watch calls changed with the reference of every request that may
	// have changed, "" when it could be any, until ctx ends. It is
	// called at least once with "" at the start.
	Watch(ctx context.Context, changed func(ref string)) error
}

// Requests are what one asker asks people: approvals of whole calls
// (Holder) and questions of tools.
type Requests interface {
	Holder // Cancel withdraws questions too

	// Ask puts a question to people. The same key is the same question.
	Ask(ctx context.Context, key string, q Question) (ref string, err error)

	// Answer returns the state of a question. ErrNoRequest says that
	// nobody knows it and never will.
	Answer(ctx context.Context, ref string) (Answer, error)
}

// Question is what a tool asks during a call, or an agent by itself.
type Question struct {
	Call    *resolve.Call // without a kind where the agent asks by itself, for its principal
	Server  string        // registered name of the tool server that asks, or the agent's own name
	Prompt  string        // untrusted
	Choices []string
	Default int
	// Schema asks for a text or a form instead of a choice (package
	// approval/form).
	Schema  json.RawMessage
	Context []info.Item   // what the agent says about it
	Groups  []string      // who may answer; none: the user whom the agent acts for
	Within  time.Duration // until it expires
}

// Answer is the state of a question: Pending, Chosen, Submitted,
// Dismissed, Expired, Cancelled or Denied. An end without an answer is
// never an answer.
type Answer struct {
	State    State
	Selected int    // index, once chosen, and once a choice was dismissed
	Data     string // once submitted: JSON text that the question's schema accepts
	By       string // who answered
	Reason   string // what who answered said with it, or why it ended without an answer
}
