package approval

import "github.com/assent-dev/assent/approval/ledger"

// Events of the service and its store, appended by Service.Record. They are not about a request or
// a grant.
const (
	EventTokenCreated = "token_created"
	EventTokenRevoked = "token_revoked" // the store looks for this event before it accepts a token
	EventStarted      = "server_started"
	EventPruned       = "pruned"
	EventBackedUp     = "backed_up"
	// the store was restored: this ledger does not contain what happened after the backup; permits
	// and standing approvals have been voided
	EventRestored = "restored"
	// a store whose rows were not authenticated was taken over: only the ledger up to its
	// checkpoint is proven
	EventWitnessForgot = "witness_forgot"  // the kept state of another server's ledger was deleted; it may start over
	EventKeyRotated    = ledger.KeyRotated // the last entry signed by the old key
)
