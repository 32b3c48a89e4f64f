//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Try locks the directory of a file, so that no lock file is needed. unlock is nil while another
// process holds the lock. The lock ends with the process.
func Try(path string) (unlock func() error, err error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return folder.Close, nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return nil, folder.Close()
	}

	return nil, errors.Join(err, folder.Close())
}
