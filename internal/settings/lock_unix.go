//go:build unix

package settings

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other processes out of a directory until it is closed.
// Where the file system knows no locks, it does nothing.
func lock(dir *os.File) error {
	err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}

	return nil
}
