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

// record is a stored call. The engine's part has its state, the requests to people and the run;
// call has what RAP needs.
type record = durable.Call[call]

// call is the gateway's own part of a record.
type call struct {
	Caller    string   `json:"caller"`
	Thread    string   `json:"thread"`
	ID        string   `json:"id"`
	CallID    *string  `json:"call_id,omitempty"`
	User      string   `json:"user,omitempty"`
	Ancestors []string `json:"ancestors,omitempty"`
	// Stray means that the call named ancestors that are not trusted. Its thread is treated as
	// a root, for which session grants are not available.
	Stray     bool   `json:"stray,omitempty"`
	Callback  string `json:"callback"`
	Operation string `json:"operation"`
	Digest    string `json:"digest"`          // of what the runtime sent
	Heard     bool   `json:"heard,omitempty"` // it is recorded in the ledger

	Question *question `json:"question,omitempty"`
	Ground   ground    `json:"ground"`
	By       string    `json:"by,omitempty"` // why it may run (by…); empty until it may
	Verdict  string    `json:"verdict,omitempty"`
	Grant    string    `json:"grant,omitempty"` // key of the session grant that it uses or makes
	Makes    bool      `json:"makes,omitempty"` // it makes the grant
	Closed   bool      `json:"closed,omitempty"`
	Result   []byte    `json:"result,omitempty"` // a tool_result, ready to be posted
	Posted   bool      `json:"posted,omitempty"` // the result was posted, and events follow
	Lost     bool      `json:"lost,omitempty"`   // the result could not be posted

	Run     string        `json:"run,omitempty"`     // random name of its one run
	Follows string        `json:"follows,omitempty"` // name of the subscription that continues after the result
	Until   time.Time     `json:"until,omitzero"`    // when to stop passing on its events
	Next    int           `json:"next,omitempty"`    // index of the next event to pass on
	Passed  int           `json:"passed,omitempty"`  // number of events passed on
	Fails   int           `json:"fails,omitempty"`   // failures in a row to post the next one
	Pause   time.Duration `json:"pause,omitempty"`   // until the next check for events
}

// ground identifies everything that a decision depends on. If it changes before the run, the call does not run.
type ground struct {
	Binding string   `json:"binding,omitempty"`
	Plan    string   `json:"plan,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Rules   []string `json:"rules,omitempty"` // the rules that asked
}

// question is a user_choice. A call has at most one.
type question struct {
	Body     []byte        `json:"body"` // the message; it contains the token
	Choices  int           `json:"choices"`
	Session  int           `json:"session"` // index of the choice that allows the session; -1 if there is none
	Uses     int           `json:"uses,omitempty"`
	For      time.Duration `json:"for,omitempty"`
	Within   time.Duration `json:"within,omitempty"`
	Until    time.Time     `json:"until,omitzero"` // when it expires
	Posted   bool          `json:"posted,omitempty"`
	Relayed  bool          `json:"relayed,omitempty"` // asked by the operation, not by the rules
	Selected *int          `json:"selected,omitempty"`
	Bad      bool          `json:"bad,omitempty"` // the answer to a relayed question was invalid
}

// rememberEnded is the time for which repetitions of an ended call are recognized.
const rememberEnded = 24 * time.Hour

// Reasons why a call may run.
const (
	byRules     = "rules"
	byUser      = "user"
	byGrant     = "session_grant"
	byApprovers = "approvers"
	byBoth      = "approvers_and_user"
)

// Verdicts of calls that the rules alone did not decide.
const (
	verdictAllow     = "allow"
	verdictDeny      = "deny"
	verdictExpired   = "expired"
	verdictCancelled = "cancelled"
	verdictInvalid   = "invalid"
	verdictFailed    = "failed" // the question could not be asked, or the operation could not be run
	verdictUnknown   = "unknown"
)

// root returns the root thread, which identifies the session.
func (c *call) root() string { return names.Root(c.Thread, c.Ancestors) }

// callKey returns the key of a call's record. It contains hashes, because ids may have any
// content.
func callKey(caller, thread, id string) string {
	return threadPrefix(caller, thread) + durable.Hash(id)
}

func threadPrefix(caller, thread string) string {
	return callerPrefix(caller) + durable.Hash(thread) + "/"
}

func callerPrefix(caller string) string { return durable.Hash(caller) + "/" }

// digestOf identifies the content of an invocation. If any of it differs, it is another call.
func digestOf(in *wire.Invocation) (string, error) {
	arguments := []byte(in.Arguments)
	text, err := json.Marshal([]any{in.Operation, arguments, in.CallID, in.CallbackURL, in.Ancestors, in.UserID})
	if err != nil {
		return "", fmt.Errorf("digest the invocation: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
