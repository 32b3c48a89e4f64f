package main

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// TestRetentionRedactsWhatEndedLongAgo and never what is open, and says so
// in the ledger once.
func TestRetentionRedactsWhatEndedLongAgo(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	h := &testServer{dir: t.TempDir()}
	where := h.where()
	where.Create = true
	s, err := openStore(ctx, where, nil)
	must.Do(t, err)
	defer s.Close()
	a := &app{
		store: s,
		cfg:   config.Serve{Retention: 48 * time.Hour},
		log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	closed := func(ago time.Duration) *time.Time {
		at := now.Add(-ago)
		return &at
	}
	requests := map[string]*time.Time{
		"apr_open": nil, "apr_old": closed(49 * time.Hour), "apr_young": closed(47 * time.Hour),
	}
	must.Do(t, s.Update(ctx, "acme", func(tx approval.Tx) error {
		for id, at := range requests {
			r := &approval.Request{
				ID: id, Tenant: "acme", Version: 1, State: approval.Pending, Closed: at,
				Created: now.Add(-99 * time.Hour),
				Revisions: []approval.Revision{{
					Binding: id,
					Call:    resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: []byte(`{"amount":1}`)},
				}},
			}
			if at != nil {
				r.State = approval.Denied
			}
			tx.Insert(r)
		}
		return nil
	}))
	for range 2 {
		must.Do(t, a.redactOld(ctx, "acme", now))
	}
	for id := range requests {
		r, err := s.Request(ctx, "acme", id)
		must.Do(t, err)
		if r.Pruned() != (id == "apr_old") {
			t.Errorf("%s: redacted %t", id, r.Pruned())
		}
	}
	must.Do(t, sealWhole(ctx, s, s.key.Signer.Sign))
	entries, err := s.Entries(ctx, "acme", 0, 100)
	must.Do(t, err)
	var told []string
	for _, e := range entries {
		leaf, err := ledger.ParseLeaf(e.Leaf)
		must.Do(t, err)
		told = append(told, leaf.Type+" by "+leaf.Actor)
	}
	if got := strings.Join(told, ", "); got != "pruned by retention" {
		t.Errorf("the ledger says %q", got)
	}
}
