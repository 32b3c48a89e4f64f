// Command assent decides when an agent must stop and ask, asks people, and proves what ran.
package main

import (
	"os"

	"golang.org/x/term"

	"github.com/assent-dev/assent/internal/cli"
)

func main() {
	os.Exit(cli.Assent{Streams: streams(), Backend: backend()}.Run(os.Args[1:]))
}

func streams() cli.Streams {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	size := func() (int, int) {
		width, height, err := term.GetSize(out)
		if err != nil || width < 1 || height < 1 {
			return 80, 24
		}
		return width, height
	}
	s := cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Size: size,
		InTerminal: term.IsTerminal(in), OutTerminal: term.IsTerminal(out), ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if s.InTerminal {
		s.Raw = func() (func(), error) {
			before, err := term.MakeRaw(in)
			if err != nil {
				return nil, err
			}
			return func() { _ = term.Restore(in, before) }, nil // a terminal that is gone needs no restoring
		}
	}
	return s
}
