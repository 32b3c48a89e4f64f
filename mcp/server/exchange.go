package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// Exchange carries what is said to a client while its request is open.
type Exchange struct {
	session *session
	out     sink
	modern  bool
	token   wire.ID // for progress; zero: the client wants none
	id      wire.ID // of the request
	able    Capabilities
	level   string // Request.LogLevel

	mu   sync.Mutex
	last float64 // progress that was told
	over bool    // the request was answered, or cancelled
}

// Modern reports whether the client speaks a modern version.
func (e *Exchange) Modern() bool { return e.modern }

// Capabilities are what the client says it can do.
func (e *Exchange) Capabilities() Capabilities { return e.able }

// errOver says that nothing belongs to a request any more.
var errOver = errors.New("the request is over")

// end has nothing follow the answer to the request.
func (e *Exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
}

// WantsProgress reports whether the client asked to be told of progress.
func (e *Exchange) WantsProgress() bool { return !e.token.IsZero() }

// Progress tells the client how far its request has come. One token
// rises, whoever reports: p.Progress is taken where it is above what was
// told, and else a step is added. Nothing is sent without a token.
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

// LogLevel is from which level on the client wants logs of its request;
// "" when it didn't say.
func (e *Exchange) LogLevel() string { return e.level }

// Log tells the client a line of a log, where it wants it.
func (e *Exchange) Log(l wire.Log) error {
	unwanted := e.level == "" && e.modern || wire.LogRank(l.Level) < wire.LogRank(e.level)
	params, err := l.Params()
	if unwanted || err != nil {
		return err
	}
	return e.Notify("notifications/message", params)
}

// Notify sends a notification on the stream of the request, until that
// is answered.
func (e *Exchange) Notify(method string, params json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.notify(method, params)
}

// notify sends a notification. The lock is held.
func (e *Exchange) notify(method string, params json.RawMessage) error {
	if e.over {
		return errOver
	}
	return e.out.Write(&wire.Message{Method: method, Params: params})
}

// After does work that goes on behind the answer, until the session of
// a legacy client ends. What it says to the client belongs to no
// request. For modern clients, who have no session, nothing is done.
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

// Ask sends a request to a legacy client, on the stream of its own, and
// waits for the answer. Modern clients take none: they are asked by
// results.
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

// takeBack tells the client that nobody waits for its answer any more.
func (e *Exchange) takeBack(id wire.ID) {
	params, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name("requestId").Verbatim([]byte(id.Text()))
	})
	if err == nil {
		_ = e.Notify("notifications/cancelled", params) // it may be gone
	}
}

// ask makes an id of our own, and the place of its answer.
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
