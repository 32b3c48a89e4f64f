// Package watermark keeps, in three files next to the key, facts that a writer to the
// database could otherwise remove from it, for example by restoring an older state: the
// size of each log, the freezes, and the revoked tokens.
package watermark

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/store"
)

const (
	format  = "assent-watermark-1"
	revoked = ".revoked" // ending of the second file
	// pause is how long a mark may stay in memory. A process that is killed loses the marks
	// of that time, which makes the watermark older but never wrong.
	pause = time.Second
)

// Watermark is a store.Watermark in files. Several processes may share the files: each one
// merges its marks with those in the files.
type Watermark struct {
	path  string
	place string

	mu      sync.Mutex
	known   content
	revoked map[token]time.Time
	dirty   bool
	journal journal
	durable map[log]int64   // sizes of logs that a synced write holds
	inFile  map[string]bool // stores that the first file knows
	read    fs.FileInfo     // of the first file, as this process last read or wrote it
	timer   *time.Timer
	failed  error // of the last write
	report  func(error)

	waiting sync.Mutex
	kept    []*reserved // that wait for mu
}

var _ store.Watermark = (*Watermark)(nil)

// content is the content of the first file.
type content struct {
	Format string           `json:"format"`
	Stores map[string]*kept `json:"stores"` // by Identity.ID
}

// kept holds the marks of one period of one store.
type kept struct {
	Place  string                `json:"place"`            // of the store when that began, without a password
	Before string                `json:"before,omitempty"` // the period before
	Logs   map[string]store.Mark `json:"logs"`             // by tenant
}

type token struct{ tenant, id string }

// log is the log of a tenant in one period of a store.
type log struct{ store, tenant string }

// line is a line of the second file.
type line struct {
	Tenant string    `json:"tenant"`
	Token  string    `json:"token"`
	At     time.Time `json:"at"`
}

// Open reads the files, and creates the first one if it does not exist. The files must be
// writable. place names the store, and is kept in the file. report is called when writes
// begin to fail; it may be nil.
func Open(path, place string, report func(error)) (*Watermark, error) {
	w := &Watermark{
		path:    path,
		journal: journal{path: path + sealed},
		place:   place,
		report:  report,
		known:   content{Format: format, Stores: map[string]*kept{}},
		revoked: map[token]time.Time{},
		durable: map[log]int64{},
		inFile:  map[string]bool{},
	}
	err := w.join()
	if err == nil {
		err = w.readRevoked()
	}
	if err == nil {
		err = writable(path)
	}
	if _, missing := os.Stat(path); err == nil && errors.Is(missing, fs.ErrNotExist) {
		// Create the file now: if it is missing later, it was lost.
		w.mu.Lock()
		err = w.write(true)
		w.mu.Unlock()
	}
	if err != nil {
		return nil, fmt.Errorf("the watermark %s: %w", path, err)
	}
	return w, nil
}

// openJournal opens the journal, unless another process has it.
func (w *Watermark) openJournal() error {
	if err := w.journal.open(); err != nil || w.journal.file == nil {
		return err
	}
	// Another process may have added to it before it released the lock.
	if err := w.joinJournal(); err != nil {
		return errors.Join(err, w.journal.close())
	}
	return nil
}

// foldJournal writes the first file, and clears the journal.
func (w *Watermark) foldJournal() error {
	if len(w.known.Stores) > 0 {
		if err := w.write(true); err != nil {
			return err
		}
	}
	return w.journal.reset()
}

// Copy copies a watermark to another path, unless there is one already.
func Copy(from, to string) error {
	for _, ending := range []string{"", revoked, sealed} {
		text, err := os.ReadFile(from + ending)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, there := os.Stat(to + ending); err == nil && errors.Is(there, fs.ErrNotExist) {
			err = replace(to+ending, text, true)
		}
		if err != nil {
			return fmt.Errorf("copy the watermark: %w", err)
		}
	}

	return nil
}

