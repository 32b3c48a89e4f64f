package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/store"
)

// TestNobodyAnswersWhatTheirOwnTokenAsked: whoever asks through one token must not answer through another, whatever the first one is called.
func TestNobodyAnswersWhatTheirOwnTokenAsked(t *testing.T) {
	h := newHouse(t)
	laptop := h.token(store.Token{Name: "laptop", Person: "mara", Scopes: []string{"request"}})
	r := h.ask(laptop, `{"amount":1}`)
	if got := h.vote(h.voter("mara"), r, "approve").must(200).str("outcome"); got != "not_eligible" {
		t.Errorf("mara approved what mara asked for: %s", got)
	}
	if got := h.vote(h.voter("ben"), r, "approve").must(200).str("outcome"); got != "approved" {
		t.Errorf("ben's answer: %s", got)
	}
}

// TestEventStreamsEndWithTheirToken: a token that was revoked, or that expired, sees nothing more.
func TestEventStreamsEndWithTheirToken(t *testing.T) {
	for name, end := range map[string]func(h *house, id string){
		"revoked": func(h *house, id string) { h.do("POST", "/v1/tokens/"+id+"/revoke", h.admin(), "").must(204) },
		"expired": func(h *house, _ string) { h.clock.add(2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			spy := h.token(store.Token{Name: "spy", Scopes: []string{"read"}})
			id := ""
			tokens, err := h.store.Tokens(t.Context(), "acme")
			if err != nil || len(tokens) != 1 {
				t.Fatal(err, tokens)
			}
			id = tokens[0].ID
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/v1/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+spy)
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(err, resp)
			}
			defer resp.Body.Close()
			end(h, id)
			buf := make([]byte, 4096)
			for err = nil; err == nil; {
				_, err = resp.Body.Read(buf)
			}
			if ctx.Err() != nil {
				t.Error("the stream goes on")
			}
		})
	}
}

// TestLongPollsEndWithTheirToken: what happens after a token was revoked is not told to whoever began to wait before.
func TestLongPollsEndWithTheirToken(t *testing.T) {
	h := newHouse(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	tokens, err := h.store.Tokens(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if a := h.do("GET", "/v1/requests/"+r.ID+"?wait=5s&version="+strings.Trim(version(r), `"`), rt, ""); a.status != 401 {
			t.Errorf("got %d %s", a.status, a.text)
		}
	})
	eventually(t, "somebody waits", func() bool { return strings.Contains(h.do("GET", "/metrics", "", "").text, "assent_long_polls 1") })
	for _, tok := range tokens {
		if tok.Name == "rt" {
			h.do("POST", "/v1/tokens/"+tok.ID+"/revoke", h.admin(), "").must(204)
		}
	}
	h.vote(mara, r, "deny").must(200)
	all.Wait()
}

// TestFreezesNameAgents: what can't be the name of an agent can't be frozen, so that nobody fills what every call reads.
func TestFreezesNameAgents(t *testing.T) {
	h := newHouse(t)
	mara := h.voter("mara")
	for name, agent := range map[string]string{"long": strings.Repeat("a", 100_000), "control": `a\u0000b`, "line": `a\nb`} {
		if a := h.do("POST", "/v1/freezes", mara, `{"agent":"`+agent+`"}`); a.status != 422 {
			t.Errorf("%s: got %d %.200s", name, a.status, a.text)
		}
	}
	if a := h.do("GET", "/v1/grants/%00", mara, ""); a.status != 404 {
		t.Errorf("got %d %s", a.status, a.text)
	}
}
