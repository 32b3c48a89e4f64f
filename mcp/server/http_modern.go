package server

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// postModern answers one modern request. There is no session: the client cancels by closing its
// connection.
func (h *HTTP) postModern(w http.ResponseWriter, r *http.Request, caller string, m *wire.Message) {
	if bad := mirrored(r.Header, m); bad != nil {
		h.fail(w, http.StatusBadRequest, m.ID, bad)
		return
	}
	s := h.srv.newSession(caller, nil)
	if m.Kind() == wire.Notification {
		s.take(r.Context(), m, nil)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	request, bad := s.read(m)
	if bad != nil {
		h.fail(w, http.StatusBadRequest, m.ID, bad)
		return
	}

	request.Header = r.Header
	ctx, stop := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer stop(ErrCancelled)
	defer context.AfterFunc(r.Context(), func() { stop(ErrCancelled) })()
	out := newStream("")
	s.run(ctx, request, m.ID, out)
	h.answer(w, r, out, true, false)
}

// mirrored checks the headers that repeat values of the body. They are not used for decisions.
func mirrored(h http.Header, m *wire.Message) *wire.Error {
	meta, bad := wire.ReadMeta(m.Params)
	if bad != nil {
		return bad
	}
	if meta.Version == "" && m.Kind() == wire.Request {
		return wire.Fail(wire.CodeInvalidParams, "params._meta: expected %s", wire.KeyVersion)
	}
	for _, c := range []struct{ name, want string }{
		{headerVersion, meta.Version},
		{"Mcp-Method", m.Method},
		{"Mcp-Name", nameOf(m)},
	} {
		if c.want == "" {
			continue
		}
		if got, sound := headerValue(h.Values(c.name)); !sound || got != c.want {
			return wire.Fail(
				wire.CodeHeaderMismatch,
				"the header %s is missing or differs from the body",
				c.name,
			)
		}
	}

	return nil
}

// nameOf returns the value that the header Mcp-Name must repeat, or an empty string if the header
// isn't required.
func nameOf(m *wire.Message) string {
	member := ""
	switch m.Method {
	case wire.MethodCall, wire.MethodPrompt:
		member = "name"
	case wire.MethodRead:
		member = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		member = "taskId"
	}

	name, _ := jsonmsg.ReadString(jsonmsg.Get(m.Params, member))
	return name
}

// headerValue returns the value of a header that must be given exactly once, plain or in base64.
func headerValue(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	inside, coded := strings.CutPrefix(values[0], "=?base64?")
	inside, ends := strings.CutSuffix(inside, "?=")
	if !coded || !ends {
		return values[0], true
	}
	text, err := base64.StdEncoding.DecodeString(inside)
	return string(text), err == nil
}
