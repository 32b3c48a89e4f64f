package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/sse"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/mcptest/gosdk"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// openAgent allows every tool of a server.
const openAgent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Lets everything run.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  mcp_servers: [{alias: files, server_ref: files, description: All of it.}]
execution_policy: {id: agf.react, config: {instructions: Anything., model: any}}
`

// asked is a request of the script with its params without _meta.
type asked struct{ method, params string }

// everything returns requests for all features of a server.
func everything() []asked {
	out := []asked{
		{"tools/list", ""},
		{"resources/list", ""},
		{"resources/templates/list", ""},
		{"prompts/list", ""},
		{wire.MethodCall, `"name":"echo","arguments":{"b":9007199254740993,"a":[1.50,null,"\u00e9\/"]},` + sentMeta},
		{wire.MethodCall, `"name":"reports",` + sentMeta},
		{wire.MethodCall, `"name":"nosuch"`},
		{wire.MethodPrompt, `"name":"greet","arguments":{"whom":"Mara"}`},
		{wire.MethodPrompt, `"name":"nosuch"`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"whom","value":"Ma"}`},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"test://of/{id}"},"argument":{"name":"id","value":"1"}`},
	}
	for _, name := range []string{"text", "image", "audio", "resource", "link", "mixed", "nothing", "fails", "breaks"} {
		out = append(out, asked{wire.MethodCall, `"name":"` + name + `"`})
	}
	for _, uri := range []string{"test://text", "test://bytes", "test://of/7", "test://nosuch"} {
		out = append(out, asked{wire.MethodRead, `"uri":"` + uri + `"`})
	}
	return out
}

// sentMeta is an example of the _meta that a client may send with a call.
const sentMeta = `"_meta":{"progressToken":"p","example.com/sent":{"x":[1]}}`

// text returns the request in the form of an era.
func (a asked) text(id int, modern bool) string {
	params := a.params
	if modern {
		var found bool
		params, found = strings.CutSuffix(params, "}")
		switch meta := metaPlain[len(`"_meta":{`):]; {
		case strings.Contains(params, `"_meta"`):
			params += "," + meta
		case found:
			params += "}," + metaPlain
		default:
			params = strings.TrimPrefix(params+","+metaPlain, ",")
		}
	}

	return request(fmt.Sprint(id), a.method, params)
}

// name returns the value of the request's name header, or an empty string if there is none.
func (a asked) name() string {
	var params struct{ Name, URI string }
	_ = json.Unmarshal([]byte("{"+a.params+"}"), &params)
	if a.method == wire.MethodRead {
		return params.URI
	}
	if strings.HasPrefix(a.method, "completion/") {
		return ""
	}
	return params.Name
}

// heard returns all messages that belong to a request: notifications and the answer.
type heard func(a asked, id int) []string

// byPipe makes requests on a pipe.
func (c *client) byPipe(modern bool) heard {
	return func(a asked, id int) []string {
		c.send(a.text(id, modern))
		before, answer := c.hearUntil(fmt.Sprintf(`"id":%d`, id))
		return append(before, answer)
	}
}

// byHTTP makes requests at an address.
func (w *web) byHTTP(modern bool) heard {
	var session []string
	if !modern {
		session = w.open(wire.V20251125)
		w.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	}
	return func(a asked, id int) (all []string) {
		headers := session
		if modern {
			headers = modernHeaders(a.method, a.name())
		}
		resp := w.post(a.text(id, modern), headers...)
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			return []string{w.expect(resp.StatusCode, "", resp)}
		}
		for e, err := range sse.Read(resp.Body, 1<<20, func() {}) {
			if err != nil {
				w.t.Fatal(err)
			}
			if len(e.Data) > 0 {
				all = append(all, string(e.Data))
			}
		}

		return all
	}
}

// direct starts a third-party server and connects to it without the gateway.
func direct(t *testing.T, overHTTP, modern bool) (heard, upstream.Config) {
	t.Helper()
	if !overHTTP {
		cfg := upstream.Config{Command: []string{os.Args[0]}, Env: []string{gosdk.Variable + "=1",
			"GORACE=atexit_sleep_ms=0"}}
		c := program(t, cfg)
		if !modern {
			c.say(initialize(wire.V20251125))
			c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		cfg.Era = eraOf(modern)
		return c.byPipe(modern), cfg
	}

	w := &web{t: t, url: site(t, gosdk.Streamable(!modern)), client: &http.Client{Transport: &http.Transport{}}}
	return w.byHTTP(modern), upstream.Config{URL: w.url, Era: eraOf(modern)}
}

func eraOf(modern bool) string {
	if modern {
		return upstream.Modern
	}
	return upstream.Legacy
}

// program starts a server's program, and is a client at its pipes.
func program(t *testing.T, cfg upstream.Config) *client {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cfg.Command[0])
	cmd.Env = append(cfg.Env, "GOCOVERDIR="+t.TempDir())
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &client{t: t, in: in, lines: bufio.NewScanner(out)}
}

// through connects to the same server through the gateway.
func through(t *testing.T, cfg upstream.Config, overHTTP, modern bool) heard {
	t.Helper()
	w := newWorldOf(t, openAgent, policyFile, func(all *mcp.Config) {
		all.Servers[0].Upstream = startedOf(t, cfg)
		all.Servers[0].PassMeta = []string{"*"}
	})
	r := &row{world: w, t: t}
	if overHTTP {
		return r.web().byHTTP(modern)
	}
	if !modern {
		return r.connect(t).byPipe(false)
	}
	return r.pipe(t, server.Config{}).byPipe(true)
}

func testM21(t *testing.T) {
	for _, overHTTP := range []bool{false, true} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprintf("http=%t,modern=%t", overHTTP, modern), func(t *testing.T) {
				t.Parallel()
				without, cfg := direct(t, overHTTP, modern)
				same(t, without, through(t, cfg, overHTTP, modern))
			})
		}
	}

	t.Run("http of 2024-11-05", func(t *testing.T) {
		t.Parallel()
		without, _ := direct(t, false, false)
		same(t, without, through(t, upstream.Config{URL: site(t, gosdk.Old())}, false, false))
	})
}

// same checks that all requests have the same answers.
func same(t *testing.T, without, with heard) {
	t.Helper()
	for i, a := range everything() {
		want, got := essence(t, without(a, i+1)), essence(t, with(a, i+1))
		if strings.Contains(a.params, `"reports"`) && len(want) != 4 {
			t.Errorf("%d messages came, expected 3 reports and the answer", len(want))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s:\ngot      %v\nexpected %v", a.method, a.params, got, want)
		}
	}
}

// site serves a handler by HTTP, and closes open streams at the end of the test.
func site(t *testing.T, h http.Handler) string {
	t.Helper()
	at := httptest.NewServer(h)
	t.Cleanup(func() {
		at.CloseClientConnections()
		at.Close()
	})
	return at.URL
}

// essence returns the content of messages without the envelope: without ids, what a peer reports
// about itself, how long an answer may be kept, and the texts of the gateway's own errors.
func essence(t *testing.T, messages []string) (all []any) {
	t.Helper()
	for _, text := range messages {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		delete(m, "id")
		if result, is := m["result"].(map[string]any); is {
			bare(result)
		}
		if bad, is := m["error"].(map[string]any); is && fmt.Sprint(bad["code"]) != "17" {
			m["error"] = bad["code"]
		}
		all = append(all, m)
	}

	return all
}

// bare removes what belongs to a single hop from a result.
func bare(result map[string]any) {
	delete(result, "ttlMs")
	delete(result, "cacheScope")
	if meta, is := result["_meta"].(map[string]any); is {
		delete(meta, wire.KeyServerInfo)
		if len(meta) == 0 {
			delete(result, "_meta")
		}
	}

	tools, _ := result["tools"].([]any)
	for _, one := range tools {
		delete(one.(map[string]any), "execution") // the gateway has tasks of its own
	}
}

// refScript returns a modern server whose tools have marks. One tool can't be used, and one schema
// refers to another address.
func refScript(elsewhere string) mcptest.Script {
	s := script("modern")
	s.Tools = nil
	for name, properties := range map[string]string{
		"marked": `"text":{"type":"string","x-mcp-header":"Text"},"n":{"type":"integer","x-mcp-header":"N"},` +
			`"yes":{"type":"boolean","x-mcp-header":"Yes"},"no":{"type":"string","x-mcp-header":"No"}`,
		"twice":   `"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}`,
		"unnamed": `"a":{"type":"string","x-mcp-header":"not a token"}`,
		"list":    `"a":{"type":"array","x-mcp-header":"A"}`,
		"refers":  `"a":{"$ref":"` + elsewhere + `/schema.json"}`,
	} {
		s.Tools = append(s.Tools, json.RawMessage(
			`{"name":"`+name+`","inputSchema":{"type":"object","properties":{`+properties+`}}}`))
	}

	return s
}

