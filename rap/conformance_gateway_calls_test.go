package rap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/resolve"
)

func confT17(t *testing.T) {
	h, r := confGateway(t)
	open := h.ops["write_file"].block()
	c := r.call("write_file", confMotd)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if status := c.post(); status != http.StatusOK {
				t.Errorf("one of eight at once: %d", status)
			}
		})
	}

	wg.Wait()
	q := c.choice()
	c.invoke() // while awaiting
	h.through(r)
	if c.count("user_choice") != 1 {
		t.Fatalf("asked more than once:\n%s", r.heard())
	}
	c.picks(q, 0)
	h.ops["write_file"].begun(t, 1)
	c.invoke() // during the run
	h.through(r)
	open()
	if got := c.result(); got != "done "+confMotd {
		t.Errorf("the result is %q", got)
	}
	c.invoke() // after the result
	h.through(r)
	if n := len(h.ops["write_file"].runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
	if results := c.bodies("tool_result"); len(results) != 1 || c.count("user_choice") != 1 {
		t.Errorf("sent:\n%s", r.heard())
	}

	h.settles()
	h.clock.pass(25 * time.Hour) // the call is no longer remembered
	c.invoke()
	c.picks(c.await("another question", 2, c.of("user_choice")), 0)
	h.ops["write_file"].begun(t, 2)
}

