package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

// record is a call as it is kept. The engine knows when it came, what
// people are asked and whether it ran; the part below is what RAP
// needs.
type record = durable.Call[call]

// call is the gateway's own part of a record.
type call struct {
	Caller    string   `json:"caller"`
	Thread    string   `json:"thread"`
	ID        string   `json:"id"`
	CallID    *string  `json:"call_id,omitempty"`
	User      string   `json:"user,omitempty"`
	Ancestors []string `json:"ancestors,omitempty"`
	// Stray says that it named ancestors that are not believed: its
	// thread is a root, for which nobody allows anything beyond one
	// call.
	Stray     bool   `json:"stray,omitempty"`
	Callback  string `json:"callback"`
	Operation string `json:"operation"`
	Digest    string `json:"digest"`          // of what the runtime sent
	Heard     bool   `json:"heard,omitempty"` // the ledger knows of it

	Question *question `json:"question,omitempty"`
	Ground   ground    `json:"ground"`
	By       string    `json:"by,omitempty"` // why it may run: by…; "" while it may not
	Verdict  string    `json:"verdict,omitempty"`
	Grant    string    `json:"grant,omitempty"` // session grant that it uses
	Makes    bool      `json:"makes,omitempty"` // it makes the grant, rather
	Closed   bool      `json:"closed,omitempty"`
	Result   []byte    `json:"result,omitempty"` // a tool_result, ready to be posted
	Posted   bool      `json:"posted,omitempty"` // the result was, and events come after it
	Lost     bool      `json:"lost,omitempty"`   // the result could not be posted

	Run     string        `json:"run,omitempty"`     // a name of its one run
	Follows string        `json:"follows,omitempty"` // the subscription that goes on after the result
	Until   time.Time     `json:"until,omitzero"`    // when its events are passed on no more
	Next    int           `json:"next,omitempty"`    // index of the next event to pass on
	Passed  int           `json:"passed,omitempty"`  // how many were
	Fails   int           `json:"fails,omitempty"`   // of posting the next one
	Pause   time.Duration `json:"pause,omitempty"`   // until it is looked again whether there are more
}

// ground is what a decision rests on. When it changes before the run,
// nothing runs.
type ground struct {
	Binding string   `json:"binding,omitempty"`
	Plan    string   `json:"plan,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Rules   []string `json:"rules,omitempty"` // that asked
}

// question is a user_choice. A call has one at most.
type question struct {
	Body     []byte        `json:"body"` // the message; it holds the token
	Choices  int           `json:"choices"`
	Session  int           `json:"session"` // index that allows the session; -1 none
	Uses     int           `json:"uses,omitempty"`
	For      time.Duration `json:"for,omitempty"`
	Within   time.Duration `json:"within,omitempty"`
	Until    time.Time     `json:"until,omitzero"` // when it ends unanswered
	Posted   bool          `json:"posted,omitempty"`
	Relayed  bool          `json:"relayed,omitempty"` // the operation asks, not the rules
	Selected *int          `json:"selected,omitempty"`
	Bad      bool          `json:"bad,omitempty"` // the answer to a relayed question made no sense
}

// rememberEnded is how long repetitions of a call that ended are known.
const rememberEnded = 24 * time.Hour

// Why a call may run.
const (
	byRules     = "rules"
	byUser      = "user"
	byGrant     = "session_grant"
	byApprovers = "approvers"
	byBoth      = "approvers_and_user"
)

// How a call was decided, where it was not by the rules alone.
const (
	verdictAllow     = "allow"
	verdictDeny      = "deny"
	verdictExpired   = "expired"
	verdictCancelled = "cancelled"
	verdictInvalid   = "invalid"
	verdictFailed    = "failed" // nobody could be asked, or nothing could be run
	verdictUnknown   = "unknown"
)

// root is the thread that is the session.
func (c *call) root() string { return names.Root(c.Thread, c.Ancestors) }

// callKey places a call. Ids are opaque texts of any content, so their
// hashes stand for them.
func callKey(caller, thread, id string) string {
	return threadPrefix(caller, thread) + durable.Hash(id)
}

func threadPrefix(caller, thread string) string {
	return callerPrefix(caller) + durable.Hash(thread) + "/"
}

func callerPrefix(caller string) string { return durable.Hash(caller) + "/" }

// digestOf identifies what was sent: whatever differs makes another
// call of it.
func digestOf(in *wire.Invocation) (string, error) {
	arguments := []byte(in.Arguments)
	text, err := json.Marshal([]any{in.Operation, arguments, in.CallID, in.CallbackURL, in.Ancestors, in.UserID})
	if err != nil {
		return "", fmt.Errorf("digest the invocation: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
