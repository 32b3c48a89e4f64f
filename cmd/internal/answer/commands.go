// Package answer implements the commands of the people who answer requests: the list of pending
// requests, one request in full, and each way to answer it.
package answer

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/remote"
)

type commands struct {
	remote.Caller

	channel string // what votes say they came through
}

// Commands returns the commands of this package, in the order of the help.
func Commands(caller remote.Caller) []*cobra.Command {
	a := commands{Caller: caller, channel: "cli"}

	out := []*cobra.Command{a.listCommand(), a.showCommand()}
	for _, w := range ways() {
		out = append(out, a.answerCommand(w))
	}

	return append(
		out,
		a.watchCommand(),
		a.signInsCommand(),
		a.grantsCommand(),
		a.revokeCommand(),
		a.loginCommand(),
		a.whoamiCommand(),
	)
}
