package watermark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
)

const (
	sealed = ".sealed" // ending of the third file, the journal
	// Each line of the journal has its own sector of the disk, so after a crash the line
	// has either its old or its new content.
	slotSize = 512
	slots    = 256
)

// journal is the third file: the sizes of logs, in lines that are synced one by one. The
// file's size never changes: lines replace blanks, so a write needs no more space on the
// disk, and a sync writes one block and no metadata. Only the process that holds the
// journal's lock writes to it. When it is full, the first file is written, and the journal
// is cleared.
type journal struct {
	path     string
	file     *os.File // nil if another process holds the lock
	used     int      // slots
	promised int      // slots for writes that are reserved
}

// sealedLine is a line of the journal.
type sealedLine struct {
	Store  string      `json:"store"`
	Tenant string      `json:"tenant"`
	Size   int64       `json:"size"`
	Root   ledger.Hash `json:"root"`
	Time   time.Time   `json:"time"`
}

// slot returns the line padded to its sector. It returns false if the line is too long.
func (l sealedLine) slot() ([]byte, bool) {
	text, err := json.Marshal(l)
	if err != nil || len(text) >= slotSize {
		return nil, false
	}
	out := bytes.Repeat([]byte{' '}, slotSize)
	copy(out, text)
	out[slotSize-1] = '\n'
	return out, true
}

func blank(n int) []byte { return bytes.Repeat([]byte{' '}, n*slotSize) }

// readJournal reads the journal, whichever process writes it. A line that a crash of the
// machine left incomplete was never acknowledged, and is ignored if it is the last one.
// used is the number of slots up to the last valid line.
func readJournal(path string) (lines []sealedLine, used int, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err == nil {
		err = private(path)
	}
	if err != nil {
		return nil, 0, err
	}
	if len(text) != slots*slotSize {
		return nil, 0, fmt.Errorf("%s has %d bytes instead of %d, so it was cut: put the right file back; without it "+
			"nobody can tell an old state of the store from the last one", path, len(text), slots*slotSize)
	}
	broken := 0
	for n := range slots {
		text := bytes.TrimSpace(text[n*slotSize : (n+1)*slotSize])
		if len(text) == 0 {
			continue
		}
		if broken > 0 {
			return nil, 0, fmt.Errorf("line %d of %s is not of a journal: put the right file back", broken, path)
		}
		var l sealedLine
		if err := json.Unmarshal(text, &l); err != nil || l.Store == "" || l.Size <= 0 {
			broken = n + 1
			continue
		}
		lines, used = append(lines, l), n+1
	}
	return lines, used, nil
}

