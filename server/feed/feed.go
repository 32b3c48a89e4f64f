// Package feed tells any number of watchers what happens: one reader
// for each tenant's ledger, and each entry made ready to be sent once,
// however many take it.
package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/wait"
)

// What a stream remembers of what has just happened, so that watchers
// don't read the store.
const (
	ringEntries = 1024
	ringBytes   = 4 << 20
)

// Batch is how many entries are read, and handed out, at once.
const Batch = 256

const (
	// lookAgain is when a reader looks without being woken: sealing by
	// another replica may be announced late.
	lookAgain = time.Second
	// rest is the time between two readings, so that under load
	// watchers are woken for many entries at once.
	rest = 50 * time.Millisecond
)

// Ledger is what is read.
type Ledger interface {
	Checkpoint(ctx context.Context, tenant string) (int64, []byte, error)
	Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	Changed(tenant string) <-chan struct{}
}

// Feed lends one reader of the ledger per tenant to any number of
// watchers. It is safe for concurrent use.
type Feed struct {
	ledger Ledger
	log    *slog.Logger

	mu      sync.Mutex
	streams map[string]*Stream
}

// New returns a feed that nobody watches.
func New(l Ledger, log *slog.Logger) *Feed {
	return &Feed{
		ledger:  l,
		log:     log,
		streams: map[string]*Stream{},
	}
}

// Stream is the end of one tenant's ledger, as far as it was read.
type Stream struct {
	cancel context.CancelFunc
	users  int // guarded by Feed.mu

	mu    sync.Mutex
	ring  []Frame // one after the other, the last one before next
	bytes int
	next  int64         // index of the entry that will come next
	news  chan struct{} // closed when next moves
}

// Join returns the stream of a tenant and a function that leaves it.
// The first watcher starts the reader at the end of the ledger, the
// last one stops it.
func (f *Feed) Join(ctx context.Context, tenant string) (*Stream, func(), error) {
	size, _, err := f.ledger.Checkpoint(ctx, tenant)
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streams[tenant]
	if s == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s = &Stream{cancel: cancel, next: size, news: make(chan struct{})}
		f.streams[tenant] = s
		go f.read(ctx, tenant, s)
	}

	s.users++
	return s, sync.OnceFunc(func() { f.leave(tenant, s) }), nil
}

func (f *Feed) leave(tenant string, s *Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.users--; s.users == 0 {
		s.cancel()
		delete(f.streams, tenant)
	}
}

// read follows the ledger until nobody watches.
func (f *Feed) read(ctx context.Context, tenant string, s *Stream) {
	defer s.cancel()
	failing := false
	for ctx.Err() == nil {
		changed := f.ledger.Changed(tenant)
		entries, err := f.ledger.Leaves(ctx, tenant, s.End(), Batch)
		if err != nil && ctx.Err() == nil && !failing {
			f.log.Error("events can't be read, watchers wait", "tenant", tenant, "error", err)
		}
		failing = err != nil
		if s.add(Frames(entries)); len(entries) == Batch {
			continue
		}
		if failing {
			changed = nil // else a store that fails at once would keep us busy
		}
		_ = wait.Pause(ctx, rest)
		_ = wait.For(ctx, changed, lookAgain)
	}
}

// End is the index of the entry that will come next.
func (s *Stream) End() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Frame is one entry as it is sent: made once for all watchers.
type Frame struct {
	Index  int64
	About  approval.About
	Event  []byte // server-sent event with the entry's leaf
	Notice []byte // server-sent event that says what it is and whom it is about, and nothing else of it
}

// About returns what entries are about.
func About(entries []ledger.SealedEntry) []approval.About {
	out := make([]approval.About, len(entries))
	for i, e := range entries {
		if leaf, err := ledger.ParseLeaf(e.Leaf); err == nil {
			out[i] = approval.About{Type: leaf.Type, Subject: leaf.Subject}
		}
	}

	return out
}

// Frames writes entries as events. One that is no leaf is a fault of
// the store: its index is sent, and nothing is invented.
func Frames(entries []ledger.SealedEntry) []Frame {
	out := make([]Frame, len(entries))
	for i, e := range entries {
		kind := "unreadable"
		subject := ""
		data := []byte("{}")
		if leaf, err := ledger.ParseLeaf(e.Leaf); err == nil {
			kind = leaf.Type
			subject = leaf.Subject
			data = e.Leaf
		}
		// strings can always be written
		notice, _ := json.Marshal(map[string]string{"type": kind, "subject": subject})
		out[i] = Frame{
			Index:  e.Index,
			About:  approval.About{Type: kind, Subject: subject},
			Event:  fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", e.Index, kind, data),
			Notice: fmt.Appendf(nil, "id: %d\ndata: %s\n\n", e.Index, notice),
		}
	}

	return out
}

// add puts frames at the end and forgets the oldest.
func (s *Stream) add(frames []Frame) {
	if len(frames) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range frames {
		s.ring = append(s.ring, f)
		s.bytes += f.size()
		s.next = f.Index + 1
	}
	drop := 0
	for ; len(s.ring)-drop > ringEntries || s.bytes > ringBytes; drop++ {
		s.bytes -= s.ring[drop].size()
	}
	s.ring = slices.Clone(s.ring[drop:]) // a new one: watchers may still hold the old
	close(s.news)
	s.news = make(chan struct{})
}

func (f Frame) size() int { return len(f.Event) + len(f.Notice) }

// Readable picks the frames that a reader may read.
func Readable(
	ctx context.Context, s *approval.Service, tenant string, by *approval.Reader, frames []Frame,
) ([]Frame, error) {
	if by.All() || len(frames) == 0 {
		return frames, nil
	}
	about := make([]approval.About, len(frames))
	for i, f := range frames {
		about[i] = f.About
	}
	may, err := s.Entries(ctx, tenant, by, about)
	var out []Frame
	for i, f := range frames {
		if may[i] {
			out = append(out, f)
		}
	}

	return out, err
}

// From returns what is remembered from an index on, up to Batch. When
// that was forgotten, behind is true; when it has not happened yet,
// news tells when it has.
func (s *Stream) From(index int64) (frames []Frame, behind bool, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.next - int64(len(s.ring))
	switch {
	case index < first:
		return nil, true, nil
	case index >= s.next:
		return nil, false, s.news
	}

	found := s.ring[index-first:]
	return found[:min(len(found), Batch)], false, nil
}
