package server

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/assent-dev/assent/mcp/wire"
)

// httpSession is a legacy session, which spans many HTTP requests of a client.
type httpSession struct {
	*session
	id string

	mu      sync.Mutex
	seen    time.Time
	streams map[string]*stream // of requests whose messages were not all taken
	general *stream            // what belongs to no request
	ctx     context.Context    // ends with the session
	stop    context.CancelCauseFunc
}

// postLegacy handles one legacy message.
func (h *HTTP) postLegacy(w http.ResponseWriter, r *http.Request, caller string, m *wire.Message) {
	s, status := h.sessionOf(r, caller)
	opens := m.Method == methodInitialize && m.Kind() == wire.Request && r.Header.Get(headerSession) == ""
	if opens {
		s, status = h.open(caller)
	}
	if s == nil {
		h.fail(w, status, m.ID, wire.Fail(wire.CodeInvalidRequest, "%s", sessionText(status)))
		return
	}
	if opens {
		w.Header().Set(headerSession, s.id)
	}

	if m.Kind() != wire.Request {
		s.take(s.ctx, m, s.general)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	out := s.stream(h.cfg.Now())
	s.take(s.ctx, m, out)
	h.answer(w, r, out, false, s.resumable())
	s.sweep(h.cfg.Now())
}

func sessionText(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "expected the header Mcp-Session-Id, or a protocol version that is known"
	case http.StatusNotFound:
		return "the session has ended: initialize a new one"
	case http.StatusForbidden:
		return "the session is another caller's"
	}

	return "too many sessions"
}

// sessionOf returns the session of a request, or the status with which the request is refused.
func (h *HTTP) sessionOf(r *http.Request, caller string) (*httpSession, int) {
	version := r.Header.Get(headerVersion)
	id := r.Header.Get(headerSession)
	if id == "" || version != "" && !wire.IsLegacy(version) {
		return nil, http.StatusBadRequest
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire()
	s := h.sessions[id]
	switch {
	case s == nil:
		return nil, http.StatusNotFound
	case s.caller != caller:
		return nil, http.StatusForbidden
	}

	s.touch(h.cfg.Now())
	return s, 0
}

// open makes a session.
func (h *HTTP) open(caller string) (*httpSession, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire()
	count := 0
	for _, s := range h.sessions {
		if s.caller == caller {
			count++
		}
	}
	if count >= h.cfg.MaxSessions {
		return nil, http.StatusTooManyRequests
	}

	ctx, stop := context.WithCancelCause(context.Background())
	general := newStream(rand.Text())
	s := &httpSession{
		session: h.srv.newSession(caller, general),
		id:      rand.Text(),
		seen:    h.cfg.Now(),
		streams: map[string]*stream{},
		general: general,
		ctx:     ctx,
		stop:    stop,
	}
	h.sessions[s.id] = s
	return s, 0
}

// expire ends unused sessions. The caller holds the lock.
func (h *HTTP) expire() {
	for id, s := range h.sessions {
		if s.idle(h.cfg.Now()) > h.cfg.Idle {
			delete(h.sessions, id)
			go s.finish()
		}
	}
}

// touch records when the client last sent something.
func (s *httpSession) touch(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = now
}

// idle returns the time since the client last sent something. It is 0 while a request of the client
// is open.
func (s *httpSession) idle(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy() {
		return 0
	}
	return now.Sub(s.seen)
}

// busy reports whether requests of the client are open.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0
}

// finish ends a session and what is open in it.
func (s *httpSession) finish() {
	s.stop(ErrClosed)
	s.general.end()
	s.close(ErrClosed)
}

// stream makes the stream of a request.
func (s *httpSession) stream(now time.Time) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) >= maxStreams {
		maps.DeleteFunc(s.streams, func(_ string, one *stream) bool { return one.over() })
	}
	out := newStream(rand.Text())
	out.began = now
	s.streams[out.id] = out
	return out
}

// maxStreams limits how many streams a session keeps for clients that come back.
const maxStreams = 256

// over reports whether no more messages will follow.
func (s *stream) over() bool {
	_, _, ended, _ := s.after(0)
	return ended
}

// keepStream is the time for which a client may come back to a stream after its last message.
const keepStream = 5 * time.Minute

