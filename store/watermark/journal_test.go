package watermark

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
)

// keep writes a mark durably.
func keep(t *testing.T, w *Watermark, id, tenant string, n int64) {
	t.Helper()
	r, err := w.Reserve(id, map[string]store.Mark{tenant: mark(n)})
	must.Do(t, err)
	must.Do(t, r.Keep())
}

// begun returns a watermark that knows the store "one", and the path of its first file.
func begun(t *testing.T) (*Watermark, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watermark")
	w := open(t, path)
	must.Do(t, w.Begin("one", "", nil))
	return w, path
}

func latest(t *testing.T, path, id, tenant string) int64 {
	t.Helper()
	w := open(t, path)
	m, err := w.Latest(id, tenant)
	must.Do(t, err)
	if m.Size > 0 && (m.Root != mark(m.Size).Root || !m.Time.Equal(mark(m.Size).Time)) {
		t.Errorf("the mark of %d entries is %+v", m.Size, m)
	}
	must.Do(t, w.journal.close())
	return m.Size
}

// TestWhatIsKeptOutlivesAKill closes neither file. The journal is filled several times,
// also with long names of tenants.
func TestWhatIsKeptOutlivesAKill(t *testing.T) {
	w, path := begun(t)
	long := strings.Repeat("t", slotSize)
	for n := int64(1); n <= 3*slots; n++ {
		keep(t, w, "one", "default", n)
		if n%100 == 0 {
			keep(t, w, "one", long, n)
		}
		if n%50 == 0 || n == 1 {
			if got := latest(t, path, "one", "default"); got != n {
				t.Fatalf("after %d entries it knows %d", n, got)
			}
		}
	}
	if got := latest(t, path, "one", long); got != 700 {
		t.Errorf("of the tenant with the long name it knows %d", got)
	}
	if n := w.journal.promised; n != 0 {
		t.Errorf("%d slots are promised to nobody", n)
	}
}

// TestWritesThatWaitAreWrittenTogether also checks that a dropped write releases its space.
func TestWritesThatWaitAreWrittenTogether(t *testing.T) {
	w, path := begun(t)
	var all []store.Reserved
	for n := int64(1); n <= 5; n++ {
		r, err := w.Reserve("one", map[string]store.Mark{"default": mark(n), "lab": mark(n)})
		must.Do(t, err)
		all = append(all, r)
	}
	all[4].Drop()
	must.Do(t, all[3].Keep())
	used := w.journal.used
	for _, r := range all[:3] { // an older mark is held already
		must.Do(t, r.Keep())
	}
	if w.journal.used != used || w.journal.promised != 0 {
		t.Errorf("%d slots are used and %d promised, want %d and 0", w.journal.used, w.journal.promised, used)
	}
	if got := latest(t, path, "one", "lab"); got != 4 {
		t.Errorf("it knows %d entries", got)
	}
}

// TestOneProcessWritesTheJournal checks that other processes write the first file, that
// each process knows the other's marks, and that after the first one has ended, the next
// one takes over the journal.
func TestOneProcessWritesTheJournal(t *testing.T) {
	first, path := begun(t)
	second := open(t, path)
	keep(t, first, "one", "a", 1)
	_, err := second.Reserve("one", map[string]store.Mark{"a": mark(2)})
	must.Do(t, err)
	if second.journal.file != nil {
		t.Fatal("two write one journal")
	}
	keep(t, second, "one", "a", 2)
	keep(t, first, "one", "b", 3)
	for _, w := range []*Watermark{first, second} {
		for tenant, want := range map[string]int64{"a": 2, "b": 3} {
			if m, err := w.Latest("one", tenant); err != nil || m.Size != want {
				t.Errorf("of %s it knows %d (%v), want %d", tenant, m.Size, err, want)
			}
		}
	}
	must.Do(t, first.journal.close())
	keep(t, second, "one", "a", 4)
	if second.journal.file == nil {
		t.Error("nobody writes the journal")
	}
	if got := latest(t, path, "one", "a"); got != 4 {
		t.Errorf("it knows %d entries", got)
	}
}

