// Package audit implements the commands of auditors: exports of the ledger, proofs of its entries,
// and the offline verification of both.
package audit

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/remote"
)

type commands struct{ remote.Caller }

// Commands returns `assent audit` and `assent stats`.
func Commands(caller remote.Caller) []*cobra.Command {
	a := commands{caller}

	return []*cobra.Command{a.auditCommand(), a.statsCommand()}
}
