package mcp_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

func testM11(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	versions := map[string]string{"1999-01-01": wire.V20251125, "2030-01-01": wire.V20251125}
	for _, v := range wire.Legacy() {
		versions[v] = v
	}
	for asked, want := range versions {
		c := r.pipe(t, server.Config{})
		c.expect(c.say(initialize(asked)), `"protocolVersion":"`+want+`"`)
		c.expect(c.call("read_file", `{}`), "done")
	}
}

func testM12(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.pipe(t, server.Config{})
	answer := c.say(request(`"d"`, "server/discover", metaPlain))
	for _, want := range []string{
		`"resultType":"complete"`,
		`"supportedVersions":["2026-07-28"]`,
		`"ttlMs":`,
		`"cacheScope":"private"`,
		`"capabilities":{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}`,
	} {
		c.expect(answer, want)
	}
}

func testM13(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	const noVersion = `"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}`
	const noCapabilities = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	future := strings.Replace(metaPlain, "2026-07-28", "2099-01-01", 1)
	c := r.pipe(t, server.Config{})
	for _, meta := range []string{noVersion, noCapabilities} {
		c.code(wire.CodeInvalidParams, c.say(request("1", "tools/list", meta)))
	}
	answer := c.say(request("1", "tools/list", future))
	c.code(wire.CodeUnsupportedVersion, answer)
	c.expect(answer, `"supported":["2026-07-28"]`)

	w := r.web()
	headers := []string{"Mcp-Protocol-Version", wire.V20260728, "Mcp-Method", "tools/list"}
	w.expect(400, "-32602", w.post(request("1", "tools/list", noVersion), headers...))
	w.expect(400, "-32602", w.post(request("1", "tools/list", noCapabilities), headers...))
	headers[1] = "2099-01-01"
	w.expect(400, `"supported":["2026-07-28"]`, w.post(request("1", "tools/list", future), headers...))
}

func testM14(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	w := r.web()
	session := w.open(wire.V20251125)
	for range 3 {
		w.expect(200, "done", w.post(request("1", wire.MethodCall, `"name":"read_file"`), session...))
		answer := w.expect(200, "done",
			w.post(modernCall("1", "read_file", "{}", ""), modernHeaders(wire.MethodCall, "read_file")...))
		if !strings.Contains(answer, `"resultType":"complete"`) {
			t.Errorf("a modern client got %s", answer)
		}
	}

	r.ran(6)
}

// open initializes a legacy session, and returns its headers.
func (w *web) open(version string, headers ...string) []string {
	w.t.Helper()
	resp := w.post(initialize(version), headers...)
	id := resp.Header.Get("Mcp-Session-Id")
	w.expect(200, `"protocolVersion":"`+version+`"`, resp)
	if id == "" {
		w.t.Fatal("no session was given")
	}
	return append([]string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", version}, headers...)
}

func testM15(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.pipe(t, server.Config{})
	c.expect(c.say(request("1", "server/discover", metaPlain)), `"supportedVersions"`)
	c.expect(c.say(initialize(wire.V20251125)), `"protocolVersion":"2025-11-25"`)
	c.expect(c.call("read_file", `{}`), "done")
}

func testM16(t *testing.T) {
	for _, era := range []string{"first", "deaf"} {
		r := newRow(t, script(era), nil)
		c := r.connect(t)
		c.expect(c.say(request("1", "tools/list", "")), `"read_file"`)
		c.expect(c.call("read_file", `{}`), "done")
		r.ran(1)
	}
}

func testM18(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		s := script(era)
		s.Does = map[string]string{"read_file": mcptest.Progress}
		s.Answers = map[string]string{"write_file": `{"content":[{"type":"text","text":"no"}],"isError":true}`}
		if era == "modern" {
			s.Answers["write_file"] = `{"resultType":"complete",` + s.Answers["write_file"][1:]
		}
		r := newRowOf(t, strings.Replace(mcptest.Clerk, ", approval: true", "", 1), policyFile, s, nil)
		legacy, modern := r.connect(t), r.pipe(t, server.Config{})
		legacy.cell(request("1", "tools/list", ""), `"write_file"`, false)
		modern.cell(request("1", "tools/list", metaPlain), `"write_file"`, true)
		const progress = `"name":"read_file","_meta":{"progressToken":"p"`
		legacy.cell(request("2", wire.MethodCall, progress+"}"), `"text":"done"`, false)
		modern.cell(request("2", wire.MethodCall, progress+","+metaPlain[len(`"_meta":{`):]), `"text":"done"`, true)
		legacy.cell(request("3", wire.MethodCall, `"name":"write_file"`), `"isError":true`, false)
		modern.cell(modernCall("3", "write_file", "{}", ""), `"isError":true`, true)
	}
}

// cell sends a request and expects the answer of its era, after three progress reports if they were
// requested.
func (c *client) cell(text, want string, modern bool) {
	c.t.Helper()
	c.send(text)
	before, answer := c.hearUntil(`"id":`)
	c.expect(answer, want)
	if strings.Contains(answer, `"resultType":"complete"`) != modern {
		c.t.Errorf("modern: %t, and it got %s", modern, answer)
	}
	reports := 0
	if strings.Contains(text, "progressToken") {
		reports = 3
	}
	if len(before) != reports {
		c.t.Errorf("heard %q before the answer, expected %d reports", before, reports)
	}
}

func testM20(t *testing.T) {
	s := script("legacy")
	s.Does = map[string]string{"read_file": mcptest.Asks, "write_file": mcptest.Asks}
	r := newRow(t, s, func(cfg *mcp.Config) { short(cfg) })
	c := r.pipe(t, server.Config{})
	for id, name := range map[string]string{"1": "read_file", "2": "write_file"} {
		c.send(modernCall(id, name, "{}", ""))
		before, answer := c.hearUntil(`"id":` + id)
		c.expect(answer, `"resultType"`)
		if len(before) != 0 {
			t.Errorf("the client got %q", before)
		}
	}
}
