package mcp_test

import (
	"net/http"
	"testing"

	"github.com/assent-dev/assent/mcp/wire"
)

func testM23(t *testing.T) {
	w := newRow(t, script("legacy"), nil).web()
	text := initialize(wire.V20251125)
	w.expect(403, "", w.post(text, "Origin", "https://evil.example"))
	w.expect(403, "", w.post(text, "Host", "evil.example"))
	w.expect(200, "result", w.post(text))
}

func testM24(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	w := r.web()
	call := modernCall("1", "read_file", "{}", "")
	for _, headers := range [][]string{
		{"Mcp-Protocol-Version", wire.V20260728, "Mcp-Method", wire.MethodCall},
		{"Mcp-Protocol-Version", wire.V20260728, "Mcp-Name", "read_file"},
		{"Mcp-Method", wire.MethodCall, "Mcp-Name", "read_file"},
		modernHeaders("tools/list", "read_file"),
		modernHeaders(wire.MethodCall, "write_file"),
		modernHeaders(wire.MethodCall, "=?base64?d3JpdGVfZmlsZQ==?="),
		modernHeaders(wire.MethodCall, "=?base64?%%?="),
	} {
		w.expect(400, "-32020", w.post(call, headers...))
	}

	r.ran(0)
	w.expect(200, "done", w.post(call, modernHeaders(wire.MethodCall, "=?base64?cmVhZF9maWxl?=")...))
}

func testM26(t *testing.T) {
	w := newRow(t, script("legacy"), nil).web()
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		w.expect(405, "", w.ask(t.Context(), method, "", "Mcp-Protocol-Version", wire.V20260728))
	}
	w.expect(404, "-32601", w.post(request("1", "no/such", metaPlain), modernHeaders("no/such", "")[:4]...))
}

func testM27(t *testing.T) {
	w := newRow(t, script("legacy"), two).web()
	session := w.open(wire.V20251125)
	ping := request("1", "ping", "")
	w.expect(400, "", w.post(ping, "Mcp-Protocol-Version", wire.V20251125))
	w.expect(404, "", w.post(ping, "Mcp-Session-Id", "nobody"))
	w.expect(403, "", w.post(ping, append(session, "Authorization", "Bearer other")...))
	w.expect(200, "", w.post(ping, session...))
	w.ask(t.Context(), http.MethodDelete, "", session...)
	w.expect(404, "", w.post(ping, session...))
}

func testM31(t *testing.T) {
	w := newRow(t, script("legacy"), nil).web()
	session := w.open(wire.V20251125)
	for _, text := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":5,"result":{}}`,
	} {
		if body := w.expect(202, "", w.post(text, session...)); body != "" {
			t.Errorf("got the body %q", body)
		}
	}
}
