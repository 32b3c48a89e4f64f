package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/sse"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/wire"
)

// errSession means that the server has ended the session and therefore refused the request.
var errSession = errors.New("the server has ended the session")

// errUnreadable means that a message of a stream can't be parsed. It may have been the answer.
var errUnreadable = errors.New("a message can't be read")

// mostResumes limits how many times in a row a broken stream is resumed without a new message.
const mostResumes = 5

// asking is one open HTTP request.
type asking struct {
	during
	w     *web
	id    wire.ID
	ctx   context.Context // ends when the answer is no longer needed
	event string          // the last one of its stream that has an id
}

// do makes a request. If the session has ended, it opens a new one and sends the request again,
// because it certainly did not run.
func (w *web) do(ctx context.Context, r Request) (Answer, error) {
	session := w.current()
	out, err := w.once(ctx, &r)
	if !errors.Is(err, errSession) {
		return out, err
	}
	if err := w.renew(ctx, session); err != nil {
		w.fail(err)
		return Answer{}, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return w.once(ctx, &r)
}

// once makes a request a single time. Errors before a byte was sent wrap ErrNotSent; after any
// later error the request may have run.
func (w *web) once(ctx context.Context, r *Request) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
	}
	a := &asking{during: duringOf(r), w: w, id: wire.Number(w.last.Add(1))}
	params, err := w.s.params(r, a.id, w.modern)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	m := wire.Message{ID: a.id, Method: r.Method, Params: params}
	body, err := m.Append(nil)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	var stop context.CancelFunc
	a.ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(w.ctx, stop)()
	defer context.AfterFunc(ctx, func() { a.abandon(stop) })()
	h := http.Header{}
	if w.modern {
		h = headers(r)
	}

	resp, err := w.send(a.ctx, http.MethodPost, body, h)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	return a.answer(resp, stop)
}

// abandon cancels a request at the server. A modern server notices the closed connection. A legacy
// one is notified and may still answer within the grace.
func (a *asking) abandon(stop context.CancelFunc) {
	if a.w.modern {
		stop()
		return
	}
	params, err := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Name("requestId").Verbatim([]byte(a.id.Text())) })
	ctx, done := context.WithTimeout(a.ctx, a.w.s.grace())
	defer done()
	if err == nil {
		err = a.w.tell(ctx, &wire.Message{Method: "notifications/cancelled", Params: params})
	}
	if err == nil {
		<-ctx.Done()
	}
	stop()
}

// answer reads the HTTP response. Some refusals prove that nothing ran.
func (a *asking) answer(resp *http.Response, stop context.CancelFunc) (Answer, error) {
	switch kind := kindOf(resp); {
	case resp.StatusCode == http.StatusUnauthorized:
		return Answer{}, fmt.Errorf("%w: %w: it answered %s", ErrNotSent, ErrSignIn, resp.Status)
	case resp.StatusCode == http.StatusForbidden && lacksScope(resp) != nil:
		return Answer{}, fmt.Errorf("%w: %w: it answered %s", ErrNotSent, lacksScope(resp), resp.Status)
	case provenRefusal(resp.StatusCode):
		return Answer{}, fmt.Errorf("%w: it answered %s", ErrNotSent, resp.Status)
	case resp.StatusCode == http.StatusNotFound && !a.w.modern && a.w.current() != "":
		return Answer{}, fmt.Errorf("%w: %w", ErrNotSent, errSession)
	case kind == "text/event-stream" && resp.StatusCode == http.StatusOK:
		return a.follow(resp.Body, stop)
	case kind == "application/json":
		return a.whole(resp)
	}

	return Answer{}, fmt.Errorf("%w: it answered %s, %q", ErrUnknown, resp.Status, kindOf(resp))
}

// lacksScope returns an error if a server refused the token because of its scopes (RFC 6750 section
// 3.1), and nil otherwise.
func lacksScope(resp *http.Response) error {
	c, _ := wire.ReadChallenge(resp.Header.Values("WWW-Authenticate"))
	if c.Error != wire.InsufficientScope {
		return nil
	}
	return &ScopeError{Scope: c.Scope}
}

// kindOf returns the media type of a response without its parameters.
func kindOf(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

// whole reads an answer that is a single JSON document.
func (a *asking) whole(resp *http.Response) (Answer, error) {
	most := wire.Limits().MaxBytes
	text, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return Answer{}, fmt.Errorf("%w: read the answer: %w", ErrUnknown, err)
	}
	m, bad := wire.Parse(text, wire.Limits())
	refused := resp.StatusCode != http.StatusOK && m.Error != nil && m.ID.IsZero()
	switch {
	case bad != nil:
		return Answer{}, fmt.Errorf(
			"%w: its answer can't be read (%s): %s",
			ErrUnknown,
			resp.Status,
			bad.Message,
		)
	case m.Kind() != wire.Response || m.ID.Key() != a.id.Key() && !refused:
		return Answer{}, fmt.Errorf("%w: it answered something else (%s)", ErrUnknown, resp.Status)
	}

	return a.w.settled(&m)
}

