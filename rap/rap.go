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
	// People is where people answer. A Gateway that asks runtimes only needs none.
	People hold.People
	// Record appends to the ledger; nil: nothing does. The actor is the token that asked; its person and whom it acts for are facts. Facts hold
	// no secret, no URL and no words of a peer.
	Record func(ctx context.Context, event, subject, actor string, facts map[string]any) error
	Log    *slog.Logger // refusals, with their reasons, never with tokens or URLs; nil: nobody reads them
	Now    func() time.Time
	Poll   time.Duration // how often to look for what is due; 1s
}

// Outcome is what a call came to: what a tool_result carries.
type Outcome struct {
	Text      string          `json:"text,omitempty"`
	Content   []wire.Content  `json:"content,omitempty"` // supersedes Text
	DisplayAs json.RawMessage `json:"display_as,omitempty"`
	// Subscription says of a wrapped operation's outcome that events follow, which its Feed brings.
	Subscription bool `json:"-"`
}
