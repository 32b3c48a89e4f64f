//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package pinfile

import (
	"errors"
	"io/fs"
	"os"
)

// lock makes a file beside the other. It is nil while another process
// has made it. One that was killed leaves it behind: then it has to be
// removed by hand.
func lock(path string) (unlock func() error, err error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
	case errors.Is(err, fs.ErrExist):
		return nil, nil
	}

	return nil, err
}
