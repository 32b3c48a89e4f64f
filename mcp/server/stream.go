package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/mcp/wire"
)

const (
	maxEvents  = 1000                   // that a stream keeps for a client that isn't there
	firstWait  = 500 * time.Millisecond // before an answer that takes longer becomes a stream
	slowReader = 30 * time.Second       // that a client may take to take a piece
)

// stream holds the messages of one request, or those that belong to none. In a legacy session they
// are kept until they were sent, so that a client whose connection broke can fetch the rest.
type stream struct {
	id    string
	began time.Time

	mu     sync.Mutex
	events [][]byte // messages
	first  int      // number of events[0], from 1
	ended  bool     // no more messages come
	sent   int      // number of the last that was sent
	news   chan struct{}
}

func newStream(id string) *stream { return &stream{id: id, first: 1, news: make(chan struct{})} }

// Write adds a message. A response is the last one.
func (s *stream) Write(m *wire.Message) error { return s.put(m, m.Kind() == wire.Response) }

// put adds a message, which may be the last one.
func (s *stream) put(m *wire.Message, last bool) error {
	text, err := m.Append(nil)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return fmt.Errorf("the stream %s has ended", s.id)
	}
	s.events = append(s.events, text)
	if len(s.events) > maxEvents {
		s.events = s.events[1:]
		s.first++
	}
	s.ended = last
	close(s.news)
	s.news = make(chan struct{})
	return nil
}

// took records the number of the last message that was sent to the client.
func (s *stream) took(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = max(s.sent, n)
}

// behind returns the number of the last message that was sent.
func (s *stream) behind() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// done removes all messages after they were sent.
func (s *stream) done() {
	_, last, _, _ := s.after(0)
	s.forget(last)
}

// end ends a stream without a response.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.news)
		s.news = make(chan struct{})
	}
}

// after returns the messages after a number, and the number of the last one. ended reports that no
// more will follow.
func (s *stream) after(n int) (texts [][]byte, last int, ended bool, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last = s.first + len(s.events) - 1
	if skip := n - s.first + 1; skip < len(s.events) {
		texts = s.events[max(skip, 0):]
	}
	return texts, last, s.ended, s.news
}

// forget removes the messages up to a number after they were sent.
func (s *stream) forget(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if drop := n - s.first + 1; drop > 0 {
		s.events = s.events[min(drop, len(s.events)):]
		s.first += drop
	}
}

// single waits a moment for the response to a request. It returns nil if other messages come before
// the response, or if it is not ready in time.
func (s *stream) single(ctx context.Context) []byte {
	wait := time.NewTimer(firstWait)
	defer wait.Stop()
	for {
		texts, _, ended, news := s.after(0)
		if len(texts) > 0 {
			if ended && len(texts) == 1 {
				return texts[0]
			}
			return nil
		}

		select {
		case <-news:
		case <-wait.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// beginning is the position before the first message of a stream.
const beginning = -1

// copy sends the messages after a number, and further ones as they arrive, until the stream or ctx
// ends. Events have ids if the stream can be resumed.
func (h *HTTP) copy(ctx context.Context, s *stream, w http.ResponseWriter, from int, resumable bool) error {
	out := newEvents(w)
	if from == beginning && resumable {
		out.event(s.eventID(0), nil) // a place to come back to, before anything was said
	}
	from = max(from, 0)
	alive := time.NewTicker(h.cfg.KeepAlive)
	defer alive.Stop()
	for {
		texts, last, ended, news := s.after(from)
		for i, text := range texts {
			id := ""
			if resumable {
				id = s.eventID(last - len(texts) + 1 + i)
			}
			out.event(id, text)
		}

		from = max(from, last)
		if out.flush(); out.err != nil {
			return out.err
		}
		if s.took(from); ended {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-alive.C:
			out.comment()
		case <-news:
		}
	}
}

func (s *stream) eventID(n int) string { return s.id + "-" + strconv.Itoa(n) }

// placeOf splits the id of an event into the stream and the number.
func placeOf(eventID string) (id string, n int, ok bool) {
	id, number, ok := strings.Cut(eventID, "-")
	n, err := strconv.Atoi(number)
	return id, n, ok && err == nil && n >= 0
}

// events writes server-sent events to one reader. It stops at the first failure: a reader that
// doesn't read is disconnected.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

// newEvents begins a stream of events. Its header is sent with the first flush.
func newEvents(w http.ResponseWriter) *events {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	w.WriteHeader(http.StatusOK)
	return &events{w: w, control: http.NewResponseController(w)}
}

// event writes one event. An empty id is left out.
func (e *events) event(id string, text []byte) {
	if id != "" {
		e.write("id: " + id + "\n")
	}
	e.write("data: " + string(text) + "\n\n")
}

func (e *events) comment() {
	e.write(": still here\n\n")
	e.flush()
}

// write writes text. A reader that takes too long to read it is disconnected.
func (e *events) write(text string) {
	if e.err == nil {
		_ = e.control.SetWriteDeadline(time.Now().Add(slowReader)) // not all writers have deadlines
		_, e.err = e.w.Write([]byte(text))
	}
}

func (e *events) flush() {
	if e.err == nil {
		e.err = e.control.Flush()
	}
}
