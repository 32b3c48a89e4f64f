package rap_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/wire"
)

// confFuzzed returns a gateway without limits, with one pending call.
func confFuzzed(f *testing.F) (*confHarness, *confCall) {
	f.Helper()
	r := newConfRuntime(f, "alpha")
	h := confGatewayOf(f, []*confRuntime{r}, confOffer, func(cfg *gateway.Config) {
		cfg.MaxOpen = 1 << 40
		cfg.MaxThread = 1 << 40
		cfg.Rate = 1 << 40
	})
	waits := r.call("write_file", confMotd).with(func(in *confInvocation) { in.ID, in.GroupID = "waits", "thread" })
	waits.invoke().choice()
	return h, waits
}

// serves passes a request to a gateway without a network.
func (h *confHarness) serves(path, body string) int {
	req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+h.runtimes[0].token)
	w := httptest.NewRecorder()
	h.gateway.ServeHTTP(w, req)
	return w.Code
}

// untouched checks that the pending call did not change.
func (c *confCall) untouched(t *testing.T, h *confHarness) {
	t.Helper()
	for _, op := range h.ops {
		for _, job := range op.runs() {
			if job.ID == c.in.ID && job.Thread == c.in.GroupID {
				t.Fatal("the other call ran")
			}
		}
	}

	if c.count("user_choice") != 1 || c.count("tool_result") != 0 {
		t.Fatalf("the other call:\n%s", c.heard())
	}
}

// FuzzGatewayInvoke sends any invocation while another call is pending: the other call is not
// affected, and what is accepted gets a result.
func FuzzGatewayInvoke(f *testing.F) {
	h, waits := confFuzzed(f)
	here := h.runtimes[0].server.URL + "/cb/fuzz-secret"
	for _, body := range []string{
		`{"operation":"list_files","arguments":{},"id":"c1","group_id":"thread","callback_url":"HERE"}`,
		`{"operation":"write_file","arguments":{},"id":"waits","group_id":"thread","callback_url":"HERE"}`,
		`{"operation":"write_file","arguments":null,"id":"waits","group_id":"thread","callback_url":"HERE",` +
			`"call_id":null,"thread_ancestors":["waits"]}`,
		`{"operation":7,"id":"waits","group_id":"thread","callback_url":"HERE","user_id":[]}`,
		`{"operation":"pay","arguments":{"amount":1e999},"id":"c2","group_id":"thread","callback_url":"HERE"}`,
		`{"id":"\ud800","group_id":"thread","callback_url":"http://169.254.169.254/"}`,
		`{`,
		`[]`,
		``,
		`{"thread_id":"thread","tool_call_id":"other"}`,
	} {
		f.Add(body)
	}

	f.Fuzz(func(t *testing.T, body string) {
		body = strings.ReplaceAll(body, "HERE", here)
		code := h.serves("/invoke", body)
		if code != 200 && code != 400 && code != 403 && code != 413 && code != 503 {
			t.Fatalf("%d", code)
		}
		in, err := wire.ParseInvocation([]byte(body))
		if err == nil && code == 200 && in.Operation == "list_files" && in.CallbackURL == here {
			testwait.Until(t, "a result of "+in.ID, func() bool {
				found, _ := waits.found(func(cb *confCallback) bool {
					return cb.Type == "tool_result" && cb.ID == in.ID
				})
				return len(found) > 0
			})
		}

		waits.untouched(t, h)
	})
}
