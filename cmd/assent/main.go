// Command assent decides when an agent must stop and ask, asks people,
// and proves what ran.
package main

import (
	"os"

	"github.com/assent-dev/assent/cmd/internal/term"
)

func main() {
	os.Exit(program{Streams: term.Process(), Backend: backend()}.Run(os.Args[1:]))
}
