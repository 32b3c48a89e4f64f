package approval

import (
	"crypto/sha256"
	"fmt"
)

// sealArgs seals the arguments of a call that needs no approval. Arguments larger than KeepArgs are
// replaced by their digest, so that callers can't fill the ledger. Arguments that people are asked
// about are always kept in full.
func (c Config) sealArgs(e Event, args string) Event {
	if len(args) <= c.KeepArgs {
		return e.sealing("args", safeText(args))
	}
	return e.sealing(
		"args_digest",
		fmt.Sprintf("sha256:%x of %d bytes", sha256.Sum256([]byte(args)), len(args)),
	)
}
