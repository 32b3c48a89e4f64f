package durabletest

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

// Run runs the suite. TestMain of the package must call Main with the same transport.
func Run(t *testing.T, make Transport) {
	for name, test := range map[string]func(*testing.T, Transport){
		"KilledAtEachWrite": killedAtEachWrite,
		"TwoProcesses":      twoProcesses,
		"ClockSetBack":      clockSetBack,
		"NewerVersion":      newerVersion,
		"StoreFull":         storeFull,
		"SecondAnswer":      secondAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make)
		})
	}
}

// kinds returns a prefix of each kind of call.
func kinds() []string { return []string{Allowed, Asked, Peered, Refused} }

// killedAtEachWrite kills a process with SIGKILL before and after each write for a call, and
// lets another process continue. The peer repeats the call, because it was not acknowledged.
func killedAtEachWrite(t *testing.T, _ Transport) {
	for _, kind := range kinds() {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,after=%t", kind, after), func(t *testing.T) {
				t.Parallel()
				killedAtEachWriteOf(t, kind, after)
			})
		}
	}
}

func killedAtEachWriteOf(t *testing.T, kind string, after bool) {
	killed := true
	for n := int64(1); killed; n++ {
		l := life{
			Dir:    t.TempDir(),
			Calls:  []string{kind + "-1"},
			KillAt: n,
			After:  after,
			Lease:  300 * time.Millisecond, // so that the next process does not wait long for the killed one
		}
		if killed = l.run(t); killed {
			l.KillAt = 0
			l.run(t)
		}
		j := &journal{file: filepath.Join(l.Dir, "journal")}
		j.check(t, l.Calls, fmt.Sprintf("killed at write %d, after it %t", n, after))
		if !killed && n < 3 {
			t.Errorf("a call of the kind %s makes %d writes: what is killed at?", kind, n-1)
		}
	}
}

// twoProcesses lets two processes accept the same calls at the same time.
func twoProcesses(t *testing.T, _ Transport) {
	var calls []string
	for i := range 20 {
		for _, kind := range kinds() {
			calls = append(calls, fmt.Sprintf("%s-%d", kind, i))
		}
	}
	l := life{Dir: t.TempDir(), Calls: calls}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { l.run(t) })
	}
	both.Wait()
	j := &journal{file: filepath.Join(l.Dir, "journal")}
	j.check(t, calls, "two processes")

	all, err := j.facts()
	if err != nil {
		t.Fatal(err)
	}
	for id, f := range all {
		if !strings.HasPrefix(id, Refused) && f.endings[0] == Unknown {
			t.Errorf("%s was taken for lost, and no process died", id)
		}
	}
}

// open opens an empty database.
func open(t *testing.T) store.Records {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// lives makes calls in a process that is not killed, and checks their endings.
func lives(t *testing.T, make Transport, w World, calls []string, when string) {
	t.Helper()
	j := &journal{file: filepath.Join(t.TempDir(), "journal")}
	if err := (peer{journal: j, calls: calls}).work(t.Context(), make, w); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	j.check(t, calls, when)
	facts, err := j.facts()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range calls {
		if !strings.HasPrefix(id, Refused) && facts[id].runs != 1 {
			t.Errorf("%s: %s ran %d times, and its process lived", when, id, facts[id].runs)
		}
	}
}

// atEachWrite makes a call of each kind once for each of its writes. happens returns a world in
// which something goes wrong at write n.
func atEachWrite(t *testing.T, make Transport, what string, happens func(t *testing.T, n int64) (*shaky, World)) {
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for n := int64(1); ; n++ {
				records, w := happens(t, n)
				w.Sealing = sealing(records)
				lives(t, make, w, []string{kind + "-1"}, fmt.Sprintf("%s at write %d", what, n))
				if records.writes.Load() < n {
					break
				}
			}
		})
	}
}

// clockSetBack sets the clock back by an hour at each write, once.
func clockSetBack(t *testing.T, make Transport) {
	atEachWrite(t, make, "the clock is set back", func(t *testing.T, n int64) (*shaky, World) {
		var back atomic.Int64
		records := &shaky{
			Records: open(t),
			after: func(at int64) {
				if at == n {
					back.Store(int64(time.Hour))
				}
			},
		}
		return records, World{Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }}
	})
}

