package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/wire"
)

// gatePhase is how far a call has come. It goes forward only, but for a result that is asked for again.
type phase string

const (
	phaseReceived  phase = "received"  // acknowledged, and nothing else
	phaseHeld      phase = "held"      // our approvers are asked
	phaseAwaiting  phase = "awaiting"  // the runtime's user is asked
	phaseDecided   phase = "decided"   // may run, once
	phaseExecuting phase = "executing" // was begun: when its process is gone, nobody knows what became of it
	phaseDone      phase = "done"      // has its result
	phaseFollowing phase = "following" // the result was posted, and events come after it
	phaseDelivered phase = "delivered" // the result was posted, or can't be, and nothing comes after it
)

// gateCall is one call, from its acknowledgement on.
type call struct {
	Phase     phase          `json:"phase"`
	Asker     approval.Asker `json:"asker"` // who made the call
	Caller    string         `json:"caller"`
	Thread    string         `json:"thread"`
	ID        string         `json:"id"`
	CallID    *string        `json:"call_id,omitempty"`
	User      string         `json:"user,omitempty"`
	Ancestors []string       `json:"ancestors,omitempty"`
	Stray     bool           `json:"stray,omitempty"` // it named ancestors that are not believed: its thread is a root, for which nobody allows anything beyond one call
	Callback  string         `json:"callback"`
	Operation string         `json:"operation"`
	Args      []byte         `json:"args,omitempty"` // to the byte: a json.RawMessage would be written anew
	Digest    string         `json:"digest"`         // of what the runtime sent

	Tries    int           `json:"tries,omitempty"` // of what is to be posted now
	Until    time.Time     `json:"until,omitzero"`  // when the question that is open ends unanswered
	Held     string        `json:"held,omitempty"`  // what our approvers were asked
	Look     time.Duration `json:"look,omitempty"`  // how long ago that was looked at
	Question *question     `json:"question,omitempty"`
	Ground   ground        `json:"ground"`
	By       string        `json:"by,omitempty"` // why it may run: gateBy…
	Verdict  string        `json:"verdict,omitempty"`
	Grant    string        `json:"grant,omitempty"` // session grant that it uses
	Makes    bool          `json:"makes,omitempty"` // it makes the grant, rather
	Owner    string        `json:"owner,omitempty"` // process that executes it
	Stop     string        `json:"stop,omitempty"`  // why it should not go on while it executes
	Closed   bool          `json:"closed,omitempty"`
	Withdraw bool          `json:"withdraw,omitempty"` // what the approvers were asked is needed no more
	Result   []byte        `json:"result,omitempty"`   // a tool_result, ready to be posted

	Run     string    `json:"run,omitempty"`     // a name of its one run
	Follows string    `json:"follows,omitempty"` // the subscription that goes on after the result
	Next    int       `json:"next,omitempty"`    // index of the next event to pass on
	Passed  int       `json:"passed,omitempty"`  // how many were
	Poster  string    `json:"poster,omitempty"`  // process that posts an event now
	Lease   time.Time `json:"lease,omitzero"`    // until when it may take for it
	Over    bool      `json:"over,omitempty"`    // the subscription ended
}

// gateGround is what a decision rests on. When it changes before the run, nothing runs.
type ground struct {
	Binding string   `json:"binding,omitempty"`
	Plan    string   `json:"plan,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Rules   []string `json:"rules,omitempty"` // that asked
}

// gateQuestion is a user_choice. A call has one at most.
type question struct {
	Body     []byte        `json:"body"` // the message; it holds the token
	Choices  int           `json:"choices"`
	Session  int           `json:"session"` // index that allows the session; -1 none
	Uses     int           `json:"uses,omitempty"`
	For      time.Duration `json:"for,omitempty"`
	Posted   bool          `json:"posted,omitempty"`
	Relayed  bool          `json:"relayed,omitempty"` // the operation asks, not the rules
	Selected *int          `json:"selected,omitempty"`
	Bad      bool          `json:"bad,omitempty"` // the answer to a relayed question made no sense
}

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
func (c *call) root() string { return kept.RootOf(c.Thread, c.Ancestors) }

// owned reports whether it is known who made the call. It is not of what a version kept that did not keep it.
func (c *call) owned() bool { return c.Asker.Token != "" }

// over tells whether nothing more is to be decided or run.
func (c *call) over() bool {
	return c.Phase == phaseDone || c.Phase == phaseFollowing || c.Phase == phaseDelivered
}

// gateKey places a call. Ids are opaque texts of any content, so their hashes stand for them (T19, T23).
func callKey(caller, thread, id string) string { return threadPrefix(caller, thread) + kept.Hash(id) }

func threadPrefix(caller, thread string) string {
	return callerPrefix(caller) + kept.Hash(thread) + "/"
}

func callerPrefix(caller string) string { return kept.Hash(caller) + "/" }

// gateDigest identifies what was sent: whatever differs makes another call of it (T17, T18).
func digestOf(in *wire.Invocation) (string, error) {
	text, err := json.Marshal([]any{in.Operation, []byte(in.Arguments), in.CallID, in.CallbackURL, in.Ancestors, in.UserID})
	if err != nil {
		return "", fmt.Errorf("digest the invocation: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// settle ends a call with an error that its runtime is told. The token is dead by it.
func (c *call) settle(verdict, text string) {
	c.Verdict = verdict
	c.finish(errorOutcome(text))
}

// finish stores the result of a call. Only what a repetition needs is kept beside it.
func (c *call) finish(out rap.Outcome) {
	c.Withdraw = c.Phase != phaseExecuting && c.Held != ""
	var sent bool
	c.Result, sent = resultBody(c, out)
	switch failed := c.Verdict == verdictFailed || c.Verdict == verdictUnknown; {
	case c.Follows == "":
	case failed || out.Subscription && !sent:
		c.Stop = cmp.Or(c.Stop, "the run failed") // what goes on behind is ended
	case !out.Subscription:
		c.Follows = ""
	}
	c.Phase, c.Args, c.Tries, c.Owner, c.Until = phaseDone, nil, 0, "", time.Time{}
	if c.Question != nil {
		c.Question.Body = nil
	}
}

const maxChanges = 16

// errGateBusy says that a record moved each time that somebody tried to move it.
var errBusy = errors.New("the call changes faster than it can be changed")

// change moves a call by compare-and-set. edit sees it as it is now and returns false to leave it so; the call as it stands is returned either way.
func (g *Gateway) change(ctx context.Context, key string, edit func(*kept.Doc[call]) bool) (*kept.Doc[call], bool, error) {
	for range maxChanges {
		d, err := g.calls.Get(ctx, key)
		if err != nil {
			return nil, false, err
		}
		if !edit(d) {
			return d, false, nil
		}
		if err = g.calls.Put(ctx, d); err == nil {
			return d, true, nil
		}
		if !errors.Is(err, approval.ErrVersion) {
			return nil, false, err
		}
	}
	return nil, false, errBusy
}
