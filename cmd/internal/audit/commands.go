// Package audit is the commands of auditors: exports of the ledger,
// proofs of its entries, and checking both offline.
package audit

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/remote"
)

type commands struct{ remote.Caller }

// Commands are `assent audit` and `assent stats`.
func Commands(caller remote.Caller) []*cobra.Command {
	a := commands{caller}

	return []*cobra.Command{a.auditCommand(), a.statsCommand()}
}
