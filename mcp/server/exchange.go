package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// Exchange sends messages to a client while its request is open.
type Exchange struct {
	session *session
	out     sink
	modern  bool
	token   wire.ID // for progress; zero: the client wants none
	id      wire.ID // of the request
	able    Capabilities
	level   string // Request.LogLevel

	mu   sync.Mutex
	last float64 // the last progress that was sent
	over bool    // the request was answered, or cancelled
}

// Modern reports whether the client speaks a modern version.
func (e *Exchange) Modern() bool { return e.modern }

// Capabilities returns what the client declared.
func (e *Exchange) Capabilities() Capabilities { return e.able }

// errOver means that the request was already answered.
var errOver = errors.New("the request is over")

// end prevents messages after the answer to the request.
func (e *Exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
}

// WantsProgress reports whether the client asked for progress reports.
func (e *Exchange) WantsProgress() bool { return !e.token.IsZero() }

// Progress reports the progress of the request to the client. The number must rise for a token,
// whichever source reports: p.Progress is used if it is above the last number, otherwise the last
// number is incremented. Nothing is sent without a token.
func (e *Exchange) Progress(p wire.Progress) error {
	if !e.WantsProgress() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Progress <= e.last {
		p.Progress = e.last + 1
		p.Total = 0
	}
	e.last = p.Progress
	p.Token = e.token
	params, err := p.Params()
	if err != nil {
		return err
	}
	return e.notify("notifications/progress", params)
}

// LogLevel returns the lowest level of logs that the client wants for its request. It is empty if
// the client didn't set one.
func (e *Exchange) LogLevel() string { return e.level }

// Log sends a log message to the client if the client wants its level.
func (e *Exchange) Log(l wire.Log) error {
	unwanted := e.level == "" && e.modern || wire.LogRank(l.Level) < wire.LogRank(e.level)
	params, err := l.Params()
	if unwanted || err != nil {
		return err
	}
	return e.Notify("notifications/message", params)
}

// Notify sends a notification on the stream of the request, until the request is answered.
func (e *Exchange) Notify(method string, params json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.notify(method, params)
}

// notify sends a notification. The caller holds the lock.
func (e *Exchange) notify(method string, params json.RawMessage) error {
	if e.over {
		return errOver
	}
	return e.out.Write(&wire.Message{Method: method, Params: params})
}

// After runs work that continues after the answer, until the session of a legacy client ends. Its
// messages to the client belong to no request. It does nothing for modern clients, because they
// have no session.
func (e *Exchange) After(work func(ctx context.Context, notify func(method string, params json.RawMessage) error)) {
	s := e.session
	if e.modern || s.own == nil {
		return
	}
	s.later.Go(func() {
		work(s.life, func(method string, params json.RawMessage) error {
			return s.own.Write(&wire.Message{Method: method, Params: params})
		})
	})
}

// Ask sends a request to a legacy client on the stream of its own request, and waits for the
// answer. Modern clients take no requests; they are asked by results.
func (e *Exchange) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	if e.modern {
		return nil, wire.Fail(wire.CodeMethodNotFound, "a modern client takes no requests")
	}
	id, answer := e.session.ask()
	defer e.session.forget(id)
	if err := e.out.Write(&wire.Message{ID: id, Method: method, Params: params}); err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the client could not be asked")
	}
	select {
	case m, sent := <-answer:
		if !sent {
			return nil, wire.Fail(wire.CodeInternal, "the client has gone")
		}
		return m.Result, m.Error
	case <-ctx.Done():
		e.takeBack(id)
		return nil, wire.Fail(wire.CodeInternal, "the client did not answer in time")
	}
}

// takeBack notifies the client that its answer is no longer needed.
func (e *Exchange) takeBack(id wire.ID) {
	params, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name("requestId").Verbatim([]byte(id.Text()))
	})
	if err == nil {
		_ = e.Notify("notifications/cancelled", params) // it may be gone
	}
}

// ask allocates the id of a request to the client and a channel for its answer.
func (s *session) ask() (wire.ID, chan *wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastAsked++
	id := wire.Number(s.lastAsked)
	answer := make(chan *wire.Message, 1)
	s.asked[id.Key()] = answer
	return id, answer
}

func (s *session) forget(id wire.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, id.Key())
}
