package mcp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// odd are arguments whose bytes a careless reader would change.
const odd = `{ "b" : 1.0, "a":1e2,"c":"\u0041", "d":"12345678901234567890" ,"e":[ ] }`

func testM01(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	c.expect(c.call("read_file", odd), "done")
	r.sees(`{"name":"read_file","arguments":` + odd + `}`)
}

func testM02(t *testing.T) {
	const result = `"content":[ {"type":"text","text":"\u0041","x":1.0} ],"structuredContent":{ "n":1e2 },` +
		`"unknown":{ "a" :[ ] },"_meta":{"example.com/deep":{ "b" : 1.0 }}`
	s := script("legacy")
	s.Answers = map[string]string{"read_file": "{" + result + "}"}
	r := newRow(t, s, nil)
	c := r.connect(t)
	c.expect(c.say(request("1", wire.MethodCall, `"name":"read_file"`)), result)
	c.expect(c.say(modernCall("2", "read_file", "{}", "")), result)
}

func testM03(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	ids := []string{`1`, `"1"`, `"ü"`, `"\u0061"`, `-7`, `9007199254740992`}
	for _, id := range ids {
		c.send(request(id, wire.MethodCall, `"name":"read_file"`))
	}
	var heard []string
	for range ids {
		heard = append(heard, c.hear())
	}
	for _, id := range ids {
		answered := func(answer string) bool { return strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":`+id+`,`) }
		if !slices.ContainsFunc(heard, answered) {
			t.Errorf("nobody answered %s: %q", id, heard)
		}
	}

	seen := map[string]bool{}
	for _, m := range r.u.Messages() {
		id := m.ID.Text()
		if m.Kind() == wire.Request && (seen[id] || id == "0" || strings.HasPrefix(id, "-")) {
			t.Errorf("the server got the id %s", id)
		}
		seen[id] = true
	}
}

func testM04(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	for _, id := range []string{"null", "1.5", "true", "{}", "[1]"} {
		c.code(wire.CodeInvalidRequest, c.say(request(id, wire.MethodCall, `"name":"read_file"`)))
	}
	r.ran(0)
	r.u.Rewrite(holding())
	c.send(request("7", wire.MethodCall, `"name":"read_file"`))
	testwait.Until(t, "the first call is there", func() bool { return len(r.u.Calls()) == 1 })
	c.code(wire.CodeInvalidRequest, c.say(request("7", wire.MethodCall, `"name":"read_file"`)))
	r.u.Release()
	c.expect(c.hear(), "done")
	r.ran(1)
}

// holding returns a server whose reads are held.
func holding() mcptest.Script {
	s := script("legacy")
	s.Does = map[string]string{"read_file": mcptest.Hold, "write_file": mcptest.Hold}
	return s
}

func testM05(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"read_file"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file"},"params":{"name":"read_file"}}`,
		request("1", wire.MethodCall, `"name":"read_file","name":"read_file"`),
		request("1", wire.MethodCall, `"name":"read_file","arguments":{},"arguments":{}`),
		request("1", wire.MethodCall, `"Name":"read_file"`),
		request("1", wire.MethodCall, `"name":"read_file","Arguments":{}`),
	} {
		m, bad := wire.Parse([]byte(c.say(text)), wire.Limits())
		if bad != nil || m.Error == nil {
			t.Fatalf("%s was answered", text)
		}
		if m.Error.Code != wire.CodeInvalidRequest && m.Error.Code != wire.CodeInvalidParams {
			t.Errorf("%s got %v", text, m.Error)
		}
	}

	r.ran(0)
}

