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

// ErrChanged says that somebody else changed a file meanwhile. Nothing
// was written.
var ErrChanged = errors.New("somebody else has changed it meanwhile, and nothing was written: try again")

// ErrBusy says that another process is changing files in the same
// directory.
var ErrBusy = errors.New("another assent is changing files beside it: try again")

// File is a settings file as it was when it was read.
type File struct {
	Path   string // as it was named
	Target string // the file itself, behind symbolic links
	Text   []byte
	Exists bool

	mode fs.FileMode
	// reached is told how far a replacement has come; tests stop there.
	reached func(step string)
	// sync makes a file or directory durable; tests record the order.
	sync func(*os.File) error
}

// Open reads a file. A symbolic link is followed, and stays what it is:
// the file behind it is what is changed. A link that leads nowhere or
// in a circle, and what is no regular file, is refused. A file that
// does not exist is one without a text.
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

// BackupName is how the backup of a file is called at first.
func (f *File) BackupName() string { return f.Target + ".before-assent" }

// Backup writes the file's text beside it, under BackupName or that
// with a number behind it, and returns the name. A backup with the same
// text is taken as it is. The mode is that of the file.
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

// Replace puts another text into the place of the file, in one step: at
// no time does anybody read half of it. A file that has changed since
// it was read is ErrChanged.
func (f *File) Replace(text []byte) error {
	return f.locked(func() error { return f.replace(text) })
}

// ReplaceWithBackup is ReplaceAfter with Backup and what before does
// with the backup's name.
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

// ReplaceAfter is Replace after before. When that fails, nothing is
// replaced. No other process replaces the file meanwhile.
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

// Remove removes a file that is as it was when it was read.
func (f *File) Remove() error {
	return f.locked(func() error {
		if err := f.unchanged(); err != nil {
			return err
		}
		f.Text, f.Exists = nil, false

		return os.Remove(f.Target)
	})
}

// Writable is nil unless the file says that nobody writes to it.
func (f *File) Writable() error {
	if f.Exists && f.mode&0o200 == 0 {
		return fmt.Errorf("%s: this file is read-only: make it writable first (chmod u+w)", f.Path)
	}

	return nil
}

// locked does what one process at a time may do in the directory of the
// file.
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

// Locked does what one process at a time may do in a directory, or gives
// ErrBusy. The lock ends with the process. It can't be taken twice.
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

// sweep removes what processes that were killed have left. It is
// harmless where it stays.
func (f *File) sweep() {
	entries, _ := os.ReadDir(filepath.Dir(f.Target)) // where it can't be read, nothing is swept
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

// replace puts a text in the place of the file's in one step, unless
// somebody changed it meanwhile.
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

// write writes, makes it durable and closes.
func (f *File) write(out *os.File, text []byte) error {
	_, err := out.Write(text)
	if err == nil {
		err = f.sync(out)
	}

	return errors.Join(err, out.Close())
}

// syncDir makes a rename in the file's directory durable, if directories
// can be synced. The file has its new text either way.
func (f *File) syncDir() {
	d, err := os.Open(filepath.Dir(f.Target))
	if err != nil {
		return
	}
	_ = f.sync(d)
	_ = d.Close()
}