// open takes the lock of the journal, and creates the journal if there is none. It leaves
// the file nil if another process has the lock: that process reads what this one writes to
// the first file.
func (j *journal) open() error {
	if _, err := os.Stat(j.path); errors.Is(err, fs.ErrNotExist) {
		if err := create(j.path, blank(slots)); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if !lock(f) {
		return f.Close()
	}
	j.file = f
	return nil
}

// create makes a file that is complete as soon as it has its name. If another process
// creates it first, that file stays.
func create(path string, text []byte) error {
	own, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = own.Write(text)
	if err = errors.Join(err, own.Sync(), own.Close()); err == nil {
		if err = os.Link(own.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	return errors.Join(err, os.Remove(own.Name()))
}

// room reports whether more slots can be promised.
func (j *journal) room(n int) bool { return j.used+j.promised+n <= slots }

// write adds lines durably.
func (j *journal) write(lines []byte) error {
	if err := j.intact(); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(lines, int64(j.used*slotSize)); err != nil {
		return err
	}
	j.used += len(lines) / slotSize
	return syncData(j.file)
}

// intact returns an error unless the open file is the one that the next process will read.
func (j *journal) intact() error {
	there, err := os.Stat(j.path)
	if err != nil {
		return err
	}
	mine, err := j.file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(there, mine) || there.Size() != slots*slotSize {
		return fmt.Errorf("%s was replaced or cut while it was in use: start again with the right file", j.path)
	}
	return nil
}

// reset clears the journal after everything was written to the first file.
func (j *journal) reset() error {
	if j.file == nil || j.used == 0 {
		return nil
	}
	if err := j.intact(); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(blank(j.used), 0); err != nil {
		return err
	}
	j.used = 0
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// reserved is a durable write for which space is reserved.
type reserved struct {
	w     *Watermark
	id    string
	marks map[string]store.Mark
	slots int // that the journal has promised
}

// Reserve reserves space for a later write, so that a full disk or a folder without write
// access is noticed before the transaction that the marks belong to is committed.
func (w *Watermark) Reserve(id string, marks map[string]store.Mark) (store.Reserved, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &reserved{w: w, id: id, marks: marks}
	if w.holds(id, marks) {
		return r, nil
	}
	need := len(marks)
	err := w.makeRoom(need)
	if w.tell(err); err != nil {
		return nil, fmt.Errorf("the watermark %s: %w", w.path, err)
	}
	if w.journal.file != nil && w.journal.room(need) {
		w.journal.promised += need
		r.slots = need
	}
	return r, nil
}

// makeRoom clears the journal if it has no space left.
func (w *Watermark) makeRoom(need int) error {
	if w.journal.file == nil { // the process that had it may have ended
		if err := w.openJournal(); err != nil {
			return err
		}
	}
	if w.journal.file == nil {
		return writable(w.path)
	}
	if err := w.journal.intact(); err != nil {
		return err
	}
	if !w.journal.room(need) {
		return w.foldJournal()
	}
	if w.journal.used == slots {
		return nil
	}
	// A disk that has become read-only fails here. The unused slots are blank already.
	_, err := w.journal.file.WriteAt(blank(1), int64(w.journal.used*slotSize))
	return err
}

// holds reports whether marks are written durably.
func (w *Watermark) holds(id string, marks map[string]store.Mark) bool {
	for tenant, m := range marks {
		if w.durable[log{id, tenant}] < m.Size {
			return false
		}
	}
	return true
}

// Keep writes the marks, together with those of all other writes that wait.
func (r *reserved) Keep() error {
	w := r.w
	w.waiting.Lock()
	w.kept = append(w.kept, r)
	w.waiting.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	defer r.release()
	w.waiting.Lock()
	kept := w.kept
	w.kept = nil
	w.waiting.Unlock()
	for _, k := range kept {
		for tenant, m := range k.marks {
			w.note(k.id, tenant, m)
		}
		w.dirty = true
	}
	if w.holds(r.id, r.marks) {
		return nil
	}
	err := w.writeMarks(append(kept, r))
	w.tell(err)
	return err
}

// writeMarks writes the marks of some writes: to the journal if all of them fit, otherwise
// to the first file.
func (w *Watermark) writeMarks(all []*reserved) error {
	sizes := map[log]int64{}
	var lines []byte
	for _, r := range all {
		if r.slots == 0 || !w.inFile[r.id] {
			return w.foldJournal()
		}
		for tenant := range r.marks {
			l := log{r.id, tenant}
			m := w.known.Stores[r.id].Logs[tenant]
			if sizes[l] != 0 || w.durable[l] >= m.Size {
				continue
			}
			line, fits := sealedLine{r.id, tenant, m.Size, m.Root, m.Time}.slot()
			if !fits {
				return w.foldJournal()
			}
			lines, sizes[l] = append(lines, line...), m.Size
		}
	}
	if err := w.journal.write(lines); err != nil {
		return fmt.Errorf("the watermark %s: %w", w.path, err)
	}
	for l, size := range sizes {
		w.durable[l] = size
	}
	return nil
}

// Drop releases the space.
func (r *reserved) Drop() {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.release()
}

func (r *reserved) release() {
	r.w.journal.promised -= r.slots
	r.slots = 0
}