// storeFull makes a few writes fail in a row, beginning at each write.
func storeFull(t *testing.T, make Transport) {
	const failures = 5 // until there is space again
	atEachWrite(t, make, "the store is full", func(t *testing.T, n int64) (*shaky, World) {
		return &shaky{
			Records: open(t),
			before: func(at int64) error {
				if at >= n && at < n+failures {
					return errFull
				}
				return nil
			},
		}, World{}
	})
}

// newerVersion has a call that a newer version of the program stored: it must be left alone
// while other calls continue.
func newerVersion(t *testing.T, make Transport) {
	records := open(t)
	s := sealing(records)
	j := &journal{file: filepath.Join(t.TempDir(), "journal")}
	id := Allowed + "-newer"
	kept := keepOnly(t, make, records, id)
	rewrite(t, s, kept)

	lives(t, make, World{Sealing: s}, []string{Allowed + "-1"}, "beside a call of a newer version")
	facts, err := j.facts()
	if err != nil {
		t.Fatal(err)
	}
	if f := facts[id]; f.runs != 0 || len(f.endings) != 0 {
		t.Errorf("a call that a newer version keeps ran %d times and ended as %q", f.runs, f.endings)
	}
	now, err := records.Record(t.Context(), kept.Namespace, kept.Key)
	if err != nil || now.Version != kept.Version+1 {
		t.Errorf("the record of a newer version was changed: version %d, %v", now.Version, err)
	}
}

// keepOnly makes a call without running the engine, and returns its record.
func keepOnly(t *testing.T, make Transport, records store.Records, id string) store.Record {
	t.Helper()
	door, err := make(World{
		Sealing: sealing(records),
		People:  &people{records: records},
		Now:     time.Now,
		Poll:    time.Hour,
		Lease:   time.Hour,
		Run: func(context.Context, string) string {
			t.Errorf("%s ran", id)
			return ""
		},
		AskPeer: func(string) error { return nil },
		Tell:    func(string, string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := door.Call(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	kept, err := records.ListRecords(t.Context(), "durabletest/calls", "", "", 10)
	if err != nil || len(kept) != 1 {
		t.Fatalf("%d records, %v", len(kept), err)
	}
	return kept[0]
}

// rewrite changes a record into one that a newer version wrote.
func rewrite(t *testing.T, s durable.Sealing, r store.Record) {
	t.Helper()
	v, err := durable.NewVault[map[string]any](s, "calls")
	if err != nil {
		t.Fatal(err)
	}
	d, err := v.Open(r)
	if err != nil {
		t.Fatal(err)
	}
	d.Body["format"] = json.Number("1000000")
	if err := v.Put(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// secondAnswer has peers answer several times at once, and then differently.
func secondAnswer(t *testing.T, make Transport) {
	for _, first := range []bool{true, false} {
		j := &journal{file: filepath.Join(t.TempDir(), "journal")}
		ids := []string{Peered + "-1", Peered + "-2", Peered + "-3"}
		var door Door
		ctx, stop := context.WithCancel(t.Context())
		var answers sync.WaitGroup
		records := open(t)
		w := World{
			Sealing: sealing(records),
			People:  &people{records: records},
			Now:     time.Now,
			Poll:    5 * time.Millisecond,
			Lease:   time.Second,
		}
		w.Run = func(_ context.Context, id string) string {
			j.write("run " + id)
			return "done " + id
		}
		w.Tell = func(id, ending string) error {
			j.write("end " + id + " " + ending)
			return door.Answer(ctx, id, !first) // late, and different from before
		}
		w.AskPeer = func(id string) error {
			for range 8 {
				answers.Go(func() {
					if err := door.Answer(ctx, id, first); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				})
			}

			return nil
		}
		var err error
		if door, err = make(w); err != nil {
			t.Fatal(err)
		}
		running := start(func() error { return door.Run(ctx) })
		for _, id := range ids {
			if err := door.Call(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		(peer{journal: j}).insist(ctx, func() error { return j.missing(ids) })
		answers.Wait()
		stop()
		if err := <-running; err != nil {
			t.Error(err)
		}
		facts, err := j.facts()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if ran := facts[id].runs == 1; ran != first || facts[id].runs > 1 {
				t.Errorf("%s was allowed %t, and ran %d times", id, first, facts[id].runs)
			}
		}
	}
}
