package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/wire"
)

// web is a conversation by streamable HTTP.
type web struct {
	opened bool // the era is known
	s      *Server
	modern bool
	peer   Peer
	last   atomic.Int64
	gone   chan struct{} // closed when the conversation is over
	news   *news
	asking chan struct{}  // questions of the server that are being answered
	rest   sync.WaitGroup // goroutines that run in addition to requests
	ctx    context.Context
	stop   context.CancelFunc

	renewing sync.Mutex // held while a session is opened
	mu       sync.Mutex
	session  string
	forgot   chan struct{} // closed when the session is another one
	posts    string        // URL for messages; empty: the server's URL
	err      error         // why it is over
}

// errOver means that this side ended the conversation.
var errOver = errors.New("the conversation has ended")

func (w *web) about() Peer { return w.peer }

func (w *web) ended() <-chan struct{} { return w.gone }

func (w *web) lapsed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forgot
}

// lapse signals that subscriptions of an earlier session are no longer valid.
func (w *web) lapse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.forgot)
	w.forgot = make(chan struct{})
}

func (w *web) anew() { w.news.all() }

// beside runs a function in a goroutine, unless the conversation is over. close waits for all of
// them.
func (w *web) beside(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.rest.Go(do)
	}
}

// answering answers a question of the server in the background, unless there are too many.
func (w *web) answering(do func()) {
	select {
	case w.asking <- struct{}{}:
		w.beside(func() {
			defer func() { <-w.asking }()
			do()
		})
	default:
	}
}

func (w *web) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// fail ends the conversation. The next connection determines the server's era again.
func (w *web) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		close(w.gone)
	}
}

// close ends the conversation, and its session if there is one.
func (w *web) close() {
	w.fail(errOver)
	w.stop()
	w.rest.Wait()
	if session := w.current(); session != "" {
		ctx, stop := context.WithTimeout(context.Background(), w.s.grace())
		defer stop()
		if resp, err := w.send(ctx, http.MethodDelete, nil, http.Header{}); err == nil {
			_ = resp.Body.Close()
		}
	}
}

func (w *web) current() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

func (w *web) setSession(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session = session
}

// send makes one HTTP request. If its token is refused, the token is renewed and the request sent
// again, once: a request that was refused because of its token did not run. Its errors wrap
// ErrNotSent or ErrUnknown.
func (w *web) send(ctx context.Context, method string, body []byte, header http.Header) (*http.Response, error) {
	token, err := w.token(ctx, "")
	if err != nil {
		return nil, err
	}
	resp, err := w.sendWith(ctx, token, method, body, header)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || token == "" {
		return resp, err
	}
	renewed, err := w.token(ctx, token)
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	if renewed == token {
		return resp, nil
	}
	_ = resp.Body.Close()
	return w.sendWith(ctx, renewed, method, body, header)
}

// token returns the token for a request. It is empty if none is configured.
func (w *web) token(ctx context.Context, refused string) (string, error) {
	if w.s.cfg.Token == nil {
		return "", nil
	}
	token, err := w.s.cfg.Token(ctx, refused)
	if err != nil {
		return "", fmt.Errorf("%w: the token can't be fetched: %w", ErrNotSent, err)
	}
	return token, nil
}

func (w *web) sendWith(
	ctx context.Context, token, method string, body []byte, header http.Header,
) (*http.Response, error) {
	r, err := w.request(ctx, token, method, body, header)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	resp, err := w.s.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sentOrNot(err), err)
	}
	return resp, nil
}

// sentOrNot classifies an HTTP error: without a connection nothing was sent.
func sentOrNot(err error) error {
	op, is := errors.AsType[*net.OpError](err)
	_, refused := errors.AsType[*guard.Refusal](err)
	if is && op.Op == "dial" || refused {
		return ErrNotSent
	}
	return ErrUnknown
}

func (w *web) request(
	ctx context.Context, token, method string, body []byte, header http.Header,
) (*http.Request, error) {
	to := w.s.cfg.URL
	if method == http.MethodPost {
		to = cmp.Or(w.posts, to)
	}
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("a request can't be made of the URL")
	}
	for name, value := range w.s.cfg.Headers {
		r.Header.Set(name, value)
	}
	for name, values := range header {
		r.Header[name] = values
	}

	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w.identify(r)
	return r, nil
}

// identify sets the headers that the protocol requires on each request.
func (w *web) identify(r *http.Request) {
	r.Header.Set("User-Agent", "assent")
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	if r.Method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if session := w.current(); session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if w.peer.Version != "" && w.peer.Version >= wire.V20250618 {
		r.Header.Set("MCP-Protocol-Version", w.peer.Version)
	}
}

// tell sends a notification or a response.
func (w *web) tell(ctx context.Context, m *wire.Message) error {
	body, err := m.Append(nil)
	if err != nil {
		return err
	}
	resp, err := w.send(ctx, http.MethodPost, body, http.Header{})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, mostBytes) // the connection can be used again then
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case provenRefusal(resp.StatusCode):
		return fmt.Errorf("%w: it answered %s", ErrNotSent, resp.Status)
	}

	return fmt.Errorf("%w: it answered %s", ErrUnknown, resp.Status)
}

// provenRefusal reports whether a status proves that nothing ran.
func provenRefusal(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// headers returns the headers that repeat values of a modern request's body.
func headers(r *Request) http.Header {
	h := http.Header{"Mcp-Method": {r.Method}}
	if name, ok := named(r.Method, r.Params); ok {
		h.Set("Mcp-Name", catalog.EncodeHeader(name))
	}
	for name, value := range r.Headers {
		h.Set(name, value)
	}
	return h
}

// named returns the value that Mcp-Name repeats.
func named(method string, params json.RawMessage) (string, bool) {
	member := map[string]string{
		wire.MethodCall:   "name",
		wire.MethodPrompt: "name",
		wire.MethodRead:   "uri",
		"tasks/get":       "taskId",
		"tasks/update":    "taskId",
		"tasks/cancel":    "taskId",
	}[method]
	return jsonmsg.ReadString(jsonmsg.Get(params, member))
}
