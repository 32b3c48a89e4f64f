package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// errDone ends the context of a request that was handled.
var errDone = errors.New("the request was answered")

// sink accepts messages for a client: a pipe, or the stream of one request.
type sink interface {
	Write(m *wire.Message) error
}

// session is one client: a pipe, a legacy session of HTTP, or a single
// modern request.
type session struct {
	srv    *Server
	caller string

	mu           sync.Mutex
	version      string // agreed on by initialize; "" before
	capabilities Capabilities
	open         map[string]context.CancelCauseFunc // requests of the client, by the keys of their ids
	asked        map[string]chan *wire.Message      // our requests, by the keys of their ids
	lastAsked    int64
	deaf         func() // ends what a legacy client hears of changed lists; nil: it hears nothing
	// level is the lowest level of logs that a legacy client wants; all levels if it is empty
	level string
	// aside accepts messages that belong to no request of a legacy client. It is nil before the
	// client is ready.
	aside    sink
	followed map[string]context.CancelFunc // resources of a legacy client, by their URIs
	leaving  chan struct{}                 // closed when the client has gone
	over     bool                          // no more is begun
	work     sync.WaitGroup

	own   sink            // takes what belongs to no request; nil of a modern client by HTTP
	life  context.Context // ends with the session
	end   context.CancelFunc
	later sync.WaitGroup // work that goes on behind answers, see Exchange.After
}

func (s *Server) newSession(caller string, own sink) *session {
	life, end := context.WithCancel(context.Background())
	return &session{
		srv:      s,
		caller:   caller,
		life:     life,
		end:      end,
		own:      own,
		open:     map[string]context.CancelCauseFunc{},
		asked:    map[string]chan *wire.Message{},
		followed: map[string]context.CancelFunc{},
		leaving:  make(chan struct{}),
	}
}

// take handles one message. Requests are answered in goroutines of their own, to their sink.
func (s *session) take(ctx context.Context, m *wire.Message, out sink) {
	switch m.Kind() {
	case wire.Response:
		s.answered(m)
	case wire.Notification:
		s.notified(ctx, m, out)
	default:
		s.request(ctx, m, out)
	}
}

// request starts answering a request.
func (s *session) request(ctx context.Context, m *wire.Message, out sink) {
	r, bad := s.read(m)
	if bad != nil {
		s.refuse(ctx, out, m.ID, bad)
		return
	}
	s.run(ctx, r, m.ID, out)
}

// run answers a request in a goroutine of its own.
func (s *session) run(ctx context.Context, r *Request, id wire.ID, out sink) {
	ctx, done, bad := s.begin(ctx, id)
	if bad != nil {
		s.refuse(ctx, out, id, bad)
		return
	}
	with := &Exchange{
		session: s,
		out:     out,
		modern:  r.Modern,
		token:   r.Meta.Progress,
		level:   r.LogLevel,
		id:      id,
		able:    r.Capabilities,
	}
	answer := func() {
		defer s.work.Done()
		result, failed := s.handle(ctx, r, with)
		with.end()
		done()
		if !errors.Is(context.Cause(ctx), ErrCancelled) { // then the client expects no answer
			s.write(ctx, out, wire.Answer(id, result, failed))
		}
	}
	if r.Method == methodInitialize && !r.Modern {
		answer() // what comes behind it counts on it
		return
	}
	go answer()
}

// refuse answers a request that can't be handled with an error.
func (s *session) refuse(ctx context.Context, out sink, id wire.ID, bad *wire.Error) {
	s.write(ctx, out, wire.Answer(id, nil, bad))
}

// write sends an answer. If the client has disconnected, the failure is only logged.
func (s *session) write(ctx context.Context, out sink, m *wire.Message) {
	if err := out.Write(m); err != nil {
		s.srv.cfg.Log.InfoContext(ctx, "an answer did not reach its client", "caller", s.caller, "error", err)
	}
}

// begin registers an open request. Its id is in use until done is called.
func (s *session) begin(ctx context.Context, id wire.ID) (context.Context, func(), *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := id.Key()
	switch {
	case s.over:
		return ctx, nil, wire.Fail(wire.CodeInternal, "the connection has ended")
	case s.open[key] != nil:
		return ctx, nil, wire.Fail(wire.CodeInvalidRequest, "id: a request with this id is open")
	case len(s.open) >= s.srv.cfg.MaxOpen:
		return ctx, nil, wire.Fail(wire.CodeInternal, "too many requests are open")
	}

	ctx, cancel := context.WithCancelCause(ctx)
	s.open[key] = cancel
	s.work.Add(1)
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, key)
		cancel(errDone)
	}, nil
}

