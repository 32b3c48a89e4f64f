package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/wire"
)

// openWeb determines the era of a server. Only an answer that identifies the era counts; a refusal,
// a server error or silence does not.
func (s *Server) openWeb(ctx context.Context) (link, error) {
	w := &web{
		s:      s,
		gone:   make(chan struct{}),
		forgot: make(chan struct{}),
		asking: make(chan struct{}, mostQuestions),
	}
	w.ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.news = s.newNews(w.gone)
	opening, done := context.WithTimeout(ctx, s.cfg.Start)
	defer done()
	err := w.discover(opening)
	if errors.Is(err, errEra) && s.cfg.Era != Modern {
		if err = w.initialize(opening); errors.Is(err, errEra) {
			return w.orOld(opening, err)
		}
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	w.opened = true
	w.beside(w.listen)
	return w, nil
}

// orOld tries the transport of 2024-11-05 after a server refused messages at its address.
func (w *web) orOld(opening context.Context, why error) (link, error) {
	c, err := w.openOld(opening)
	if err != nil {
		w.stop()
		return nil, fmt.Errorf("%w; by HTTP+SSE: %w", why, err)
	}
	return c, nil
}

// discover asks a modern server what it offers.
func (w *web) discover(ctx context.Context) error {
	if w.s.cfg.Era == Legacy {
		return errEra
	}
	w.modern, w.peer.Version = true, wire.V20260728
	out, err := w.first(ctx, "server/discover", nil)
	switch {
	case err == nil && out.Error == nil && !onlyLegacy(out.Result, "supportedVersions"):
		w.peer = modernPeer(out)
		return nil
	case err == nil && w.s.cfg.Era == Auto, errors.Is(err, errEra) && w.s.cfg.Era == Auto:
		w.modern, w.peer.Version = false, ""
		return errEra
	case err == nil && out.Error != nil:
		return fmt.Errorf("the server can't be discovered: %w", out.Error)
	case err == nil:
		return errEra
	}

	return fmt.Errorf("the server can't be discovered: %w", err)
}

// first makes a request that opens the conversation. It returns errEra if the server refused the
// request as a whole.
func (w *web) first(ctx context.Context, method string, params []byte) (Answer, error) {
	r := Request{Method: method, Params: params}
	a := &asking{during: duringOf(&r), w: w, id: wire.Number(w.last.Add(1))}
	params, err := w.s.params(&r, a.id, w.modern)
	if err != nil {
		return Answer{}, err
	}
	m := wire.Message{ID: a.id, Method: method, Params: params}
	body, err := m.Append(nil)
	if err != nil {
		return Answer{}, err
	}
	var stop context.CancelFunc
	a.ctx, stop = context.WithCancel(ctx)
	defer stop()
	h := http.Header{}
	if w.modern {
		h = headers(&r)
	}

	resp, err := w.send(a.ctx, http.MethodPost, body, h)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	if method == "initialize" {
		w.setSession(resp.Header.Get("Mcp-Session-Id"))
	}
	if resp.StatusCode >= http.StatusInternalServerError {
		return Answer{}, fmt.Errorf("it answered %s", resp.Status)
	}
	out, err := a.answer(resp, stop)
	if err != nil && out.Error == nil && otherEra(resp.StatusCode) {
		return out, fmt.Errorf("%w: it answered %s", errEra, resp.Status)
	}
	return out, err
}

// otherEra reports whether a server that doesn't know such requests may answer with a status.
func otherEra(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// initialize opens a legacy session.
func (w *web) initialize(ctx context.Context) error {
	w.setSession("")
	params, err := w.s.initializeParams()
	if err != nil {
		return err
	}
	out, err := w.first(ctx, "initialize", params)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	about, err := legacyPeer(out)
	if err != nil {
		return err
	}
	if w.peer.Version != "" && w.peer.Version != about.Version {
		return fmt.Errorf("initialize: the server spoke %s, and now %s", w.peer.Version, about.Version)
	}

	if w.peer.Version == "" {
		w.peer = about
	}
	return w.tell(ctx, &wire.Message{Method: "notifications/initialized"})
}

// renew replaces a session that has ended. If several requests notice the end, only one session is
// opened.
func (w *web) renew(ctx context.Context, ended string) error {
	w.renewing.Lock()
	defer w.renewing.Unlock()
	if w.current() != ended {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, w.s.cfg.Start)
	defer done()
	if err := w.initialize(ctx); err != nil {
		return err
	}
	w.lapse()
	w.news.all()
	return nil
}

// listen receives messages that belong to no request, if the server offers them, until the
// conversation ends.
func (w *web) listen() {
	for fails := 0; w.ctx.Err() == nil; {
		began := time.Now()
		if !w.hear() {
			return
		}
		if time.Since(began) > time.Minute {
			fails = 0
		}
		fails++
		_ = wait.Pause(w.ctx, backoff.Jitter(200*time.Millisecond, 30*time.Second, fails))
		if w.ctx.Err() == nil {
			w.news.all() // what came meanwhile was missed
		}
	}
}

// hear reads one connection of such messages. It returns false if the server offers none.
func (w *web) hear() bool {
	r := Request{Method: methodListen, Params: wanted(), Ask: w.s.cfg.Ask}
	a := &asking{during: duringOf(&r), w: w, id: wire.Number(w.last.Add(1))}
	var stop context.CancelFunc
	a.ctx, stop = context.WithCancel(w.ctx)
	defer stop()
	resp, err := w.hearing(a, &r)
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode >= http.StatusInternalServerError
	}
	if resp.Header.Get("Content-Type") == "application/json" {
		return false
	}
	m, err := a.read(resp.Body, stop)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && w.ctx.Err() == nil {
		w.s.cfg.Log.Info("the server's news broke off", "server", w.s.cfg.Alias, "error", err)
	}
	return m == nil || m.Error == nil
}

// hearing opens the stream of such messages.
func (w *web) hearing(a *asking, r *Request) (*http.Response, error) {
	if !w.modern {
		return w.send(a.ctx, http.MethodGet, nil, http.Header{"Accept": {"text/event-stream"}})
	}
	params, err := w.s.params(r, a.id, true)
	if err != nil {
		return nil, err
	}
	m := wire.Message{ID: a.id, Method: r.Method, Params: params}
	body, err := m.Append(nil)
	if err != nil {
		return nil, err
	}
	return w.send(a.ctx, http.MethodPost, body, headers(r))
}

// wanted returns the params of subscriptions/listen.
func wanted() []byte {
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name("notifications").Raw([]byte(
			`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`,
		))
	})
	if err != nil {
		return nil
	}
	return text
}
