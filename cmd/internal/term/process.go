package term

import (
	"os"

	terminal "golang.org/x/term"
)

// Process returns the streams of this process.
func Process() Streams {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	width, _, err := terminal.GetSize(out)
	s := Streams{
		In:          os.Stdin,
		Out:         os.Stdout,
		Err:         os.Stderr,
		Env:         os.Getenv,
		Width:       max(width, 0),
		InTerminal:  terminal.IsTerminal(in),
		OutTerminal: err == nil,
		ErrTerminal: terminal.IsTerminal(int(os.Stderr.Fd())),
	}
	if !s.OutTerminal {
		return s
	}

	s.Size = func() (int, int) {
		width, height, err := terminal.GetSize(out)
		if err != nil || width < 1 || height < 1 {
			return 80, 24
		}

		return width, height
	}
	if s.InTerminal {
		s.Raw = func() (func(), error) {
			before, err := terminal.MakeRaw(in)
			if err != nil {
				return nil, err
			}

			return func() { _ = terminal.Restore(in, before) }, nil // a terminal that is gone needs no restoring
		}
	}

	return s
}
