// Package filelock lets several processes change the same file: one holds the lock at a time, and
// readers see either the old or the new file.
package filelock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// again is the pause before a process tries again to get the lock.
const again = 10 * time.Millisecond

// Lock takes the lock of a file. It waits until ctx ends for other processes that hold it.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	for {
		unlock, err := Try(path)
		if err != nil || unlock != nil {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another program changes it: %w", context.Cause(ctx))
		case <-time.After(again):
		}
	}
}

// Replace writes a temporary file in the same directory, which only its owner may read, and renames
// it to path. It does nothing if path has the text already and only its owner may read it.
func Replace(path string, text []byte) (err error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 {
		if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text) {
			return nil
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
