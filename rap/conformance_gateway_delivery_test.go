package rap_test

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/gateway"
)

// confImpatient sets a short timeout for callbacks.
func confImpatient(cfg *gateway.Config) { cfg.Callers[0].Callbacks.Timeout = 150 * time.Millisecond }

// confFailing answers the first deliveries of a type with the given statuses, then with 200.
func confFailing(kind string, first ...int) func(*confCallback, int) int {
	return func(cb *confCallback, nth int) int {
		if cb.Type == kind && nth <= len(first) {
			return first[nth-1]
		}
		return http.StatusOK
	}
}

// same waits for a number of deliveries of a message and checks that all are identical.
func (c *confCall) same(kind string, times int) *confCallback {
	c.t.Helper()
	last := c.await(kind, times, c.of(kind))
	if bodies := c.bodies(kind); len(bodies) != 1 {
		c.t.Errorf("a repeated %s changed:\n%s", kind, c.heard())
	}
	return last
}

func confT15(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"5xx": func(t *testing.T) {
			h, r := confGateway(t)
			r.answers(confFailing("user_choice", 503, 500))
			c := r.call("write_file", confMotd).invoke()
			c.picks(c.same("user_choice", 3), 0)
			c.result()
			h.through(r)
			h.ran("write_file", 1)
			c.same("user_choice", 3)
			if c.count("user_choice") != 3 {
				t.Errorf("sent:\n%s", r.heard())
			}
		},
		"timeout and a cut": func(t *testing.T) {
			h, r := confGateway(t, confImpatient)
			r.answers(confFailing("user_choice", confHang, confCut))
			c := r.call("write_file", confMotd).invoke()
			c.picks(c.same("user_choice", 3), 0)
			c.result()
			h.ran("write_file", 1)
		},
		"answered although it seemed lost": func(t *testing.T) {
			h, r := confGateway(t)
			r.answers(confFailing("user_choice", confCut))
			c := r.call("write_file", confMotd).invoke()
			c.picks(c.choice(), 0)
			if got := c.result(); got != "done "+confMotd {
				t.Errorf("the result is %q", got)
			}
			h.through(r)
			h.ran("write_file", 1)
		},
		"4xx": func(t *testing.T) {
			h, r := confGateway(t)
			for _, status := range []int{400, 401, 403, 404, 410, 422} {
				r.answers(confFailing("user_choice", status, status, status, status, status, status))
				c := r.call("write_file", confMotd).invoke()
				c.fails()
				c.refuses(c.choice())
				h.through(r)
				if c.count("user_choice") != 1 || c.count("tool_result") != 1 {
					t.Errorf("%d, sent:\n%s", status, r.heard())
				}
			}

			h.ran("write_file", 0)
		},
		"never received": func(t *testing.T) {
			h, r := confGateway(t)
			r.answers(confFailing("user_choice", 503, 503, 503, 503, 503, 503, 503, 503))
			c := r.call("write_file", confMotd).invoke()
			c.fails()
			c.refuses(c.same("user_choice", 4))
			h.through(r)
			if c.count("user_choice") != 4 {
				t.Errorf("%d attempts, want the 4 that are configured", c.count("user_choice"))
			}
			h.ran("write_file", 0)
		},
	})
}

func confT16(t *testing.T) {
	confSoon(t, map[string]func(*testing.T){
		"5xx": func(t *testing.T) {
			h, r := confGateway(t)
			r.answers(confFailing("tool_result", 503, 502))
			c, q := r.asked()
			c.picks(q, 0)
			c.result()
			c.same("tool_result", 3)
			h.through(r)
			h.ran("write_file", 1)
			if c.count("tool_result") != 3 {
				t.Errorf("sent:\n%s", r.heard())
			}
		},
		"timeout and a cut": func(t *testing.T) {
			h, r := confGateway(t, confImpatient)
			r.answers(confFailing("tool_result", confHang, confCut))
			c, q := r.asked()
			c.picks(q, 0)
			c.result()
			c.same("tool_result", 3)
			h.ran("write_file", 1)
		},
		"4xx": func(t *testing.T) {
			h, r := confGateway(t)
			c, q := r.asked()
			r.answers(confFailing("tool_result", 404))
			c.picks(q, 0)
			c.same("tool_result", 1)
			r.answers(nil)
			h.through(r)
			if c.count("tool_result") != 1 {
				t.Errorf("sent again after 404:\n%s", r.heard())
			}
			c.invoke() // the record is kept: nothing is asked or run again
			h.through(r)
			c.same("tool_result", 1)
			h.ran("write_file", 1)
			if c.count("user_choice") != 1 {
				t.Errorf("asked again:\n%s", r.heard())
			}
		},
		"never received": func(t *testing.T) {
			h, r := confGateway(t)
			down := []int{503, 503, 503, 503, 503, 503, 503, 503}
			r.answers(confFailing("tool_result", down...))
			c, q := r.asked()
			c.picks(q, 0)
			c.same("tool_result", 4)
			r.answers(nil)
			h.through(r)
			c.invoke()
			h.through(r)
			c.same("tool_result", 4)
			h.ran("write_file", 1)
			if c.count("user_choice") != 1 {
				t.Errorf("asked again:\n%s", r.heard())
			}
		},
		"killed meanwhile": confResultAcrossCrash,
	})
}

