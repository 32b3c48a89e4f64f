package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/mcp/wire"
)

// HTTPConfig configures who may connect by HTTP.
type HTTPConfig struct {
	// Authenticate returns the caller of a request, or how it is refused. It is called before the
	// body is read.
	Authenticate func(r *http.Request) (caller string, refused *Refusal)
	Hosts        []string // the names under which we are reached, with ports; none: loopback names at any port
	AnyHost      bool     // the caller checks host names itself
	Origins      []string // of pages that may connect; none: no page may
	MaxSessions  int      // of one caller; 1,000
	// Idle is the time after which a legacy session without messages ends. Default: 1h.
	Idle time.Duration
	// KeepAlive is the time after which a comment is sent on a silent stream, because a proxy might
	// close it. Default: 15s.
	KeepAlive time.Duration
	Now       func() time.Time
}

// Refusal is the response to a refused request.
type Refusal struct {
	Status    int
	Challenge string // WWW-Authenticate; "" for none
	Reason    string
}

// The headers of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerLast    = "Last-Event-Id"
)

// HTTP is one endpoint for clients of both eras.
type HTTP struct {
	srv *Server
	cfg HTTPConfig

	mu       sync.Mutex
	sessions map[string]*httpSession
}

// HTTP returns the endpoint of the server.
func (s *Server) HTTP(cfg HTTPConfig) *HTTP {
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, 1000)
	cfg.Idle = cmp.Or(cfg.Idle, time.Hour)
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 15*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &HTTP{
		srv:      s,
		cfg:      cfg,
		sessions: map[string]*httpSession{},
	}
}

// ServeHTTP answers one request of a client.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// An earlier answer on this connection, or the HTTP server, may have set a deadline. Waiting
	// for people takes longer, and not all writers have deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	if why := h.foreign(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	caller, refused := h.caller(r)
	if refused != nil {
		refused.write(w)
		return
	}

	modern := wire.IsModern(r.Header.Get(headerVersion))
	switch {
	case r.Method == http.MethodPost:
		h.post(w, r, caller)
	case r.Method == http.MethodGet && !modern && r.Header.Get(headerSession) != "":
		h.get(w, r, caller)
	case r.Method == http.MethodDelete && !modern && r.Header.Get(headerSession) != "":
		h.remove(w, r, caller)
	default:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected POST", http.StatusMethodNotAllowed)
	}
}

// caller returns the caller of a request.
func (h *HTTP) caller(r *http.Request) (string, *Refusal) {
	if refused := tokenInQuery(r.URL.RawQuery); refused != nil {
		return "", refused
	}
	return h.cfg.Authenticate(r)
}

func (r *Refusal) write(w http.ResponseWriter) {
	if r.Challenge != "" {
		w.Header().Set("WWW-Authenticate", r.Challenge)
	}
	http.Error(w, r.Reason, r.Status)
}

// tokenInQuery refuses a request whose address may contain a token, because addresses are written
// to many logs (RFC 6750 section 5.3). A query that can't be parsed is refused too.
func tokenInQuery(query string) *Refusal {
	values, err := url.ParseQuery(query)
	secret := err != nil
	for name := range values {
		name = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
		secret = secret || slices.Contains(secretNames(), name)
	}

	if !secret {
		return nil
	}
	const why = "a token belongs into the header Authorization, not into the address"
	return &Refusal{
		Status:    http.StatusUnauthorized,
		Challenge: `Bearer error="invalid_request", error_description="` + why + `"`,
		Reason:    why,
	}
}

func secretNames() []string {
	return strings.Fields("accesstoken apikey auth authorization authtoken bearer key secret token")
}

// foreign returns why a request is not allowed: it is from a page of another origin, or for a host
// name that isn't ours (DNS rebinding).
func (h *HTTP) foreign(r *http.Request) string {
	if origin := r.Header.Get("Origin"); origin != "" && !slices.Contains(h.cfg.Origins, origin) {
		return "pages of this origin may not connect"
	}
	if h.cfg.AnyHost {
		return ""
	}
	if len(h.cfg.Hosts) > 0 && !slices.Contains(h.cfg.Hosts, r.Host) || len(h.cfg.Hosts) == 0 && !loopback(r.Host) {
		return "this host name is not one of ours"
	}
	return ""
}

