package gateway

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
)

// idle returns a gateway that accepts requests but does not process calls.
func idle(t testing.TB) *Gateway {
	t.Helper()
	g := must.Get(New(Config{
		Common: rap.Common{
			Records:   rap.NewMemory(),
			Namespace: "gw",
			Key:       bytes.Repeat([]byte{7}, 32),
			Plan:      func(context.Context) (*resolve.Plan, error) { return nil, nil },
		},
		Name:      "Files",
		PublicURL: "http://127.0.0.1:1",
		Operations: []rap.Operation{{
			Name:        "write",
			InputSchema: []byte(`{"type":"object"}`),
			Run:         func(context.Context, rap.Job) (rap.Outcome, error) { panic("it ran") },
		}},
		Callers: []Caller{{Name: "runtime", Callbacks: peer.Config{Allow: []string{"http://127.0.0.1:2"}}}},
	}))(t)
	return g
}

// FuzzAnswer posts any body to the address of a question and to other addresses. Only an exact
// answer may allow the call, and no other call may end.
func FuzzAnswer(f *testing.F) {
	g := idle(f)
	other, _ := waiting(f, g)
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

	serve := func(token, body string) int {
		req := httptest.NewRequest(http.MethodPost, "/answer/"+token, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, req)
		return w.Code
	}

	f.Fuzz(func(t *testing.T, body, token string) {
		if code := serve(strings.Map(plainPath, token), body); code != 404 {
			t.Fatalf("an address that nobody was told: %d", code)
		}
		r, token := waiting(t, g)
		code := serve(token, body)
		in, err := wire.ParseAnswer([]byte(body))
		right := err == nil && in.ID == r.Part.ID && in.Selected >= 0 && in.Selected < r.Part.Question.Choices
		if (code == 200) != right || code != 200 && code != 400 {
			t.Fatalf("%d for %q", code, body)
		}
		now, err := g.engine.Get(t.Context(), r.Key)
		if err != nil || now.State == durable.Waiting || (now.Part.By == byUser) != (right && in.Selected < 2) {
			t.Fatalf("%+v, %v", now.Part, err)
		}
		if r, err := g.engine.Get(t.Context(), other.Key); err != nil || r.State != durable.Waiting {
			t.Fatalf("the other call: %v, %v", r, err)
		}
	})
}

func plainPath(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
		return r
	}
	return 'A'
}

// waiting adds a call whose question waits for an answer, and returns its token.
func waiting(t testing.TB, g *Gateway) (r *record, token string) {
	token, alias := names.NewToken()
	r = &record{
		Key:       callKey("runtime", token, "c"),
		Alias:     alias,
		Asker:     g.callers[0].asker,
		State:     durable.Waiting,
		Arguments: []byte(`{}`),
		Part: call{
			Caller:    "runtime",
			Thread:    token,
			ID:        "c",
			Operation: "write",
			Callback:  "http://127.0.0.1:2/cb",
			Question: &question{
				Choices: 3,
				Session: 1,
				Uses:    2,
				For:     time.Hour,
				Posted:  true,
				Until:   time.Now().Add(time.Hour),
			},
		},
	}
	must.Do(t, g.engine.Add(t.Context(), r))
	return r, token
}
