package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/store"
)

// ServeHTTP answers runtimes. It does not rely on the Host header for addresses.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := strings.TrimPrefix(req.URL.Path, g.urlPath)
	if token, ok := strings.CutPrefix(path, "/answer/"); ok {
		g.serve(w, req, http.MethodPost, func() { g.answer(w, req, token) })
		return
	}
	for _, at := range []struct {
		path, method string
		serve        handler
	}{
		{"/.well-known/rap-toolset", http.MethodGet, g.discover},
		{"/invoke", http.MethodPost, g.intake.invoke},
		{"/close_thread", http.MethodPost, g.closeThread},
		{"/cancel_tool_call", http.MethodPost, g.cancelCall},
		{"/tool_call_status", http.MethodPost, g.status},
	} {
		if at.path == path {
			g.serve(w, req, at.method, func() { g.authenticated(w, req, at.serve) })
			return
		}
	}

	http.NotFound(w, req)
}

// longestRequest limits how long a runtime may take to send a body.
const longestRequest = 15 * time.Second

func (g *Gateway) serve(w http.ResponseWriter, req *http.Request, method string, next func()) {
	if req.Method != method {
		w.Header().Set("Allow", method)
		http.Error(w, "expected "+method, http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	next()
}

// handler answers a request of an authenticated caller.
type handler func(w http.ResponseWriter, req *http.Request, c *caller)

// authenticated calls next if the request is that of a caller, and answers 401 otherwise.
func (g *Gateway) authenticated(w http.ResponseWriter, req *http.Request, next handler) {
	c, why := g.authenticate(req)
	if c == nil {
		g.refuse(req.Context(), "a request was refused", why, nil)
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "expected a caller's bearer token", http.StatusUnauthorized)
		return
	}

	next(w, req, c)
}

// authenticate returns the caller of a request, or nil and the reason. A request with a wrong
// token is never treated like one without a token.
func (g *Gateway) authenticate(req *http.Request) (*caller, string) {
	given := req.Header.Values("Authorization")
	if len(given) == 0 {
		return g.local(req)
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, "not one bearer token"
	}
	sum := sha256.Sum256([]byte(token))
	var found *caller
	for _, c := range g.callers {
		if c.hash != nil && subtle.ConstantTimeCompare(sum[:], c.hash) == 1 {
			found = c
		}
	}
	return found, "no caller's token"
}

// local returns the caller without a token for requests of programs on this machine. It rejects
// browsers and proxies. A request that a web page makes a browser send has an Origin header, or
// a Host with that site's name. A request through a proxy came from elsewhere. A proxy that
// adds no headers looks like a local program, so next to a proxy every caller needs a token.
func (g *Gateway) local(req *http.Request) (*caller, string) {
	at, err := netip.ParseAddrPort(req.RemoteAddr)
	switch {
	case err != nil || !at.Addr().Unmap().IsLoopback():
		return nil, "no token, and not from this machine"
	case req.Header.Get("Origin") != "" || req.Header.Get("Sec-Fetch-Site") != "":
		return nil, "no token, and from a browser"
	case throughProxy(req):
		return nil, "no token, and through a proxy"
	case !loopbackHost(req.Host):
		return nil, "no token, and for a name that is not of this machine alone"
	}

	for _, c := range g.callers {
		if c.hash == nil {
			return c, ""
		}
	}
	return nil, "no token"
}

// proxyHeaders lists the headers that proxies add to requests. A trailing star matches any
// suffix.
func proxyHeaders() []string {
	return []string{
		"Forwarded",
		"Via",
		"X-Forwarded*",
		"X-Real-Ip",
		"X-Original-*",
		"X-Client-Ip",
		"X-Cluster-Client-Ip",
		"X-Originating-Ip",
		"X-Remote-Ip",
		"X-Remote-Addr",
		"X-Proxyuser-Ip",
		"Client-Ip",
		"True-Client-Ip",
		"Fastly-*",
		"Fly-*",
		"Cf-*",
		"Cdn-*",
		"X-Envoy-*",
		"X-Amz-Cf-*",
		"X-Amzn-Trace-Id",
		"X-Azure-*",
		"X-Appengine-*",
	}
}

// throughProxy reports whether a proxy passed on a request: it has a proxy's header, or uses
// HTTP/1.0, which proxies do and runtimes don't.
func throughProxy(req *http.Request) bool {
	if !req.ProtoAtLeast(1, 1) {
		return true
	}
	for name := range req.Header {
		for _, known := range proxyHeaders() {
			prefix, open := strings.CutSuffix(known, "*")
			if name == known || open && strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}

	return false
}

// loopbackHost reports whether a Host header names this machine by a loopback name or address.
func loopbackHost(host string) bool {
	name := host
	if withoutPort, _, err := net.SplitHostPort(host); err == nil {
		name = withoutPort
	}
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// discover serves the manifest.
func (g *Gateway) discover(w http.ResponseWriter, _ *http.Request, _ *caller) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(g.toolset) // the client may have disconnected
}

// Errors of body.
var (
	errNotJSON = errors.New("expected application/json")
	errTooBig  = errors.New("the body is too large")
	errCutOff  = errors.New("the body did not arrive")
)

func statusOf(err error) int {
	switch {
	case errors.Is(err, errNotJSON):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, errTooBig):
		return http.StatusRequestEntityTooLarge
	}

	return http.StatusBadRequest
}

// maxNotice limits bodies that contain only ids.
const maxNotice = 64 << 10

// cancelCall handles a cancellation. It responds 200 with an empty body in every case.
func (g *Gateway) cancelCall(w http.ResponseWriter, req *http.Request, c *caller) {
	body, err := g.body(w, req, maxNotice)
	var in wire.CancelCall
	if err == nil {
		in, err = wire.ParseCancelCall(body)
	}
	if err == nil {
		ctx, stop := detached(req.Context())
		defer stop()
		err = g.cancel(ctx, callKey(c.Name, in.ThreadID, in.ToolCallID), "the call was cancelled", false)
	}
	g.noticed(req, "a cancellation had no effect", err)
}

// closeThread ends the open calls of a thread and the session grants given in it.
func (g *Gateway) closeThread(w http.ResponseWriter, req *http.Request, c *caller) {
	body, err := g.body(w, req, maxNotice)
	var in wire.CloseThread
	if err == nil {
		in, err = wire.ParseCloseThread(body)
	}
	if err == nil {
		ctx, stop := detached(req.Context())
		defer stop()
		err = errors.Join(g.cancelThread(ctx, c, in.ThreadID), g.grants.dropGrants(ctx, c.Name, in.ThreadID))
		g.tellClosed(c.asker, in.ThreadID)
	}

	g.noticed(req, "a thread was not closed in full", err)
}

// tellClosed calls Config.Closed once, in the background.
func (g *Gateway) tellClosed(who approval.Asker, thread string) {
	if g.cfg.Closed == nil {
		return
	}
	go func() {
		ctx, stop := detached(context.Background())
		defer stop()
		if err := g.cfg.Closed(ctx, who, thread); err != nil {
			g.cfg.Log.WarnContext(ctx, "a closure was not passed on", "error", err)
		}
	}()
}

func (g *Gateway) noticed(req *http.Request, what string, err error) {
	if err != nil && !errors.Is(err, approval.ErrNotFound) {
		g.refuse(req.Context(), what, err, nil)
	}
}

// detached returns a context that outlives its request, so that an action that was begun is
// completed even if the client disconnects.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
}

