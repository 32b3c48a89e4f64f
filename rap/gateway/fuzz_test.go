package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

// serve gives a gateway one request, without a network between.
func (h *harness) serve(path, body string) int {
	req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+callerToken)
	w := httptest.NewRecorder()
	h.g.ServeHTTP(w, req)
	return w.Code
}

// FuzzGatewayInvoke sends any invocation while another call waits: the
// other goes on, and what is accepted gets a result.
func FuzzInvoke(f *testing.F) {
	h := newHarness(f, func(c *Config) {
		c.MaxOpen = 1 << 40
		c.MaxThread = 1 << 40
		c.Rate = 1 << 40
	})
	h.mustInvoke("waits", "write", `{}`)
	q := h.runtime.choice("waits")
	here := h.runtime.url()
	for _, body := range []string{
		`{"operation":"look","arguments":{},"id":"c1","group_id":"thread","callback_url":"` + here + `"}`,
		`{"operation":"write","arguments":{},"id":"waits","group_id":"thread","callback_url":"` + here + `"}`,
		`{"operation":"write","arguments":null,"id":"waits","group_id":"thread","callback_url":"` + here +
			`","call_id":null,"thread_ancestors":["waits"]}`,
		`{"operation":7,"id":"waits","group_id":"thread","callback_url":"` + here + `","user_id":[]}`,
		`{"operation":"pay","arguments":{"amount":1e999},"id":"c2","group_id":"thread","callback_url":"` + here + `"}`,
		`{"id":"\ud800","group_id":"thread","callback_url":"http://169.254.169.254/"}`,
		`{`,
		`[]`,
		``,
		`{"thread_id":"thread","tool_call_id":"other"}`,
	} {
		f.Add(body)
	}

	f.Fuzz(func(t *testing.T, body string) {
		code := h.serve("/invoke", body)
		if code != 200 && code != 400 && code != 403 && code != 413 && code != 503 {
			t.Fatalf("%d", code)
		}
		in, err := wire.ParseInvocation([]byte(body))
		if err == nil && code == 200 && in.Operation != "write" && in.Operation != "pay" &&
			in.CallbackURL == here {
			if !h.runtime.eventually(func() bool { return len(h.runtime.results(in.ID)) > 0 }) {
				t.Fatalf("no result of %q:\n%s", in.ID, h.logged())
			}
		}

		r, err := h.g.engine.Get(t.Context(), callKey("runtime", "thread", "waits"))
		if err != nil || r.State != durable.Waiting || h.runs("waits") != 0 {
			t.Fatalf("the other call: %v, %v", r, err)
		}
	})
	if q.ID != "waits" {
		f.Fatal("which call?")
	}
}

// FuzzGatewayAnswer posts any body to the address of a question, and to
// others: it is an allowance only if it says so to the letter, and no
// other call ends.
func FuzzAnswer(f *testing.F) {
	h := newHarness(f, func(c *Config) {
		c.MaxOpen = 1 << 40
		c.MaxThread = 1 << 40
		c.Rate = 1 << 40
	})
	h.mustInvoke("waits", "write", `{}`)
	h.runtime.choice("waits")
	for _, body := range []string{
		`{"id":"c","selected":0}`,
		`{"id":"c","selected":2}`,
		`{"id":"c","selected":-0}`,
		`{"id":"c","selected":0,"Selected":2}`,
		`{"id":"waits","selected":0}`,
		`{"id":"c","selected":"0"}`,
		``,
		`null`,
		`{"id":"c","selected":0e0}`,
	} {
		f.Add(body, "x")
	}

	f.Fuzz(func(t *testing.T, body, token string) {
		if code := h.serve("/answer/"+strings.Map(plainPath, token), body); code != 404 {
			t.Fatalf("an address that nobody was told: %d", code)
		}
		r, token := h.waiting(t)
		code := h.serve("/answer/"+token, body)
		in, err := wire.ParseAnswer([]byte(body))
		right := err == nil && in.ID == r.Part.ID && in.Selected >= 0 && in.Selected < r.Part.Question.Choices
		if (code == 200) != right || code != 200 && code != 400 {
			t.Fatalf("%d for %q", code, body)
		}
		now, err := h.g.engine.Get(t.Context(), r.Key)
		if err != nil || now.State == durable.Waiting || (now.Part.By == byUser) != (right && in.Selected < 2) {
			t.Fatalf("%+v, %v", now.Part, err)
		}
		other, err := h.g.engine.Get(t.Context(), callKey("runtime", "thread", "waits"))
		if err != nil || other.State != durable.Waiting {
			t.Fatalf("the other call: %v, %v", other, err)
		}
	})
}

func plainPath(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
		return r
	}
	return 'A'
}

// waiting puts a question whose token is known.
func (h *harness) waiting(t *testing.T) (r *record, token string) {
	token, alias := names.NewToken()
	r = &record{
		Key:       callKey("runtime", token, "c"),
		Alias:     alias,
		Asker:     h.g.callers[0].asker,
		State:     durable.Waiting,
		Arguments: []byte(`{}`),
		Part: call{
			Caller:    "runtime",
			Thread:    token,
			ID:        "c",
			Operation: "write",
			Callback:  h.runtime.url(),
			Question: &question{
				Choices: 3,
				Session: 1,
				Uses:    2,
				For:     1 << 40,
				Posted:  true,
				Until:   h.now().Add(1 << 40),
			},
		},
	}
	if err := h.g.engine.Add(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r, token
}
