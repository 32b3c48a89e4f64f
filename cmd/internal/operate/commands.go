// Package operate implements the commands of operators: for the service itself, and for working on
// it and its store.
package operate

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/remote"
)

// Commands are the commands of operators.
type Commands struct {
	remote.Caller
	// Backend has the functions that cmd/assent provides.
	Backend Backend
}

// All returns the commands of this package in the order of the help.
func (a Commands) All() []*cobra.Command {
	u := upkeep{a}
	return []*cobra.Command{
		a.serveCommand(), a.tokenCommand(), a.freezeCommand(), a.thawCommand(), a.deliveriesCommand(),
		a.candidateCommand(),
		u.migrateCommand(), u.backupCommand(), u.restoreCommand(), u.pruneCommand(), u.keyCommand(), a.oidcCommand(),
		a.policiesCommand(), a.schemaCommand(),
	}
}

// RAP returns the commands below `assent rap` that run a server or act on one.
func (a Commands) RAP() []*cobra.Command {
	return []*cobra.Command{
		a.rapGatewayCommand(), a.rapRuntimeCommand(), a.rapGrantsCommand(), a.rapRevokeCommand(),
	}
}
