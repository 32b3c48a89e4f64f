package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
)

// choiceOf is a question of the gateway, as its caller gets it.
type choiceOf struct {
	Type    string   `json:"type"`
	ID      string   `json:"id"`
	Choices []string `json:"choices"`
	URL     string   `json:"response_url"`
}

func (p *runtimePeer) choice(t *testing.T) choiceOf {
	t.Helper()
	var q choiceOf
	if err := json.Unmarshal([]byte(p.next(t)), &q); err != nil || q.Type != "user_choice" {
		t.Fatalf("%+v, %v: expected a question", q, err)
	}

	return q
}

// TestSessionGrantsAreListedAndRevoked: what a runtime's user allowed for a session can be revoked
// at the command line by a person, who is named in the ledger. The next call of the session asks
// again.
func TestSessionGrantsAreListedAndRevoked(t *testing.T) {
	wrapped, h := newEndpoint(t), withFiles(t, deskFiles())
	writeFiles(t, h.dir, map[string]string{
		"tool.agf.yaml": toolAgent,
		"quote.json":    quoteSchema,
		"caller.token":  "secret-of-the-caller",
	})

	back := newRuntimePeer(t)
	startWith(t, h, func(c *config.Serve) {
		c.Tenants[0].Agents = append(c.Tenants[0].Agents, filepath.Join(h.dir, "tool.agf.yaml"))
		c.Tenants[0].RAP = &config.RAP{Gateways: []config.RAPGateway{{
			Name:    "quotes",
			Agent:   "tool",
			Ask:     "user",
			Session: &config.RAPSession{Uses: 20},
			Callers: []config.RAPCaller{{
				Name:      "laptop",
				TokenFile: filepath.Join(h.dir, "caller.token"),
				Callbacks: []string{back.URL},
			}},
			Operations: []config.RAPOperation{{
				Name:        "quote",
				Description: "Last price.",
				SchemaFile:  filepath.Join(h.dir, "quote.json"),
				URL:         wrapped.URL,
			}},
		}}}
	})
	asks := func(id string) choiceOf {
		t.Helper()
		back.invoke(t, h.ready.API+"/rap/default/gateway/quotes", "secret-of-the-caller", fmt.Sprintf(
			`{"operation":"quote","arguments":{"of":"ACME"},"id":%q,"callback_url":%q,"group_id":"trip","user_id":"zoe"}`,
			id, back.URL+"/cb"))

		return back.choice(t)
	}
	holds(t, h.prints(t, "alice", 0, "rap", "grants"), "no session grants")
	q := asks("c1")
	n := slices.IndexFunc(q.Choices, func(label string) bool { return strings.Contains(label, "for this session") })
	answer := fmt.Sprintf(`{"id":"c1","selected":%d}`, n)
	if status := back.post(t, q.URL, "secret-of-the-caller", answer); status != http.StatusOK {
		t.Fatalf("the answer: %d", status)
	}
	if got := back.next(t); !strings.Contains(got, "price") {
		t.Fatalf("got %s", got)
	}

	grants, err := h.client(t, "alice").SessionGrants(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("%v, %v", grants, err)
	}
	g := grants[0]
	if g.Gateway != "quotes" || g.Agent != "tool" || g.Caller != "laptop" || g.Session != "trip" || g.User != "zoe" ||
		g.Operation != "quote" || g.Uses != 1 || g.MaxUses != 20 {
		t.Errorf("%+v", g)
	}
	holds(t, h.prints(t, "alice", 0, "rap", "grants"), g.ID, "laptop", "quote", "1/20")
	_, err = h.client(t, "runtime").RevokeSessionGrant(t.Context(), g.ID, "")
	if problemOf(err) != openapi.CodeMissingScope {
		t.Errorf("a token without the scope: %v", err)
	}
	holds(t, h.prints(t, "alice", 0, "rap", "revoke", g.ID, "--reason", "the trip is over"), g.ID+": revoked")
	_, err = h.client(t, "alice").RevokeSessionGrant(t.Context(), g.ID, "")
	if problemOf(err) != openapi.CodeNotFound {
		t.Errorf("revoked twice: %v", err)
	}
	asks("c2")
	testwait.Until(t, "the entry of the ledger", func() bool {
		return slices.ContainsFunc(h.rapEntries(t), func(e ledgerEntry) bool {
			return e.Type == "rap_grant_ended" && e.Actor == "alice"
		})
	})
}

// problemOf returns the code of a server's error, or an empty string for any other error.
func problemOf(err error) openapi.Code {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Code
	}

	return ""
}
