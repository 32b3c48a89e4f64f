package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
)

// The capabilities of clients that can ask their user.
const (
	withForm = `"elicitation":{"form":{}}`
	withURL  = `"elicitation":{"url":{}}`
	withBoth = `"elicitation":{"form":{},"url":{}}`
)

// inPlace makes mara's client ask mara.
func inPlace(cfg *mcp.Config) {
	cfg.Ask = mcp.AskUser
	cfg.Callers[0].Principal = "mara"
	cfg.Callers[0].InPlace = true
}

// linked configures the URLs of the pages of requests.
func linked(cfg *mcp.Config) {
	cfg.Page = func(ref string) string { return "https://assent.example/requests/" + ref }
}

// able opens a legacy conversation with capabilities of the client.
func (r *row) able(version, capabilities string) *client {
	r.t.Helper()
	c := r.pipe(r.t, server.Config{})
	text := strings.Replace(initialize(version), `"capabilities":{}`, `"capabilities":{`+capabilities+`}`, 1)
	c.expect(c.say(text), version)
	return c
}

// ableCall returns a call of a modern client with capabilities.
func ableCall(id, args, capabilities, more string) string {
	return strings.Replace(modernCall(id, "write_file", args, more), `clientCapabilities":{}`,
		`clientCapabilities":{`+capabilities+`}`, 1)
}

// asks checks that the client is asked, and returns the id and the params of the request.
func (c *client) asks(line, text string) (id, params string) {
	c.t.Helper()
	m, bad := wire.Parse([]byte(line), wire.Limits())
	if bad != nil || m.Method != "elicitation/create" {
		c.t.Fatalf("got %s, expected a question", line)
	}
	c.expect(string(m.Params), text)
	return m.ID.Text(), string(m.Params)
}

// answers maps the possible answers to a form to the result of the call.
func answers() map[string]string {
	const result = `"result":`
	return map[string]string{
		result + `{"action":"accept","content":{"decision":"approve"}}`:   `"text":"done"`,
		result + `{"action":"accept","content":{"decision":"deny"}}`:      "Not run. mara denied this call",
		result + `{"action":"decline"}`:                                   "Not run. It was declined in the client.",
		result + `{"action":"decline","content":{"decision":"approve"}}`:  "Not run. It was declined in the client.",
		result + `{"action":"cancel"}`:                                    "Not run yet.",
		result + `{"action":"cancel","content":{"decision":"approve"}}`:   "Not run yet.",
		result + `{"action":"accept"}`:                                    "Not run yet.",
		result + `{"action":"accept","content":{"decision":"Approve"}}`:   "Not run yet.",
		result + `{"action":"accept","content":{"decision":["approve"]}}`: "Not run yet.",
		result + `{"action":"approve","content":{"decision":"approve"}}`:  "Not run yet.",
		result + `{}`: "Not run yet.",
		`"error":{"code":-32601,"message":"no such method"}`: "Not run yet.",
		`"error":{"code":-1,"message":"the user is away"}`:   "Not run yet.",
	}
}

func testM60(t *testing.T) {
	t.Run("legacy", testFormLegacy)
	t.Run("modern", testFormModern)
	t.Run("not counted", testFormNotCounted)
	t.Run("timeout", testFormTimeout)
}

