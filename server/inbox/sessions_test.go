package inbox_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/server/inbox"
)

// sessions are session grants that record who ended them.
type sessions struct {
	live  []rap.SessionGrant
	ended []string
}

func (s *sessions) Grants(context.Context, string) ([]rap.SessionGrant, error) { return s.live, nil }

func (s *sessions) Revoke(_ context.Context, tenant, id, by, reason string) error {
	if len(s.live) == 0 || s.live[0].ID != id {
		return approval.ErrNotFound
	}
	s.live = nil
	s.ended = append(s.ended, tenant+" "+id+" "+by+" "+reason)

	return nil
}

func TestSessionGrantsAreShownAndRevoked(t *testing.T) {
	all := &sessions{}
	h := openWith(t, func(c *inbox.Config) { c.Sessions = all })
	bob := h.browser("bob")
	bob.get("/grants").lacks(t, "Allowed for a session")
	all.live = []rap.SessionGrant{{
		ID:        "grant_7",
		Gateway:   "files",
		Caller:    "<b>laptop</b>",
		Session:   "trip\u202e7",
		User:      "ann",
		Operation: "write_file",
		Uses:      1,
		MaxUses:   20,
		Expires:   h.now().Add(time.Hour),
	}}
	p := bob.get("/grants")
	p.says(t, "Allowed for a session", "write_file", "1 of 20 times used", `trip\u{202e}7`, "only for ann")
	fields := p.form(t, "/sessions/grant_7/revoke", "")
	h.pass(time.Second)
	fields.Set("reason", "the trip is over")
	bob.post("/sessions/grant_7/revoke", fields).says(t, "Revoked: the next call of that session asks again.")
	if len(all.ended) != 1 || all.ended[0] != tenant+" grant_7 bob@example.com the trip is over" {
		t.Errorf("ended %q", all.ended)
	}
	if again := bob.post("/sessions/grant_7/revoke", fields); again.status == http.StatusOK {
		t.Errorf("revoked twice: %s", again.text())
	}
}
