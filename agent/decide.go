package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
)

// Decider decides whether a call may run, needs approval, or must not run. It is called when
// the model makes the call, when an edit changes it, and again right before it runs.
type Decider interface {
	// Decide returns the verdict for one call. The tool t is nil if no tool of that name is
	// known.
	Decide(ctx context.Context, t Tool, call content.ToolCall) (hold.Verdict, error)
}

// Event is an audit record of something that happened to a request or call.
type Event struct {
	At time.Time `json:"at"`
	// Type is "requested", "answered", "refused", "superseded", "expired", "cancelled",
	// "withdrawn", "started" (for calls that needed approval), "finished", "denied", "skipped",
	// "lost" or "recovered" (for calls that were interrupted by the end of a process).
	Type      string `json:"type"`
	Thread    string `json:"thread"`
	RequestID string `json:"request_id,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"` // the exact text that was shown or run
	Approved  *bool  `json:"approved,omitempty"`
	By        string `json:"by,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// Audit receives a record of every request and answer, even if the service keeps the history.
// An error ends the run before anything else happens.
type Audit func(ctx context.Context, e Event) error

// record fills in time and thread and passes the event to the Audit. A nil Audit records
// nothing.
func (take Audit) record(ctx context.Context, t *Thread, at time.Time, e Event) error {
	if take == nil {
		return nil
	}
	e.At, e.Thread = at, t.ID
	if err := take(ctx, e); err != nil {
		return fmt.Errorf("the audit record: %w", err)
	}
	return nil
}