func confT18(t *testing.T) {
	for name, change := range map[string]func(*confInvocation){
		"other arguments": func(in *confInvocation) { in.Arguments = []byte(`{"path":"/etc/shadow"}`) },
		"other operation": func(in *confInvocation) {
			in.Operation, in.Arguments = "move_file", []byte(confMotd)
		},
		"free operation": func(in *confInvocation) {
			in.Operation, in.Arguments = "read_file", []byte(`{"path":"/etc/shadow"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := confGateway(t)
			first, q := r.asked()
			second := r.call("write_file", confMotd).with(change)
			second.in.ID = first.in.ID
			second.invoke().fails()
			h.through(r)
			if first.count("") != 1 || !r.alive(first.in.GroupID, first.in.ID) {
				t.Fatalf("the first was touched:\n%s", r.heard())
			}
			first.picks(q, 0)
			if got := first.result(); got != "done "+confMotd {
				t.Errorf("the first ended with %q", got)
			}
			late := r.call("write_file", confMotd).with(change) // and after the first has ended
			late.in.ID = first.in.ID
			late.invoke().fails()
			h.through(r)
			h.ran("write_file", 1)
			if n := len(h.ops["move_file"].runs()); n != 0 || second.count("") != 1 || first.count("tool_result") != 1 {
				t.Errorf("%d runs of the other one, sent:\n%s", n, r.heard())
			}
		})
	}
}

func confT19(t *testing.T) {
	r, beta := newConfRuntime(t, "alpha"), newConfRuntime(t, "beta")
	h := confGatewayOf(t, []*confRuntime{r, beta})
	calls := map[string]*confCall{}
	for name, of := range map[string]*confRuntime{"one": r, "two": r, "three": beta} {
		thread := map[string]string{"one": "t1", "two": "t2", "three": "t1"}[name]
		calls[name] = of.call("write_file", fmt.Sprintf(`{"path":"/%s"}`, name)).with(func(in *confInvocation) {
			in.ID, in.GroupID = "call_1", thread
		}).invoke()
	}

	secrets := map[string]bool{}
	for name, c := range calls {
		q := c.choice()
		secrets[q.secret()] = true
		if !strings.Contains(q.Prompt, "/"+name) {
			t.Errorf("%s was asked %q", name, q.Prompt)
		}
	}

	if len(secrets) != 3 {
		t.Errorf("%d tokens for three questions", len(secrets))
	}
	calls["one"].picks(calls["one"].choice(), 0)
	if got := calls["one"].result(); got != `done {"path":"/one"}` {
		t.Errorf("one ended with %q", got)
	}
	h.through(r)
	h.through(beta)
	if calls["two"].count("") != 1 || calls["three"].count("") != 1 || !beta.alive("t1", "call_1") ||
		!r.alive("t2", "call_1") {
		t.Fatal("the others were touched")
	}
	r.over("t1", "call_1")
	r.cancel("t1", "call_1")
	beta.cancel("t2", "call_1")
	calls["three"].picks(calls["three"].choice(), *calls["three"].choice().Default)
	calls["three"].fails()
	calls["two"].picks(calls["two"].choice(), 0)
	if got := calls["two"].result(); got != `done {"path":"/two"}` {
		t.Errorf("two ended with %q", got)
	}
	h.ran("write_file", 2)
}

func confT20(t *testing.T) {
	h, r := confGateway(t)
	for name, c := range map[string]*confCall{
		"unknown operation":     r.call("format_disk", `{}`),
		"operation in capitals": r.call("Write_file", confMotd),
		"no operation":          r.call("", confMotd),
		"wrong type":            r.call("write_file", `{"path":7}`),
		"stale schema":          r.call("write_file", `{"path":"/a","mode":"0644"}`),
		"missing, no question":  r.call("read_file", `{}`),
		"denied by the plan":    r.call("drop_table", `{}`),
		"more than the user":    r.call("deploy", `{}`),
		"arguments as an array": r.call("read_file", `["/a"]`),
		"a name twice":          r.call("pay", `{}`).written(`{"amount":1,"amount":900}`),
		"names that fold alike": r.call("pay", `{"amount":1,"Amount":900}`),
	} {
		if status := c.post(); status != http.StatusOK {
			t.Errorf("%s: %d", name, status)
			continue
		}
		if text := c.fails(); !strings.Contains(text, map[string]string{
			"unknown operation":     "operation",
			"names that fold alike": "differ in upper and lower case alone",
		}[name]) {
			t.Errorf("%s: %q does not help", name, text)
		}

		if c.count("user_choice") != 0 {
			t.Errorf("%s: somebody was asked", name)
		}
	}

	h.through(r)
	h.stop()
	for name, op := range h.ops {
		if n := len(op.runs()); n != map[string]int{"read_file": 1}[name] { // the barrier
			t.Errorf("%s ran %d times", name, n)
		}
	}

	h, r = confGateway(t, func(cfg *gateway.Config) {
		cfg.Plan = func(context.Context) (*resolve.Plan, error) { return nil, errors.New("the rules are away") }
	})
	r.call("read_file", `{"path":"/a"}`).invoke().fails()
	h.ran("read_file", 0)
}

// written makes the call send these arguments byte for byte.
func (c *confCall) written(arguments string) *confCall {
	c.raw = fmt.Sprintf(
		`{"operation":%q,"arguments":%s,"id":%q,"call_id":null,"callback_url":%q,"group_id":%q,"thread_ancestors":null}`,
		c.in.Operation,
		arguments,
		c.in.ID,
		c.in.CallbackURL,
		c.in.GroupID,
	)
	return c
}

func confT21(t *testing.T) {
	h, r := confGateway(t, func(cfg *gateway.Config) { cfg.MaxBody = 1 << 16 })
	c := r.call("read_file", `{"path":"/a"}`)
	full := string(confJSON(t, c.in))
	without := func(field string) string {
		return strings.Replace(full, fmt.Sprintf("%q:", field), `"x_`+field+`":`, 1)
	}
	refused := map[string]string{
		"nothing":         "",
		"cut":             full[:len(full)-1],
		"more":            full + "{}",
		"no callback_url": without("callback_url"),
		"no id":           without("id"),
		"no group_id":     without("group_id"),
	}
	for name, body := range refused {
		if status, _ := r.send(http.MethodPost, r.endpoint, []byte(body)); !confRefused(status) {
			t.Errorf("%s: %d", name, status)
		}
	}
	big := strings.Replace(full, "{", `{"padding":"`+strings.Repeat("x", 1<<17)+`",`, 1)
	if status, _ := r.send(http.MethodPost, r.endpoint, []byte(big)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a big body: %d", status)
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
		status, _ := r.send(http.MethodPost, r.endpoint, []byte(full), func(req *http.Request) {
			req.Header.Set("Content-Type", kind)
		})
		if !confRefused(status) {
			t.Errorf("content type %q: %d", kind, status)
		}
	}

	if status, _ := r.send(http.MethodPost, r.endpoint, []byte(full), func(req *http.Request) {
		req.Header.Set("Content-Encoding", "gzip")
	}); status != http.StatusUnsupportedMediaType {
		t.Errorf("encoded: %d", status)
	}
	if status, _ := r.send(http.MethodGet, r.endpoint, nil); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	h.through(r)
	if c.count("") != 0 {
		t.Fatalf("a refused invocation was answered:\n%s", r.heard())
	}

	// If the callback URL can be read, the caller gets the error as a result.
	for name, change := range map[string][2]string{
		"operation a number": {`"operation":"read_file"`, `"operation":7`},
		"arguments a number": {`"arguments":{"path":"/a"}`, `"arguments":7`},
		"ancestors a string": {`"thread_ancestors":null`, `"thread_ancestors":"root"`},
		"call_id a number":   {`"call_id":null`, `"call_id":1`},
	} {
		c := r.call("read_file", `{"path":"/a"}`)
		full := string(confJSON(t, c.in))
		if c.raw = strings.Replace(full, change[0], change[1], 1); c.raw == full {
			t.Fatalf("%s: nothing changed", name)
		}
		if status := c.post(); status != http.StatusOK {
			t.Errorf("%s: %d", name, status)
			continue
		}
		c.fails()
	}

	h.stop()
	for _, job := range h.ops["read_file"].runs() {
		if string(job.Arguments) != `{"path":"barrier"}` {
			t.Errorf("ran %+v", job)
		}
	}
}

func confT22(t *testing.T) {
	h, r := confGateway(t)
	given := "fc_ü/\"1"
	for name, callID := range map[string]*string{"present": &given, "null": nil, "absent": nil} {
		c := r.call("write_file", confMotd).with(func(in *confInvocation) { in.CallID = callID })
		if name == "absent" {
			c.raw = strings.Replace(string(confJSON(t, c.in)), `"call_id":null,`, "", 1)
		}
		q := c.invoke().choice()
		c.picks(q, 0)
		c.result()
		result := c.same("tool_result", 1)
		for _, cb := range []*confCallback{q, result} {
			switch {
			case callID != nil && (cb.CallID == nil || *cb.CallID != given):
				t.Errorf("%s: not echoed: %s", name, cb.body)
			case callID == nil && cb.CallID != nil:
				t.Errorf("%s: invented: %s", name, cb.body)
			}
		}
	}

	h.ran("write_file", 3)
}

func confT23(t *testing.T) {
	h, r := confGateway(t)
	for i, odd := range []string{
		"../../etc/passwd",
		"/",
		"a/b?c#d%2e%00",
		"Zoë 日本 🙂 \u202e",
		"\u0000",
		" lead and trail ",
		`"quoted\`,
		"e\u0301",
		"\u00e9",
		"CALL",
		"call",
		"<script>",
		strings.Repeat("ß", 2048),
		"line\nbreak\r\ttab",
		"\u2028\uFFFD",
		"'; DROP TABLE records; --",
		"%_*?",
		"-",
		".",
		"a\x1fb",
	} {
		c := r.call("write_file", confMotd).with(func(in *confInvocation) {
			in.ID, in.GroupID = odd, odd+"/group"
		}).invoke()
		q := c.choice()
		if q.ID != odd || q.GroupID != c.in.GroupID {
			t.Errorf("%.40q came back as %.40q in %.40q", odd, q.ID, q.GroupID)
		}
		if len(odd) > 1 && strings.Contains(q.ResponseURL, odd) {
			t.Errorf("the response URL holds the id %q", odd)
		}
		if !r.alive(c.in.GroupID, odd) || r.alive(odd, odd) {
			t.Errorf("%.40q: the status is another's", odd)
		}
		if i%2 == 0 {
			c.picks(q, 0)
			c.result() // which checks both ids
		} else {
			status, body := r.cancel(c.in.GroupID, odd)
			confAcknowledged(t, "cancel", status, body)
			c.refuses(q)
		}
	}

	h.ran("write_file", 10)
}

func confT28(t *testing.T) {
	open := newConfRuntime(t, "open")
	open.token = ""
	h := confGatewayOf(t, []*confRuntime{open}, func(cfg *gateway.Config) {
		cfg.Grants = gateway.SessionGrants{Offer: true, Children: true}
	})
	root, q := open.asked()
	root.picks(q, q.index(t, "session"))
	root.result()
	// The second runtime pretends to be the thread with the session grant.
	for _, group := range []string{"child", "thread-1"} {
		c := open.call("write_file", confMotd).with(func(in *confInvocation) {
			in.GroupID, in.Ancestors = group, []string{"thread-1"}
		})
		q := c.invoke().choice()
		if len(q.Choices) != 2 {
			t.Errorf("offered to a thread whose parents nobody believes: %q", q.Choices)
		}
		c.picks(q, 0)
		c.result()
	}

	child := open.call("read_file", confMotd).with(func(in *confInvocation) {
		in.GroupID, in.Ancestors = "child", []string{"thread-1"}
	})
	child.invoke().result()
	for _, job := range h.ops["read_file"].runs() {
		if len(job.Ancestors) != 0 {
			t.Errorf("the operation was told of ancestors that nobody believes: %+v", job)
		}
	}
	root = open.call("write_file", confMotd).invoke()
	root.result() // the session grant is still in force
	h.ran("write_file", 4)

	h, r := confGateway(t)
	for name, change := range map[string]func(*http.Request){
		"no bearer":    func(req *http.Request) { req.Header.Del("Authorization") },
		"wrong bearer": func(req *http.Request) { req.Header.Set("Authorization", "Bearer nobody") },
		"empty bearer": func(req *http.Request) { req.Header.Set("Authorization", "Bearer ") },
		"basic":        func(req *http.Request) { req.SetBasicAuth("alpha", r.token) },
		"a prefix": func(req *http.Request) {
			req.Header.Set("Authorization", "Bearer "+r.token[:len(r.token)-1])
		},
	} {
		c := r.call("read_file", `{"path":"/forged"}`).with(func(in *confInvocation) {
			in.Ancestors = []string{"root"}
		})
		if status := c.post(change); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%s: %d", name, status)
		}
		h.through(r)
		if c.count("") != 0 {
			t.Errorf("%s was answered:\n%s", name, r.heard())
		}
	}
}
