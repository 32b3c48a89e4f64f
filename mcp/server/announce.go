package server

import (
	"context"
	"sync"

	"github.com/assent-dev/assent/mcp/wire"
)

// The lists whose changes are announced.
const (
	ToolsChanged     = "notifications/tools/list_changed"
	PromptsChanged   = "notifications/prompts/list_changed"
	ResourcesChanged = "notifications/resources/list_changed"
)

// listeners are the clients that are notified of changed lists.
type listeners struct {
	mu  sync.Mutex
	all map[*listener]struct{}
}

// listener is a client that is notified.
type listener struct {
	out  sink
	id   wire.ID         // of the modern request that listens; zero of a legacy client
	only map[string]bool // methods that it wants; nil: all
}

func (l *listeners) add(one *listener) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*listener]struct{}{}
	}
	l.all[one] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, one)
	}
}

func (l *listeners) of(method string) (out []*listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.all {
		if one.only == nil || one.only[method] {
			out = append(out, one)
		}
	}

	return out
}

// Announce notifies clients that a list has changed.
func (s *Server) Announce(ctx context.Context, method string) {
	for _, l := range s.listeners.of(method) {
		m := &wire.Message{Method: method}
		if !l.id.IsZero() {
			m.Params = subscription(l.id, nil)
		}
		if err := l.out.Write(m); err != nil {
			s.cfg.Log.InfoContext(ctx, "an announcement did not reach a client", "method", method, "error", err)
		}
	}
}

// hear makes a legacy client get notifications of all changes once it is ready.
func (s *session) hear(out sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != "" && s.deaf == nil {
		s.aside = out
		s.deaf = s.srv.listeners.add(&listener{out: out})
	}
}