func (g *Gateway) cancelThread(ctx context.Context, c *caller, thread string) error {
	var open []string
	err := g.engine.Each(ctx, threadPrefix(c.Name, thread), func(r store.Record) {
		if r.Expires.IsZero() { // it has not ended
			open = append(open, r.Key)
		}
	})
	for _, key := range open {
		err = errors.Join(err, g.cancel(ctx, key, "the thread was closed", true))
	}
	return err
}

// cancel ends a call that has not begun to run, and marks a running one to be stopped.
func (g *Gateway) cancel(ctx context.Context, key, why string, closed bool) error {
	_, _, err := g.change(ctx, key, func(r *record) bool {
		c := &r.Part
		if r.Over() {
			return cancelEvents(r, why)
		}
		if r.Stop != "" && c.Closed == closed {
			return false
		}
		c.Closed = c.Closed || closed
		if r.State == durable.Running {
			r.Stop = why
			return true
		}
		g.engine.Finish(r, durable.Ending{Why: durable.Interrupted, Reason: why})
		return true
	})
	return err
}

// cancelEvents ends the subscription of a call that has its result.
func cancelEvents(r *record, why string) bool {
	if r.Part.Follows == "" || r.Stop != "" || r.State == durable.Closed {
		return false
	}
	r.Stop = why
	if r.Part.Posted && r.Message != nil {
		r.Message.Next = time.Time{}
	}
	return true
}

// status reports whether a call is still in progress. This is a proposed extension of the
// protocol.
func (g *Gateway) status(w http.ResponseWriter, req *http.Request, c *caller) {
	body, err := g.body(w, req, maxNotice)
	var in wire.Status
	if err == nil {
		in, err = wire.ParseStatus(body)
	}
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	r, err := g.engine.Get(req.Context(), callKey(c.Name, in.ThreadID, in.ToolCallID))
	if err != nil && !errors.Is(err, approval.ErrNotFound) {
		http.Error(w, "nobody can say", http.StatusServiceUnavailable) // 5xx means unknown in the proposal
		return
	}
	alive := err == nil && r.State != durable.Closed
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]bool{"alive": alive})
}
