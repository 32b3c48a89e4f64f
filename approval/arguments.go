package approval

import (
	"crypto/sha256"
	"fmt"
)

// sealArgs seals the arguments of a call that nobody is asked about:
// their text up to a size, and beyond it their digest alone, so that
// whoever may call can't fill the ledger. Of what people are asked
// about nothing is left out.
func (c Config) sealArgs(e Event, args string) Event {
	if len(args) <= c.KeepArgs {
		return e.sealing("args", safeText(args))
	}
	return e.sealing(
		"args_digest",
		fmt.Sprintf("sha256:%x of %d bytes", sha256.Sum256([]byte(args)), len(args)),
	)
}
