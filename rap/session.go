package rap

import (
	"context"
	"time"
)

// SessionGrant is an allowance that a user gave for a session: any
// arguments of one operation, as long as the same rules ask about them.
type SessionGrant struct {
	ID        string    `json:"id"`
	Gateway   string    `json:"gateway"`
	Agent     string    `json:"agent,omitempty"` // whose file decides there; "" where nobody says
	Caller    string    `json:"caller"`
	Session   string    `json:"session"` // root thread
	User      string    `json:"user,omitempty"`
	Operation string    `json:"operation"`
	Uses      int       `json:"uses"`
	MaxUses   int       `json:"max_uses"`
	Expires   time.Time `json:"expires"`
}

// Sessions are the session grants of all gateways of a server.
type Sessions interface {
	// Grants lists those of a tenant that are in force.
	Grants(ctx context.Context, tenant string) ([]SessionGrant, error)

	// Revoke ends one of a tenant, in somebody's name and for the
	// record; approval.ErrNotFound where none with that id is in force.
	Revoke(ctx context.Context, tenant, id, by, reason string) error
}
