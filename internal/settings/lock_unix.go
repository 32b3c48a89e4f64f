//go:build unix

package settings

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a directory against other processes until it is closed. If the file system does
// not support locks, it does nothing.
func lock(dir *os.File) error {
	err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}

	return nil
}