// confTrap is a listener that must receive no connection.
type confTrap struct {
	net.Listener
	touched atomic.Int64
}

func newConfTrap(t *testing.T, address string) *confTrap {
	t.Helper()
	l := must.Get(net.Listen("tcp", address))(t)
	trap := &confTrap{Listener: l}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			trap.touched.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return trap
}

func (c *confTrap) port() string {
	return c.Addr().String()[strings.LastIndex(c.Addr().String(), ":")+1:]
}

func confT29(t *testing.T) {
	confSoon(
		t,
		map[string]func(*testing.T){
			"off the list": func(t *testing.T) {
				trap := newConfTrap(t, "127.0.0.1:0")
				h, r := confGateway(t)
				own := strings.TrimPrefix(r.server.URL, "http://")
				away := trap.Addr().String()
				for _, url := range []string{
					"http://" + away + "/cb",
					"http://" + own + "@" + away + "/cb",
					"https://" + own + "/cb",
					"http://127.1:" + trap.port() + "/",
					"/cb",
					"",
				} {
					for _, operation := range []string{"read_file", "write_file"} {
						c := r.call(operation, `{"path":"/off"}`)
						c.in.CallbackURL = url
						if status := c.post(); !confRefused(status) && status != http.StatusOK {
							t.Errorf("%q: %d", url, status)
						}
					}
				}

				h.through(r)
				h.stop()
				for _, job := range append(h.ops["read_file"].runs(), h.ops["write_file"].runs()...) {
					if string(job.Arguments) == `{"path":"/off"}` {
						t.Errorf("%s ran, though its result can go nowhere", job.Operation)
					}
				}
				if all, _ := r.found(func(*confCallback) bool { return true }); len(all) != 1 ||
					trap.touched.Load() != 0 {
					t.Errorf("%d connections elsewhere\n%s", trap.touched.Load(), r.heard())
				}
			},
			"redirecting": func(t *testing.T) {
				trap := newConfTrap(t, "127.0.0.1:0")
				h, r := confGateway(t)
				r.to = "http://" + trap.Addr().String() + "/cb"
				for _, status := range []int{301, 302, 303, 307, 308} {
					r.answers(confFailing("user_choice", status, status, status, status))
					c := r.call("write_file", confMotd).invoke()
					c.fails()
					c.refuses(c.choice())
					r.answers(confFailing("tool_result", status, status, status, status))
					done := r.call("read_file", confMotd).invoke()
					done.same("tool_result", 1)
					r.answers(nil)
					h.through(r)
					if c.count("user_choice") != 1 || done.count("tool_result") != 1 {
						t.Errorf("%d, sent:\n%s", status, r.heard())
					}
				}

				h.ran("write_file", 0)
				if trap.touched.Load() != 0 {
					t.Errorf("%d redirects were followed", trap.touched.Load())
				}
			},
		},
	)
}

func confT30(t *testing.T) {
	h, r := confGateway(t)
	forge := func(req *http.Request) {
		req.Host = "evil.example"
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Server", "X-Original-Host", "X-Host"} {
			req.Header.Set(name, "evil.example")
		}
		req.Header.Set("Forwarded", "host=evil.example;proto=https")
		req.Header.Set("X-Forwarded-Proto", "https")
	}
	manifest := func(change ...func(*http.Request)) string {
		_, body := r.send(http.MethodGet, r.base+"/.well-known/rap-toolset", nil, change...)
		return body
	}
	honest := manifest()
	if forged := manifest(forge); strings.Contains(forged, "evil") || strings.Contains(manifest(), "evil") {
		t.Errorf("the manifest follows the Host header: %s, and without: %s", forged, honest)
	}
	c := r.call("write_file", confMotd)
	if status := c.post(forge); status != http.StatusOK {
		if status = c.post(); status != http.StatusOK { // refusing an unknown Host is fine, too
			t.Fatalf("invocation: %d", status)
		}
	}
	q := c.choice()
	if !strings.HasPrefix(q.ResponseURL, h.cfg.PublicURL+"/") {
		t.Errorf(
			"the response URL does not lie under the configured base: %s",
			strings.TrimSuffix(q.ResponseURL, q.secret()),
		)
	}

	c.picks(q, 0)
	c.result()
	h.ran("write_file", 1)
}
