// Package rap is both sides of RAP's user choice.
//
// A Runtime calls tools of registered tool servers for one agent. The agent's plan decides before an invocation leaves; what a tool asks on
// the way (user_choice) is put to people, and their answer is posted to the tool once. A Gateway is a tool server: it wraps operations, its
// plan decides, and where people must be asked it asks them through the calling runtime, through our own approvers, or both; what was
// approved runs once.
//
// Every call is one sealed record in a store, moved by compare-and-set, so any number of processes may share the work and none of it is lost in
// a crash. Nothing here holds a call in memory but while it works on it.
package rap

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// Common is what both sides need.
type Common struct {
	Records store.Records // where calls are kept
	Room    string        // name of this side's records, different for every Runtime and Gateway on one store
	Key     []byte        // 32 secret bytes that seal the records (they hold arguments, callback URLs and response URLs)
	// Plan returns the agent's rules as of now. An error lets nothing run.
	Plan func(ctx context.Context) (*resolve.Plan, error)
	// Desk is where people answer. A Gateway that asks runtimes only needs none.
	Desk Desk
	// Record appends to the ledger; nil: nothing does. The actor is the token that asked; its person and whom it acts for are facts. Facts hold
	// no secret, no URL and no words of a peer.
	Record func(ctx context.Context, event, subject, actor string, facts map[string]any) error
	Log    *slog.Logger // refusals, with their reasons, never with tokens or URLs; nil: nobody reads them
	Now    func() time.Time
	Poll   time.Duration // how often to look for what is due; 1s
}

// Desk is where people answer, for one agent. See rap/desk.
type Desk interface {
	// As returns the desk as one asker has it: what this asker asked is there, and nothing else. Whom an asker acts for is in each call.
	As(who approval.Asker) AskerDesk
	// Watch calls changed with the ref of every approval and question that may stand differently now, "" when it could be any, until ctx
	// ends. It is called at least once with "" at the start.
	Watch(ctx context.Context, changed func(ref string)) error
}

// AskerDesk puts approvals of whole calls (hold.Holder) and questions of tools to people, for one asker.
type AskerDesk interface {
	hold.Holder // Cancel withdraws questions too
	// Ask puts a question to people. The same key is the same question.
	Ask(ctx context.Context, key string, q Question) (ref string, err error)
	// Answer tells how a question stands. hold.ErrNoRequest says that nobody knows it and never will.
	Answer(ctx context.Context, ref string) (Answer, error)
}

// Question is what a tool asks, and of which call.
type Question struct {
	Call    *resolve.Call
	Server  string // registered name of the tool server that asks
	Prompt  string // untrusted
	Choices []string
	Default int
	Groups  []string      // who may answer; none: the user whom the agent acts for
	Within  time.Duration // until it expires
}

// Answer is how a question stands.
type Answer struct {
	State    AnswerState
	Selected int    // index, once chosen or dismissed
	By       string // who answered
	Reason   string // of an end without an answer
}

// AnswerState is how a question stands. An end without an answer is never an answer.
type AnswerState string

// The states of a question.
const (
	AnswerOpen      AnswerState = "open"
	AnswerChosen    AnswerState = "chosen"
	AnswerDismissed AnswerState = "dismissed" // an explicit act of a person, which picks the default
	AnswerExpired   AnswerState = "expired"
	AnswerCancelled AnswerState = "cancelled"
	AnswerDenied    AnswerState = "denied" // never put to people: the rules deny the call, or the agent is frozen
)

// Outcome is what a call came to: what a tool_result carries.
type Outcome struct {
	Text      string          `json:"text,omitempty"`
	Content   []wire.Content  `json:"content,omitempty"` // supersedes Text
	DisplayAs json.RawMessage `json:"display_as,omitempty"`
	// Subscription says of a wrapped operation's outcome that events follow, which its Feed brings.
	Subscription bool `json:"-"`
}
