package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/store"
)

const (
	reports = "/v1/agents/desk/reports"
	quoted  = `{"call":{"kind":"tool","tool":"quote","args":{"n":1}},"report":"returned"}`
)

func TestReportsReachTheLedger(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	h.do("POST", reports, rt, quoted, "Idempotency-Key", "k").must(204)
	h.do("POST", reports, rt, quoted, "Idempotency-Key", "k").must(204)
	c, err := client.New(h.url, rt, client.Options{})
	must(t, err)
	text := []byte(`{"kind":"tool","tool":"quote","args":{"n":2}}`)
	must(t, c.Report(context.Background(), "desk", text, approval.Failed, client.ReportOptions{}))
	err = c.Report(context.Background(), "desk", text, approval.Failed, client.ReportOptions{Key: "k"})
	if !errors.Is(err, approval.ErrKeyReuse) {
		t.Errorf("another report under the same key: %v", err)
	}
	n := h.size()
	entries, err := h.store.Entries(context.Background(), "acme", int64(n-2), 2)
	must(t, err)
	for i, want := range []string{`"type":"call_returned"`, `"type":"call_failed"`} {
		if leaf := string(entries[i].Leaf); !strings.Contains(leaf, want) || !strings.Contains(leaf, `"actor":"rt"`) {
			t.Errorf("got %s, expected %s", leaf, want)
		}
	}
}

func TestReportsAreRefused(t *testing.T) {
	h := newHarness(t)
	rt := h.runtime()
	if a := h.do("POST", reports, rt, quoted).must(400); a.str("field") != "Idempotency-Key" {
		t.Errorf("without a key: %s", a.text)
	}
	for _, who := range []string{
		h.voter("mara"), h.admin(), h.token(store.Token{Scopes: []string{"decide"}}),
		h.token(store.Token{Scopes: []string{"request"}, Agents: []string{"other"}}),
	} {
		if a := h.do("POST", reports, who, quoted, "Idempotency-Key", "k"); a.status != 403 && a.status != 404 {
			t.Errorf("another one than the agent's runtime: %d %s", a.status, a.text)
		}
	}

	h.do("POST", "/v1/agents/nobody/reports", rt, quoted, "Idempotency-Key", "k").must(404)
	for _, body := range []string{
		`{}`, `{"call":{"kind":"tool","tool":"quote"}}`, `{"report":"returned"}`,
		`{"call":{"kind":"tool","tool":"quote"},"report":"ran"}`,
		`{"call":{"kind":"tool","tool":"quote"},"report":"returned","more":1}`,
		`{"call":{"kind":"tool","tool":"quote","args":[]},"report":"returned"}`,
	} {
		if a := h.do("POST", reports, rt, body, "Idempotency-Key", "k"); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
}
