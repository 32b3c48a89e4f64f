package rap

import (
	"context"
	"time"
)

// SessionGrant is a permission that a user gave for a session: one operation with any
// arguments, as long as the same rules ask about it.
type SessionGrant struct {
	ID        string    `json:"id"`
	Gateway   string    `json:"gateway"`
	Agent     string    `json:"agent,omitempty"` // the agent whose file decides; empty if unknown
	Caller    string    `json:"caller"`
	Session   string    `json:"session"` // root thread
	User      string    `json:"user,omitempty"`
	Operation string    `json:"operation"`
	Uses      int       `json:"uses"`
	MaxUses   int       `json:"max_uses"`
	Expires   time.Time `json:"expires"`
}

// Sessions gives access to the session grants of all gateways of a server.
type Sessions interface {
	// Grants lists the grants of a tenant that are in force.
	Grants(ctx context.Context, tenant string) ([]SessionGrant, error)

	// Revoke ends a grant of a tenant on behalf of the person by, with a reason for the ledger.
	// It returns approval.ErrNotFound if no grant with that id is in force.
	Revoke(ctx context.Context, tenant, id, by, reason string) error
}
