package runtime

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

// readWithin is how long a callback's body may take to arrive.
const readWithin = 30 * time.Second

// ServeHTTP takes callbacks: POST {CallbackURL}/{token}. The token is found by its hash and names one call of one tool server; what the body says
// of group and id must be the same (C7–C10, C19). 200 says that it is kept, or was before (C6, C11); 4xx that it never will be; 5xx that it may be
// sent again.
func (r *Runtime) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	err := r.callback(w, req)
	no, isRefusal := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
		return
	case !isRefusal:
		r.log.Error("a callback could not be kept", "error", plainError(err))
		no = &refusal{code: http.StatusServiceUnavailable}
	default:
		r.log.Warn("a callback was refused", "status", no.code, "reason", plainError(no))
	}
	if no.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	http.Error(w, http.StatusText(no.code), no.code) // the tool learns no more: it may be anybody
}

func (r *Runtime) callback(w http.ResponseWriter, req *http.Request) error {
	switch {
	case req.Method != http.MethodPost:
		return &refusal{http.StatusMethodNotAllowed, "not a POST"}
	case !isJSON(req.Header.Get("Content-Type")):
		return &refusal{http.StatusUnsupportedMediaType, "not application/json"}
	}
	c, err := r.called(req.Context(), path.Base(req.URL.Path))
	if err != nil {
		return err
	}
	leave, err := r.room(req.Context(), c)
	if err != nil {
		return err
	}
	defer leave()
	body, err := r.body(w, req)
	if err != nil {
		return r.because(c, err)
	}
	m, err := wire.ParseCallback(body)
	if err != nil {
		return r.because(c, &refusal{http.StatusBadRequest, plainError(err)})
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(req.Context()), storeWithin) // what arrived is kept whole, whoever hangs up
	defer done()
	return r.because(c, r.take(ctx, c, m))
}

// maxBodies is how many callbacks of one tool server are in memory at the same time. More wait, outside of the way of other servers.
const maxBodies = 32

// room waits for a place among the callbacks of a call's tool server. Nothing of the body is read before.
func (r *Runtime) room(ctx context.Context, c *outCall) (leave func(), err error) {
	bodies := r.bodies
	if s := r.servers[c.Server]; s != nil {
		bodies = s.bodies
	}
	t := time.NewTimer(readWithin)
	defer t.Stop()
	select {
	case bodies <- struct{}{}:
		return func() { <-bodies }, nil
	case <-ctx.Done():
	case <-t.C:
	}
	return nil, &refusal{http.StatusServiceUnavailable, "too many callbacks of the tool server come at once"}
}

// because says in the log which call a refusal is about.
func (r *Runtime) because(c *outCall, err error) error {
	if no, ok := errors.AsType[*refusal](err); ok {
		return &refusal{no.code, no.reason + " (call " + callName(c.Key) + ")"}
	}
	return err
}

func isJSON(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// called finds the call of a token.
func (r *Runtime) called(ctx context.Context, token string) (*outCall, error) {
	d, err := r.calls.ByAlias(ctx, kept.Hash(token))
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, &refusal{http.StatusNotFound, "no such callback URL"}
	case err != nil:
		return nil, err
	case r.gone(d.Expires):
		return nil, &refusal{http.StatusNotFound, "the callback URL has expired"}
	}
	return &d.Body, nil
}

func (r *Runtime) body(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin)) // where the server can't, its own limits hold
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, r.cfg.MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "the body is too long"}
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the body did not arrive"}
	}
	return body, nil
}

// take handles a message under the lock of its thread: one after the other (C12).
func (r *Runtime) take(ctx context.Context, c *outCall, m wire.Callback) error {
	_, isView := m.(*wire.View) // has no id: its URL says whose it is
	switch {
	case !c.owned():
		r.kick(c.Key, false)
		return r.takeLate(c, m)
	case m.Group() != c.Wire.Group:
		return &refusal{http.StatusNotFound, "the group is not this call's"}
	case !isView && m.Call() != c.Wire.ID:
		return &refusal{http.StatusNotFound, "the id is not this call's"}
	}
	unlock, err := r.threads.lock(ctx, names.ThreadOf(c.Key))
	if err != nil {
		return err
	}
	defer unlock()
	d, err := r.calls.Get(ctx, c.Key)
	if err != nil {
		return err
	}
	c = &d.Body
	switch {
	case c.Closed:
		return r.takeLate(c, m)
	case !c.left():
		return &refusal{http.StatusNotFound, "the call has not left"}
	}
	return r.takeMessage(ctx, c, m)
}

func (r *Runtime) takeMessage(ctx context.Context, c *outCall, m wire.Callback) error {
	switch m := m.(type) {
	case *wire.Result:
		return r.takeResult(ctx, c, m)
	case *wire.Choice:
		return r.takeChoice(ctx, c, m)
	case *wire.OAuth:
		return r.takeSignIn(ctx, c, m)
	case *wire.Event:
		return r.takeEvent(ctx, c, m)
	case *wire.View:
		return r.takeView(ctx, c, m)
	}
	return &refusal{http.StatusBadRequest, "no known message"}
}

// takeLate answers messages of which nobody hears any more: a late result is no mistake of its tool (C15).
func (r *Runtime) takeLate(c *outCall, m wire.Callback) error {
	if _, ok := m.(*wire.Result); ok {
		r.log.Info("a late result was discarded", "call", callName(c.Key))
		return nil
	}
	return &refusal{http.StatusGone, "the thread was closed, or nobody knows who made the call"}
}

// takeResult ends a call, once. Later ones are received and discarded (C8, C11, C15, R30).
func (r *Runtime) takeResult(ctx context.Context, c *outCall, m *wire.Result) error {
	now, err := r.updateLocked(ctx, c.Key, func(c *outCall) error {
		if c.State == CallDone {
			return errMoved
		}
		c.finish(r.now(), outcomeOf(m), "")
		c.Told.Subscription, c.Live = m.Subscription, m.Subscription
		return nil
	})
	switch {
	case errors.Is(err, errMoved):
		r.log.Info("a repeated or late result was discarded", "call", callName(c.Key), "ended", string(c.Told.Why))
		return nil
	case err != nil:
		return err
	}
	r.ended(ctx, now)
	return nil
}

// takeSignIn keeps where the user is to sign in. Nothing is sent back; the call stays pending.
func (r *Runtime) takeSignIn(ctx context.Context, c *outCall, m *wire.OAuth) error {
	_, err := r.updateLocked(ctx, c.Key, func(c *outCall) error {
		if c.State == CallDone {
			return &refusal{http.StatusGone, "the call has ended"}
		}
		c.heard(r.now())
		c.Told.SignIn = m.AuthURL
		return nil
	})
	return err
}
