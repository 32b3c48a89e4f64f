package watermark

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
)

const place = "sqlite:/srv/assent.db"

func open(t *testing.T, path string) *Watermark {
	t.Helper()
	return must.Get(Open(path, place, func(err error) { t.Errorf("a write failed: %v", err) }))(t)
}

// mark returns a log of n entries.
func mark(n int64) store.Mark {
	return store.Mark{Size: n, Root: [32]byte{byte(n)}, Time: time.Date(2026, 1, 1, 0, 0, int(n), 0, time.UTC)}
}

func frozen(version int64, by string) store.Mark {
	return store.Mark{Freezes: version, Frozen: []approval.Freeze{{By: by}}}
}

// TestAWatermarkNeverGoesBack checks that marks survive the process, and that the later of
// two marks counts, whichever was written last.
func TestAWatermarkNeverGoesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watermark")
	first, second := open(t, path), open(t, path)
	if first.Knows("one") {
		t.Error("it knows a store before one was bound")
	}

	must.Do(t, first.Begin("one", "", nil))
	first.Advance("one", "default", mark(7))
	first.Advance("one", "default", mark(5))
	second.Advance("one", "default", mark(6))
	second.Advance("one", "lab", mark(2))
	for _, w := range []*Watermark{first, second} {
		must.Do(t, w.Close())
	}

	again := open(t, path)
	marks := again.Marks("one")
	if marks["default"].Size != 7 || marks["default"].Root != mark(7).Root || marks["lab"].Size != 2 {
		t.Errorf("it knows %+v", marks)
	}
	if !again.Knows("one") || again.Knows("two") {
		t.Error("it doesn't know the store")
	}
	if marks := again.Marks("two"); len(marks) != 0 {
		t.Errorf("it knows %+v of another store", marks)
	}
}

// TestAWatermarkIsWrittenSoonAndSeldom checks that the marks of one second are one write,
// and that freezes are written at once.
func TestAWatermarkIsWrittenSoonAndSeldom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watermark")
	synctest.Test(t, func(t *testing.T) {
		w := open(t, path)
		must.Do(t, w.Begin("one", "", nil))
		written := func() store.Mark { return open(t, path).Marks("one")["default"] }
		for n := range int64(100) {
			w.Advance("one", "default", mark(n+1))
		}
		if m := written(); m.Size != 0 {
			t.Errorf("%d entries are written at once", m.Size)
		}
		<-time.After(pause + time.Millisecond)
		synctest.Wait()
		if m := written(); m.Size != 100 {
			t.Errorf("%d entries are written after a pause", m.Size)
		}

		w.Advance("one", "default", frozen(3, "alice"))
		if m := written(); m.Freezes != 3 || len(m.Frozen) != 1 || m.Size != 100 {
			t.Errorf("after a freeze it has %+v", m)
		}
		w.Advance("one", "default", frozen(2, "mallory"))
		if m := written(); m.Freezes != 3 || m.Frozen[0].By != "alice" {
			t.Errorf("after an older one it has %+v", m)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRevokedTokensOutliveTheStore checks the list of revoked tokens, to which lines are
// appended. A crash may cut the last line.
func TestRevokedTokensOutliveTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watermark")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := open(t, path)
	for _, id := range []string{"tok_2", "tok_1", "tok_2"} {
		must.Do(t, w.Revoke("default", id, at))
	}
	text, err := os.ReadFile(path + revoked)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Fatalf("the list is %q, %v", text, err)
	}
	must.Do(t, os.WriteFile(path+revoked, append(text, `{"tenant":"default","tok`...), 0o600))

	again := open(t, path)
	if when, known := again.Revoked("default", "tok_1"); !known || !when.Equal(at) {
		t.Errorf("tok_1 was revoked at %v, %v", when, known)
	}
	if _, known := again.Revoked("lab", "tok_1"); known {
		t.Error("a token of another tenant is revoked too")
	}
	must.Do(t, again.Revoke("default", "tok_3", at))
	if all := open(t, path).AllRevoked("default"); strings.Join(all, " ") != "tok_1 tok_2 tok_3" {
		t.Errorf("revoked are %v", all)
	}
}

// TestAWatermarkThatCannotBeReadIsRefused also covers one that can't be written.
func TestAWatermarkThatCannotBeReadIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]struct{ path, text, want string }{
		"empty":       {"a", "", "not of the form"},
		"cut":         {"b", `{"format":"assent-watermark-1","stores":{`, "put the right file back"},
		"other":       {"c", `{"format":"assent-watermark-2","stores":{}}`, "not of the form assent-watermark-1"},
		"no store":    {"d", `{"format":"assent-watermark-1","stores":{"one":null}}`, "a store in it is empty"},
		"bad line":    {"e" + revoked, "{\"token\":\"tok_1\"}\n{}\n", "line 2 of"},
		"no place":    {"there/is/none", "", "outlives restarts"},
		"a directory": {".", "", "is a directory"},
	} {
		path := filepath.Join(dir, file.path)
		if file.text != "" || name == "empty" {
			must.Do(t, os.WriteFile(path, []byte(file.text), 0o600))
		}
		_, err := Open(strings.TrimSuffix(path, revoked), place, nil)
		if err == nil || !strings.Contains(err.Error(), file.want) {
			t.Errorf("%s: %v, want %q", name, err, file.want)
		}
	}
}

