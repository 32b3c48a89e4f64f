package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

// echo is a program for the agent desk of acme. It answers with the caller and the body,
// and blocks if the query says so.
type echo struct {
	entered atomic.Int64
	release chan struct{}
}

func (e *echo) program() server.Program {
	return server.Program{
		Path:   "/echo",
		Tenant: "acme",
		Agent:  "desk",
		Serve: func(w http.ResponseWriter, r *http.Request, by approval.Asker) {
			e.entered.Add(1)
			if r.URL.Query().Has("hold") {
				select {
				case <-e.release:
				case <-r.Context().Done():
					return
				}
			}

			text, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s %v", by.Token, by.Person, text, err)
		},
	}
}

// echoing returns a server with the program.
func echoing(t *testing.T, change ...func(*server.Config)) (*harness, *echo) {
	t.Helper()
	e := &echo{release: make(chan struct{})}
	h := newHarness(t, append(change, func(c *server.Config) { c.Programs = []server.Program{e.program()} })...)
	return h, e
}

// posts calls the program.
func (h *harness) posts(ctx context.Context, query, token, body string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/echo"+query, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

// TestProgramsAreForTokens checks that a program gets the caller and the whole request, and
// no request from a token that may not ask for its agent.
func TestProgramsAreForTokens(t *testing.T) {
	h, e := echoing(t)
	of := h.token
	asks := []string{"request"}
	good := of(store.Token{Name: "rt", Scopes: asks, Agents: []string{"desk"}, Person: "ada"})
	resp, text, err := h.posts(t.Context(), "", good, `{"a": 1}`)
	if err != nil || resp.StatusCode != http.StatusOK || text != `rt ada {"a": 1} <nil>` {
		t.Fatalf("%v %s", err, text)
	}

	for what, c := range map[string]struct {
		token  string
		status int
		says   string
	}{
		"none":                {"", 401, `Bearer realm="assent"`},
		"unknown":             {"assent_x", 401, `Bearer realm="assent"`},
		"another scope":       {of(store.Token{Name: "d", Scopes: []string{"decide"}}), 403, `scope="request"`},
		"another agent":       {of(store.Token{Name: "a", Scopes: asks, Agents: []string{"x"}}), 403, ""},
		"another tenant":      {of(store.Token{Tenant: "beta", Name: "b", Scopes: asks}), 403, ""},
		"another name of ada": {of(store.Token{Name: "p", Scopes: asks, Person: "ADA"}), 403, ""},
	} {
		resp, text, err := h.posts(t.Context(), "", c.token, "{}")
		if err != nil || resp.StatusCode != c.status || !strings.Contains(text, `"outcome":"deny"`) ||
			!strings.Contains(resp.Header.Get("WWW-Authenticate"), c.says) {
			t.Errorf("%s: %v %+v %s", what, err, resp, text)
		}
	}

	if n := e.entered.Load(); n != 1 {
		t.Errorf("the program was reached %d times", n)
	}
}

// TestProgramsShareWhatWaits checks that requests of a program take places of waiting
// exchanges, and leave those of another token free.
func TestProgramsShareWhatWaits(t *testing.T) {
	h, e := echoing(t, limited(func(l *quota.Limits) { l.Polls = quota.Parts{Total: 3, Tenant: 3, Caller: 1} }))
	one := h.token(store.Token{Tenant: "acme", Name: "one", Scopes: []string{"request"}})
	two := h.token(store.Token{Tenant: "acme", Name: "two", Scopes: []string{"request"}})
	first := make(chan string, 1)
	go func() {
		_, text, _ := h.posts(t.Context(), "?hold", one, "{}") // the answers are compared below
		first <- text
	}()
	testwait.Until(t, "the first one waits", func() bool { return e.entered.Load() == 1 })
	if resp, text, err := h.posts(t.Context(), "", one, "{}"); err != nil ||
		resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%v %s", err, text)
	}
	if resp, text, err := h.posts(t.Context(), "", two, "{}"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v %s", err, text)
	}
	close(e.release)
	if text := <-first; !strings.HasPrefix(text, "one") {
		t.Error(text)
	}
	if resp, text, err := h.posts(t.Context(), "", one, "{}"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("its place is not free again: %v %s", err, text)
	}
}

// TestProgramsEndWithTheToken checks that the context of a request ends soon after its
// token, and that the token's name is then no longer found.
func TestProgramsEndWithTheToken(t *testing.T) {
	h, e := echoing(t)
	secret := h.token(store.Token{Tenant: "acme", Name: "one", Scopes: []string{"request"}, Agents: []string{"desk"}})
	bearers := server.Bearers{Tokens: h.store, Tenant: "acme", Agent: "desk", Now: h.clock.Now}
	if by, err := bearers.Asker(t.Context(), "one"); err != nil || by != (approval.Asker{Token: "one"}) {
		t.Fatalf("%+v, %v", by, err)
	}
	ended := make(chan string, 1)
	go func() {
		_, text, _ := h.posts(t.Context(), "?hold", secret, "{}") // the answers are compared below
		ended <- text
	}()
	testwait.Until(t, "it waits", func() bool { return e.entered.Load() == 1 })
	all, err := h.store.Tokens(t.Context(), "acme")
	must(t, err)
	for _, token := range all {
		must(t, h.store.RevokeToken(t.Context(), "acme", token.ID, h.clock.Now()))
	}
	if text := <-ended; strings.Contains(text, "one") {
		t.Errorf("it was answered: %s", text)
	}
	if _, err := bearers.Asker(t.Context(), "one"); !errors.Is(err, approval.ErrNotFound) {
		t.Error(err)
	}

	asks, before := []string{"request"}, h.clock.Now().Add(-time.Hour)
	h.token(store.Token{Name: "other", Scopes: asks, Agents: []string{"x"}})
	h.token(store.Token{Name: "late", Scopes: asks, Expires: before})
	for _, name := range []string{"other", "late", "nobody", ""} {
		if _, err := bearers.Asker(t.Context(), name); !errors.Is(err, approval.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
