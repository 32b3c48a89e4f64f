// Command agf-validate checks Agent Format agents and governance policies.
package main

import (
	"os"
	"runtime/debug"
	"slices"

	"github.com/assent-dev/assent/cmd/internal/term"
)

func main() {
	// Files are small and short-lived: fewer collections make the walk
	// faster and keep memory flat all the same. A comparison keeps two
	// sides with all their policies.
	if !slices.Contains(os.Args[1:min(2, len(os.Args))], "diff") {
		debug.SetGCPercent(200)
	}
	os.Exit(program{Streams: term.Process()}.Run(os.Args[1:]))
}
