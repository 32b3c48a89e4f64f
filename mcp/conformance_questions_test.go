package mcp_test

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// Questions of a server.
const (
	askName = `{"method":"elicitation/create","params":{"mode":"form","message":"Your \u202ename?",` +
		`"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	askModel = `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	askRoots = `{"method":"roots/list"}`
)

// curious returns a server whose tools read_file, which is allowed, and write_file, which is not,
// ask before they answer.
func curious(era, asks string) mcptest.Script {
	s := script(era)
	s.Asks = asks
	s.Does = map[string]string{"read_file": mcptest.Question, "write_file": mcptest.Question}
	return s
}

// relays makes a gateway relay everything.
func relays(cfg *mcp.Config) {
	cfg.Servers[0].Questions = mcp.Questions{Elicitation: true, Sampling: true, Roots: []string{"file:///srv"}}
}

// ask makes a call of a modern client that can be asked.
func ask(id, name, able, more string) string {
	call := modernCall(id, name, "{}", more)
	return strings.Replace(call, `clientCapabilities":{}`, `clientCapabilities":{`+able+`}`, 1)
}

const withAll = withBoth + `,"sampling":{}`

// testM19: a modern server gets, for each call, the client's capabilities that the configuration
// relays. A legacy one gets all that the configuration relays.
func testM19(t *testing.T) {
	r := newRow(t, script("modern"), relays)
	c := r.pipe(t, server.Config{})
	for able, want := range map[string]string{
		withForm:                       `{"elicitation":{"form":{}},"roots":{}}`,
		withAll:                        `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`,
		`"roots":{"listChanged":true}`: `{"roots":{}}`,
	} {
		c.expect(c.say(ask("1", "read_file", able, "")), "done")
		r.declared(want)
	}

	off := newRow(t, script("modern"), nil)
	off.pipe(t, server.Config{}).say(ask("1", "read_file", withAll, ""))
	off.declared(`{}`)

	asks := mcp.Questions{Elicitation: true}
	u := mcptest.New(t, script("legacy"))
	s := started(t, u, func(cfg *upstream.Config) { cfg.Capabilities = asks.Declared() })
	must.Get(s.List(t.Context(), "tools/list"))(t)
	if got := string(u.Got()); !strings.Contains(got, `"capabilities":{"elicitation":{"form":{},"url":{}}}`) {
		t.Errorf("the server was told %s", got)
	}
}

// declared checks the capabilities that the last call declared to the server.
func (r *row) declared(want string) {
	r.t.Helper()
	calls := r.u.Calls()
	meta := jsonmsg.Get([]byte(calls[len(calls)-1]), "_meta")
	if got := string(jsonmsg.Get(meta, wire.KeyCapabilities)); got != want {
		r.t.Errorf("the server was told %s, expected %s", got, want)
	}
}

// testM85: a server's messages reach the client only if they are relayed. They have the alias
// before them, and approve nothing.
func testM85(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"defaults":  testNothingRelayed,
		"legacy":    testAskedInTheCall,
		"modern":    testAskedByResults,
		"roots":     testRootsOfTheGateway,
		"theirs":    testRootsOfTheClient,
		"approvals": testNoAnswerApproves,
		"incapable": testClientThatCannotBeAsked,
		"foreign":   testStateOfAnotherCall,
		"approved":  testAskedWhenApproved,
		"resources": testPseudoToolAsks,
		"parked":    testAskedWhileTheCallIsOpen,
		"untold":    testApprovedCallsOfModernClientsAskNothing,
		"abandoned": testAbandonedQuestionsAreForgotten,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func testNothingRelayed(t *testing.T) {
	for _, asks := range []string{askModel, askRoots} {
		r := newRow(t, curious("legacy", asks), func(cfg *mcp.Config) {
			cfg.Servers[0].Questions = mcp.Questions{Elicitation: true}
		})
		c := r.able(wire.V20251125, withAll)
		c.expect(c.call("read_file", "{}"), "-32601")
		m := newRow(t, curious("modern", asks), nil)
		c = m.pipe(t, server.Config{})
		c.expect(c.say(ask("1", "read_file", withAll, "")), "may have run in part")
	}
}

func testAskedInTheCall(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		r := newRow(t, curious(era, askName), relays)
		c := r.able(wire.V20251125, withForm)
		c.send(request("7", wire.MethodCall, `"name":"read_file","arguments":{}`))
		id, params := c.asks(c.hear(), `"message":"files asks: Your name?"`)
		c.expect(params, `"requestedSchema":{"type":"object"`)
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"name":"Ann"}}}`)
		answer := c.hear()
		c.expect(answer, `"id":7`)
		c.expect(answer, `\"name\":\"Ann\"`)
	}
}

