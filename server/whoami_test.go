package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

func (h *harness) whoami(secret string) *openapi.Whoami {
	h.t.Helper()
	h.do("GET", "/v1/whoami", secret, "").must(200) // do checks the contract
	c, err := client.New(h.url, secret, client.Options{})
	must(h.t, err)
	out, err := c.Whoami(h.t.Context())
	must(h.t, err)

	return out
}

// TestWhoamiTellsWhatEachTokenIsAndMayDo checks the scopes that the token may use.
func TestWhoamiTellsWhatEachTokenIsAndMayDo(t *testing.T) {
	h := newHarness(t)
	for _, c := range []struct {
		scopes, agents []string
		roles          []openapi.Role
		counts         []openapi.Scope
	}{
		{[]string{"decide"}, []string{"desk"}, []openapi.Role{"agent"}, []openapi.Scope{"decide"}},
		{[]string{"read", "vote"}, nil, []openapi.Role{"reader", "approver"}, []openapi.Scope{"read", "vote"}},
		{[]string{"admin"}, nil, []openapi.Role{"administrator"}, []openapi.Scope{"admin"}},
		{[]string{"witness"}, nil, []openapi.Role{"witness"}, []openapi.Scope{"witness"}},
		{[]string{"request", "read"}, []string{"desk"}, []openapi.Role{"agent"}, []openapi.Scope{"request"}},
		{[]string{"request", "admin"}, nil, []openapi.Role{"agent"}, []openapi.Scope{"request"}},
	} {
		name := "tok-" + strings.Join(c.scopes, "-")
		expires := h.clock.Now().Add(3 * time.Hour).UTC().Truncate(time.Second)
		secret := h.token(store.Token{Name: name, Scopes: c.scopes, Agents: c.agents, Expires: expires})
		got := h.whoami(secret)
		if got.Name != name || got.Tenant != "acme" || got.ID == "" || got.Person != nil ||
			!slices.Equal(got.Roles, c.roles) || !slices.Equal(got.Scopes, c.counts) ||
			!slices.Equal(got.Agents, c.agents) || !got.Expires.Equal(expires) {
			t.Errorf("%v of %v: %+v", c.scopes, c.agents, got)
		}
	}
}

// TestWhoamiAsksTheDirectoryEachTime checks that the groups are current, and that a person
// who left is no longer known.
func TestWhoamiAsksTheDirectoryEachTime(t *testing.T) {
	var left directoryWithout
	h := newHarness(t, func(c *server.Config) {
		left.Directory = c.Directory
		c.Directory = &left
	})
	secret := h.voter("mara")
	got := h.whoami(secret).Person
	if got == nil || got.ID != "mara" || !got.Known || len(got.Groups) == 0 || !slices.IsSorted(got.Groups) {
		t.Fatalf("%+v", got)
	}
	left.person = "mara"
	got = h.whoami(secret).Person
	if got == nil || got.ID != "mara" || got.Known || len(got.Groups) > 0 {
		t.Errorf("mara left, and is %+v", got)
	}
}

// directoryWithout is a directory without one person.
type directoryWithout struct {
	approval.Directory

	person string
}

func (d *directoryWithout) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	if name == d.person {
		return approval.Person{}, false, nil
	}

	return d.Directory.Person(ctx, tenant, name)
}

// TestTheContractIsServedToEverybody checks JSON and page, with and without a token, and
// that other methods are refused.
func TestTheContractIsServedToEverybody(t *testing.T) {
	h := newHarness(t)
	text := h.do("GET", "/openapi.json", "", "").must(200)
	if text.str("openapi") != "3.1.0" || text.str("paths", "/v1/whoami", "get", "operationId") != "whoami" {
		t.Errorf("served: %.300s", text.text)
	}
	page := h.do("GET", "/docs?from=mail", "", "").must(200)
	policy := page.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") ||
		!strings.Contains(page.text, `<article id="whoami">`) {
		t.Errorf("under %s: %.300s", policy, page.text)
	}
	for _, path := range []string{"/openapi.json", "/docs"} {
		again := h.do("GET", path, "", "", "If-None-Match", h.do("GET", path, "", "").header.Get("ETag"))
		if again.status != 304 || again.text != "" {
			t.Errorf("%s: %d %.100s", path, again.status, again.text)
		}
		h.do("POST", path, h.admin(), "{}").must(405)
		h.do("GET", path+"/x", "", "").must(404)
	}
}

// TestAgentsTellTheFilesInForce checks that only tokens without bound agents get the
// problems of files.
func TestAgentsTellTheFilesInForce(t *testing.T) {
	h := newHarness(t, func(c *server.Config) {
		c.Loaded = func(tenant string) []openapi.Loaded {
			return []openapi.Loaded{{
				Part:     "agents",
				Digest:   "sha256:1 of " + tenant,
				Count:    1,
				Problems: []string{"other.agf.yaml:1:1: broken"},
			}}
		}
	})
	all := h.do("GET", "/v1/agents", h.token(store.Token{Name: "eye", Scopes: []string{"read"}}), "").must(200)
	if !strings.Contains(all.text, "sha256:1 of acme") || !strings.Contains(all.text, "other.agf.yaml:1:1: broken") {
		t.Errorf("a reader is told %s", all.text)
	}
	bound := h.token(store.Token{Name: "desk", Scopes: []string{"request"}, Agents: []string{"desk"}})
	some := h.do("GET", "/v1/agents", bound, "").must(200)
	if !strings.Contains(some.text, "sha256:1 of acme") || strings.Contains(some.text, "broken") {
		t.Errorf("a token of one agent is told %s", some.text)
	}
}
