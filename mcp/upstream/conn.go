package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// conn is a conversation in which one stream carries all messages of the server, with its open
// requests.
type conn struct {
	s       *Server
	out     carrier
	turn    chan struct{}             // full while a request is written to a pipe; nil: nothing waits there
	quit    func(grace time.Duration) // ends the server, or the way to it
	program *process                  // nil: the server is no program of ours
	modern  bool
	peer    Peer
	gone    chan struct{} // closed when nothing more comes

	questions chan struct{} // of the server, that are being answered

	mu   sync.Mutex
	last int64
	open map[string]*pending // by the keys of ids
	err  error               // why nothing more comes
	news *news
}

// carrier sends messages to a server.
type carrier interface{ Write(m *wire.Message) error }

// pending is a request that waits for its answer.
type pending struct {
	answer chan answered
	ctx    context.Context // of the caller
	during
}

type answered struct {
	m   *wire.Message
	err error
}

// start starts the server's process.
func (s *Server) start() (*conn, error) {
	p, err := startProcess(&s.cfg)
	if err != nil {
		return nil, err
	}
	c := s.newConn(wire.NewPipe(p.in), p.stop)
	c.program = p
	c.turn = make(chan struct{}, 1)
	go c.read(p.out)
	return c, nil
}

func (s *Server) newConn(out carrier, quit func(time.Duration)) *conn {
	c := &conn{
		s:    s,
		out:  out,
		quit: quit,
		gone: make(chan struct{}),

		questions: make(chan struct{}, mostQuestions),

		open: map[string]*pending{},
	}
	c.news = s.newNews(c.gone)
	return c
}

// read handles messages of the server until its pipe ends or a message is too long.
func (c *conn) read(out io.Reader) {
	lines := wire.NewLines(out, wire.Limits().MaxBytes).Strict()
	var err error
	for err == nil {
		var line []byte
		if line, err = lines.Next(); err == nil {
			c.take(line)
		}
	}

	switch {
	case errors.Is(err, io.EOF):
		err = c.program.hasEnded()
	case errors.Is(err, wire.ErrTooLong): // which request it answers is not known
		err = fmt.Errorf("a message of the server is larger than %d MiB", wire.Limits().MaxBytes>>20)
	}
	if p, is := out.(io.Closer); is {
		_ = p.Close() // it says nothing more: its program is ended
	}
	c.end(err)
}

// end fails the open requests, because no more answers will arrive.
func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for key, p := range c.open {
		delete(c.open, key)
		p.answer <- answered{err: err}
	}
	close(c.gone)
}

// cause returns why the conversation has ended, or nil while it is open.
func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// take handles one message of the server. If a message that belongs to a request can't be parsed,
// the request fails as one that may have run.
func (c *conn) take(line []byte) {
	m, bad := wire.Parse(line, wire.Limits())
	switch {
	case bad != nil && (m.ID.IsZero() || m.Method != ""):
		c.s.cfg.Log.Warn("a message can't be read", "server", c.s.cfg.Alias, "reason", bad.Message)
	case bad != nil:
		c.settle(m.ID, answered{err: fmt.Errorf("its answer can't be read: %s", bad.Message)})
	case m.Kind() == wire.Response:
		c.settle(m.ID, answered{m: &m})
	case m.Kind() == wire.Notification:
		c.notified(&m)
	default:
		c.s.aside(c.questions, func() { c.asked(&m) })
	}
}

// settle delivers the answer to a request. It drops the answer if no request waits for it.
func (c *conn) settle(id wire.ID, a answered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.open[id.Key()]; p != nil {
		delete(c.open, id.Key())
		p.answer <- a
	}
}

// mostQuestions limits how many requests of a server are answered at once. Further ones are treated
// as a flood and get no answer.
const mostQuestions = 64

// aside answers a question in a goroutine of its own.
func (s *Server) aside(questions chan struct{}, answer func()) {
	select {
	case questions <- struct{}{}:
		go func() {
			defer func() { <-questions }()
			answer()
		}()
	default:
		s.cfg.Log.Debug("a server asks too much at once", "server", s.cfg.Alias)
	}
}

// asked answers a request of the server. The request is assigned to the open request that takes
// questions. If there are several, it can't be assigned and is refused.
func (c *conn) asked(m *wire.Message) {
	var of *pending
	c.mu.Lock()
	for _, p := range c.open {
		switch {
		case p.ask == nil || c.modern:
		case of == nil:
			of = p
		default:
			of = &pending{ctx: context.Background()}
		}
	}

	c.mu.Unlock()

	var alone during
	if !c.modern {
		alone.ask = c.s.cfg.Ask
	}
	answer := alone.asked(context.Background(), m)
	if of != nil {
		answer = of.asked(of.ctx, m)
	}
	if err := c.out.Write(answer); err != nil {
		c.s.cfg.Log.Warn("a server can't be answered", "server", c.s.cfg.Alias, "error", err)
	}
}