// read converts a message to a Request of its era.
func (s *session) read(m *wire.Message) (*Request, *wire.Error) {
	meta, bad := wire.ReadMeta(m.Params)
	if bad != nil {
		return nil, bad
	}
	r := &Request{Caller: s.caller, Method: m.Method, Params: m.Params, Meta: meta}
	if meta.IsModern() || m.Method == methodDiscover {
		return r, r.fitModern()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	r.Version = s.version
	r.Capabilities = s.capabilities
	r.LogLevel = s.level
	if s.version == "" && m.Method != methodInitialize && m.Method != methodPing {
		return nil, wire.Fail(
			wire.CodeInvalidRequest,
			"expected initialize, or the protocol version in params._meta",
		)
	}

	return r, nil
}

// fitModern checks the fields that every modern request must have.
func (r *Request) fitModern() *wire.Error {
	r.Modern = true
	r.Version = r.Meta.Version
	r.LogLevel = r.Meta.LogLevel
	r.Capabilities = readCapabilities(r.Meta.Capabilities)
	switch {
	case r.Meta.Version == "":
		return wire.Fail(wire.CodeInvalidParams, "params._meta: expected %s", wire.KeyVersion)
	case !wire.IsModern(r.Meta.Version):
		return unsupported(r.Meta.Version)
	case r.Meta.Capabilities == nil:
		return wire.Fail(wire.CodeInvalidParams, "params._meta: expected %s", wire.KeyCapabilities)
	case r.LogLevel != "" && wire.LogRank(r.LogLevel) < 0:
		return wire.Fail(wire.CodeInvalidParams, "params._meta.%s: expected a level", wire.KeyLogLevel)
	}

	return nil
}

// unsupported returns an error with the versions that a modern client may use.
func unsupported(version string) *wire.Error {
	bad := wire.Fail(wire.CodeUnsupportedVersion, "the protocol version is not supported")
	bad.Data, _ = jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name("supported").Strings(wire.Modern())
		w.Member("requested", version)
	})
	return bad
}

// notified handles a notification.
func (s *session) notified(ctx context.Context, m *wire.Message, out sink) {
	switch m.Method {
	case "notifications/cancelled":
		s.cancel(m.Params)
		return
	case "notifications/initialized":
		s.hear(out)
		return
	}

	if r, bad := s.read(m); bad == nil {
		s.srv.cfg.Handler.Notified(ctx, r)
	}
}

// cancel ends a request for which the client no longer waits.
func (s *session) cancel(params []byte) {
	id, known := wire.ReadID(jsonmsg.Get(params, "requestId"))
	if !known {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.open[id.Key()]; cancel != nil {
		cancel(ErrCancelled)
	}
}

// close ends all open requests and waits for them.
func (s *session) close(cause error) {
	s.leave()
	s.mu.Lock()
	s.over = true
	for _, cancel := range s.open {
		cancel(cause)
	}
	for uri, stop := range s.followed {
		delete(s.followed, uri)
		stop()
	}
	for id, answer := range s.asked {
		delete(s.asked, id)
		close(answer)
	}
	if s.deaf != nil {
		s.deaf()
	}
	s.mu.Unlock()
	s.work.Wait()
	s.end()
	s.later.Wait()
}

// leave ends what would otherwise go on while the client is connected.
func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.leaving:
	default:
		close(s.leaving)
	}
}

// answered delivers the client's answer to the goroutine that waits for it.
func (s *session) answered(m *wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := m.ID.Key()
	if answer := s.asked[key]; answer != nil {
		delete(s.asked, key)
		answer <- m
	}
}

// handle answers the methods of the connection itself, and calls the handler for the others. A
// panic becomes an internal error.
func (s *session) handle(ctx context.Context, r *Request, with *Exchange) (result json.RawMessage, failed *wire.Error) {
	defer func() {
		if p := recover(); p != nil {
			s.srv.cfg.Log.ErrorContext(ctx, "a request panicked", "method", r.Method, "panic", p)
			result, failed = nil, wire.Fail(
				wire.CodeInternal,
				"an error of the gateway; nothing is known of the outcome",
			)
		}
	}()
	switch {
	case r.Method == methodPing && !r.Modern:
		return json.RawMessage("{}"), nil
	case r.Method == methodInitialize && !r.Modern:
		return s.initialize(ctx, r)
	case r.Method == methodDiscover:
		return s.discover(ctx, r)
	case r.Modern && r.Method == methodListen:
		return s.listen(ctx, r, with)
	case r.Modern:
		return s.srv.cfg.Handler.Handle(ctx, r, with)
	}

	switch r.Method {
	case wire.MethodLevel:
		return s.setLevel(r)
	case methodSubscribe:
		return s.subscribe(ctx, r)
	case methodUnsubscribe:
		return s.unsubscribe(r)
	}

	return s.srv.cfg.Handler.Handle(ctx, r, with)
}