func testAskedByResults(t *testing.T) {
	r := newRow(t, curious("modern", askName), relays)
	c := r.pipe(t, server.Config{})
	answer := c.say(ask("1", "read_file", withForm, ""))
	c.expect(answer, `"inputRequests":{"q":{"method":"elicitation/create"`)
	c.expect(answer, `"message":"files asks: Your name?"`)
	if strings.Contains(answer, "their own") {
		t.Errorf("the server's state is shown: %s", answer)
	}
	state := c.member(c.result(answer), "requestState")
	answer = c.say(ask("2", "read_file", withForm, `"inputResponses":{"q":{"action":"accept","content":{"name":"Ann"}},`+
		`"other":{"action":"accept"}},"requestState":"`+state+`",`))
	c.expect(answer, `their own {\"q\":{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}}`)
	c.code(wire.CodeInvalidParams, c.say(ask("3", "read_file", withForm, `"requestState":"`+state+`",`)))
	r.ran(2)
}

func testRootsOfTheGateway(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		r := newRow(t, curious(era, askRoots), relays)
		c := r.pipe(t, server.Config{})
		if era == "legacy" {
			c = r.able(wire.V20251125, `"roots":{}`)
			c.expect(c.call("read_file", "{}"), `file:///srv`)
			continue
		}
		c.expect(c.say(ask("1", "read_file", withForm, "")), `file:///srv`)
	}
}

// testRootsOfTheClient: the client's roots reach servers for which that is configured. A client
// without roots gets the gateway's answer.
func testRootsOfTheClient(t *testing.T) {
	theirs := func(cfg *mcp.Config) {
		cfg.Servers[0].Questions = mcp.Questions{Roots: []string{"file:///srv"}, ClientRoots: true}
	}
	for _, era := range []string{"legacy", "modern"} {
		r := newRow(t, curious(era, askRoots), theirs)
		c := r.able(wire.V20251125, `"roots":{}`)
		c.send(request("7", wire.MethodCall, `"name":"read_file","arguments":{}`))
		m, _ := wire.Parse([]byte(c.hear()), wire.Limits())
		if m.Method != "roots/list" {
			t.Fatalf("the client is asked %s", m.Method)
		}
		c.send(`{"jsonrpc":"2.0","id":` + m.ID.Text() + `,"result":{"roots":[{"uri":"file:///mine"}]}}`)
		c.expect(c.hear(), `file:///mine`)
		young := r.pipe(t, server.Config{})
		young.expect(young.say(ask("2", "read_file", withForm, "")), `file:///srv`)
		young.expect(young.say(ask("1", "read_file", `"roots":{}`, "")), `"method":"roots/list"`)
	}
}

// testNoAnswerApproves: accepting a question of a server doesn't run a call that asks people.
func testNoAnswerApproves(t *testing.T) {
	r := newRow(t, curious("modern", askName), func(cfg *mcp.Config) {
		relays(cfg)
		short(cfg)
	})
	c := r.pipe(t, server.Config{})
	state := c.member(c.result(c.say(ask("1", "read_file", withForm, ""))), "requestState")
	more := `"inputResponses":{"q":{"action":"accept","content":{"decision":"approve"}}},"requestState":"` + state + `",`
	c.code(wire.CodeInvalidParams, c.say(ask("2", "write_file", withForm, more)))
	c.state(c.say(ask("3", "write_file", withForm, "")))
	r.pending(t)
	r.ran(1)
}

// testClientThatCannotBeAsked: the user made no choice, so the server gets a cancel.
func testClientThatCannotBeAsked(t *testing.T) {
	r := newRow(t, curious("legacy", askName), relays)
	c := r.connect(t)
	c.expect(c.call("read_file", "{}"), `"action":"cancel"`)
	young := r.pipe(t, server.Config{})
	young.expect(young.say(ask("1", "read_file", withURL, "")), `\"action\":\"cancel\"`)
}

