// Package filestore keeps threads as files in a directory, for programs on one machine. Any
// number of processes may share the directory.
//
// Each thread has its own directory, and each save is a new file in it, named by its revision.
// The file is written and synced under another name and then linked, so it is never visible in
// part. Creating a link that already exists fails, so if several processes save over the same
// revision, exactly one succeeds. There are no locks that a killed process could leave behind.
//
// The directory must be on a local file system that supports hard links.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"unicode/utf8"

	"github.com/assent-dev/assent/agent"
)

// Store is an agent.ThreadStore in a directory. It has no state in memory and is safe for
// concurrent use.
type Store struct{ dir string }

var _ agent.ThreadStore = (*Store)(nil)

// New returns the store in a directory. If the directory doesn't exist, it is created with
// permissions for its owner only. New returns an error if other users can write to the
// directory, because a writer of threads can forge approvals.
func New(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the store of threads: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("the store of threads: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("the store of threads: others may write to %s (mode %v)", dir, info.Mode().Perm())
	}
	return &Store{dir: dir}, nil
}

// Load returns the newest revision of a thread, or agent.ErrNoThread. If the newest revision
// can't be read, Load returns an error that names its file instead of an older revision,
// because calls that have run would then run again. The returned thread saves itself to this
// store (agent.Thread.Keep).
func (s *Store) Load(ctx context.Context, id string) (*agent.Thread, error) {
	dir, err := s.folder(id)
	if err != nil {
		return nil, err
	}
	for last := int64(-1); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		newest, err := newestIn(dir)
		if err != nil {
			return nil, fmt.Errorf("the thread %q: %w", id, err)
		}
		if newest == 0 {
			return nil, fmt.Errorf("the thread %q: %w", id, agent.ErrNoThread)
		}
		t, err := read(dir, id, newest)
		if errors.Is(err, fs.ErrNotExist) && newest != last {
			last = newest
			continue // a later save has removed it in the meantime
		}
		if err != nil {
			return nil, err
		}
		t.Keep(s)
		return t, nil
	}
}

// Save writes a thread as its next revision and increments its Revision. It returns
// agent.ErrConflict if that revision exists already, or if the thread's revision is not the
// newest. After any other error it is not known whether the revision was stored: load the
// thread again.
func (s *Store) Save(ctx context.Context, t *agent.Thread) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := s.folder(t.ID)
	if err != nil {
		return err
	}
	if err := s.save(dir, t); err != nil {
		return fmt.Errorf("the thread %q: %w", t.ID, err)
	}
	return nil
}

func (s *Store) save(dir string, t *agent.Thread) error {
	if t.Revision < 0 {
		return fmt.Errorf("it says revision %d", t.Revision)
	}
	doc, err := encode(t)
	if err != nil {
		return err
	}
	if t.Revision == 0 {
		if err := s.begin(dir, t.ID); err != nil {
			return err
		}
	}
	d, err := prepare(dir, t.Revision+1, doc)
	if err != nil {
		return err
	}
	defer d.discard()
	if err := d.publish(); err != nil {
		return err
	}
	t.Revision++
	prune(dir, t.Revision)
	return nil
}

// encode writes the thread with the revision that it will have once it is saved.
func encode(t *agent.Thread) ([]byte, error) {
	t.Revision++
	defer func() { t.Revision-- }()
	return t.Encode()
}

// List returns the ids of all threads, sorted.
func (s *Store) List(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("the store of threads: %w", err)
	}
	var out []string
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !e.IsDir() || !isName(e.Name()) {
			continue
		}
		id, saved, err := s.look(e.Name())
		if err != nil {
			return nil, fmt.Errorf("the store of threads: %w", err)
		}
		if saved {
			out = append(out, id)
		}
	}

	slices.Sort(out)
	return out, nil
}

// look returns the id of the thread in a directory, and whether it was ever saved.
func (s *Store) look(name string) (id string, saved bool, err error) {
	dir := filepath.Join(s.dir, name)
	text, err := os.ReadFile(filepath.Join(dir, idFile))
	if err != nil {
		return "", false, err
	}
	if nameOf(string(text)) != name {
		return "", false, fmt.Errorf("%s is of another thread", filepath.Join(dir, idFile))
	}
	newest, err := newestIn(dir)
	return string(text), newest > 0, err
}

// folder returns the directory of a thread.
func (s *Store) folder(id string) (string, error) {
	if id == "" || !utf8.ValidString(id) {
		return "", fmt.Errorf("the id %q of a thread: it must be valid UTF-8 and not empty", id)
	}
	return filepath.Join(s.dir, nameOf(id)), nil
}

// read returns one revision, or fs.ErrNotExist.
func read(dir, id string, revision int64) (*agent.Thread, error) {
	path := filepath.Join(dir, revisionFile(revision))
	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &agent.Thread{}
	if err := t.UnmarshalJSON(doc); err != nil { // json.Unmarshal would scan the text twice more
		return nil, fmt.Errorf("the thread %q can't be read from %s: %w", id, path, err)
	}
	if t.ID != id || t.Revision != revision {
		return nil, fmt.Errorf(
			"the thread %q can't be read from %s: it holds revision %d of %q",
			id,
			path,
			t.Revision,
			t.ID,
		)
	}

	return t, nil
}
