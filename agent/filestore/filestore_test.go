package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func newStore(t testing.TB) *Store {
	t.Helper()
	return must.Get(New(filepath.Join(t.TempDir(), "threads")))(t)
}

func mustSave(t testing.TB, s *Store, th *agent.Thread) {
	t.Helper()
	must.Do(t, s.Save(t.Context(), th))
}

func mustLoad(t testing.TB, s *Store, id string) *agent.Thread {
	t.Helper()
	return must.Get(s.Load(t.Context(), id))(t)
}

// thread returns a thread in the state of a process that has loaded revision n.
func thread(id string, n int64) *agent.Thread {
	t := agent.NewThread(id)
	t.Revision = n
	return t
}

func TestSaveAndLoad(t *testing.T) {
	s := newStore(t)
	th := agent.NewThread("order/17")
	th.State["note"] = json.RawMessage(`{"a":1}`)
	th.Messages = []*content.Message{content.UserText("hi")}
	mustSave(t, s, th)
	if th.Revision != 1 {
		t.Fatalf("revision %d after the first save", th.Revision)
	}
	got := mustLoad(t, s, "order/17")
	if got.ID != "order/17" || got.Revision != 1 || string(got.State["note"]) != `{"a":1}` ||
		got.Messages[0].Text() != "hi" {
		t.Fatalf("loaded %+v", got)
	}
	got.State["note"] = json.RawMessage(`2`)
	if err := got.Save(t.Context()); err != nil { // Load has set the store
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), th); !errors.Is(err, agent.ErrConflict) {
		t.Fatalf("saving an old thread: %v", err)
	}
	if th.Revision != 1 {
		t.Fatalf("a refused save changed the revision to %d", th.Revision)
	}
	if again := mustLoad(t, s, "order/17"); again.Revision != 2 || string(again.State["note"]) != `2` {
		t.Fatalf("loaded %+v", again)
	}
}

func TestNothingThere(t *testing.T) {
	s := newStore(t)
	if _, err := s.Load(t.Context(), "x"); !errors.Is(err, agent.ErrNoThread) {
		t.Errorf("load: %v", err)
	}
	if err := s.Save(t.Context(), thread("x", 3)); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("saving revision 4 of nothing: %v", err)
	}
	// like a process that was killed right after this
	if err := s.begin(filepath.Join(s.dir, nameOf("y")), "y"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), "y"); !errors.Is(err, agent.ErrNoThread) {
		t.Errorf("load of what was only begun: %v", err)
	}
	if ids, err := s.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("list: %v %v", ids, err)
	}
	mustSave(t, s, agent.NewThread("y"))
}