func testFormLegacy(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		inPlace(cfg)
	})
	ran := 0
	for _, version := range []string{wire.V20250618, wire.V20251125} {
		c := r.able(version, withForm)
		for answer, want := range answers() {
			args := fmt.Sprintf(`{"path":%q}`, version+answer)
			call := request("1", wire.MethodCall, `"name":"write_file","arguments":`+args)
			c.send(call)
			id, params := c.asks(c.hear(), `files: write_file\n{\"path\":`)
			if strings.Contains(params, `"mode":"form"`) != (version == wire.V20251125) {
				t.Errorf("%s: got %s", version, params)
			}
			r.ran(ran)
			c.send(`{"jsonrpc":"2.0","id":` + id + `,` + answer + `}`)
			c.expect(c.hear(), want)
			if strings.Contains(want, "done") {
				ran++
				continue
			}
			r.ran(ran)
			c.send(call) // nothing cools down: it asks again
			id, _ = c.asks(c.hear(), `write_file`)
			c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"decline"}}`)
			c.expect(c.hear(), "declined")
		}
	}

	r.ran(ran)
}

// form checks that a modern client is asked by a form, and returns the name of the question and the
// state.
func (c *client) form(answer, text string) (name, state string) {
	c.t.Helper()
	c.expect(answer, `"resultType":"input_required"`)
	result := c.result(answer)
	var asked map[string]struct {
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal(jsonmsg.Get(result, "inputRequests"), &asked); err != nil || len(asked) != 1 {
		c.t.Fatalf("got %s: %v", answer, err)
	}
	for at, one := range asked {
		name = at
		if one.Method != "elicitation/create" {
			c.t.Errorf("got %s", answer)
		}
		c.expect(string(one.Params), text)
	}

	return name, c.member(result, "requestState")
}

// brings returns the members that a modern client sends with its next call.
func brings(name, state, result string) string {
	return `"inputResponses":{"` + name + `":` + result + `},"requestState":"` + state + `",`
}

func testFormModern(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		inPlace(cfg)
	})
	c := r.pipe(t, server.Config{})
	ran := 0
	for answer, want := range answers() {
		result, is := strings.CutPrefix(answer, `"result":`)
		if !is {
			continue // such clients send no errors
		}
		args := fmt.Sprintf(`{"path":%q}`, answer)
		name, state := c.form(c.say(ableCall("1", args, withForm, "")), `files: write_file\n{\"path\":`)
		again, state := c.form(c.say(ableCall("2", args, withForm, `"requestState":"`+state+`",`)), `write_file`)
		if again != name {
			t.Errorf("asked again under %s, before under %s", again, name)
		}

		r.ran(ran)
		c.expect(c.say(ableCall("3", args, withForm, brings(name, state, result))), want)
		if strings.Contains(want, "done") {
			ran++
		}
		r.ran(ran)
		c.code(wire.CodeInvalidParams, c.say(ableCall("4", args, withForm, brings(name, state,
			`{"action":"accept","content":{"decision":"approve"}}`))))
		r.ran(ran)
	}
}

// testFormNotCounted: the client doesn't show a form if the configuration doesn't allow it, if the
// client can't, or if the call is too large.
func testFormNotCounted(t *testing.T) {
	large := `{"path":"` + strings.Repeat("a", 2000) + `"}`
	for name, c := range map[string]struct {
		change       func(*mcp.Config)
		capabilities string
		args         string
	}{
		"not configured": {func(cfg *mcp.Config) { cfg.Callers[0].InPlace = false }, withForm, write},
		"approvers":      {func(cfg *mcp.Config) { cfg.Ask = mcp.AskApprovers }, withForm, write},
		"a client":       {nil, "", write},
		"large":          {nil, withForm, large},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
				inPlace(cfg)
				short(cfg)
				if c.change != nil {
					c.change(cfg)
				}
			})
			r.noForm(c.capabilities, c.args)
		})
	}
}

// noForm checks that only the approvers are asked about a call, in both eras.
func (r *row) noForm(capabilities, args string) {
	r.t.Helper()
	legacy, modern := r.able(wire.V20251125, capabilities), r.pipe(r.t, server.Config{})
	legacy.expect(legacy.say(request("1", wire.MethodCall, `"name":"write_file","arguments":`+args)), "Not run yet.")
	answer := modern.say(ableCall("1", args, capabilities, ""))
	modern.expect(answer, `"inputRequests":{}`)
	r.ran(0)
}

