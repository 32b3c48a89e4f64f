// Package system wraps functions of the operating system that commands need: writing files
// atomically, and stopping on a signal.
package system

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// UntilSignal returns a context that an interrupt or a request to stop ends.
// A second signal ends the process at once.
func UntilSignal(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	return ctx, stop
}

// Create makes a new file, whole or not at all. Where there is one it
// fails with fs.ErrExist.
func Create(path string, mode os.FileMode, fill func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return unmade(path, err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()

	if err := errors.Join(f.Chmod(mode), fill(f), f.Sync(), f.Close()); err != nil {
		return err
	}

	return unmade(path, os.Link(f.Name(), path))
}

// CreateText is Create with a text.
func CreateText(path string, mode os.FileMode, text string) error {
	return Create(path, mode, func(w io.Writer) error {
		_, err := io.WriteString(w, text)

		return err
	})
}

// ReplacePrivate puts a whole file that only its owner may read in the
// place of whatever was there.
func ReplacePrivate(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next := path + "." + rand.Text()
	if err := CreateText(next, 0o600, text); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, os.Remove(next))
	}

	return nil
}

// Rewrite puts a whole file in the place of one, with the same mode.
func Rewrite(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	next := path + "." + rand.Text()
	if err := CreateText(next, info.Mode().Perm(), string(text)); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, os.Remove(next))
	}

	return nil
}

// unmade names the file that could not be made, instead of the
// temporary one that was to become it.
func unmade(path string, err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	}

	if err == nil {
		return nil
	}

	return fmt.Errorf("make %s: %w", path, err)
}
