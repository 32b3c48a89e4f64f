package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testtier"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/wire"
)

// Limits of the cost of one message, whatever it contains.
const (
	mostCPU   = time.Second
	mostBytes = 64 << 20
	costly    = 1 << 20   // bytes of a message of a client
	longLists = 512 << 10 // the same of a server, which the test keeps in files
)

// TestAMessageOfAClientCostsLittle: a call of a client costs at most a second of CPU and 64 MB, even
// if it is refused. Each kind is also answered successfully once, so that the others are not merely
// refused for their envelope.
func TestAMessageOfAClientCostsLittle(t *testing.T) {
	w := newWorld(t, func(cfg *mcp.Config) {
		cfg.Callers[0].Hold = time.Millisecond
		cfg.Poll = 0 // as by default
	})
	c := w.connect(t)
	call := func(tool string) func(string) string {
		return func(x string) string { return `{"name":"` + tool + `","arguments":` + x + `}` }
	}
	all := growth.HostileJSON(costly)
	some := maps.Clone(all) // each call that asks waits for its request
	maps.DeleteFunc(some, func(name, _ string) bool {
		return !slices.Contains([]string{"plain", "quotes", "nested members", "levels", "marks", "items"}, name)
	})
	for what, way := range map[string]struct {
		params func(hostile string) string
		of     map[string]string
		works  string
	}{
		"allowed": {call("read_file"), all, "done "},
		"asked":   {call("write_file"), some, "Not run yet."},
		"unknown": {call("nothing"), some, "error"},
		"meta": {func(x string) string {
			return `{"name":"read_file","arguments":{},"_meta":` + x + `}`
		}, all, "done "},
	} {
		works := false
		for name, hostile := range way.of {
			if name != "plain" && !testtier.Row(what, name) {
				continue
			}
			message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + way.params(hostile) + `}`
			t.Run(what+", "+name, func(t *testing.T) {
				growth.WithinLive(t, mostCPU, mostBytes, func() {
					works = strings.Contains(c.say(message), way.works) || works
				})
			})
		}
		if !works {
			t.Errorf("%s: all are refused", what)
		}
	}
}

// sendable returns the values that the server of the tests can send; its own reader takes no more than
// 10,000 levels.
func sendable(values func(n int) map[string]string) map[string]string {
	all, small := values(longLists), values(8<<10)
	for name, x := range all {
		if !json.Valid([]byte(x)) {
			all[name] = small[name]
		}
	}
	maps.DeleteFunc(all, func(_, x string) bool { return !json.Valid([]byte(x)) })
	return all
}

// hostileTools returns lists of tools that are expensive to read, compare or show.
func hostileTools() map[string][]json.RawMessage {
	tool := func(format string, args ...any) json.RawMessage { return json.RawMessage(fmt.Sprintf(format, args...)) }
	out := map[string][]json.RawMessage{}
	for name, schema := range sendable(growth.HostileForms) {
		out["schema, "+name] = []json.RawMessage{tool(`{"name":"a","inputSchema":%s}`, schema)}
	}
	for name, x := range sendable(growth.HostileJSON) {
		out["meta, "+name] = []json.RawMessage{tool(`{"name":"a","inputSchema":{"type":"object"},"_meta":%s}`, x)}
	}
	each := func(unit string) string { return strings.Repeat(unit, longLists/len(unit)) }
	for name, text := range map[string]string{
		"marks": each("\u0301"), "look-alikes": each("аa "), "hidden": each(`\u202e`), "lines": each(`\n`),
	} {
		out["name, "+name] = []json.RawMessage{tool(`{"name":"%s","inputSchema":{"type":"object"}}`, text)}
		out["text, "+name] = []json.RawMessage{
			tool(`{"name":"a","description":"%s","inputSchema":{"type":"object"}}`, text),
		}
	}
	for name, format := range map[string]string{"tools": `{"name":"t%d","inputSchema":{"type":"object"}}`,
		"twins": `{"name":"t","title":"%d","inputSchema":{"type":"object"}}`} {
		for i := range costly / 50 {
			out[name] = append(out[name], tool(format, i))
		}
	}
	return out
}

// TestAMessageOfAServerCostsLittle: the same of the lists, results and questions of a server.
func TestAMessageOfAServerCostsLittle(t *testing.T) {
	s := script("legacy")
	r := newRow(t, s, relays)
	c := r.able(wire.V20251125, withForm)
	c.expect(c.call("read_file", "{}"), "done")
	costs := func(name string, change func(*mcptest.Script), work func()) {
		t.Helper()
		if !testtier.Row(name) {
			return
		}
		now := s
		change(&now)
		r.u.Rewrite(now)
		t.Run(name, func(t *testing.T) { growth.WithinLive(t, mostCPU, mostBytes, work) })
		r.u.Rewrite(s)
	}
	for name, tools := range hostileTools() {
		costs("tools, "+name, func(s *mcptest.Script) { s.Tools = tools }, func() {
			_ = r.gateway.Refresh(t.Context(), "files") // the list may be refused
			c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		})
	}
	must.Do(t, r.gateway.Refresh(t.Context(), "files"))

	for name, x := range sendable(growth.HostileJSON) {
		costs("result, "+name, func(s *mcptest.Script) {
			s.Answers = map[string]string{"read_file": `{"content":[],"structuredContent":` + x + `}`}
		}, func() { c.say(request("7", wire.MethodCall, `"name":"read_file","arguments":{}`)) })
	}
	for name, form := range sendable(growth.HostileForms) {
		costs("question, "+name, func(s *mcptest.Script) {
			s.Does = map[string]string{"read_file": mcptest.Question}
			s.Asks = `{"method":"elicitation/create","params":{"mode":"form","message":"x",` +
				`"requestedSchema":` + form + `}}`
		}, func() {
			answer := c.say(request("7", wire.MethodCall, `"name":"read_file","arguments":{}`))
			if id := jsonmsg.Get([]byte(answer), "id"); jsonmsg.Get([]byte(answer), "method") != nil {
				c.say(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"action":"cancel"}}`)
			}
		})
	}
}
