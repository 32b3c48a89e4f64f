package server_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/store"
)

// TestNobodyAnswersWhatTheirOwnTokenAsked checks that a person who asks with one token
// can't answer with another, whatever the first token is called.
func TestNobodyAnswersWhatTheirOwnTokenAsked(t *testing.T) {
	h := newHarness(t)
	laptop := h.token(store.Token{Name: "laptop", Person: "mara", Scopes: []string{"request"}})
	r := h.ask(laptop, `{"amount":1}`)
	if got := h.vote(h.voter("mara"), r, "approve").must(200).str("outcome"); got != "not_eligible" {
		t.Errorf("mara approved what mara asked for: %s", got)
	}
	if got := h.vote(h.voter("ben"), r, "approve").must(200).str("outcome"); got != "approved" {
		t.Errorf("ben's answer: %s", got)
	}
}

// TestEventStreamsEndWithTheirToken checks that a token that was revoked or has expired
// gets no more events.
func TestEventStreamsEndWithTheirToken(t *testing.T) {
	for name, end := range map[string]func(h *harness, id string){
		"revoked": func(h *harness, id string) {
			h.do("POST", "/v1/tokens/"+id+"/revoke", h.admin(), "").must(204)
		},
		"expired": func(h *harness, _ string) { h.clock.Add(2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			spy := h.token(store.Token{Name: "spy", Scopes: []string{"read"}})
			id := ""
			tokens, err := h.store.Tokens(t.Context(), "acme")
			if err != nil || len(tokens) != 1 {
				t.Fatal(err, tokens)
			}
			id = tokens[0].ID
			ctx := testwait.Context(t)
			stream := h.stream(ctx, spy, "")
			end(h, id)
			_, _ = io.Copy(io.Discard, stream)
			if ctx.Err() != nil {
				t.Error("the stream goes on")
			}
		})
	}
}

// TestLongPollsEndWithTheirToken checks that a long poll that began before its token was
// revoked does not show what happens after that.
func TestLongPollsEndWithTheirToken(t *testing.T) {
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	r := h.ask(rt, `{"amount":1}`)
	tokens, err := h.store.Tokens(t.Context(), "acme")
	must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		if a := h.do(
			"GET",
			"/v1/requests/"+r.ID+"?wait=50s&version="+strings.Trim(version(r), `"`),
			rt,
			"",
		); a.status != 401 {
			t.Errorf("got %d %s", a.status, a.text)
		}
	})
	testwait.Until(t, "somebody waits", func() bool {
		return strings.Contains(h.do("GET", "/metrics", "", "").text, "assent_long_polls 1")
	})
	for _, tok := range tokens {
		if tok.Name == "rt" {
			h.do("POST", "/v1/tokens/"+tok.ID+"/revoke", h.admin(), "").must(204)
		}
	}
	h.vote(mara, r, "deny").must(200)
	all.Wait()
}

// TestSlowBodiesAreCutOff checks that a client without a token can't hold connections by
// sending a form one byte at a time.
func TestSlowBodiesAreCutOff(t *testing.T) {
	read := make(chan error, 1)
	h := newHarness(t, func(c *server.Config) {
		c.Timing.Body = 50 * time.Millisecond
		c.Inbox = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
			w.WriteHeader(http.StatusNoContent)
		})
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	must(t, err)
	defer conn.Close()
	if _, err := io.WriteString(
		conn,
		"POST /slack/acme HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
	); err != nil {
		t.Fatal(err)
	}

	if err := testwait.Receive(t, "the server to give up on the body", read); err == nil {
		t.Error("half a body passed for a whole one")
	}

	// all of these without a token
	for _, route := range []string{"GET /healthz", "POST /v1/tokens", "POST /v1/nowhere", "DELETE /readyz"} {
		probe, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		must(t, err)
		defer probe.Close()
		if _, err := io.WriteString(probe, route+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, probe)
		}()
		testwait.Receive(t, "the end of "+route+", whose body never comes", ended)
	}

	h.do("POST", "/page", "", "whole").must(204)
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// TestFreezesNameAgents checks that only valid names of agents can be frozen, so that the
// list of freezes, which every call reads, can't be filled with garbage.
func TestFreezesNameAgents(t *testing.T) {
	h := newHarness(t)
	mara := h.voter("mara")
	for name, agent := range map[string]string{
		"long":    strings.Repeat("a", 100_000),
		"control": `a\u0000b`,
		"line":    `a\nb`,
	} {
		if a := h.do("POST", "/v1/freezes", mara, `{"agent":"`+agent+`"}`); a.status != 422 {
			t.Errorf("%s: got %d %.200s", name, a.status, a.text)
		}
	}

	if a := h.do("GET", "/v1/grants/%00", mara, ""); a.status != 404 {
		t.Errorf("got %d %s", a.status, a.text)
	}
}