func TestRefusals(t *testing.T) {
	s := newStore(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, id := range []string{"", "\xff"} {
		if err := s.Save(t.Context(), agent.NewThread(id)); err == nil {
			t.Errorf("id %q was saved", id)
		}
		if _, err := s.Load(t.Context(), id); err == nil || errors.Is(err, agent.ErrNoThread) {
			t.Errorf("id %q: %v", id, err)
		}
	}

	if err := s.Save(t.Context(), thread("a", -1)); err == nil || errors.Is(err, agent.ErrConflict) {
		t.Errorf("negative revision: %v", err)
	}
	broken := agent.NewThread("a")
	broken.State["x"] = json.RawMessage(`{`)
	if err := s.Save(t.Context(), broken); err == nil || broken.Revision != 0 {
		t.Errorf("a thread that is no JSON: %v, revision %d", err, broken.Revision)
	}
	if err := s.Save(gone, agent.NewThread("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	mustSave(t, s, agent.NewThread("a"))
	if _, err := s.Load(gone, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.List(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
}

func TestKeepsTwo(t *testing.T) {
	s := newStore(t)
	th := agent.NewThread("a")
	for range 5 {
		mustSave(t, s, th)
	}
	if got := files(t, s, "a"); !slices.Equal(got, []string{"4.json", "5.json", "id"}) {
		t.Fatalf("files %v", got)
	}
}

func files(t testing.TB, s *Store, id string) []string {
	t.Helper()
	out := must.Get(namesIn(filepath.Join(s.dir, nameOf(id))))(t)
	slices.Sort(out)
	return out
}

func TestOnlyTheOwnerReads(t *testing.T) {
	s := newStore(t)
	mustSave(t, s, agent.NewThread("a"))
	must.Do(t, filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, want %v", path, got, want)
		}
		return nil
	}))
}

func TestNewRefuses(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		open := t.TempDir()
		must.Do(t, os.Chmod(open, mode))
		if _, err := New(open); err == nil {
			t.Errorf("a directory of mode %v was taken", mode)
		}
	}

	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	if _, err := New(file); err == nil {
		t.Error("a file was taken")
	}
}

// TestNeverAnOlderState damages the newest revision in several ways and expects an error that
// names it.
func TestNeverAnOlderState(t *testing.T) {
	damage := map[string]func(path string) error{
		"empty":     func(p string) error { return os.Truncate(p, 0) },
		"cut short": func(p string) error { return os.Truncate(p, 20) },
		"not JSON":  func(p string) error { return os.WriteFile(p, []byte("\x00\x00\x00"), 0o600) },
		"two texts": func(p string) error { return appendTo(p, "{}") },
		"of another revision": func(p string) error {
			return os.WriteFile(p, sure(json.Marshal(thread("a", 2))), 0o600)
		},
		"of another thread": func(p string) error {
			return os.WriteFile(p, sure(json.Marshal(thread("b", 3))), 0o600)
		},
		"a directory": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"a dangling link": func(p string) error {
			return errors.Join(os.Remove(p), os.Symlink("nowhere", p))
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			th := agent.NewThread("a")
			for range 3 {
				mustSave(t, s, th)
			}
			path := filepath.Join(s.dir, nameOf("a"), "3.json")
			must.Do(t, do(path))
			got, err := s.Load(t.Context(), "a")
			if err == nil {
				t.Fatalf("loaded revision %d", got.Revision)
			}
			if !strings.Contains(err.Error(), "3.json") || errors.Is(err, agent.ErrNoThread) {
				t.Errorf("error %v", err)
			}
			if err := s.Save(t.Context(), thread("a", 2)); !errors.Is(err, agent.ErrConflict) {
				t.Errorf("saving over it: %v", err)
			}
		})
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func sure(doc []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return doc
}

func TestLostRevisions(t *testing.T) {
	s := newStore(t)
	mustSave(t, s, agent.NewThread("a"))
	dir := filepath.Join(s.dir, nameOf("a"))
	must.Do(t, errors.Join(os.Remove(filepath.Join(dir, "1.json")), os.Remove(filepath.Join(dir, "0.json"))))

	if _, err := s.Load(t.Context(), "a"); err == nil || errors.Is(err, agent.ErrNoThread) {
		t.Errorf("load: %v", err)
	}
	if err := s.Save(t.Context(), agent.NewThread("a")); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("a thread that lost its revisions began anew: %v", err)
	}
	if _, err := s.List(t.Context()); err == nil {
		t.Error("list says nothing")
	}
}

func TestList(t *testing.T) {
	s := newStore(t)
	long := strings.Repeat("long ", 100)
	want := []string{"../../etc/passwd", "A", "a", "a/b", long, "ß\x00"}
	for _, id := range want {
		mustSave(t, s, agent.NewThread(id))
	}
	must.Do(t, os.Mkdir(filepath.Join(s.dir, "something else"), 0o700))
	slices.Sort(want)
	got, err := s.List(t.Context())
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("list %q, %v", got, err)
	}
	for _, id := range want {
		if mustLoad(t, s, id).ID != id {
			t.Errorf("id %q came back as another", id)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(s.dir, nameOf("a"), idFile), []byte("b"), 0o600))
	if _, err := s.List(t.Context()); err == nil {
		t.Error("the directory of a says that it is b, and nobody minds")
	}
}

// TestLeftovers checks that files left by killed processes cause no errors and are removed.
func TestLeftovers(t *testing.T) {
	s := newStore(t)
	th := agent.NewThread("a")
	mustSave(t, s, th)
	dir := filepath.Join(s.dir, nameOf("a"))
	for _, n := range []int64{1, 2, 3} {
		must.Get(prepare(dir, n, []byte("half")))(t)
	}
	if mustLoad(t, s, "a").Revision != 1 {
		t.Fatal("a draft was loaded")
	}
	mustSave(t, s, th)
	mustSave(t, s, th)
	if got := files(t, s, "a"); !slices.Equal(got, []string{"2.json", "3.json", "id"}) {
		t.Fatalf("files %v", got)
	}
}

