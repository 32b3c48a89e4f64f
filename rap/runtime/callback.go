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
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	readWithin = 30 * time.Second // limit for receiving a callback's body
	keepWithin = 30 * time.Second // limit for storing it
)

// callbackHandler stores the messages that tools post: events, views, questions and results.
type callbackHandler struct {
	*base
	listings  *listings
	signIns   *signInKeeper
	newEvents watchers      // notified with the key of a call that has new events
	bodies    chan struct{} // like toolServer.bodies, for servers that are no longer registered
}

// ServeHTTP handles callbacks: POST {CallbackURL}/{token}. The token, which is looked up by its
// hash, identifies one call of one tool server; the group and the id in the body must be that
// call's. It responds 200 if the message is stored, now or before, 4xx if it can't be accepted,
// and 5xx if the tool may send it again.
func (r *Runtime) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	err := r.handler.callback(w, req)
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
	http.Error(w, http.StatusText(no.code), no.code) // no details: the sender may be anyone
}

func (h *callbackHandler) callback(w http.ResponseWriter, req *http.Request) error {
	switch {
	case req.Method != http.MethodPost:
		return &refusal{http.StatusMethodNotAllowed, "not a POST"}
	case !isJSON(req.Header.Get("Content-Type")):
		return &refusal{http.StatusUnsupportedMediaType, "not application/json"}
	}

	c, err := h.callByToken(req.Context(), path.Base(req.URL.Path))
	if err != nil {
		return err
	}
	leave, err := h.acquireSlot(req.Context(), c)
	if err != nil {
		return err
	}
	defer leave()
	body, err := h.body(w, req)
	if err != nil {
		return h.withCallName(c, err)
	}
	m, err := wire.ParseCallback(body)
	if err != nil {
		return h.withCallName(c, &refusal{http.StatusBadRequest, plainError(err)})
	}
	// Store the whole message even if the client disconnects.
	ctx, done := context.WithTimeout(context.WithoutCancel(req.Context()), keepWithin)
	defer done()
	return h.withCallName(c, h.take(ctx, c, m))
}

// maxBodies limits the callbacks of one tool server in memory. More wait, without affecting
// other servers.
const maxBodies = 32

// acquireSlot waits until fewer than maxBodies callbacks of the call's tool server are in
// memory. The body is not read before.
func (h *callbackHandler) acquireSlot(ctx context.Context, c *call) (release func(), err error) {
	bodies := h.bodies
	if s := h.servers[c.Part.Server]; s != nil {
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

// withCallName adds the call's name to the reason of a refusal, for the log.
func (h *callbackHandler) withCallName(c *call, err error) error {
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

// callByToken returns the call that a token belongs to.
func (h *callbackHandler) callByToken(ctx context.Context, token string) (*call, error) {
	c, err := h.engine.ByAlias(ctx, durable.Hash(token))
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return nil, &refusal{http.StatusNotFound, "no such callback URL"}
	case err != nil:
		return nil, err
	case h.expired(c.Expires):
		return nil, &refusal{http.StatusNotFound, "the callback URL has expired"}
	}

	return c, nil
}

func (h *callbackHandler) body(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	// If the server does not support deadlines, its own timeouts apply.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, h.cfg.MaxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "the body is too long"}
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the body did not arrive"}
	}
	return body, nil
}

// take handles a message. Messages of one thread are handled one at a time.
func (h *callbackHandler) take(ctx context.Context, c *call, m wire.Callback) error {
	_, isView := m.(*wire.View) // a view has no id: the URL identifies the call
	switch {
	case m.Group() != c.Part.Wire.Group:
		return &refusal{http.StatusNotFound, "the group is not this call's"}
	case !isView && m.Call() != c.Part.Wire.ID:
		return &refusal{http.StatusNotFound, "the id is not this call's"}
	}

	unlock, err := h.threads.lock(ctx, names.ThreadOf(c.Key))
	if err != nil {
		return err
	}
	defer unlock()
	if c, err = h.engine.Get(ctx, c.Key); err != nil {
		return err
	}
	switch {
	case c.Part.Closed:
		return h.takeLate(c, m)
	case !wasSent(c):
		return &refusal{http.StatusNotFound, "the call has not left"}
	}

	return h.takeMessage(ctx, c, m)
}

func (h *callbackHandler) takeMessage(ctx context.Context, c *call, m wire.Callback) error {
	switch m := m.(type) {
	case *wire.Result:
		return h.takeResult(ctx, c, m)
	case *wire.Choice:
		return h.takeChoice(ctx, c, m)
	case *wire.OAuth:
		return h.signIns.takeSignIn(ctx, c, m)
	case *wire.Event:
		return h.takeEvent(ctx, c, m)
	case *wire.View:
		return h.takeView(ctx, c, m)
	}

	return &refusal{http.StatusBadRequest, "no known message"}
}

// takeLate responds to messages for a closed thread. A late result is not an error of the tool.
func (h *callbackHandler) takeLate(c *call, m wire.Callback) error {
	if _, ok := m.(*wire.Result); ok {
		h.log.Info("a late result was discarded", "call", callName(c.Key))
		return nil
	}

	return &refusal{http.StatusGone, "the thread was closed"}
}

// takeResult ends a call, once. Later results are accepted and discarded.
func (h *callbackHandler) takeResult(ctx context.Context, c *call, m *wire.Result) error {
	_, err := h.engine.Change(ctx, c.Key, func(c *call) error {
		if c.Over() {
			return durable.ErrUnchanged
		}
		outcome := outcomeOf(m)
		c.Part.Told.Outcome = &outcome
		c.Part.Told.Failed = failed(&outcome)
		c.Part.Told.Subscription = m.Subscription
		c.Part.Live = m.Subscription
		h.engine.Finish(c, durable.Ending{})
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		why := string(c.Part.Told.Why)
		h.log.Info("a repeated or late result was discarded", "call", callName(c.Key), "ended", why)
		return nil
	}

	return err
}
