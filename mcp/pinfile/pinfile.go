// Package pinfile keeps the accepted definitions of MCP tools
// (catalog.Pins) in a file that people read, and keep in a repository.
//
// The file is replaced as a whole, by a file that only its owner may
// read; who reads it sees the one or the other. Several programs may
// change it at once: each waits for the others, and none loses what
// another wrote. What they don't know stays in it.
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

// Read reads a file of pins. Where there is none, nothing is pinned. A
// file that can't be read in whole is an error with its place: what was
// accepted is unknown then, and nothing may be taken for it.
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

// Update changes a file of pins, or makes it. An error of change, and a
// file that is broken, leave it as it is. It waits for other programs
// that change it until ctx ends.
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

// again is how long a program waits before it looks whether another is
// done.
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

// replace writes a file beside, and puts it in the place of another.
// What stands there already stays.
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
