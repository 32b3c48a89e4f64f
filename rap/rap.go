// Package rap has what both sides of RAP's user choice share: their configuration (Common), the
// outcome of a call (Outcome), and the operations that a gateway wraps (Operation). Package
// runtime calls tools, and package gateway is a tool server.
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

// Common is the configuration that both sides need.
type Common struct {
	Records   store.Records // where calls are stored
	Namespace string        // of this side's records; must be unique for each Runtime and Gateway on one store
	// Key has 32 secret bytes. It seals the records, which contain arguments, callback URLs and
	// response URLs.
	Key []byte
	// Plan returns the agent's current rules. If it returns an error, nothing runs.
	Plan func(ctx context.Context) (*resolve.Plan, error)
	// People is the approval service. A Gateway with AskUser needs none.
	People hold.People
	// Record appends an event to the ledger; it may be nil. The actor is the token that asked;
	// its person and the user whom it acts for are in facts. Facts contain no secrets, no URLs
	// and no text of a peer.
	Record func(ctx context.Context, event, subject, actor string, facts map[string]any) error
	Log    *slog.Logger // refusals with reasons, without tokens and URLs; may be nil
	Now    func() time.Time
	Poll   time.Duration // how often to look for due calls; 1s
}

// Outcome is the outcome of a call, which is the content of a tool_result.
type Outcome struct {
	Text      string          `json:"text,omitempty"`
	Content   []wire.Content  `json:"content,omitempty"` // replaces Text
	DisplayAs json.RawMessage `json:"display_as,omitempty"`
	// Subscription means that events follow, which the operation's Feed returns.
	Subscription bool `json:"-"`
}
