package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assent-dev/assent/server"
)

// TestAnswersForItsOwnNamesOnly checks that a web page whose own name resolves to this
// machine (DNS rebinding) can read nothing, and that a configured name works with any port.
func TestAnswersForItsOwnNamesOnly(t *testing.T) {
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) })
	h := server.ForHosts(inner, []string{"Assent.example", "assent.ns.svc"}, "/slack/", "/rap/")
	for host, ok := range map[string]bool{
		"assent.example":              true,
		"ASSENT.example:443":          true,
		"assent.example.":             true,
		"assent.ns.svc:7717":          true,
		"localhost:7717":              true,
		"127.0.0.1":                   true,
		"127.0.0.1:7717":              true,
		"[::1]:7717":                  true,
		"10.1.2.3:80":                 true,
		"[fe80::1]":                   true,
		"evil.example":                false,
		"evil.example:7717":           false,
		"assent.example.evil.example": false,
		"xassent.example":             false,
		"127.0.0.1.evil.example":      false,
		"0x7f000001":                  false,
		"2130706433":                  false,
		"":                            false,
		"localhost.evil.example":      false,
	} {
		for _, path := range []string{"/", "/v1/requests", "/metrics", "/auth/sign-in"} {
			r := httptest.NewRequest("POST", path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Body.String() == "secret"; got != ok {
				t.Errorf("%q: %s answers: %t", host, path, got)
			}
			if !ok &&
				(w.Code != http.StatusMisdirectedRequest || !strings.Contains(w.Body.String(), `"code":"wrong_host"`) ||
					!strings.Contains(w.Body.String(), `"outcome":"deny"`)) {
				t.Errorf("%q: %d %s", host, w.Code, w.Body)
			}
		}

		for _, path := range []string{"/healthz", "/readyz", "/slack/acme", "/rap/acme/runtime/desk/answer"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("%q: %s is not answered", host, path)
			}
		}
	}
}
