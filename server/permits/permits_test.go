package permits_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/permits"
)

func at() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC) }

func newIssuer(t *testing.T, tenant string) *permits.Issuer {
	t.Helper()
	i, err := permits.New(url(tenant), tenant, []byte("a secret of the service"), []permits.Audience{
		{Name: "broker", Targets: []string{"tool trade", "mcp_tool broker/sell"}},
		{Name: "bank", Targets: []string{"skill payments/refund"}, Lifetime: time.Minute},
	})
	must.Do(t, err)
	return i
}

func url(tenant string) string { return "https://assent.example.com/permits/" + tenant }

func consumed(call resolve.Call) *approval.Request {
	used := at()
	return &approval.Request{
		ID:        "req_1",
		Agent:     approval.Agent{ID: "desk"},
		State:     approval.Consumed,
		Revisions: []approval.Revision{{Call: call, Binding: "sha256:ab"}},
		Permit:    &approval.Permit{Consumed: &used},
	}
}

// consume does what the service does with a call: it gets the audience, stores it, and
// signs.
func consume(t *testing.T, is permits.Issuers, tenant string, call resolve.Call) (text string, r *approval.Request) {
	t.Helper()
	r = consumed(call)
	name, life, err := is.Audience(tenant, r)
	must.Do(t, err)
	until := at().Add(life)
	r.Permit.Audience = name
	r.Permit.Until = &until
	if text, err = is.Sign(tenant, r); err != nil {
		t.Fatal(err)
	}
	return text, r
}

func trade(args string) resolve.Call {
	return resolve.Call{Kind: resolve.Tool, Tool: "trade", Args: resolve.Raw(args), Principal: "mara"}
}

// keys returns the published keys of a tenant.
func keys(t *testing.T, is permits.Issuers, tenant string) (text []byte, status int) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /permits/{tenant}"+permit.KeysPath, is)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/permits/"+tenant+permit.KeysPath, nil))
	return w.Body.Bytes(), w.Code
}

func verifier(t *testing.T, tenant, audience string, keys []byte) *permit.Verifier {
	t.Helper()
	v, err := permit.NewVerifier(permit.Config{Issuer: url(tenant), Audience: audience, Keys: keys, Now: at})
	must.Do(t, err)
	return v
}

func TestAConsumedCallGetsThePermitOfItsTool(t *testing.T) {
	is := permits.Issuers{"acme": newIssuer(t, "acme")}
	published, _ := keys(t, is, "acme")
	other, err := permits.New(url("acme"), "acme", []byte("a secret of the service"), []permits.Audience{
		{Name: "another broker", Targets: []string{"tool trade"}, Lifetime: time.Hour},
	})
	must.Do(t, err)
	later := permits.Issuers{"acme": other}
	refund := resolve.Call{Kind: resolve.Skill, Agent: "payments", Skill: "refund", Args: resolve.Raw(`{}`)}
	for _, c := range []struct {
		call     resolve.Call
		audience string
		life     time.Duration
	}{
		{trade(`{"amount":1}`), "broker", permit.DefaultLifetime},
		{refund, "bank", time.Minute},
	} {
		text, r := consume(t, is, "acme", c.call)
		again, err := later.Sign("acme", r)
		if err != nil || again != text {
			t.Errorf("asked again, once other tools are configured: %s, %v", again, err)
		}
		v := verifier(t, "acme", c.audience, published)
		p, err := v.Verify(t.Context(), text, c.call.Target(), c.call.Args)
		must.Do(t, err)
		if p.Agent != "desk" || p.Request != "req_1" || p.Principal != c.call.Principal ||
			p.Binding != "sha256:ab" || p.Expires.Sub(p.Issued) != c.life {
			t.Errorf("%+v", p)
		}
	}
}

func TestACallToNobodyWhoChecksGetsNoPermit(t *testing.T) {
	is := permits.Issuers{"acme": newIssuer(t, "acme")}
	quote := resolve.Call{Kind: resolve.Tool, Tool: "quote", Args: resolve.Raw(`{"a":9007199254740993}`)}
	for tenant, call := range map[string]resolve.Call{"acme": quote, "other": trade(`{}`)} {
		name, life, err := is.Audience(tenant, consumed(call))
		if name != "" || life != 0 || err != nil {
			t.Errorf("%s: %q, %v, %v", tenant, name, life, err)
		}
	}
}

func TestArgumentsThatNoPermitCanHold(t *testing.T) {
	is := permits.Issuers{"acme": newIssuer(t, "acme")}
	r := consumed(trade(`{"amount":9007199254740993}`))
	if _, _, err := is.Audience("acme", r); !errors.Is(err, permit.ErrInexact) {
		t.Errorf("it fits: %v", err)
	}
	if text, err := is.Sign("acme", r); err == nil {
		t.Errorf("signed: %s", text)
	}
}

// TestATenantSignsForItself checks that a tenant's key differs from those of others, and is
// published.
func TestATenantSignsForItself(t *testing.T) {
	is := permits.Issuers{"acme": newIssuer(t, "acme"), "globex": newIssuer(t, "globex")}
	text, _ := consume(t, is, "globex", trade(`{}`))
	own, _ := keys(t, is, "acme")
	theirs, _ := keys(t, is, "globex")
	if string(own) == string(theirs) || strings.Contains(string(own), `"d"`) {
		t.Errorf("published:\n%s\n%s", own, theirs)
	}
	var refused *permit.RefusedError
	_, err := verifier(t, "acme", "broker", own).Verify(t.Context(), text, "tool trade", []byte(`{}`))
	if !errors.As(err, &refused) || refused.Reason != permit.Untrusted {
		t.Errorf("by the keys of another tenant: %v", err)
	}
	if _, status := keys(t, is, "initech"); status != http.StatusNotFound {
		t.Errorf("a tenant that signs none: %d", status)
	}
}

func TestATargetOfTwoToolsIsRefused(t *testing.T) {
	_, err := permits.New(url("acme"), "acme", []byte("secret"), []permits.Audience{
		{Name: "a", Targets: []string{"tool trade"}},
		{Name: "b", Targets: []string{"tool trade"}},
	})
	if err == nil || !strings.Contains(err.Error(), "tool trade stands twice") {
		t.Errorf("%v", err)
	}
}