// read reads the first file.
func read(path string) (content, error) {
	out := content{Format: format, Stores: map[string]*kept{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = private(path)
	}
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil || out.Format != format || out.Stores == nil {
		return out, fmt.Errorf(
			"it is not of the form %s: put the right file back; without it nobody can tell an old state of the "+
				"store from the last one",
			format,
		)
	}

	for id, k := range out.Stores {
		if k == nil || id == "" {
			return out, fmt.Errorf("it is not of the form %s: a store in it is empty", format)
		}
		if k.Logs == nil {
			k.Logs = map[string]store.Mark{}
		}
	}

	return out, nil
}

// private returns an error if other users may read or write a file, because a writer
// controls what is remembered. On Windows, modes don't show that.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); info.Mode().IsRegular() && mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf(
			"%s can be read or written by others (mode %04o), expected 0600: look whether it is as it was left, "+
				"and run chmod 600 on it",
			path,
			mode,
		)
	}

	return nil
}

// writable returns an error if no file can be created next to path. It is called before
// anything depends on that.
func writable(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf(
			"no file can be made beside it (%w): name a place that can be written to, and that outlives restarts",
			err,
		)
	}

	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// readRevoked reads the second file. It ignores a last line that was cut off by a crash.
func (w *Watermark) readRevoked() error {
	text, err := os.ReadFile(w.path + revoked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = private(w.path + revoked)
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.Token == "" {
			return fmt.Errorf("line %d of %s names no revoked token", n, w.path+revoked)
		}
		w.revoked[token{l.Tenant, l.Token}] = l.At
	}

	return lines.Err()
}

// Knows reports whether it has marks of a store.
func (w *Watermark) Knows(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known.Stores[id] != nil
}

// Marks returns the known marks of a store.
func (w *Watermark) Marks(id string) map[string]store.Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]store.Mark{}
	if k := w.known.Stores[id]; k != nil {
		maps.Copy(out, k.Logs)
	}
	return out
}

// Begin begins a period with these marks, and writes them to the first file.
func (w *Watermark) Begin(id, before string, marks map[string]store.Mark) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := &kept{
		Place:  w.place,
		Before: before,
		Logs:   map[string]store.Mark{},
	}
	maps.Copy(k.Logs, marks)
	w.known.Stores[id] = k
	return w.write(true)
}

// Advance notes a mark, which is written soon.
func (w *Watermark) Advance(id, tenant string, m store.Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(id, tenant, m)
	w.dirty = true
	if m.Freezes > 0 { // rare, and must not be lost in an emergency
		w.tell(w.write(true))
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(pause, w.later)
	}
}

// note merges a mark with the known ones.
func (w *Watermark) note(id, tenant string, m store.Mark) {
	k := w.known.Stores[id]
	if k == nil {
		k = &kept{Place: w.place, Logs: map[string]store.Mark{}}
		w.known.Stores[id] = k
	}
	k.Logs[tenant] = k.Logs[tenant].Join(m)
}

func (w *Watermark) later() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	if w.dirty {
		w.tell(w.write(false))
	}
}

// tell reports when writes begin to fail.
func (w *Watermark) tell(err error) {
	if err != nil && w.failed == nil && w.report != nil {
		w.report(err)
	}
	w.failed = err
}

// Err returns the error of the last write, or nil if it succeeded.
func (w *Watermark) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Close writes what was not written yet.
func (w *Watermark) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	var err error
	if w.dirty {
		err = w.write(true)
	}
	return errors.Join(err, w.journal.close())
}

// Latest returns the latest mark of a log, including marks from other processes.
func (w *Watermark) Latest(id, tenant string) (store.Mark, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.join(); err != nil {
		return store.Mark{}, fmt.Errorf("the watermark %s: %w", w.path, err)
	}
	if k := w.known.Stores[id]; k != nil {
		return k.Logs[tenant], nil
	}
	return store.Mark{}, nil
}

// join merges what other processes have written since this one read or wrote it.
func (w *Watermark) join() error {
	if err := w.joinFile(); err != nil || w.journal.file != nil {
		return err
	}
	return w.joinJournal() // which another process may write at any time
}

