// Package filestore keeps threads as files in a directory, for programs
// of one machine: any number of processes may share it.
//
// Each thread has a directory of its own, and each save is a new file
// in it, named by its revision, which comes into being whole: it is
// written and synced under another name and then linked. A link that
// exists already can't be made again, so of all who save over one
// revision exactly one succeeds. There are no locks, so none is left
// behind by a process that is killed.
//
// The directory must be on a local file system that knows hard links.
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

// Store is an agent.ThreadStore in a directory. It has no state of its
// own and can be used from many goroutines.
type Store struct{ dir string }

var _ agent.ThreadStore = (*Store)(nil)

// New returns the store in a directory, which is made when it is
// missing, for its owner only. A directory into which others may write
// is refused, for whoever writes threads writes approvals.
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

// Load returns the newest revision of a thread, or agent.ErrNoThread. A
// newest revision that can't be read is an error that names its file:
// an older one would let what ran already run again. The thread saves
// itself here from now on (agent.Thread.Keep).
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
			continue // it grew old and was removed in the meantime
		}
		if err != nil {
			return nil, err
		}
		t.Keep(s)
		return t, nil
	}
}

// Save writes a thread as its next revision and adds one to its
// Revision. When that revision is there already, or the thread's own is
// not the newest, it returns agent.ErrConflict. After any other error
// it is not known whether the revision will last: load the thread
// again.
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

// encode writes the thread as it will be once it is saved.
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

// look tells whose directory this is and whether anything was ever
// saved in it.
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

// folder is where a thread is kept.
func (s *Store) folder(id string) (string, error) {
	if id == "" || !utf8.ValidString(id) {
		return "", fmt.Errorf("the id %q of a thread: it must be valid UTF-8 and not empty", id)
	}
	return filepath.Join(s.dir, nameOf(id)), nil
}

// read returns one revision; fs.ErrNotExist when it is not there.
func read(dir, id string, revision int64) (*agent.Thread, error) {
	path := filepath.Join(dir, revisionFile(revision))
	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &agent.Thread{}
	if err := t.UnmarshalJSON(doc); err != nil { // json.Unmarshal would look through the text twice more
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
