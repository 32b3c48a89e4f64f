package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/must"
)

// TestOpenToAnybody: what is served without a session or a token is
// there, and names no tenant.
func TestOpenToAnybody(t *testing.T) {
	files := withFiles(t, deskFiles())
	h := startWith(t, files, func(c *config.Serve) {
		c.Dev, c.DevPerson = true, "alice"
		c.Tenants[0].Name = "acme-secret"
	})
	for _, path := range []string{"/favicon.ico", "/assets/inbox.css", "/auth/sign-in", "/healthz", "/readyz"} {
		resp, err := http.Get(h.ready.API + path)
		must.Do(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		// the work in the background has not begun
		early := path == "/readyz" && resp.StatusCode == http.StatusServiceUnavailable
		if err != nil || resp.Request.URL.Path != path || resp.StatusCode != http.StatusOK && !early ||
			strings.Contains(string(body), "acme-secret") {
			t.Errorf("%s: got %d %s at %s, %v", path, resp.StatusCode, body, resp.Request.URL, err)
		}
	}
}
