package rap_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
)

func TestGatewayChecksItsConfiguration(t *testing.T) {
	h, _ := confGateway(t)
	for name, edit := range map[string]func(*gateway.Config){
		"no records":         func(c *gateway.Config) { c.Records = nil },
		"no room":            func(c *gateway.Config) { c.Namespace = "" },
		"no plan":            func(c *gateway.Config) { c.Plan = nil },
		"a short key":        func(c *gateway.Config) { c.Key = c.Key[:16] },
		"ask whom":           func(c *gateway.Config) { c.Ask = "everybody" },
		"no desk":            func(c *gateway.Config) { c.Ask = gateway.AskBoth },
		"a negative bound":   func(c *gateway.Config) { c.MaxOpen = -1 },
		"a relative address": func(c *gateway.Config) { c.PublicURL = "/tools" },
		"an odd scheme":      func(c *gateway.Config) { c.PublicURL = "ftp://tools.example" },
		"a user":             func(c *gateway.Config) { c.PublicURL = "https://me@tools.example" },
		"a query":            func(c *gateway.Config) { c.PublicURL = "https://tools.example/?a=1" },
		"no operations":      func(c *gateway.Config) { c.Operations = nil },
		"names twice":        func(c *gateway.Config) { c.Operations = append(c.Operations, c.Operations[0]) },
		"no schema":          func(c *gateway.Config) { c.Operations[0].InputSchema = nil },
		"nothing to run":     func(c *gateway.Config) { c.Operations[0].Run = nil },
		"no callers":         func(c *gateway.Config) { c.Callers = nil },
		"a caller twice":     func(c *gateway.Config) { c.Callers = append(c.Callers, c.Callers[0]) },
		"a token in clear":   func(c *gateway.Config) { c.Callers[0].TokenHash = "secret" },
		"no callback origin": func(c *gateway.Config) { c.Callers[0].Callbacks = peer.Config{} },
		"signed by nothing": func(c *gateway.Config) {
			c.Callers[0].TokenHash, c.Callers[0].AnswersSigned = "", true
		},
	} {
		cfg := h.cfg
		cfg.Operations, cfg.Callers = slices.Clone(cfg.Operations), slices.Clone(cfg.Callers)
		edit(&cfg)
		if _, err := gateway.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A caller without a token must be a program on this machine. A proxy, a browser or a request
// for another host name is refused.
func TestAProxyIsNotLocal(t *testing.T) {
	h, r := confGateway(t, func(cfg *gateway.Config) {
		cfg.Callers = append(cfg.Callers, gateway.Caller{Name: "local", Callbacks: cfg.Callers[0].Callbacks})
	})
	asks := func(what string, want int, change func(*http.Request)) {
		t.Helper()
		req := httptest.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			"http://127.0.0.1:7718/.well-known/rap-toolset",
			nil,
		)
		req.RemoteAddr = "127.0.0.1:1"
		change(req)
		w := httptest.NewRecorder()
		h.gateway.ServeHTTP(w, req)
		if w.Code != want || want == 200 && !strings.Contains(w.Body.String(), h.cfg.PublicURL+"/invoke") {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	header := func(name string, values ...string) func(*http.Request) {
		return func(req *http.Request) { req.Header[http.CanonicalHeaderKey(name)] = values }
	}

	for from, want := range map[string]int{
		"127.0.0.1:1":          200,
		"[::1]:1":              200,
		"[::ffff:127.0.0.1]:1": 200,
		"203.0.113.9:1":        401,
		"":                     401,
	} {
		asks("from "+from, want, func(req *http.Request) { req.RemoteAddr = from })
	}

	for _, scheme := range []string{"Bearer ", "bearer "} {
		asks("its token from afar", 200, func(req *http.Request) {
			req.RemoteAddr, req.Host = "203.0.113.9:1", "forged.example"
			header("Authorization", scheme+r.token)(req)
		})
	}

	for _, given := range [][]string{
		{"Bearer other"},
		{"Bearer " + h.cfg.Callers[0].TokenHash},
		{"Bearer "},
		{"Bearer " + r.token, "Bearer x"},
		{"Basic " + r.token},
	} {
		asks(strings.Join(given, " and "), 401, header("Authorization", given...))
	}

	asks("a page", 401, header("Origin", "https://evil.example"))

	for _, name := range []string{
		"X-Real-IP", "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded",
		"X-Original-Host", "CF-Connecting-IP", "CF-Ray",
		"True-Client-IP", "X-Client-IP", "Fastly-Client-IP", "X-Envoy-External-Address", "CDN-Loop", "X-Amzn-Trace-Id",
		"Client-IP",
	} {
		asks(name, 401, header(name, "x"))
		asks(name+" without a value", 401, header(name, ""))
		asks(name+" with a token", 200, func(req *http.Request) {
			header(name, "x")(req)
			header("Authorization", "Bearer "+r.token)(req)
		})
	}

	for _, name := range []string{"User-Agent", "Accept", "Content-Type", "X-Request-Id", "Traceparent"} {
		asks(name, 200, header(name, "x"))
	}

	asks("HTTP/1.0", 401, func(req *http.Request) { req.ProtoMinor = 0 })
	for host, want := range map[string]int{
		"localhost:7718":    200,
		"[::1]:7718":        200,
		"127.0.0.1":         200,
		"evil.example":      401,
		"files.example.com": 401,
		"10.0.0.1":          401,
		"":                  401,
	} {
		asks("host "+host, want, func(req *http.Request) { req.Host = host })
	}
}

func TestGatewayServesNothingElse(t *testing.T) {
	_, r := confGateway(t)
	for path, want := range map[string]int{
		"/invoke":                  405,
		"/close_thread":            405,
		"/cancel_tool_call":        405,
		"/tool_call_status":        405,
		"/answer/x":                405,
		"/.well-known/rap-toolset": 200,
		"/migrate":                 404,
		"/":                        404,
		"/invoke/":                 404,
	} {
		if status, _ := r.send(http.MethodGet, r.base+path, nil); status != want {
			t.Errorf("GET %s: %d", path, status)
		}
	}

	if status, _ := r.send(http.MethodPost, r.base+"/tool_call_status", []byte("{")); status != 400 {
		t.Errorf("a status of nothing: %d", status)
	}
	for _, path := range []string{"/close_thread", "/cancel_tool_call"} {
		for _, body := range []string{"", "{", "[]", `{"thread_id":1}`, strings.Repeat(" ", 1<<17)} {
			status, text := r.send(http.MethodPost, r.base+path, []byte(body))
			confAcknowledged(t, path, status, text)
		}
	}
}

// A call whose caller is no longer configured does not run, and its question can't be answered.
func TestGatewayDropsOrphans(t *testing.T) {
	h, r := confGateway(t)
	c, q := r.asked()
	h.through(r)
	h.stop()
	h.cfg.Callers[0].Name = "renamed"
	h.restart()
	c.refuses(q)
	h.clock.pass(time.Hour)
	h.through(r)
	h.ran("write_file", 0)
	if c.count("") != 1 {
		t.Errorf("sent:\n%s", r.heard())
	}
}

// A session grant is not valid for another asker: here the runtime has a new owner.
func TestSessionGrantsAreTheAskersOwn(t *testing.T) {
	h, r, _ := confSession(t, gateway.SessionGrants{})
	r.in("root", "ann").free()
	h.stop()
	h.cfg.Callers[0].Person = "mara"
	h.restart()
	r.in("root", "ann").bound()
}

// The state of the approval request determines the result of a call.
func TestGatewayGoesByApprovers(t *testing.T) {
	edited := func(args string) hold.Held { return hold.Held{State: hold.Approved, Arguments: []byte(args)} }
	for name, tt := range map[string]struct {
		held hold.Held
		want string
		ran  int
	}{
		"expired":        {hold.Held{State: hold.Expired}, "Error: nobody approved the call in time; nothing was run", 0},
		"withdrawn":      {hold.Held{State: hold.Cancelled}, "Error: the approval was withdrawn; nothing was run", 0},
		"responded":      {hold.Held{State: hold.Responded, Reason: "pay it yourself"}, "pay it yourself", 0},
		"edited":         {edited(`{"amount":150}`), `done {"amount":150}`, 1},
		"edited, broken": {edited(`{"amount":"1"}`), "Error: the arguments do not fit", 0},
		"edited, small":  {edited(`{"amount":1}`), "changed since", 0},
	} {
		desk := raptest.NewDesk(t)
		h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
		c := r.call("pay", `{"amount":200}`).invoke()
		desk.Holds(1, tt.held)
		if got := c.result(); !strings.Contains(got, tt.want) || c.count("") != 1 {
			t.Errorf("%s: %q\n%s", name, got, r.heard())
		}
		h.ran("pay", tt.ran)
	}
}

// The request to approvers expires with the gateway's time limit, even if only the agent's file
// asks and requires nothing.
func TestApproversAreToldTheGatewaysTimeWhateverAsks(t *testing.T) {
	for require, want := range map[string]time.Duration{
		"":                        9 * time.Minute,
		", require: {within: 2m}": 2 * time.Minute,
		", require: {within: 2h}": 9 * time.Minute,
		", require: {stages: [{group: risk, people: 2}]}": 9 * time.Minute,
		"the agent's file alone":                          9 * time.Minute,
	} {
		desk := raptest.NewDesk(t)
		h, r := confGateway(t, confAsk(gateway.AskApprovers, desk), func(cfg *gateway.Config) {
			cfg.Within = 9 * time.Minute
		})
		if !strings.HasPrefix(require, "the") {
			h.rules(confToolsFile, "{schema_version: \"1.0.0\", policy_ref: acme.tools, description: Writes., rules: ["+
				"{id: writes, match: {targets: [write_file]}, approval: true"+require+"}]}")
		}
		r.call("write_file", confMotd).invoke()
		if got := desk.Request(1).Verdict.Within(); got <= want-time.Minute || got > want {
			t.Errorf("%q: open for %s, want %s", require, got, want)
		}
	}
}

// waits lets time pass until a call has ended.
func (h *confHarness) waits(c *confCall) string {
	h.t.Helper()
	testwait.Until(h.t, "a result", func() bool {
		h.clock.pass(time.Second)
		return c.count("tool_result") > 0
	})
	return c.result()
}

// holds waits until the gateway has stored that a number of calls wait for approvers.
func (h *confHarness) holds(calls int) {
	h.t.Helper()
	testwait.Until(h.t, "all are held", func() bool {
		due, err := h.cfg.Records.DueRecords(h.t.Context(), "harness/calls", h.cfg.Now(), 1)
		refs, failed := h.cfg.Records.ListRecords(h.t.Context(), "harness/refs", "", "", 100)
		return err == nil && failed == nil && len(due) == 0 && len(refs) == calls
	})
}

func TestGatewayCantClaim(t *testing.T) {
	t.Parallel()
	for want, claim := range map[string]error{
		"can't be used":    fmt.Errorf("%w: taken", hold.ErrNotClaimed),
		"can't be reached": errors.New("the desk is away"),
	} {
		desk := raptest.NewDesk(t)
		desk.ClaimErr = claim
		h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
		c := r.call("write_file", confMotd).invoke()
		desk.Decide(1, hold.Approved, "")
		if got := h.waits(c); !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
		h.ran("write_file", 0)
	}
}

func TestGatewayWithoutItsDesk(t *testing.T) {
	t.Parallel()
	desk := raptest.NewDesk(t)
	away := func(err error) { desk.Set(func() { desk.Fails = err }) }
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
	away(errors.New("the desk is away"))
	if got := h.waits(r.call("write_file", confMotd).invoke()); !strings.Contains(got, "can't be reached") {
		t.Errorf("result %q", got)
	}

	away(nil)
	known := r.call("write_file", confMotd).invoke()
	desk.Request(1)
	forgotten := r.call("write_file", `{"path":"x"}`).invoke()
	desk.Request(2)
	away(errors.New("the desk is away"))
	desk.Tell("")
	h.crash()
	away(nil)
	desk.Set(func() { desk.Shown[1].Ref = "another" })
	desk.Decide(1, hold.Approved, "")
	desk.Tell("ref-2")
	if got := known.result(); !strings.HasPrefix(got, "done") {
		t.Errorf("result %q", got)
	}
	if got := forgotten.fails(); !strings.Contains(got, "is not known any more") {
		t.Errorf("result %q", got)
	}
	h.ran("write_file", 1)
}

// An approval that came after the call's deadline, while no gateway was running, allows
// nothing.
func TestGatewayApprovalAfterItsTime(t *testing.T) {
	desk := raptest.NewDesk(t)
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
	c := r.call("write_file", confMotd).invoke()
	desk.Request(1)
	h.holds(1)
	h.stop()
	h.clock.pass(time.Hour)
	desk.Decide(1, hold.Approved, "")
	h.restart()
	if got := c.fails(); !strings.Contains(got, "in time") {
		t.Errorf("result %q", got)
	}
	desk.Dropped(1)
	h.ran("write_file", 0)
}

// A notification about one approval causes one look, however many calls wait, also after a
// restart. The clock is stopped, so that there are no periodic checks.
func TestGatewayFollowsTheDesk(t *testing.T) {
	desk := raptest.NewDesk(t)
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk), func(cfg *gateway.Config) {
		at := time.Now()
		cfg.Now = func() time.Time { return at }
	})
	looks := func() (n int) {
		desk.Set(func() { n = desk.Looks })
		return n
	}
	calls := make([]*confCall, 40)
	for n := range calls {
		calls[n] = r.call("write_file", confMotd).invoke()
		desk.Request(n + 1)
	}
	h.holds(len(calls))
	for n := range 4 {
		before := looks()
		if n == 2 {
			h.restart()
			testwait.Until(t, "a look at all that wait", func() bool { return looks() == before+len(calls)-2 })
			before = looks()
		}
		desk.Decide(n+1, hold.Approved, "")
		calls[n].result()
		if looks := looks() - before; looks != 1 {
			t.Errorf("%d looks at what one was said of", looks)
		}
		desk.Tell("req_of_another_house")
	}
}