// notified handles a notification: progress, logs and changed lists.
func (c *conn) notified(m *wire.Message) {
	switch m.Method {
	case "notifications/progress":
		c.progress(m)
	case "notifications/message":
		c.logged(m)
	default:
		c.news.notified(m)
	}
}

func (c *conn) progress(m *wire.Message) {
	p, bad := wire.ReadProgress(m.Params)
	if bad != nil {
		return
	}
	c.mu.Lock()
	open := c.open[p.Token.Key()] // our tokens are our ids
	c.mu.Unlock()
	if open != nil {
		open.report(m.Params, p)
	}
}

// logged handles a log message. It is assigned to the only open request that makes the server work.
// If there are several, it is dropped, because it may be about another caller's request.
func (c *conn) logged(m *wire.Message) {
	var of []*pending
	c.mu.Lock()
	for _, p := range c.open {
		if p.work {
			of = append(of, p)
		}
	}
	c.mu.Unlock()
	if len(of) == 1 {
		of[0].log(m.Params)
	}
}

// begin allocates an id and registers the request that waits for its answer.
func (c *conn) begin(ctx context.Context, r *Request) (wire.ID, *pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return wire.ID{}, nil, fmt.Errorf("%w: %w", ErrNotSent, c.err)
	}
	c.last++
	id := wire.Number(c.last)
	p := &pending{answer: make(chan answered, 1), ctx: ctx, during: duringOf(r)}
	c.open[id.Key()] = p
	return id, p, nil
}

// whileOpen returns a context that also ends with the request's own context. It has ended already
// if the request is no longer open.
func (c *conn) whileOpen(ctx context.Context, id wire.ID) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	p := c.open[id.Key()]
	c.mu.Unlock()
	if p == nil {
		stop()
		return ctx, stop
	}
	apart := context.AfterFunc(p.ctx, stop)
	return ctx, func() {
		apart()
		stop()
	}
}

// forget removes a request whose answer is no longer needed.
func (c *conn) forget(id wire.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, id.Key())
}

// do makes a request, and waits for the answer.
func (c *conn) do(ctx context.Context, r Request) (Answer, error) {
	id, p, err := c.begin(ctx, &r)
	if err != nil {
		return Answer{}, err
	}
	defer c.forget(id)
	params, err := c.s.params(&r, id, c.modern)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if err := c.write(ctx, &wire.Message{ID: id, Method: r.Method, Params: params}); err != nil {
		return Answer{}, unsure(err)
	}
	select {
	case a := <-p.answer:
		return a.result()
	case <-ctx.Done():
	}

	return c.abandon(ctx, id, p)
}

// write sends a message. A server that doesn't read its pipe can't delay the caller beyond ctx: a
// message whose writing hasn't begun by then was not sent.
func (c *conn) write(ctx context.Context, m *wire.Message) error {
	if c.turn == nil {
		return c.out.Write(m)
	}
	select {
	case c.turn <- struct{}{}:
	case <-c.gone:
		return fmt.Errorf("%w: %w", ErrNotSent, c.cause())
	case <-ctx.Done():
		return fmt.Errorf("%w: the server takes nothing: %w", ErrNotSent, context.Cause(ctx))
	}

	written := make(chan error, 1)
	go func() {
		err := c.out.Write(m)
		<-c.turn
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the server takes nothing: %w", context.Cause(ctx))
	}
}

// abandon cancels a request at the server, and returns its answer if it arrives within the grace.
func (c *conn) abandon(ctx context.Context, id wire.ID, p *pending) (Answer, error) {
	params, err := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Name("requestId").Verbatim([]byte(id.Text())) })
	if err == nil {
		limit, done := context.WithTimeout(context.WithoutCancel(ctx), c.s.grace())
		defer done()
		err = c.write(limit, &wire.Message{Method: "notifications/cancelled", Params: params})
	}
	if err == nil {
		soon := time.NewTimer(c.s.grace())
		defer soon.Stop()
		select {
		case a := <-p.answer:
			return a.result()
		case <-soon.C:
		}
	}

	return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
}

func (a answered) result() (Answer, error) {
	if a.err != nil {
		return Answer{}, unsure(a.err)
	}
	return Answer{Result: a.m.Result, Error: a.m.Error}, nil
}

// unsure wraps an error after which a request may have run. ErrNotSent is returned unchanged.
func unsure(err error) error {
	if errors.Is(err, ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

func (s *Server) info() []byte {
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("name", "assent")
		w.Member("version", s.cfg.Version)
	})
	if err != nil {
		return []byte("{}")
	}
	return text
}

func (c *conn) about() Peer { return c.peer }

func (c *conn) ended() <-chan struct{} { return c.gone }

func (c *conn) lapsed() <-chan struct{} { return c.gone }

func (c *conn) anew() { c.news.all() }

// close ends the conversation, and the process of the server if it has one.
func (c *conn) close() {
	c.quit(c.s.grace())
	<-c.gone
}