func testFormTimeout(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		inPlace(cfg)
	})
	c := r.able(wire.V20251125, withForm)
	c.send(request("1", wire.MethodCall, `"name":"write_file"`))
	id, _ := c.asks(c.hear(), "write_file")
	r.Clock.Add(time.Minute)
	c.expect(c.hear(), `"method":"notifications/cancelled","params":{"requestId":`+id)
	c.expect(c.hear(), "Not run yet.")
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"decision":"approve"}}}`)
	c.expect(c.say(request("2", "ping", "")), `"id":2`)
	r.settle(t)
	r.ran(0)
}

func testM61(t *testing.T) {
	const rule = `match: {kinds: [mcp_tool], targets: [write_file]}, approval: true, require: `
	for name, require := range map[string]string{
		"stages":     `{stages: [{group: risk, people: 1}]}`,
		"quorum":     `{stages: [{group: risk, people: 2}]}`,
		"escalation": `{within: 1h, on_timeout: escalate, stages: [{group: risk, people: 1}], escalate: [{after: 30m, to: risk}]}`,
		"redaction":  `{arguments: {redact: [path]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRowOf(t, open, ruled(rule+require), script("legacy"), func(cfg *mcp.Config) {
				inPlace(cfg)
				short(cfg)
				cfg.Callers[0].Principal = "ben"
			})
			r.noForm(withForm, write)
			if id := r.pending(t).ID; approval.QuestionID(id) {
				t.Errorf("%s asks the user", id)
			}
		})
	}
}

func testM64(t *testing.T) {
	t.Run("modern", testLinkModern)
	t.Run("needed", testLinkNeeded)
	t.Run("shown", testLinkShown)
	t.Run("older", testLinkOlder)
}

// page checks that a link ends with the request's id.
func (c *client) page(text, id string) {
	c.t.Helper()
	c.expect(text, `"mode":"url"`)
	c.expect(text, `"url":"https://assent.example/requests/`+id+`"`)
}

func testLinkModern(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		short(cfg)
		linked(cfg)
	})
	c := r.pipe(t, server.Config{})
	name, state := c.form(c.say(ableCall("1", write, withURL, "")), `"mode":"url"`)
	id := r.pending(t).ID
	if name != "see_"+id {
		t.Errorf("asked under %s, expected see_%s", name, id)
	}
	answer := c.say(ableCall("2", write, withURL, brings(name, state, `{"action":"accept"}`)))
	c.expect(answer, `"inputRequests":{}`)
	r.waits(id)
	r.ran(0)
	r.approve()
	state = c.member(c.result(answer), "requestState")
	testwait.Until(t, "it runs", func() bool {
		answer = c.say(ableCall("3", write, withURL, `"requestState":"`+state+`",`))
		state = c.member(c.result(answer), "requestState")
		return strings.Contains(answer, "done")
	})
	r.ran(1)
}

func testLinkNeeded(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		inPlace(cfg)
		linked(cfg)
	})
	c := r.able(wire.V20251125, withURL)
	call := request("1", wire.MethodCall, `"name":"write_file"`)
	answer := c.say(call)
	c.code(wire.CodeURLElicitation, answer)
	id := r.pending(t).ID
	c.page(answer, id)
	r.ran(0)
	r.choose(id)
	c.expect(c.hear(), "notifications/elicitation/complete")
	r.settle(t)
	r.ran(0)
	c.expect(c.say(call), `"text":"done"`)
	r.ran(1)
}

func testLinkShown(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		linked(cfg)
	})
	c := r.able(wire.V20251125, withURL)
	c.send(request("1", wire.MethodCall, `"name":"write_file"`))
	id, params := c.asks(c.hear(), `"elicitationId":"el_`)
	waiting := r.pending(t).ID
	c.page(params, waiting)
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept"}}`)
	c.expect(c.say(request("2", "ping", "")), `"id":2`)
	r.settle(t)
	r.waits(waiting)
	r.ran(0)
	r.approve()
	both := c.hear() + c.hear()
	c.expect(both, `"text":"done"`)
	c.expect(both, "notifications/elicitation/complete")
	r.ran(1)
}

// testLinkOlder: clients before 2025-11-25 don't support links. One that shows forms gets the form.
func testLinkOlder(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		linked(cfg)
		inPlace(cfg)
	})
	c := r.able(wire.V20250618, withURL)
	call := request("1", wire.MethodCall, `"name":"write_file","arguments":`+write)
	c.expect(r.outlast(t, c, call), "Not run yet.")
	both := r.able(wire.V20251125, withBoth)
	both.send(request("1", wire.MethodCall, `"name":"write_file","arguments":{"n":1}`))
	both.asks(both.hear(), `"mode":"form"`)
	r.ran(0)
}