// sweep removes streams whose messages were all delivered, or that are too old.
func (s *httpSession) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.streams {
		texts, _, ended, _ := one.after(0)
		if ended && (len(texts) == 0 || now.Sub(one.began) > keepStream) {
			delete(s.streams, id)
		}
	}
}

// resumable reports whether the client may fetch the rest of a stream later.
func (s *session) resumable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version == wire.V20251125 || s.version == wire.V20250618 || s.version == wire.V20250326
}

// get opens the stream for messages that belong to no request, or continues a stream that broke.
func (h *HTTP) get(w http.ResponseWriter, r *http.Request, caller string) {
	s, status := h.sessionOf(r, caller)
	if s == nil {
		http.Error(w, sessionText(status), status)
		return
	}
	ctx, release := until(r, s)
	defer release()
	last := r.Header.Get(headerLast)
	if last == "" {
		_ = h.copy(ctx, s.general, w, s.general.behind(), true)
		return
	}
	id, n, ok := placeOf(last)
	out := s.find(id)
	if !ok || out == nil {
		http.Error(w, "the stream of this event is not there any more", http.StatusNotFound)
		return
	}

	if h.copy(ctx, out, w, n, true) == nil {
		out.done()
		s.sweep(h.cfg.Now())
	}
}

// until returns a context of a request that ends with its session, too. After release the session
// keeps no reference to it.
func until(r *http.Request, s *httpSession) (ctx context.Context, release func()) {
	ctx, stop := context.WithCancelCause(r.Context())
	apart := context.AfterFunc(s.ctx, func() { stop(ErrClosed) })
	return ctx, func() {
		apart()
		stop(nil)
	}
}

// find returns a stream that a client comes back to, or nil if the stream is gone.
func (s *httpSession) find(id string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == s.general.id {
		return s.general
	}
	return s.streams[id]
}

// remove ends a session.
func (h *HTTP) remove(w http.ResponseWriter, r *http.Request, caller string) {
	s, status := h.sessionOf(r, caller)
	if s == nil {
		http.Error(w, sessionText(status), status)
		return
	}
	h.mu.Lock()
	delete(h.sessions, s.id)
	h.mu.Unlock()
	s.finish()
	w.WriteHeader(http.StatusNoContent)
}

// Close ends all sessions.
func (h *HTTP) Close() {
	h.mu.Lock()
	all := h.sessions
	h.sessions = map[string]*httpSession{}
	h.mu.Unlock()
	for _, s := range all {
		s.finish()
	}
}

// batch handles several messages of a client of 2025-03-26, each on its own.
func (h *HTTP) batch(w http.ResponseWriter, r *http.Request, caller string, body []byte) {
	s, status := h.sessionOf(r, caller)
	if s == nil || !s.batches() {
		bad := wire.Fail(wire.CodeInvalidRequest, "expected one message, found a batch")
		h.fail(w, max(status, http.StatusBadRequest), wire.ID{}, bad)
		return
	}
	all, _, bad := wire.Batch(body, h.srv.cfg.Limits)
	if bad != nil {
		h.fail(w, http.StatusBadRequest, wire.ID{}, bad)
		return
	}
	out := &shared{stream: newStream(rand.Text())}
	begin := h.readAll(all, out)
	answers := out.left > 0
	for _, start := range begin {
		start(s)
	}
	if !answers {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	_ = h.copy(r.Context(), out.stream, w, beginning, false) // it may be gone
}

// readAll reads the messages of a batch and counts how many responses they will have.
func (h *HTTP) readAll(texts [][]byte, out *shared) (begin []func(*httpSession)) {
	for _, text := range texts {
		m, bad := wire.Parse(text, h.srv.cfg.Limits)
		if bad != nil || m.Kind() == wire.Request {
			out.left++
		}
		begin = append(begin, func(s *httpSession) {
			if bad != nil {
				s.refuse(s.ctx, out, m.ID, bad)
				return
			}
			s.take(s.ctx, &m, out)
		})
	}

	return begin
}

// shared is the stream of a batch. It ends with the last response.
type shared struct {
	*stream
	mu   sync.Mutex
	left int // responses that are to come
}

// Write adds a message.
func (s *shared) Write(m *wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Kind() == wire.Response {
		s.left--
	}
	return s.put(m, s.left == 0 && m.Kind() == wire.Response)
}
