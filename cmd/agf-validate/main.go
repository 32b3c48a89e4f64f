// Command agf-validate checks Agent Format agents and governance policies.
package main

import (
	"os"
	"runtime/debug"

	"golang.org/x/term"

	"github.com/assent-dev/assent/internal/cli"
)

func main() {
	// Files are small and short-lived: fewer collections make the walk faster and keep memory flat all the same.
	debug.SetGCPercent(400)
	os.Exit(cli.Validate{Streams: streams(), NoColor: os.Getenv("NO_COLOR") != ""}.Run(os.Args[1:]))
}

func streams() cli.Streams {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	return cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Width: max(width, 0),
		OutTerminal: err == nil, ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
}
