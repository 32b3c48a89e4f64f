package feed

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
)

// TestFrames checks that an unreadable entry is sent as such, and that openings are never
// sent.
func TestFrames(t *testing.T) {
	entry := ledger.Entry{Time: time.Now(), Tenant: "t", Type: "mark", Sealed: map[string]string{"args": "hunter2"}}
	record, err := entry.Seal(strings.NewReader(strings.Repeat("salt", 9)))
	must.Do(t, err)
	frames := Frames([]ledger.SealedEntry{
		{Index: 4, Leaf: record.Leaf, Openings: record.Openings}, {Index: 5, Leaf: []byte("{}\nevent: evil")},
	})
	got := string(frames[0].Event)
	if !strings.HasPrefix(got, "id: 4\nevent: mark\ndata: {") || strings.Contains(got, "hunter2") {
		t.Errorf("got %s", got)
	}
	if got := string(frames[1].Event); got != "id: 5\nevent: unreadable\ndata: {}\n\n" {
		t.Errorf("got %s", got)
	}
}

// TestStream checks that, whatever was added, a watcher sees every entry once and in order,
// or learns that it is behind.
func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 5000).Draw(t, "first")
		s := &Stream{next: first, news: make(chan struct{})}
		for range rapid.IntRange(0, 30).Draw(t, "batches") {
			batch := make([]Frame, rapid.IntRange(0, Batch).Draw(t, "size"))
			text := bytes.Repeat([]byte("x"), rapid.IntRange(1, 40_000).Draw(t, "bytes"))
			for i := range batch {
				batch[i] = Frame{Index: s.next + int64(i), Event: text}
			}
			_, _, news := s.From(s.next)
			s.add(batch)
			select {
			case <-news:
			default:
				if len(batch) > 0 {
					t.Fatal("nobody was woken")
				}
			}
		}

		if len(s.ring) > ringEntries || s.bytes > ringBytes {
			t.Fatalf("remembers %d entries, %d bytes", len(s.ring), s.bytes)
		}
		index := rapid.Int64Range(first, s.next).Draw(t, "index")
		frames, behind, news := s.From(index)
		switch {
		case index == s.next:
			if news == nil || behind || frames != nil {
				t.Fatalf("at the end: %v %v", frames, behind)
			}
		case behind:
			if index >= s.next-int64(len(s.ring)) {
				t.Fatalf("%d is remembered", index)
			}
		case len(frames) == 0 || len(frames) > Batch || frames[0].Index != index:
			t.Fatalf("from %d: %d frames", index, len(frames))
		}
	})
}

// busy is a ledger in which each read finds one more entry.
type busy struct {
	mu      sync.Mutex
	changed chan struct{}
	entries []ledger.SealedEntry
	reads   int
}

func (b *busy) Checkpoint(context.Context, string) (int64, []byte, error) { return 0, nil, nil }

func (b *busy) Leaves(_ context.Context, _ string, from int64, limit int) ([]ledger.SealedEntry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	found := b.entries[min(int(from), len(b.entries)):]
	return found[:min(limit, len(found))], nil
}

func (b *busy) Changed(string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *busy) add() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, ledger.SealedEntry{Index: int64(len(b.entries)), Leaf: []byte("x")})
	close(b.changed)
	b.changed = make(chan struct{})
}

// TestOneReaderForAllWatchers checks that a thousand watchers cause one read of the ledger,
// that each entry is encoded once, and that a burst of changes wakes them about twenty
// times a second without a gap.
func TestOneReaderForAllWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &busy{changed: make(chan struct{})}
		f := New(b, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const watchers, entries = 1000, 500
		var woken atomic.Int64
		var all sync.WaitGroup
		for range watchers {
			s, leave, err := f.Join(ctx, "acme")
			must.Do(t, err)
			all.Go(func() {
				defer leave()
				for next := int64(0); next < entries; {
					frames, behind, news := s.From(next)
					if behind {
						t.Error("nothing was forgotten")
						return
					}
					for _, frame := range frames {
						if frame.Index != next {
							t.Errorf("got entry %d, want %d", frame.Index, next)
						}
						next++
					}

					if len(frames) == 0 {
						<-news
						woken.Add(1)
					}
				}
			})
		}

		began := time.Now()
		for range entries {
			b.add()
			<-time.After(time.Millisecond)
		}
		all.Wait()
		took := time.Since(began)
		if most := int(took/rest) + 3; b.reads > most {
			t.Errorf("%d readings in %v, want at most %d", b.reads, took, most)
		}
		if most := int64(watchers) * int64(took/rest+3); woken.Load() > most {
			t.Errorf("%d watchers were woken %d times in %v", watchers, woken.Load(), took)
		}
	})
}
