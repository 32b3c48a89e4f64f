package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
)

// Decider says whether a call may run, must be asked about, or must not
// run. Its word is taken when the model makes the call, when an edit
// changes it and again right before it runs.
type Decider interface {
	// Decide answers one call of a tool; t is nil when no such tool is known.
	Decide(ctx context.Context, t Tool, call content.ToolCall) (hold.Verdict, error)
}

// Event is one thing that happened to a request, for the record.
type Event struct {
	At time.Time `json:"at"`
	// Type is "requested", "answered", "refused", "superseded",
	// "expired", "cancelled", "withdrawn", "started" (of calls that
	// somebody was asked about), "finished", "denied", "skipped",
	// "lost" or "recovered" (of calls that a process left behind).
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

// Audit takes the record of every request and answer, whoever keeps the
// history. An error ends the run before anything else happens.
type Audit func(ctx context.Context, e Event) error

// record takes an event of a thread; without an Audit there is no record.
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
