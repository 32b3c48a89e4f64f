// Command agf-validate checks Agent Format agents and governance policies.
package main

import (
	"os"
	"runtime/debug"

	"github.com/assent-dev/assent/cmd/internal/term"
)

func main() {
	// Files are small and short-lived: fewer collections make the walk
	// faster and keep memory flat all the same.
	debug.SetGCPercent(400)
	os.Exit(program{Streams: term.Process()}.Run(os.Args[1:]))
}