func testM22(t *testing.T) {
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	r := newSiteRowOf(t, openAgent, refScript(elsewhere.URL), nil, nil)
	c := r.sdk()
	if c.Version() != wire.V20260728 {
		t.Fatalf("the client speaks %s", c.Version())
	}
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) != 2 || !strings.Contains(tools["refers"], elsewhere.URL+"/schema.json") {
		t.Errorf("the client is offered %q, %v", tools, err)
	}
	for _, do := range []func() (string, error){
		func() (string, error) {
			return c.Call(t.Context(), "marked", map[string]any{
				"text": " größe",
				"n":    -7,
				"yes":  true,
				"no":   nil,
			})
		},
		func() (string, error) { return c.Call(t.Context(), "refers", map[string]any{"a": 1}) },
		func() (string, error) { return c.Read(t.Context(), "test://größe") },
		func() (string, error) { return c.Prompt(t.Context(), "greet") },
	} {
		if _, err := do(); err != nil {
			t.Error(err)
		}
	}

	r.repeated(wire.MethodCall, "marked", map[string]string{
		"Text": "=?base64?IGdyw7bDn2U=?=",
		"N":    "-7",
		"Yes":  "true",
	})
	r.repeated(wire.MethodCall, "refers", nil)
	r.repeated(wire.MethodRead, "=?base64?dGVzdDovL2dyw7bDn2U=?=", nil)
	r.repeated(wire.MethodPrompt, "greet", nil)
	r.described()
	if n := visits.Load(); n > 0 {
		t.Errorf("a schema's address was visited %d times", n)
	}
}

