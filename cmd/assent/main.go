// Command assent decides when an agent must stop and ask.
package main

import (
	"os"

	"github.com/assent-dev/assent/internal/cli"
)

func main() {
	os.Exit(cli.Assent{Streams: cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}}.Run(os.Args[1:]))
}
