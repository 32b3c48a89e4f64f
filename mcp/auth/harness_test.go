package auth_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
)

const (
	gatewayURL = "https://mcp.example.com/mcp"
	scope      = "mcp:tools"
)

// clock is the clock of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// resource returns a gateway that accepts ann's tokens of an issuer.
func resource(t *testing.T, i *authtest.Issuer, change func(*auth.Config)) (*auth.Resource, *clock) {
	t.Helper()
	at := &clock{now: time.Now()}
	cfg := auth.Config{
		URL:     gatewayURL,
		Scopes:  []string{scope},
		Issuers: []auth.Issuer{{URL: i.URL, TLS: i.Roots()}},
		Callers: []auth.Caller{{Name: "ann", Issuer: i.URL, Subject: "00u1"}},
		Now:     at.read,
		Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&cfg)
	}
	r := must.Get(auth.New(cfg))(t)
	return r, at
}

// good returns the claims of a valid token.
func good(i *authtest.Issuer, now time.Time) map[string]any {
	return map[string]any{
		"iss":   i.URL,
		"aud":   gatewayURL,
		"sub":   "00u1",
		"exp":   now.Add(time.Hour).Unix(),
		"iat":   now.Unix(),
		"scope": "profile " + scope,
	}
}

// with returns good claims with changes. A nil value removes a claim.
func with(i *authtest.Issuer, now time.Time, change map[string]any) map[string]any {
	all := good(i, now)
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// shown returns a request with a token.
func shown(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, gatewayURL, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}
