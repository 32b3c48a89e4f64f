package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/agent"
)

// Why exactly one save over a revision succeeds, even while old revisions are being removed:
//
// A process that saves over revision N (1) writes its draft of N+1, (2) checks that N+1 doesn't
// exist, (3) checks that N exists, and (4) links the draft as N+1. After saving revision M, a
// process lists the directory, removes the drafts of M and earlier, and only then the revisions
// M-2 and earlier, the oldest first. Assume that another process's N+1 existed and has been
// removed by step (4). The process that removed it had listed the directory before. If the list
// contained our draft, the draft was removed first, and the link in (4) fails because its
// source is missing. If it didn't, the list is older than (1). Then at (2) either N+1 still
// existed, or N had already been removed and (3) fails. Revision 0, which is empty, makes this
// true for the first save too.

// idFile contains the id of the thread, because a hashed name doesn't.
const idFile = "id"

// kept is the number of revisions that are kept: the newest, and the previous one for a process
// that is reading it.
const kept = 2

func revisionFile(n int64) string { return strconv.FormatInt(n, 10) + ".json" }

// begin atomically creates the directory of a thread with revision 0 in it. It does nothing if
// the directory exists.
func (s *Store) begin(dir, id string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	fresh, err := os.MkdirTemp(s.dir, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := errors.Join(
		writeFile(filepath.Join(fresh, idFile), []byte(id)),
		writeFile(filepath.Join(fresh, revisionFile(0)), nil),
		syncDir(fresh),
	); err != nil {
		return err
	}

	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return nil // another process was faster
		}
		return err
	}

	return syncDir(s.dir)
}

// draft is a revision that is not visible yet.
type draft struct {
	dir, path string
	revision  int64
}

// prepare writes a draft durably. If the thread's directory is missing, this store has no
// revision that the thread could be based on, so prepare returns agent.ErrConflict.
func prepare(dir string, revision int64, doc []byte) (*draft, error) {
	f, err := os.CreateTemp(dir, strconv.FormatInt(revision, 10)+".*.tmp")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, agent.ErrConflict
	}
	if err != nil {
		return nil, err
	}
	d := &draft{dir, f.Name(), revision}
	if err := fill(f, doc); err != nil {
		d.discard()
		return nil, err
	}
	return d, nil
}

// publish makes the draft the newest revision, or returns agent.ErrConflict.
func (d *draft) publish() error {
	if err := d.check(); err != nil {
		return err
	}
	return d.link()
}

// check does steps 2 and 3, in this order.
func (d *draft) check() error {
	if err := absent(d.file(0)); err != nil {
		return err
	}
	_, err := os.Lstat(d.file(-1))
	return conflictIf(err, fs.ErrNotExist)
}

// link does step 4.
func (d *draft) link() error {
	if err := os.Link(d.path, d.file(0)); err != nil {
		return conflictIf(err, fs.ErrExist, fs.ErrNotExist)
	}
	return syncDir(d.dir)
}

// file returns the path of the draft's revision plus more.
func (d *draft) file(more int64) string { return filepath.Join(d.dir, revisionFile(d.revision+more)) }

// discard removes the draft. A published revision stays.
func (d *draft) discard() { _ = os.Remove(d.path) } // if this fails, a later save removes it

func absent(path string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return agent.ErrConflict
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func conflictIf(err error, causes ...error) error {
	if slices.ContainsFunc(causes, func(c error) bool { return errors.Is(err, c) }) {
		return agent.ErrConflict
	}
	return err
}

// prune removes the files that revision newest has made obsolete. If a file can't be removed,
// prune stops and leaves it and everything after it to later saves, because saving is safe only
// if files are removed in order.
func prune(dir string, newest int64) {
	names, err := namesIn(dir)
	if err != nil {
		return
	}
	var old []int64
	for _, name := range names {
		n, isDraft, ok := parse(name)
		switch {
		case ok && isDraft && n <= newest:
			if remove(dir, name) != nil {
				return
			}
		case ok && !isDraft && n <= newest-kept:
			old = append(old, n)
		}
	}

	slices.Sort(old)
	for _, n := range old {
		if remove(dir, revisionFile(n)) != nil {
			return
		}
	}
}

func remove(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // another process removed it
}

// newestIn returns the newest revision in the directory of a thread, or 0 if there is none.
func newestIn(dir string) (int64, error) {
	names, err := namesIn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	newest := int64(-1)
	for _, name := range names {
		if n, isDraft, ok := parse(name); ok && !isDraft {
			newest = max(newest, n)
		}
	}
	if newest < 0 {
		return 0, fmt.Errorf("%s has lost its revisions", dir)
	}
	return newest, nil
}

func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// parse reads the name of a revision (7.json) or of a draft (7.123.tmp).
func parse(name string) (revision int64, isDraft, ok bool) {
	digits, rest, _ := strings.Cut(name, ".")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != digits || n < 0 {
		return 0, false, false
	}
	isDraft = strings.HasSuffix(rest, ".tmp")
	return n, isDraft, isDraft || rest == "json"
}

func writeFile(path string, doc []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return fill(f, doc)
}

// fill writes a file, syncs it and closes it.
func fill(f *os.File, doc []byte) error {
	_, err := f.Write(doc)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes changes of a directory durable. Windows has no equivalent.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
