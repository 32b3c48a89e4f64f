package rap_test

import (
	"net/http"
	"strings"
	"testing"
)

// The gateway accepts variations of other runtimes: missing and additional members, other
// answers (5.3 of the tables).
func TestGatewayTolerances(t *testing.T) {
	for name, part := range map[string]func(*testing.T){
		"no arguments": func(t *testing.T) {
			h, r := confGateway(t)
			for _, arguments := range []string{"", "null", "{}"} {
				if got := r.call("list_files", arguments).invoke().result(); got != "done {}" {
					t.Errorf("arguments %q: %q", arguments, got)
				}
				needs := r.call("write_file", arguments).invoke()
				needs.fails() // {} is validated like any other arguments
				if needs.count("user_choice") != 0 {
					t.Errorf("arguments %q: somebody was asked", arguments)
				}
			}

			h.ran("write_file", 0)
		},
		"fields that are null, absent or unknown": func(t *testing.T) {
			h, r := confGateway(t)
			for _, change := range [][2]string{
				{`"call_id":null,`, ``},
				{`"thread_ancestors":null`, `"user_id":null`},
				{`"thread_ancestors":null`, `"thread_ancestors":[]`},
				{`"call_id":null,`, `"call_id":null,"version":2,"Operation":"drop_table","ID":7,`},
				{`,"thread_ancestors":null`, ``},
			} {
				c := r.call("write_file", confMotd)
				full := string(confJSON(t, c.in))
				if c.raw = strings.Replace(full, change[0], change[1], 1); c.raw == full {
					t.Fatalf("%s is not there", change[0])
				}
				q := c.invoke().choice()
				c.picks(q, 0)
				if got := c.result(); got != "done "+confMotd {
					t.Errorf("%s: %q", c.raw, got)
				}
			}

			h.ran("write_file", 5)
		},
		"any 2xx receives a callback": func(t *testing.T) {
			h, r := confGateway(t)
			for _, status := range []int{201, 202, 204, 299} {
				r.answers(func(*confCallback, int) int { return status })
				c, q := r.asked()
				c.picks(q, 0)
				c.result()
				r.answers(nil)
				h.through(r)
				if c.count("user_choice") != 1 || c.count("tool_result") != 1 {
					t.Errorf("%d was no acknowledgement:\n%s", status, r.heard())
				}
			}

			h.ran("write_file", 4)
		},
		"other content types of JSON": func(t *testing.T) {
			_, r := confGateway(t)
			c := r.call("write_file", confMotd)
			utf8 := func(req *http.Request) {
				req.Header.Set("Content-Type", "application/json; charset=utf-8")
			}
			if status := c.post(utf8); status != http.StatusOK {
				t.Fatalf("invocation: %d", status)
			}
			q := c.choice()
			if status, _ := c.send(
				http.MethodPost,
				q.ResponseURL,
				confJSON(t, map[string]any{"id": q.ID, "selected": 0}),
				utf8,
			); status != http.StatusOK {
				t.Errorf("answer: %d", status)
			}

			c.result()
		},
	} {
		t.Run(name, part)
	}
}
