package approval

import "github.com/assent-dev/assent/approval/ledger"

// Events of the service and its store themselves, which Service.Record
// appends: they are about no request and no grant.
const (
	EventTokenCreated = "token_created"
	EventTokenRevoked = "token_revoked" // the store looks for it before a token counts
	EventStarted      = "server_started"
	EventPruned       = "pruned"
	EventBackedUp     = "backed_up"
	// what happened after the backup is not in this ledger; permits and
	// standing approvals were voided before
	EventRestored = "restored"
	// a store from before rows were authenticated was taken over:
	// nothing but the ledger up to its checkpoint is proven
	EventBound         = "store_bound"
	EventWitnessForgot = "witness_forgot"  // what was kept of another server's ledger may begin anew
	EventKeyRotated    = ledger.KeyRotated // the last entry that the old key signed
)
