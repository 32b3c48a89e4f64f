package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/assent-dev/assent/internal/sse"
	"github.com/assent-dev/assent/mcp/wire"
)

// old sends messages by HTTP+SSE, the transport of 2024-11-05. One stream carries all messages of
// the server, and its first event is the address for our messages.
type old struct {
	c     *conn
	web   *web       // makes the requests
	ready chan error // what came of the first event
}

// openOld opens the stream and a conversation on it.
func (w *web) openOld(opening context.Context) (*conn, error) {
	o := &old{web: w, ready: make(chan error, 1)}
	o.c = w.s.newConn(o, o.quit)
	defer context.AfterFunc(opening, w.stop)()
	body, err := o.stream()
	if err != nil {
		return nil, err
	}
	w.beside(func() {
		err := o.read(body)
		_ = body.Close()
		o.c.end(fmt.Errorf("the server's stream has ended: %w", err))
		o.settle(err)
	})
	if err = <-o.ready; err == nil {
		err = o.c.initialize(opening)
	}
	if err != nil {
		o.quit(0)
		return nil, err
	}
	return o.c, nil
}

// stream opens the stream.
func (o *old) stream() (io.ReadCloser, error) {
	resp, err := o.web.send(o.web.ctx, http.MethodGet, nil, http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || kindOf(resp) != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("it answered %s, %q", resp.Status, kindOf(resp))
	}
	return resp.Body, nil
}

// settle reports the result of the first event, once.
func (o *old) settle(err error) {
	select {
	case o.ready <- err:
	default:
	}
}

// read handles the events of the stream until it ends.
func (o *old) read(body io.Reader) error {
	half := o.web.s.cfg.Idle / 2
	watch := time.AfterFunc(half, o.ping)
	defer watch.Stop()
	for e, err := range sse.Read(body, wire.Limits().MaxBytes, func() { watch.Reset(half) }) {
		switch {
		case err != nil:
			return err
		case e.Kind == "" && len(e.Data) == 0: // a comment
		case o.web.posts == "":
			if o.web.posts, err = o.web.endpoint(&e); err != nil {
				return err
			}
			o.settle(nil)
		case e.Kind == "" || e.Kind == "message":
			o.c.take(e.Data)
		}
	}

	return io.ErrUnexpectedEOF
}

// errEndpoint means that the first event of a stream is not the expected one.
var errEndpoint = errors.New("expected the event endpoint, with an address of the server's own origin")

// endpoint returns the address for our messages. It must have the same origin, otherwise another
// server would get the messages and the token.
func (w *web) endpoint(e *sse.Event) (string, error) {
	from, err := url.Parse(w.s.cfg.URL)
	if err != nil || e.Kind != "endpoint" {
		return "", errEndpoint
	}
	to, err := from.Parse(string(e.Data))
	if err != nil {
		return "", errEndpoint
	}
	if err := w.s.http.Check(to.String()); err != nil {
		return "", fmt.Errorf("%w: %w", errEndpoint, err)
	}
	return to.String(), nil
}

// ping checks a server that has been silent for long. If it doesn't answer, the stream is ended.
func (o *old) ping() {
	ctx, done := context.WithTimeout(o.web.ctx, o.web.s.cfg.Idle/2)
	defer done()
	if _, err := o.c.probe(ctx, "ping", nil); err != nil {
		o.web.stop()
	}
}

// Write sends a message. For a request it doesn't wait for the HTTP response: the answer comes on
// the stream, and may come first. Sending takes at most as long as the caller of the request waits.
func (o *old) Write(m *wire.Message) error {
	if m.Kind() != wire.Request {
		ctx, done := context.WithTimeout(o.web.ctx, o.web.s.cfg.Start)
		defer done()
		return o.web.tell(ctx, m)
	}
	o.web.beside(func() {
		ctx, done := o.c.whileOpen(o.web.ctx, m.ID)
		defer done()
		if err := o.web.tell(ctx, m); err != nil {
			o.c.settle(m.ID, answered{err: err})
		}
	})
	return nil
}

// quit ends the stream, which is the only way to end such a session.
func (o *old) quit(time.Duration) {
	o.web.fail(errOver)
	o.web.stop()
	o.web.rest.Wait()
}
