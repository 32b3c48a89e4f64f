// Package feed sends events to any number of watchers. It has one reader for each tenant's
// ledger, and encodes each entry once for all of them.
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

// Limits of the recent entries that a stream keeps, so that watchers don't read the store.
const (
	ringEntries = 1024
	ringBytes   = 4 << 20
)

// Batch is the maximal number of entries that are read, and returned, at once.
const Batch = 256

const (
	// lookAgain is the interval at which a reader looks without being woken, because
	// entries that another replica seals may be announced late.
	lookAgain = time.Second
	// rest is the pause between two reads, so that under load watchers are woken for many
	// entries at once.
	rest = 50 * time.Millisecond
)

// Ledger is the part of the store that is read.
type Ledger interface {
	Checkpoint(ctx context.Context, tenant string) (int64, []byte, error)
	Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error)
	Changed(tenant string) <-chan struct{}
}

// Feed shares one reader of the ledger per tenant between any number of watchers. It is
// safe for concurrent use.
type Feed struct {
	ledger Ledger
	log    *slog.Logger

	mu      sync.Mutex
	streams map[string]*Stream
}

// New returns a feed without watchers.
func New(l Ledger, log *slog.Logger) *Feed {
	return &Feed{
		ledger:  l,
		log:     log,
		streams: map[string]*Stream{},
	}
}

// Stream holds the recent entries of one tenant's ledger.
type Stream struct {
	cancel context.CancelFunc
	users  int // guarded by Feed.mu

	mu    sync.Mutex
	ring  []Frame // one after the other, the last one before next
	bytes int
	next  int64         // index of the entry that will come next
	news  chan struct{} // closed when next moves
}

// Join returns the stream of a tenant and a function to leave it. The first watcher starts
// the reader at the end of the ledger, the last one stops it.
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

// read follows the ledger until there are no watchers.
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
			changed = nil // otherwise a store that fails at once would cause a busy loop
		}
		_ = wait.Pause(ctx, rest)
		_ = wait.For(ctx, changed, lookAgain)
	}
}

// End returns the index of the next entry.
func (s *Stream) End() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Frame is an entry in the form in which it is sent. It is made once for all watchers.
type Frame struct {
	Index  int64
	About  approval.About
	Event  []byte // server-sent event with the entry's leaf
	Notice []byte // server-sent event with only the kind and the subject of the entry
}

// About returns the subjects of entries.
func About(entries []ledger.SealedEntry) []approval.About {
	out := make([]approval.About, len(entries))
	for i, e := range entries {
		if leaf, err := ledger.ParseLeaf(e.Leaf); err == nil {
			out[i] = approval.About{Type: leaf.Type, Subject: leaf.Subject}
		}
	}

	return out
}

// Frames encodes entries as events. If an entry is not a valid leaf, which is an error of
// the store, its event has the index, the kind "unreadable" and no data of the entry.
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
		// a map of strings can't fail
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

// add appends frames and drops the oldest ones.
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
	s.ring = slices.Clone(s.ring[drop:]) // a new slice, because watchers may still use the old one
	close(s.news)
	s.news = make(chan struct{})
}

func (f Frame) size() int { return len(f.Event) + len(f.Notice) }

// Readable returns the frames that a reader may read.
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

// From returns up to Batch frames from an index on. If that index is no longer kept, behind
// is true. If it does not exist yet, news is closed when it does.
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
