// Package pinfile keeps the accepted definitions of MCP tools (catalog.Pins) in a file that people
// read and keep in a repository.
//
// The file is replaced atomically by a file that only its owner may read, so readers see either the
// old or the new one. Several programs may change it at once: each waits for the others, and no
// change is lost. Unknown members are kept.
package pinfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/internal/filelock"
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
	unlock, err := filelock.Lock(ctx, path)
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
	if err := filelock.Replace(path, text); err != nil {
		return fmt.Errorf("write the pins: %w", err)
	}
	return nil
}