// TestAWatermarkOfOthersIsRefused covers modes that let other users write, who could then
// control what is remembered.
func TestAWatermarkOfOthersIsRefused(t *testing.T) {
	for _, name := range []string{"w", "w" + revoked} {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, os.WriteFile(path, nil, 0o600))
		for _, mode := range []os.FileMode{0o666, 0o640, 0o604} {
			must.Do(t, os.Chmod(path, mode))
			_, err := Open(strings.TrimSuffix(path, revoked), place, nil)
			if err == nil || !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("%s of mode %04o: %v", name, mode, err)
			}
		}
	}
}

// TestAWatermarkTellsWhenItCannotBeWritten checks that it reports once, and again when
// writing succeeds.
func TestAWatermarkTellsWhenItCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "beside")
	must.Do(t, os.Mkdir(dir, 0o700))
	path, told := filepath.Join(dir, "watermark"), 0
	w := must.Get(Open(path, place, func(error) { told++ }))(t)
	away := dir + ".away"
	must.Do(t, os.Rename(dir, away))
	w.Advance("one", "default", frozen(1, "alice"))
	w.Advance("one", "default", frozen(2, "alice"))
	if told != 1 || w.Err() == nil {
		t.Errorf("it told %d times, last %v", told, w.Err())
	}
	if err := w.Revoke("default", "tok_1", time.Now()); err == nil {
		t.Error("a token is revoked, and not in the list")
	}

	must.Do(t, os.Rename(away, dir))
	w.Advance("one", "default", frozen(3, "alice"))
	if told != 1 || w.Err() != nil {
		t.Errorf("it told %d times, last %v", told, w.Err())
	}
	if m := open(t, path).Marks("one")["default"]; m.Freezes != 3 {
		t.Errorf("it has %+v", m)
	}
}

// TestAWatermarkIsCopiedForANewKey checks that it is copied completely and never replaces
// another one.
func TestAWatermarkIsCopiedForANewKey(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	if err := Copy(from, to); err != nil {
		t.Fatalf("nothing to copy: %v", err)
	}
	w := open(t, from)
	must.Do(t, w.Begin("one", "", map[string]store.Mark{"default": mark(4)}))
	must.Do(t, w.Revoke("default", "tok_1", time.Now()))
	must.Do(t, Copy(from, to))

	must.Do(t, w.Begin("two", "one", map[string]store.Mark{"default": mark(5)}))
	must.Do(t, Copy(from, to))
	next := open(t, to)
	if next.Marks("one")["default"].Size != 4 || len(next.Marks("two")) != 0 || len(next.AllRevoked("default")) != 1 {
		t.Errorf("the copy has %+v, %+v, %v", next.Marks("one"), next.Marks("two"), next.AllRevoked("default"))
	}
}

// TestProcessesShareAWatermark checks that each process writes its own marks and those that
// the others wrote, in any order.
func TestProcessesShareAWatermark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watermark")
	must.Do(t, open(t, path).Begin("one", "", nil))
	var all []*Watermark
	for range 4 {
		all = append(all, open(t, path))
	}
	var g sync.WaitGroup
	for i, w := range all {
		g.Go(func() {
			for n := range int64(20) {
				w.Advance("one", "default", mark(4*n+int64(i)))
				if err := w.Revoke("default", "tok_"+string(rune('a'+i)), time.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}

	g.Wait()
	for _, w := range all {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	last := open(t, path)
	if m := last.Marks("one")["default"]; m.Size != 79 {
		t.Errorf("it knows %d entries", m.Size)
	}
	if revoked := last.AllRevoked("default"); len(revoked) != 4 {
		t.Errorf("revoked are %v", revoked)
	}
}