func testM06(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	for _, args := range []string{`{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}"} {
		for _, name := range []string{"read_file", "write_file"} {
			answer := c.say(request("1", wire.MethodCall, `"name":"`+name+`","arguments":`+args))
			c.expect(answer, "Not run")
			c.expect(answer, `"isError":true`)
		}
	}

	r.ran(0)
}

func testM07(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	batch := "[" + request("1", wire.MethodCall, `"name":"read_file"`) + "," +
		request("2", wire.MethodCall, `"name":"format_disk"`) + "]"
	modern := "[" + modernCall("1", "read_file", "{}", "") + "]"
	for _, version := range []string{wire.V20250618, wire.V20251125} {
		c := r.pipe(t, server.Config{})
		c.say(initialize(version))
		c.code(wire.CodeInvalidRequest, c.say(batch))
	}
	c := r.pipe(t, server.Config{})
	c.code(wire.CodeInvalidRequest, c.say(modern))
	r.ran(0)

	c.say(initialize(wire.V20250326))
	c.send(batch)
	both := c.hear() + c.hear()
	c.expect(both, "done")
	c.expect(both, "Not run. The agent's file doesn't allow this tool.")
	r.ran(1)
}

func initialize(version string) string {
	return request("0", "initialize", `"protocolVersion":"`+version+`","capabilities":{},`+
		`"clientInfo":{"name":"desk","version":"1"}`)
}

func testM08(t *testing.T) {
	const meta = `"name":"read_file","_meta":{"example.com/a":1,"example.com/b":{ "x":1.0 }}`
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	c.code(wire.CodeInvalidParams, c.say(request("1", wire.MethodCall, `"name":"read_file","extra":1`)))
	r.ran(0)
	c.expect(c.say(request("1", wire.MethodCall, meta)), "done")
	r.sees(`{"name":"read_file","arguments":{}}`)

	named := newRow(t, script("legacy"), func(cfg *mcp.Config) { cfg.Servers[0].PassMeta = []string{"example.com/b"} })
	c = named.connect(t)
	c.expect(c.say(request("1", wire.MethodCall, meta)), "done")
	named.sees(`{"name":"read_file","arguments":{},"_meta":{"example.com/b":{ "x":1.0 }}}`)
}

func testM09(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	limits := wire.Limits()
	limits.MaxBytes = 64 << 10
	c := r.pipe(t, server.Config{Limits: limits})
	c.say(initialize(wire.V20251125))
	big := request("1", wire.MethodCall, `"name":"read_file","arguments":{"a":"`+strings.Repeat("x", 65<<10)+`"}`)
	deep := request("1", wire.MethodCall, `"name":"read_file","arguments":{"a":`+strings.Repeat("[", 1001)+
		strings.Repeat("]", 1001)+`}`)
	for _, text := range []string{big, deep} {
		c.code(wire.CodeInvalidRequest, c.say(text))
		c.expect(c.call("read_file", `{}`), "done")
	}

	w := r.web()
	headers := modernHeaders(wire.MethodCall, "read_file")
	huge := strings.Repeat("x", wire.Limits().MaxBytes)
	for _, text := range []string{modernCall("1", "read_file", `{"a":"`+huge+`"}`, ""), deep} {
		w.expect(400, "-32600", w.post(text, headers...))
		w.expect(200, "done", w.post(modernCall("1", "read_file", "{}", ""), headers...))
	}

	r.ran(4)
}

func testM10(t *testing.T) {
	s := script("legacy")
	s.Answers = map[string]string{
		"read_file":  `{"content":[],"isError":false,"isError":true}`,
		"write_file": `{"content":[],"resultType":"complete","resultType":"task"}`,
	}
	book := &ledger{}
	r := newRow(t, s, func(cfg *mcp.Config) {
		long(cfg)
		book.keep(cfg)
	})
	c := r.connect(t)
	c.expect(c.call("read_file", `{}`), "This call may have run")
	c.sendCall(7, "write_file", write)
	r.approve()
	c.expect(c.text(c.hear()), "This call may have run")
	r.settle(t)
	r.ran(2)
	testwait.Until(t, "the ledger has both", func() bool { return book.count("mcp_call_ran") == 2 })
	for _, e := range book.all("mcp_call_ran") {
		if got := fmt.Sprint(e.facts["outcome"]); got != "unknown" {
			t.Errorf("the ledger says %s", got)
		}
	}
}

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