// legacyOnly reports whether a server that knows modern requests supports none of our modern
// versions, but a legacy one.
func legacyOnly(e *wire.Error) bool {
	return e.Code == wire.CodeUnsupportedVersion && onlyLegacy(e.Data, "supported")
}

// onlyLegacy reports whether a list of versions has no modern one, but a legacy one.
func onlyLegacy(object []byte, member string) bool {
	modern, legacy := false, false
	f := jsonmsg.Read(object, wire.Limits())
	for path, raw := range f.Elements(member, maxVersions) {
		version, _ := f.String(path, raw)
		modern = modern || wire.IsModern(version)
		legacy = legacy || wire.IsLegacy(version)
	}
	return legacy && !modern
}

// maxVersions bounds the versions that a server may name.
const maxVersions = 100

// settled converts a response to an answer. Errors about the form of a modern request prove that
// nothing ran.
func (w *web) settled(m *wire.Message) (Answer, error) {
	if m.Error == nil || !w.modern || !wire.ModernCode(m.Error.Code) || !w.opened && legacyOnly(m.Error) {
		return Answer{Result: m.Result, Error: m.Error}, nil
	}
	if m.Error.Code == wire.CodeUnsupportedVersion {
		w.fail(m.Error)
	}
	return Answer{Error: m.Error}, fmt.Errorf("%w: %w", ErrNotSent, m.Error)
}

// follow reads the stream that ends with the answer. A legacy stream that breaks is resumed; the
// request is never sent again.
func (a *asking) follow(body io.Reader, stop context.CancelFunc) (Answer, error) {
	for tries := 0; ; {
		before := a.event
		m, err := a.read(body, stop)
		if m != nil {
			return a.w.settled(m)
		}
		if a.event != before {
			tries = 0
		}
		if errors.Is(err, errUnreadable) {
			return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if tries++; a.event == "" || a.w.modern || tries > mostResumes {
			return Answer{}, fmt.Errorf("%w: the stream ended without an answer: %w", ErrUnknown, err)
		}

		_ = wait.Pause(a.ctx, backoff.Jitter(100*time.Millisecond, 5*time.Second, tries))
		resp, err := a.w.send(a.ctx, http.MethodGet, nil, http.Header{
			"Accept":        {"text/event-stream"},
			"Last-Event-Id": {a.event},
		})
		switch {
		case err != nil && a.ctx.Err() != nil:
			return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, a.ctx.Err())
		case err != nil:
			body = http.NoBody
			continue
		case resp.StatusCode != http.StatusOK:
			_ = resp.Body.Close()
			return Answer{}, fmt.Errorf(
				"%w: its stream broke, and then it answered %s",
				ErrUnknown,
				resp.Status,
			)
		}

		defer resp.Body.Close()
		body = resp.Body
	}
}

// read reads one connection until the answer arrives.
func (a *asking) read(body io.Reader, stop context.CancelFunc) (*wire.Message, error) {
	watchdog := time.AfterFunc(a.w.s.cfg.Idle, stop)
	defer watchdog.Stop()
	alive := func() { watchdog.Reset(a.w.s.cfg.Idle) }
	for e, err := range sse.Read(body, wire.Limits().MaxBytes, alive) {
		if err != nil {
			return nil, err
		}
		if e.ID != "" {
			a.event = e.ID
		}
		if len(e.Data) == 0 {
			continue
		}
		m, bad := wire.Parse(e.Data, wire.Limits())
		switch {
		case bad != nil:
			return nil, fmt.Errorf("%w: %s", errUnreadable, bad.Message)
		case m.Kind() == wire.Response && m.ID.Key() == a.id.Key():
			return &m, nil
		}

		a.take(&m)
	}

	return nil, io.ErrUnexpectedEOF
}

// take handles a message that comes before the answer.
func (a *asking) take(m *wire.Message) {
	switch {
	case m.Kind() == wire.Request && !a.w.modern:
		a.w.answering(func() {
			if err := a.w.tell(a.ctx, a.asked(a.ctx, m)); err != nil {
				a.w.s.cfg.Log.Warn("a server can't be answered", "server", a.w.s.cfg.Alias, "error", err)
			}
		})
	case m.Kind() != wire.Notification:
	case m.Method == "notifications/progress":
		if p, bad := wire.ReadProgress(m.Params); bad == nil && p.Token.Key() == a.id.Key() {
			a.report(m.Params, p)
		}
	case m.Method == "notifications/message":
		a.log(m.Params)
	default:
		a.w.news.notified(m)
	}
}