func TestFoldersThatFail(t *testing.T) {
	s := newStore(t)
	// A file in place of a directory.
	must.Do(t, os.WriteFile(filepath.Join(s.dir, nameOf("a")), nil, 0o600))
	if err := s.Save(t.Context(), agent.NewThread("a")); err == nil || errors.Is(err, agent.ErrConflict) {
		t.Errorf("save: %v", err)
	}
	if _, err := s.Load(t.Context(), "a"); err == nil || errors.Is(err, agent.ErrNoThread) {
		t.Errorf("load: %v", err)
	}
	must.Do(t, os.RemoveAll(s.dir))
	if err := s.Save(t.Context(), agent.NewThread("b")); err == nil || errors.Is(err, agent.ErrConflict) {
		t.Errorf("save without the directory: %v", err)
	}
	if _, err := s.List(t.Context()); err == nil {
		t.Error("list without the directory")
	}
}

// TestManyGoroutines lets many goroutines increment a counter in one thread and checks that no
// increment is lost.
func TestManyGoroutines(t *testing.T) {
	s := newStore(t)
	const savers, each = 6, 12
	var all sync.WaitGroup
	wins := make(chan int64, savers*each)
	for range savers {
		all.Go(func() {
			for range each {
				n, err := countUp(t.Context(), s)
				if err != nil {
					t.Error(err)
					return
				}
				wins <- n
			}
		})
	}

	all.Wait()
	close(wins)
	checkWins(t, s, wins, savers*each)
}

// countUp increments the counter in the thread and returns the revision that stored it.
func countUp(ctx context.Context, s *Store) (int64, error) {
	for {
		th, err := s.Load(ctx, "a")
		if errors.Is(err, agent.ErrNoThread) {
			th, err = agent.NewThread("a"), nil
		}
		if err != nil {
			return 0, err
		}
		var count int64
		if _, err := th.Get("count", &count); err != nil {
			return 0, err
		}
		if err := th.Put("count", count+1); err != nil {
			return 0, err
		}
		if err = s.Save(ctx, th); err == nil {
			return th.Revision, nil
		}
		if !errors.Is(err, agent.ErrConflict) {
			return 0, err
		}
	}
}

func checkWins(t *testing.T, s *Store, wins <-chan int64, want int) {
	t.Helper()
	seen := map[int64]bool{}
	for n := range wins {
		if seen[n] {
			t.Errorf("two savers won revision %d", n)
		}
		seen[n] = true
	}

	th := mustLoad(t, s, "a")
	if len(seen) != want || th.Revision != int64(want) || string(th.State["count"]) != fmt.Sprint(want) {
		t.Errorf("%d wins, revision %d, count %s; want %d of each", len(seen), th.Revision, th.State["count"], want)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.StringN(1, -1, 80), rapid.StringMatching(`[Aa./\\:=-]{1,3}`),
			rapid.StringMatching(`[a-b%]{118,130}`)).
			Draw(t, "id")
		name := nameOf(id)
		if !isName(name) || len(name) > 130 || name != strings.ToLower(name) {
			t.Fatalf("id %q has the name %q", id, name)
		}
		if other, ok := seen[name]; ok && other != id {
			t.Fatalf("ids %q and %q share the name %q", id, other, name)
		}
		seen[name] = id
	})
}

func FuzzParseName(f *testing.F) {
	for _, seed := range []string{
		"0.json",
		"7.json",
		"7.123.tmp",
		"07.json",
		"+7.json",
		"-1.json",
		"9223372036854775808.json",
		"id",
		"7",
		"7.tmp",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, name string) {
		n, isDraft, ok := parse(name)
		if ok && (n < 0 || !isDraft && name != revisionFile(n) || isDraft && !strings.HasSuffix(name, ".tmp")) {
			t.Errorf("%q was read as %d, draft %v", name, n, isDraft)
		}
	})
}