// loopback reports whether a host is a name of this machine, at any
// port.
func loopback(host string) bool {
	u, err := url.Parse("http://" + host)
	return err == nil && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// post handles one message, or a batch if the version has them.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request, caller string) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "expected Content-Type: application/json", http.StatusUnsupportedMediaType)
		return
	}

	body, bad := h.body(w, r)
	if bad != nil {
		h.fail(w, http.StatusBadRequest, wire.ID{}, bad)
		return
	}
	if _, is, _ := wire.Batch(body, h.srv.cfg.Limits); is {
		h.batch(w, r, caller, body)
		return
	}
	m, bad := wire.Parse(body, h.srv.cfg.Limits)
	if bad != nil {
		h.fail(w, http.StatusBadRequest, m.ID, bad)
		return
	}

	modern, bad := h.isModern(r, &m)
	switch {
	case bad != nil:
		h.fail(w, http.StatusBadRequest, m.ID, bad)
	case modern:
		h.postModern(w, r, caller, &m)
	default:
		h.postLegacy(w, r, caller, &m)
	}
}

// body reads a request's body up to the size limit of a message.
func (h *HTTP) body(w http.ResponseWriter, r *http.Request) ([]byte, *wire.Error) {
	most := int64(h.srv.cfg.Limits.MaxBytes)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, wire.Fail(wire.CodeInvalidRequest, "the message is larger than %d bytes", most)
	case err != nil:
		return nil, wire.Fail(wire.CodeParse, "the message could not be read")
	}

	return body, nil
}

// isModern determines the era of a message by its header or its _meta.
func (h *HTTP) isModern(r *http.Request, m *wire.Message) (bool, *wire.Error) {
	if m.Kind() == wire.Response {
		return false, nil
	}
	meta, bad := wire.ReadMeta(m.Params)
	if bad != nil {
		return false, bad
	}
	version := r.Header.Get(headerVersion)
	return meta.IsModern() || version != "" && !wire.IsLegacy(version) && r.Header.Get(headerSession) == "", nil
}

// fail answers with a protocol error.
func (h *HTTP) fail(w http.ResponseWriter, status int, id wire.ID, bad *wire.Error) {
	text, err := wire.Answer(id, nil, bad).Append(nil)
	if err != nil {
		http.Error(w, bad.Message, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // it may be gone
}

// answer sends the response to a request: as one document if it is ready soon, otherwise as a
// stream.
func (h *HTTP) answer(w http.ResponseWriter, r *http.Request, s *stream, modern, resumable bool) {
	ctx := r.Context()
	streams := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	text := s.single(ctx)
	switch {
	case ctx.Err() != nil:
	case text == nil && streams:
		_ = h.copy(ctx, s, w, beginning, resumable) // a client that did not get it may come back
	case text == nil:
		text = s.response(ctx)
	}

	if text == nil || ctx.Err() != nil {
		return
	}

	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowReader)) // not all writers have deadlines
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(text, modern))
	if _, err := w.Write(text); err == nil {
		s.done()
	}
}

// response waits for the response for a client that accepts no streams.
func (s *stream) response(ctx context.Context) []byte {
	for {
		texts, _, ended, news := s.after(0)
		if ended && len(texts) > 0 {
			return texts[len(texts)-1]
		}
		if ended {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil
		}
	}
}

// statusOf returns the status of a response that is sent as one document. Legacy clients expect
// errors with 200.
func statusOf(text []byte, modern bool) int {
	m, bad := wire.Parse(text, wire.Limits())
	if bad != nil || m.Error == nil || !modern {
		return http.StatusOK
	}
	switch m.Error.Code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeHeaderMismatch, wire.CodeMissingCapability, wire.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}

	return http.StatusOK
}
