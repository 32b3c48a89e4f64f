//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// Try creates a lock file next to the other file. unlock is nil while another process holds the
// lock. A process that was killed leaves the lock file, which then has to be removed by hand.
func Try(path string) (unlock func() error, err error) {
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