// sdk returns the Go SDK's client, connected to the gateway.
func (r *siteRow) sdk() *gosdk.Client {
	r.t.Helper()
	w := r.web()
	c := must.Get(gosdk.Connect(r.t.Context(), w.url, &http.Client{Transport: shown{w.client.Transport}}))(r.t)
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// repeated checks that there is one request with a method and a name in its headers, and with
// headers for its arguments.
func (r *siteRow) repeated(method, name string, params map[string]string) {
	r.t.Helper()
	found := 0
	for _, v := range r.site.Visits(method) {
		if v.Header.Get("Mcp-Name") != name {
			continue
		}
		found++
		got := map[string]string{}
		for key := range v.Header {
			if short, is := strings.CutPrefix(key, "Mcp-Param-"); is {
				got[short] = v.Header.Get(key)
			}
		}
		if v.Header.Get("Mcp-Method") != method || !maps.Equal(got, params) {
			r.t.Errorf("%s %s came with the headers %v", method, name, v.Header)
		}
	}

	if found != 1 {
		r.t.Errorf("%s %s came %d times", method, name, found)
	}
}

// described checks that each request to the server has the members that a modern one must have.
func (r *siteRow) described() {
	r.t.Helper()
	for _, method := range []string{
		"server/discover", "tools/list", wire.MethodCall, wire.MethodRead, wire.MethodPrompt,
	} {
		visits := r.site.Visits(method)
		if len(visits) == 0 {
			r.t.Errorf("%s never came", method)
		}
		for _, v := range visits {
			meta, bad := wire.ReadMeta(v.Message.Params)
			if bad != nil || meta.Version != wire.V20260728 || meta.Capabilities == nil || meta.ClientInfo == nil ||
				v.Header.Get("Mcp-Protocol-Version") != wire.V20260728 {
				r.t.Errorf("%s with %v", v.Text, v.Header)
			}
		}
	}
}

// shown makes a client send the token of a caller.
type shown struct{ http.RoundTripper }

func (s shown) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer desk")
	return s.RoundTripper.RoundTrip(r)
}