func testStateOfAnotherCall(t *testing.T) {
	r := newRow(t, curious("modern", askName), func(cfg *mcp.Config) {
		relays(cfg)
		two(cfg)
	})
	c := r.pipe(t, server.Config{})
	state := c.member(c.result(c.say(ask("1", "read_file", withForm, ""))), "requestState")
	more := `"inputResponses":{"q":{"action":"accept"}},"requestState":"`
	other := ask("2", "read_file", withForm, more+state+`",`)
	other = strings.Replace(other, `"arguments":{}`, `"arguments":{"n":1}`, 1)
	c.code(wire.CodeInvalidParams, c.say(other))
	c.code(wire.CodeInvalidParams, c.say(ask("3", "read_file", withForm, more+state[:len(state)-2]+`AA",`)))
	r.ran(1)
}

// testAskedWhenApproved: a call that runs after an approval may ask a legacy client that waits. If
// the client can't be asked, the result explains that.
func testAskedWhenApproved(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		r := newRow(t, curious(era, askName), func(cfg *mcp.Config) {
			relays(cfg)
			long(cfg)
		})
		c := r.able(wire.V20251125, withForm)
		c.send(request("7", wire.MethodCall, `"name":"write_file","arguments":{}`))
		r.pending(t)
		r.approve()
		id, _ := c.asks(c.hear(), "files asks:")
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"decline"}}`)
		c.expect(c.hear(), `\"action\":\"decline\"`)
	}
}

func testPseudoToolAsks(t *testing.T) {
	r := newRow(t, curious("modern", askName), relays)
	c := r.pipe(t, server.Config{})
	call := request("1", wire.MethodPrompt, `"name":"p","requestState":"q1.AAAA",`+metaPlain)
	c.code(wire.CodeInvalidParams, c.say(call))
}

// testM86: a server can't send a user to a page where people approve, nor to a page that is not on
// the web.
func testM86(t *testing.T) {
	r := newRow(t, curious("legacy", ""), func(cfg *mcp.Config) {
		relays(cfg)
		linked(cfg)
		cfg.Own = []string{"https://gate.example/mcp"}
	})
	c := r.able(wire.V20251125, withURL)
	for address, fine := range map[string]bool{
		"https://bank.example/pay":              true,
		"https://assent.example/requests/apr_1": false,
		"https://ASSENT.example:8443/x":         false,
		"https://gate.example/mcp":              false,
		"https://assent.example./x":             false,
		"https://assent\u3002example/x":         false,
		"https://ａssent.example/x":              false,
		"http://bank.example/pay":               false,
		"javascript:alert(1)":                   false,
		"https://user:secret@bank.example/":     false,
		"//bank.example":                        false,
		"":                                      false,
	} {
		asks := `{"method":"elicitation/create","params":{"mode":"url","message":"Pay?","elicitationId":"theirs","url":"` +
			address + `"}}`
		r.u.Rewrite(curious("legacy", asks))
		c.send(request("7", wire.MethodCall, `"name":"read_file","arguments":{}`))
		line := c.hear()
		if !fine {
			c.expect(line, `\"action\":\"cancel\"`)
			continue
		}
		id, params := c.asks(line, address)
		c.expect(params, `"message":"files asks: Pay?"`)
		if strings.Contains(params, "theirs") {
			t.Errorf("the client is shown %s", params)
		}
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept"}}`)
		c.expect(c.hear(), `\"action\":\"accept\"`)
	}

	testLinkInAnError(t)
}

func testLinkInAnError(t *testing.T) {
	for address, code := range map[string]int{
		"https://bank.example/pay": wire.CodeURLElicitation,
		"http://bank.example/pay":  wire.CodeInternal,
	} {
		s := script("legacy")
		s.Errors = map[string]string{"read_file": `{"code":-32042,"message":"Pay first","data":{"elicitations":[` +
			`{"mode":"url","message":"Pay?","elicitationId":"theirs","url":"` + address + `"}]}}`}
		r := newRow(t, s, relays)
		c := r.able(wire.V20251125, withURL)
		c.code(code, c.say(request("1", wire.MethodCall, `"name":"read_file"`)))
	}
}

