package upstream_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testdns"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// reach connects to a server at an address.
func reach(t *testing.T, url string, change func(*upstream.Config)) *upstream.Server {
	t.Helper()
	cfg := upstream.Config{Alias: "site", URL: url, Grace: 100 * time.Millisecond, Settle: 20 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	return run(t, cfg)
}

func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	for _, era := range []string{"modern", "legacy", "old"} {
		for _, method := range []string{"", "server/discover", "initialize", wire.MethodCall} {
			for _, status := range []int{301, 302, 303, 307, 308} {
				s := mcptest.NewSite(t, mcptest.Script{Era: era}, func(w http.ResponseWriter, v *mcptest.Visit) bool {
					if v.Message.Method == method {
						http.Redirect(w, v.Request, elsewhere.URL, status)
					}
					return v.Message.Method == method
				})
				_, err := call(t.Context(), reach(t, s.URL, nil), "a", nil)
				if method == wire.MethodCall && !errors.Is(err, upstream.ErrUnknown) {
					t.Errorf("%s, %d: got %v", era, status, err)
				}
			}
		}
	}

	if n := visits.Load(); n > 0 {
		t.Errorf("another origin got %d requests", n)
	}
}

// TestPrivateNetworksAreNamed: a name that resolves to a private network is not contacted unless
// the configuration allows it.
func TestPrivateNetworksAreNamed(t *testing.T) {
	at := httptest.NewTLSServer(newSite(t, "modern", done))
	defer at.Close()
	roots := x509.NewCertPool()
	roots.AddCert(at.Certificate())
	testdns.Resolve(t, func() [4]byte { return [4]byte{127, 0, 0, 1} })
	_, port, _ := net.SplitHostPort(at.Listener.Addr().String())
	for network, reached := range map[string]bool{"10.0.0.0/8": false, "127.0.0.0/8": true} {
		server := reach(t, "https://tools.example:"+port+"/mcp", func(cfg *upstream.Config) {
			cfg.Networks = []netip.Prefix{netip.MustParsePrefix(network)}
			cfg.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
		})
		if _, err := call(t.Context(), server, "a", nil); (err == nil) != reached {
			t.Errorf("%s: got %v", network, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", wire.Limits().MaxBytes)
	whole := func(w http.ResponseWriter, id string, _ int) { say(w, 200, id, `"result":{"x":"`+long+`"}`) }
	event := func(w http.ResponseWriter, id string, _ int) {
		mcptest.Events(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{"x":"`+long+`"}}`+"\n\n")
	}
	line := func(w http.ResponseWriter, _ string, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 40 { // one line that never ends
			if _, err := io.WriteString(w, long); err != nil {
				return
			}
		}
	}
	for name, called := range map[string]func(http.ResponseWriter, string, int){
		"a document": whole,
		"an event":   event,
		"a line":     line,
	} {
		for _, era := range []string{"modern", "legacy"} {
			s := newSite(t, era, called)
			_, err := call(t.Context(), visit(t, s, nil), "a", nil)
			if !errors.Is(err, upstream.ErrUnknown) || len(fmt.Sprint(err)) > 1000 || s.calls() != 1 {
				t.Errorf("%s, %s: %d calls, %.300v", name, era, s.calls(), err)
			}
		}
	}
}
