package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/ledger"
	"github.com/assent-dev/assent/store"
)

// What a stream remembers of what has just happened, so that watchers don't read the store.
const (
	ringEntries = 1024
	ringBytes   = 4 << 20
	readBatch   = 256
)

// hub lends one reader of the ledger per tenant to any number of watchers.
type hub struct {
	store  store.Ledger
	change interface {
		Changed(tenant string) <-chan struct{}
	}
	log *slog.Logger
	max int

	mu       sync.Mutex
	streams  map[string]*stream
	watchers int
}

func newHub(s store.Store, log *slog.Logger, most int) *hub {
	return &hub{store: s, change: s, log: log, max: most, streams: map[string]*stream{}}
}

// stream is the end of one tenant's ledger, as far as it was read.
type stream struct {
	cancel context.CancelFunc
	users  int // guarded by hub.mu

	mu    sync.Mutex
	ring  []frame // one after the other, the last one before next
	bytes int
	next  int64         // index of the entry that will come next
	news  chan struct{} // closed when next moves
}

// join returns the stream of a tenant and a function that leaves it; false when there are too many watchers. The first watcher starts the reader
// at the end of the ledger, the last one stops it.
func (h *hub) join(ctx context.Context, tenant string) (*stream, func(), bool, error) {
	size, _, err := h.store.Checkpoint(ctx, tenant)
	if err != nil {
		return nil, nil, false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers >= h.max {
		return nil, nil, false, nil
	}
	h.watchers++
	s := h.streams[tenant]
	if s == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		s = &stream{cancel: cancel, next: size, news: make(chan struct{})}
		h.streams[tenant] = s
		go h.read(ctx, tenant, s)
	}
	s.users++
	return s, sync.OnceFunc(func() { h.leave(tenant, s) }), true, nil
}

func (h *hub) leave(tenant string, s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers--
	if s.users--; s.users == 0 {
		s.cancel()
		delete(h.streams, tenant)
	}
}

// lookAgain is when a reader looks without being woken: sealing by another replica may be announced late.
const lookAgain = time.Second

// read follows the ledger until nobody watches.
func (h *hub) read(ctx context.Context, tenant string, s *stream) {
	defer s.cancel()
	failing := false
	for ctx.Err() == nil {
		changed := h.change.Changed(tenant)
		entries, err := h.store.Leaves(ctx, tenant, s.end(), readBatch)
		if err != nil && ctx.Err() == nil && !failing {
			h.log.Error("events can't be read, watchers wait", "tenant", tenant, "error", err)
		}
		failing = err != nil
		if s.add(framesOf(entries)); len(entries) == readBatch {
			continue
		}
		if failing {
			changed = nil // else a store that fails at once would keep us busy
		}
		await(ctx, changed, lookAgain)
	}
}

// await returns when the channel is closed, the time is over or ctx ends.
func await(ctx context.Context, c <-chan struct{}, most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	case <-ctx.Done():
	}
}

func (s *stream) end() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// frame is one entry as it is sent: made once for all watchers.
type frame struct {
	index int64
	text  []byte
}

// framesOf writes entries as events. One that is no leaf is a fault of the store: its index is sent, and nothing is invented.
func framesOf(entries []store.Entry) []frame {
	out := make([]frame, len(entries))
	for i, e := range entries {
		kind, data := "unreadable", []byte("{}")
		if leaf, err := ledger.ParseLeaf(e.Leaf); err == nil {
			kind, data = leaf.Type, e.Leaf
		}
		out[i] = frame{e.Index, fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", e.Index, kind, data)}
	}
	return out
}

// add puts frames at the end and forgets the oldest.
func (s *stream) add(frames []frame) {
	if len(frames) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range frames {
		s.ring = append(s.ring, f)
		s.bytes += len(f.text)
		s.next = f.index + 1
	}
	drop := 0
	for ; len(s.ring)-drop > ringEntries || s.bytes > ringBytes; drop++ {
		s.bytes -= len(s.ring[drop].text)
	}
	s.ring = slices.Clone(s.ring[drop:]) // a new one: watchers may still hold the old
	close(s.news)
	s.news = make(chan struct{})
}

// from returns what is remembered from an index on, up to readBatch. When that was forgotten, behind is true; when it has not happened
// yet, news tells when it has.
func (s *stream) from(index int64) (frames []frame, behind bool, news <-chan struct{}) {
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
	return found[:min(len(found), readBatch)], false, nil
}
