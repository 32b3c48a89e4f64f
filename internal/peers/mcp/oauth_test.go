//go:build peers

package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
	"github.com/assent-dev/assent/mcp/server"
)

// authority returns an issuer that gives access tokens for what it is asked,
// with claims that a test may change.
func authority(t *testing.T, change map[string]any) *authtest.Issuer {
	t.Helper()
	i := authtest.NewPlain(t)
	i.Meta = map[string]any{"code_challenge_methods_supported": []string{"S256"}} // the client wants it
	i.Grant = func(w http.ResponseWriter, n int) {
		claims := map[string]any{
			"iss":   i.URL,
			"sub":   "desk",
			"exp":   time.Now().Add(time.Hour).Unix(),
			"scope": i.Grants[n-1].PostForm.Get("scope"),
		}
		for name, value := range change {
			claims[name] = value
		}
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(map[string]any{
			"access_token": i.Sign(claims),
			"token_type":   "Bearer",
			"expires_in":   3600,
		})
		if err != nil {
			t.Error(err)
		}
	}
	return i
}

// protect serves a gateway that takes tokens of an issuer alone, and
// returns its address.
func (w *world) protect(t *testing.T, i *authtest.Issuer, own string) string {
	t.Helper()
	at := httptest.NewUnstartedServer(nil)
	url := "http://" + at.Listener.Addr().String() + "/mcp"
	r := must.Get(auth.New(auth.Config{
		URL:      url,
		Audience: own,
		Scopes:   []string{"mcp:tools"},
		Issuers:  []auth.Issuer{{URL: i.URL}},
		Callers:  []auth.Caller{{Name: "short", Issuer: i.URL, Subject: "desk"}},
	}))(t)
	mux := http.NewServeMux()
	mux.Handle("/mcp", w.server.HTTP(server.HTTPConfig{Authenticate: r.Authenticate}))
	mux.Handle("/.well-known/oauth-protected-resource/mcp", r)
	at.Config.Handler = mux
	at.Start()
	t.Cleanup(at.Close)
	return url
}

// TestAClientOfOthersGetsItsToken: the official Go client finds the
// issuer by what the gateway says of itself, gets a token there, and
// calls; with a token for another audience or scope it does not.
func TestAClientOfOthersGetsItsToken(t *testing.T) {
	f := &files{runs: map[string]int{}}
	w := newWorld(t, agentFile, f, nil)
	for name, test := range map[string]struct {
		claims map[string]any
		failed bool
	}{
		"good":             {map[string]any{"aud": "gateway"}, false},
		"another audience": {map[string]any{"aud": "other"}, true},
		"too small":        {map[string]any{"aud": "gateway", "scope": "other"}, true},
		"another subject":  {map[string]any{"aud": "gateway", "sub": "other"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			i := authority(t, test.claims)
			text := run(
				t,
				filepath.Join(os.Getenv("ASSENT_MCP_GO"), "goclient"),
				"oauth",
				w.protect(t, i, "gateway"),
				"desk",
				"hush",
			)
			t.Logf("%s", text)
			var got told
			must.Do(t, json.Unmarshal(text, &got))
			if test.failed != (got.Failed != "") || !test.failed && !strings.HasPrefix(got.Text, "run ") {
				t.Errorf("got %+v", got)
			}
			if scope := i.Grants[0].PostForm.Get("scope"); scope != "mcp:tools" {
				t.Errorf("the client asked for the scope %q", scope)
			}
		})
	}

	if n := f.ran("/authorized"); n != 1 {
		t.Errorf("%d calls ran", n)
	}
}