// testAskedWhileTheCallIsOpen: a legacy server waits until a modern client brings the answer.
func testAskedWhileTheCallIsOpen(t *testing.T) {
	r := newRow(t, curious("legacy", askName), relays)
	c := r.pipe(t, server.Config{})
	answer := c.say(ask("1", "read_file", withForm, ""))
	c.expect(answer, `"message":"files asks: Your name?"`)
	state := c.member(c.result(answer), "requestState")
	back := ask("2", "read_file", withForm, `"inputResponses":{"question":{"action":"accept","content":{"name":"Ann"}}},`+
		`"requestState":"`+state+`",`)
	c.expect(c.say(back), `\"name\":\"Ann\"`)
	c.code(wire.CodeInvalidParams, c.say(back))
	r.ran(1)
}

// testM57: a server's own task is followed, and the client gets one answer without any trace of the
// task.
func testM57(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		for ends, want := range map[string]string{
			"":               `"text":"done"`,
			"cancelled":      "This call may have run",
			"input_required": "This call may have run",
		} {
			r := newRow(t, tasking(era, ends), nil)
			c := r.connect(t)
			answer := c.say(request("1", wire.MethodCall, `"name":"read_file"`))
			c.expect(answer, want)
			c.no(answer, "theirs")
			r.ran(1)
			if cancels := r.u.Params("tasks/cancel"); (len(cancels) == 1) != (ends != "") {
				t.Errorf("%s, %q: cancelled by %q", era, ends, cancels)
			}
		}
	}

	broken := newRow(t, tasking("modern", "failed"), nil)
	c := broken.connect(t)
	c.expect(c.say(request("1", wire.MethodCall, `"name":"read_file"`)), `"message":"broken"`)

	asked := newRow(t, tasking("legacy", ""), nil)
	task := asked.pipe(t, server.Config{})
	id := task.begins(`{"n":1}`)
	asked.approve()
	if answer := task.ended(id); strings.Contains(answer, "theirs") || !strings.Contains(answer, `"text":"done"`) {
		t.Errorf("the task came to %s", answer)
	}
}

// tasking returns a server whose tools answer with tasks. One of the tools can only be called as a
// task.
func tasking(era, ends string) mcptest.Script {
	s := script(era)
	s.TaskEnds = ends
	s.Does = map[string]string{"read_file": mcptest.Task, "write_file": mcptest.Task}
	return s
}

// testApprovedCallsOfModernClientsAskNothing: no capabilities are declared to a server if the
// client can't be asked.
func testApprovedCallsOfModernClientsAskNothing(t *testing.T) {
	asks := mcp.Questions{Elicitation: true}
	u := mcptest.New(t, script("modern"))
	w := newWorld(t, func(cfg *mcp.Config) {
		cfg.Servers[0].Questions = asks
		cfg.Servers[0].Upstream = started(t, u, func(cfg *upstream.Config) { cfg.Capabilities = asks.Declared() })
		long(cfg)
	})
	r := &row{world: w, t: t, u: u}
	c := r.pipe(t, server.Config{})
	c.send(ask("1", "write_file", withForm, ""))
	r.pending(t)
	r.approve()
	c.expect(c.hear(), `"text":"done"`)
	r.declared(`{}`)
}

// testAbandonedQuestionsAreForgotten: questions are removed when their calls have ended, and the
// ends of these calls are in the ledger.
func testAbandonedQuestionsAreForgotten(t *testing.T) {
	book := &ledger{}
	r := newRow(t, curious("legacy", askName), func(cfg *mcp.Config) {
		relays(cfg)
		cfg.RunWithin = 3 * time.Second
		book.keep(cfg)
	})
	c := r.pipe(t, server.Config{})
	const most = 100
	state := ""
	for n := range most {
		answer := c.say(ask(strconv.Itoa(n+1), "read_file", withForm, ""))
		state = cmp.Or(c.member(c.result(answer), "requestState"), state)
	}
	testwait.Until(t, "the calls have ended", func() bool { return book.count("mcp_call_ran") == most })

	c.no(c.say(ask(strconv.Itoa(most+1), "read_file", withForm, "")), "can't be asked here")
	c.expect(c.say(ask(`"late"`, "read_file", withForm, `"requestState":"`+state+`",`)), "may have run in part")
}
