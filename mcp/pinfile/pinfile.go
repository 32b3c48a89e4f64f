// Package pinfile keeps the accepted definitions of MCP tools (catalog.Pins) in a file that people
// read and keep in a repository.
//
// The file is replaced atomically by a file that only its owner may read, so readers see either the
// old or the new one. Several programs may change it at once: each waits for the others, and no
// change is lost. Unknown members are kept.
package pinfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/mcp/catalog"
)

// Read reads a file of pins. If the file doesn't exist, nothing is pinned. It returns an error with
// the place if the file can't be parsed completely, because then it is unknown what was accepted.
func Read(path string) (*catalog.Pins, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &catalog.Pins{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pins: %w", err)
	}
	return catalog.ReadPins(path, text)
}

// Update changes a file of pins, or creates it. If change returns an error or the file is broken,
// the file is left unchanged. It waits until ctx ends for other programs that change the file.
func Update(ctx context.Context, path string, change func(*catalog.Pins) error) (err error) {
	if whole, err := filepath.EvalSymlinks(path); err == nil {
		path = whole
	}
	unlock, err := wait(ctx, path)
	if err != nil {
		return fmt.Errorf("the pins %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	pins, err := Read(path)
	if err != nil {
		return err
	}
	if err := change(pins); err != nil {
		return err
	}
	text, err := pins.Text()
	if err != nil {
		return err
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("write the pins: %w", err)
	}
	return nil
}

// again is the pause before a program tries again to get the lock.
const again = 10 * time.Millisecond

// wait takes the lock of a file.
func wait(ctx context.Context, path string) (unlock func() error, err error) {
	for {
		unlock, err := lock(path)
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

// replace writes a temporary file in the same directory and renames it to path. It does nothing if
// the content is the same already.
func replace(path string, text []byte) (err error) {
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text) {
		return nil
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