// TestJournalsThatCanNotBeTrusted checks that each is refused with the reason.
func TestJournalsThatCanNotBeTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string // "": it is taken
	}{
		"cut":         {func(t *testing.T, p string) { must.Do(t, os.Truncate(p+sealed, 600)) }, "it was cut"},
		"empty":       {func(t *testing.T, p string) { must.Do(t, os.Truncate(p+sealed, 0)) }, "it was cut"},
		"longer":      {func(t *testing.T, p string) { must.Do(t, os.Truncate(p+sealed, 1<<20)) }, "instead of 131072"},
		"shared":      {func(t *testing.T, p string) { must.Do(t, os.Chmod(p+sealed, 0o666)) }, "written by others"},
		"shared 1":    {func(t *testing.T, p string) { must.Do(t, os.Chmod(p, 0o620)) }, "written by others"},
		"a folder":    {func(t *testing.T, p string) { replaced(t, p+sealed) }, "is a directory"},
		"alone":       {func(t *testing.T, p string) { must.Do(t, os.Remove(p)) }, "belongs to another watermark"},
		"elsewhere":   {exchanged, "belongs to another watermark"},
		"overwritten": {func(t *testing.T, p string) { overwrite(t, p+sealed, 0, "{") }, "line 1 of"},
		"half a last line": {func(t *testing.T, p string) {
			overwrite(t, p+sealed, 2*slotSize, `{"store":"one","tenant":"de`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, path := begun(t)
			keep(t, w, "one", "default", 1)
			keep(t, w, "one", "default", 2)
			must.Do(t, w.journal.close())
			c.spoil(t, path)
			again, err := Open(path, place, nil)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && again.Marks("one")["default"].Size != 2:
				t.Errorf("it knows %+v", again.Marks("one"))
			case c.want == "":
				keep(t, again, "one", "default", 3) // overwrites the invalid line
				if got := latest(t, path, "one", "default"); got != 3 {
					t.Errorf("it knows %d entries", got)
				}
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func replaced(t *testing.T, path string) {
	t.Helper()
	must.Do(t, os.Remove(path))
	must.Do(t, os.Mkdir(path, 0o700))
}

// exchanged replaces the first file by that of another store, and leaves the journal.
func exchanged(t *testing.T, path string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "watermark")
	w := open(t, other)
	must.Do(t, w.Begin("two", "", nil))
	must.Do(t, os.Rename(other, path))
}

func overwrite(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.Do(t, err)
	line := append(bytes.Repeat([]byte{' '}, slotSize-1), '\n')
	copy(line, text)
	_, err = f.WriteAt(line, at)
	must.Do(t, err)
	must.Do(t, f.Close())
}

// TestWhatCanNotBeWrittenIsRefusedBefore checks that nothing is reserved while the journal
// is not the file that the next process will read. If the journal is full, the first file
// must be writable.
func TestWhatCanNotBeWrittenIsRefusedBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watermark")
	w, err := Open(path, place, nil)
	must.Do(t, err)
	must.Do(t, w.Begin("one", "", nil))
	keep(t, w, "one", "default", 8)
	next := map[string]store.Mark{"default": mark(9)}
	for name, spoil := range map[string]func() (mend func()){
		"cut": func() func() {
			must.Do(t, os.Truncate(path+sealed, 100))
			return func() { must.Do(t, os.WriteFile(path+sealed, blank(slots), 0o600)) }
		},
		"replaced": func() func() {
			must.Do(t, os.Rename(path+sealed, path+".away"))
			must.Do(t, os.WriteFile(path+sealed, blank(slots), 0o600))
			return func() { must.Do(t, os.Rename(path+".away", path+sealed)) }
		},
		"read-only": func() func() {
			file := w.journal.file
			w.journal.file = must.Get(os.Open(path + sealed))(t)
			return func() { w.journal.file = file }
		},
		"removed": func() func() {
			must.Do(t, os.Rename(path+sealed, path+".away"))
			return func() { must.Do(t, os.Rename(path+".away", path+sealed)) }
		},
		"full, and the first file is gone for good": func() func() {
			used := w.journal.used
			w.journal.used = slots
			must.Do(t, os.Rename(path, path+".away"))
			must.Do(t, os.Mkdir(path, 0o700))
			return func() {
				w.journal.used = used
				must.Do(t, os.Remove(path))
				must.Do(t, os.Rename(path+".away", path))
			}
		},
	} {
		mend := spoil()
		if _, err := w.Reserve("one", next); err == nil {
			t.Errorf("%s: it promises what it can't keep", name)
		}
		if w.Err() == nil {
			t.Errorf("%s: it does not say that it fails", name)
		}
		mend()
		r, err := w.Reserve("one", next)
		must.Do(t, err)
		r.Drop()
		if w.Err() != nil {
			t.Errorf("%s: %v", name, w.Err())
		}
	}
	keep(t, w, "one", "default", 9)
	if got := latest(t, path, "one", "default"); got != 9 {
		t.Errorf("it knows %d entries", got)
	}
}