func (w *Watermark) joinFile() error {
	info, err := os.Stat(w.path)
	if errors.Is(err, fs.ErrNotExist) {
		if w.read != nil { // the file is written again with the known marks
			w.read, w.dirty = nil, true
			clear(w.durable)
			clear(w.inFile)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if w.read != nil && os.SameFile(info, w.read) && info.ModTime().Equal(w.read.ModTime()) &&
		info.Size() == w.read.Size() {
		return nil
	}
	there, err := read(w.path)
	if err != nil {
		return err
	}
	clear(w.durable) // its writer may not have synced it, or may not have known the marks of this process
	w.dirty = w.dirty || w.read != nil
	w.read = info
	for id, k := range there.Stores {
		w.inFile[id] = true
		if mine := w.known.Stores[id]; mine != nil {
			for tenant, m := range k.Logs {
				mine.Logs[tenant] = mine.Logs[tenant].Join(m)
			}
		} else {
			w.known.Stores[id] = k
		}
	}
	return nil
}

// joinJournal merges the marks in the journal. The first file has the store of each line,
// because it is written first.
func (w *Watermark) joinJournal() error {
	lines, used, err := readJournal(w.path + sealed)
	if err != nil {
		return err
	}
	w.journal.used = used
	for _, l := range lines {
		if !w.inFile[l.Store] {
			w.read = nil // the first file may have been written since it was read
			if err := w.joinFile(); err != nil {
				return err
			}
		}
		if !w.inFile[l.Store] {
			return fmt.Errorf("%s is about a store that the file beside it does not know, so it belongs to another "+
				"watermark: put the right files back", w.path+sealed)
		}
		w.note(l.Store, l.Tenant, store.Mark{Size: l.Size, Root: l.Root, Time: l.Time})
	}
	return nil
}

// write replaces the first file atomically, merged with what other processes wrote
// meanwhile. Without sync, the previous file may be back after a crash of the machine.
func (w *Watermark) write(sync bool) error {
	if err := w.join(); err != nil {
		return fmt.Errorf("the watermark %s: %w", w.path, err)
	}
	text, err := json.MarshalIndent(w.known, "", "  ")
	if err == nil {
		err = replace(w.path, append(text, '\n'), sync)
	}
	if err == nil && sync {
		err = syncFolder(filepath.Dir(w.path))
	}
	if err == nil {
		w.read, err = os.Stat(w.path)
	}
	if err != nil {
		return fmt.Errorf("the watermark %s: %w", w.path, err)
	}
	w.dirty = false
	for id := range w.known.Stores {
		w.inFile[id] = true
	}
	if sync {
		for id, k := range w.known.Stores {
			for tenant, m := range k.Logs {
				w.durable[log{id, tenant}] = m.Size
			}
		}
	}
	return nil
}

// syncFolder makes a rename survive a crash of the machine.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" { // where folders can't be synced
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// replace writes a temporary file and renames it to path.
func replace(path string, text []byte, sync bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && sync {
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

// Revoke appends a token to the second file.
func (w *Watermark) Revoke(tenant, id string, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.revoked[token{tenant, id}]; known {
		return nil
	}
	text, err := json.Marshal(line{tenant, id, at.UTC()})
	if err != nil {
		return err
	}
	if err := appendLine(w.path+revoked, text); err != nil {
		return fmt.Errorf("the list of revoked tokens: %w", err)
	}
	w.revoked[token{tenant, id}] = at
	return nil
}

// appendLine appends a line to a file. If a crash left the last line without its end, the
// end is added first.
func appendLine(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			err = f.Truncate(lastLine(f, info.Size()))
			if err != nil {
				return errors.Join(err, f.Close())
			}
		}
	}

	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// lastLine returns the offset at which the last complete line of a file ends.
func lastLine(f *os.File, size int64) int64 {
	const most = 4096 // bytes; a line has about 100
	from := max(0, size-most)
	text := make([]byte, size-from)
	n, _ := f.ReadAt(text, from)
	return from + int64(bytes.LastIndexByte(text[:n], '\n')) + 1
}

// Revoked returns when a token was revoked.
func (w *Watermark) Revoked(tenant, id string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, known := w.revoked[token{tenant, id}]
	return at, known
}

// AllRevoked lists the tokens of a tenant that were revoked.
func (w *Watermark) AllRevoked(tenant string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for t := range w.revoked {
		if t.tenant == tenant {
			out = append(out, t.id)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
