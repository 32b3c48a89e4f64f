// Package rap holds what both sides of RAP's user choice share: what
// they work with (Common), what a call comes to (Outcome), and what a
// gateway wraps (Operation). Package runtime calls tools, and package
// gateway is a tool server.
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
	Records   store.Records // where calls are kept
	Namespace string        // name of this side's records, different for every Runtime and Gateway on one store
	// 32 secret bytes that seal the records (they hold arguments,
	// callback URLs and response URLs)
	Key []byte
	// Plan returns the agent's rules as of now. An error lets nothing run.
	Plan func(ctx context.Context) (*resolve.Plan, error)
	// People is where people answer. A Gateway that asks runtimes only
	// needs none.
	People hold.People
	// Record appends to the ledger; nil: nothing does. The actor is the
	// token that asked; its person and whom it acts for are facts.
	// Facts hold no secret, no URL and no words of a peer.
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
	// Subscription says of a wrapped operation's outcome that events
	// follow, which its Feed brings.
	Subscription bool `json:"-"`
}
