package rap

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
	"github.com/assent-dev/assent/rap/wire"
)

// gatePhase is how far a call has come. It goes forward only, but for a result that is asked for again.
type gatePhase string

const (
	gateReceived  gatePhase = "received"  // acknowledged, and nothing else
	gateHeld      gatePhase = "held"      // our approvers are asked
	gateAwaiting  gatePhase = "awaiting"  // the runtime's user is asked
	gateDecided   gatePhase = "decided"   // may run, once
	gateExecuting gatePhase = "executing" // was begun: when its process is gone, nobody knows what became of it
	gateDone      gatePhase = "done"      // has its result
	gateFollowing gatePhase = "following" // the result was posted, and events come after it
	gateDelivered gatePhase = "delivered" // the result was posted, or can't be, and nothing comes after it
)

// gateCall is one call, from its acknowledgement on.
type gateCall struct {
	Phase     gatePhase      `json:"phase"`
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
	Question *gateQuestion `json:"question,omitempty"`
	Ground   gateGround    `json:"ground"`
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
type gateGround struct {
	Binding string   `json:"binding,omitempty"`
	Plan    string   `json:"plan,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Rules   []string `json:"rules,omitempty"` // that asked
}

// gateQuestion is a user_choice. A call has one at most.
type gateQuestion struct {
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
	gateByRules     = "rules"
	gateByUser      = "user"
	gateByGrant     = "session_grant"
	gateByApprovers = "approvers"
	gateByBoth      = "approvers_and_user"
)

// How a call was decided, where it was not by the rules alone.
const (
	gateAllow     = "allow"
	gateDeny      = "deny"
	gateExpired   = "expired"
	gateCancelled = "cancelled"
	gateInvalid   = "invalid"
	gateFailed    = "failed" // nobody could be asked, or nothing could be run
	gateUnknown   = "unknown"
)

// root is the thread that is the session.
func (c *gateCall) root() string { return rootOf(c.Thread, c.Ancestors) }

// owned reports whether it is known who made the call. It is not of what a version kept that did not keep it.
func (c *gateCall) owned() bool { return c.Asker.Token != "" }

// over tells whether nothing more is to be decided or run.
func (c *gateCall) over() bool {
	return c.Phase == gateDone || c.Phase == gateFollowing || c.Phase == gateDelivered
}

// gateKey places a call. Ids are opaque texts of any content, so their hashes stand for them (T19, T23).
func gateKey(caller, thread, id string) string { return gateThread(caller, thread) + hashed(id) }

func gateThread(caller, thread string) string { return gateOf(caller) + hashed(thread) + "/" }

func gateOf(caller string) string { return hashed(caller) + "/" }

// gateDigest identifies what was sent: whatever differs makes another call of it (T17, T18).
func gateDigest(in *wire.Invocation) (string, error) {
	text, err := json.Marshal([]any{in.Operation, []byte(in.Arguments), in.CallID, in.CallbackURL, in.Ancestors, in.UserID})
	if err != nil {
		return "", fmt.Errorf("digest the invocation: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// settle ends a call with an error that its runtime is told. The token is dead by it.
func (c *gateCall) settle(verdict, text string) {
	c.Verdict = verdict
	c.finish(gateError(text))
}

// finish stores the result of a call. Only what a repetition needs is kept beside it.
func (c *gateCall) finish(out Outcome) {
	c.Withdraw = c.Phase != gateExecuting && c.Held != ""
	var sent bool
	c.Result, sent = gateResult(c, out)
	switch failed := c.Verdict == gateFailed || c.Verdict == gateUnknown; {
	case c.Follows == "":
	case failed || out.Subscription && !sent:
		c.Stop = cmp.Or(c.Stop, "the run failed") // what goes on behind is ended
	case !out.Subscription:
		c.Follows = ""
	}
	c.Phase, c.Args, c.Tries, c.Owner, c.Until = gateDone, nil, 0, "", time.Time{}
	if c.Question != nil {
		c.Question.Body = nil
	}
}

const gateChanges = 16

// errGateBusy says that a record moved each time that somebody tried to move it.
var errGateBusy = errors.New("the call changes faster than it can be changed")

// change moves a call by compare-and-set. edit sees it as it is now and returns false to leave it so; the call as it stands is returned either way.
func (g *Gateway) change(ctx context.Context, key string, edit func(*doc[gateCall]) bool) (*doc[gateCall], bool, error) {
	for range gateChanges {
		d, err := g.calls.get(ctx, key)
		if err != nil {
			return nil, false, err
		}
		if !edit(d) {
			return d, false, nil
		}
		if err = g.calls.put(ctx, d); err == nil {
			return d, true, nil
		}
		if !errors.Is(err, approval.ErrVersion) {
			return nil, false, err
		}
	}
	return nil, false, errGateBusy
}
