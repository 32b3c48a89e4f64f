package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrChanged is returned if another program changed the file meanwhile. Nothing was written.
var ErrChanged = errors.New("somebody else has changed it meanwhile, and nothing was written: try again")

// ErrBusy is returned if another process is changing files in the same directory.
var ErrBusy = errors.New("another assent is changing files beside it: try again")

// File is a settings file with the text that was read.
type File struct {
	Path   string // as given to Open
	Target string // the path after following symbolic links
	Text   []byte
	Exists bool

	mode fs.FileMode
	// reached is called after each step of a replacement; tests stop there.
	reached func(step string)
	// sync makes a file or directory durable; tests record the order.
	sync func(*os.File) error
}

// Open reads a file. It follows a symbolic link, and later changes its target. It returns an
// error for a dangling or circular link and for anything but a regular file. If the file does
// not exist, Exists is false and Text is empty.
func Open(path string) (*File, error) {
	f := &File{Path: path, Target: path, mode: 0o600, reached: func(string) {}, sync: (*os.File).Sync}
	link, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, err
	}

	if link.Mode()&fs.ModeSymlink != 0 {
		if f.Target, err = filepath.EvalSymlinks(path); err != nil {
			return nil, fmt.Errorf("%s: this symbolic link leads to no file: %w", path, err)
		}
	}
	info, err := os.Stat(f.Target)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: expected a regular file, and this is %s", path, kindOf(info.Mode()))
	}

	if info.Size() > maxBytes {
		return nil, fmt.Errorf("%s: this file has more than %d MiB", path, maxBytes>>20)
	}
	f.Exists, f.mode = true, info.Mode().Perm()
	f.Text, err = os.ReadFile(f.Target)

	return f, err
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	}

	return "a device or a socket"
}

// BackupName returns the name of the first backup of a file.
func (f *File) BackupName() string { return f.Target + ".before-assent" }

// Backup writes the file's text to a new file in the same directory and returns its name, which
// is BackupName, with a number if that exists. A backup with the same text is reused. The mode
// is that of the file.
func (f *File) Backup() (string, error) {
	for i := 1; i < 1000; i++ {
		name := f.BackupName()
		if i > 1 {
			name += fmt.Sprintf("-%d", i)
		}
		text, err := os.ReadFile(name)
		switch {
		case err == nil && bytes.Equal(text, f.Text):
			return name, nil
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}

		err = f.writeNew(name, f.Text)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}

	return "", fmt.Errorf("%s: there are a thousand backups already: remove some", f.BackupName())
}

// Replace replaces the text of the file atomically: readers see either the old or the new text.
// It returns ErrChanged if the file has changed since it was read.
func (f *File) Replace(text []byte) error {
	return f.locked(func() error { return f.replace(text) })
}

// ReplaceWithBackup is like ReplaceAfter. It makes a backup first and passes its name to
// before.
func (f *File) ReplaceWithBackup(text []byte, before func(backup string) error) error {
	return f.ReplaceAfter(text, func() error {
		backup, err := f.Backup()
		if err != nil {
			return err
		}
		f.reached("backed up")

		return before(backup)
	})
}

// ReplaceAfter calls before and then replaces the file. If before fails, nothing is replaced.
// No other process can replace the file meanwhile.
func (f *File) ReplaceAfter(text []byte, before func() error) error {
	return f.locked(func() error {
		if err := f.unchanged(); err != nil {
			return err
		}
		if err := before(); err != nil {
			return err
		}

		return f.replace(text)
	})
}

// Remove removes the file if it has not changed since it was read.
func (f *File) Remove() error {
	return f.locked(func() error {
		if err := f.unchanged(); err != nil {
			return err
		}
		f.Text, f.Exists = nil, false

		return os.Remove(f.Target)
	})
}

// Writable returns an error if the file's mode forbids writing.
func (f *File) Writable() error {
	if f.Exists && f.mode&0o200 == 0 {
		return fmt.Errorf("%s: this file is read-only: make it writable first (chmod u+w)", f.Path)
	}

	return nil
}

// locked calls do with the lock of the file's directory.
func (f *File) locked(do func() error) error {
	err := Locked(filepath.Dir(f.Target), func() error {
		f.reached("locked")
		f.sweep()

		return do()
	})
	if errors.Is(err, ErrBusy) {
		return fmt.Errorf("%s: %w", f.Path, err)
	}

	return err
}

// Locked calls do with an exclusive lock of a directory. It returns ErrBusy if the lock is
// taken, also by this process. The lock ends with the process.
func Locked(dir string, do func() error) (err error) {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := lock(d); err != nil {
		return err
	}

	return do()
}

// sweep removes temporary files of killed processes. They are harmless, so errors are ignored.
func (f *File) sweep() {
	entries, _ := os.ReadDir(filepath.Dir(f.Target)) // if it can't be read, nothing is removed
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), f.tempPrefix()) {
			_ = os.Remove(filepath.Join(filepath.Dir(f.Target), e.Name()))
		}
	}
}

func (f *File) tempPrefix() string { return "." + filepath.Base(f.Target) + ".assent-" }

func (f *File) unchanged() error {
	now, err := Open(f.Path)
	if err != nil {
		return err
	}
	if now.Target != f.Target || now.Exists != f.Exists || !bytes.Equal(now.Text, f.Text) {
		return fmt.Errorf("%s: %w", f.Path, ErrChanged)
	}

	return nil
}

// replace replaces the text of the file atomically, unless it changed meanwhile.
func (f *File) replace(text []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(f.Target), f.tempPrefix()+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	err = errors.Join(temp.Chmod(f.mode), f.write(temp, text))
	if err != nil {
		return err
	}
	if err := f.unchanged(); err != nil {
		return err
	}
	f.reached("written")
	if err := os.Rename(temp.Name(), f.Target); err != nil {
		return err
	}
	f.Text, f.Exists = text, true
	f.syncDir()

	return nil
}

func (f *File) writeNew(name string, text []byte) error {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	if err := f.write(out, text); err != nil {
		return errors.Join(err, os.Remove(name))
	}

	return nil
}

// write writes a text, makes it durable and closes the file.
func (f *File) write(out *os.File, text []byte) error {
	_, err := out.Write(text)
	if err == nil {
		err = f.sync(out)
	}

	return errors.Join(err, out.Close())
}

// syncDir makes a rename in the file's directory durable, if directories can be synced. An
// error is ignored, because the file has its new text anyway.
func (f *File) syncDir() {
	d, err := os.Open(filepath.Dir(f.Target))
	if err != nil {
		return
	}
	_ = f.sync(d)
	_ = d.Close()
}
