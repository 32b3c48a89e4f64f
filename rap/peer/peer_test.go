package peer_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testdns"
	"github.com/assent-dev/assent/rap/peer"
)

func newPeer(t testing.TB, cfg peer.Config) *peer.Peer {
	t.Helper()
	return must.Get(peer.New(cfg))(t)
}

// An invalid configuration is refused by New, with an error that does not quote it.
func TestNew(t *testing.T) {
	for _, test := range []struct {
		cfg  peer.Config
		want string
	}{
		{peer.Config{URL: "https://tools.example"}, ""},
		{peer.Config{URL: "http://127.0.0.1:8080/base"}, ""},
		{peer.Config{URL: "http://localhost:8080"}, ""},
		{peer.Config{URL: "https://10.1.2.3"}, ""},
		{peer.Config{Allow: []string{"https://a.example", "https://b.example:8443/"}}, ""},
		{peer.Config{}, "the peer's URL or an origin"},
		{peer.Config{URL: "http://tools.example"}, "plain http"},
		{peer.Config{URL: "https://169.254.169.254/latest"}, "public address"},
		{peer.Config{URL: "https://user:secret@tools.example"}, "without user"},
		{peer.Config{URL: "ftp://tools.example"}, "absolute http or https"},
		{peer.Config{URL: "/tools"}, "absolute http or https"},
		{peer.Config{URL: "https://tools.example/#x"}, "fragment"},
		{peer.Config{Allow: []string{"https://a.example/secret"}}, "allow[0]: expected an origin"},
		{peer.Config{Allow: []string{"https://a.example", "://secret"}}, "allow[1]"},
	} {
		_, err := peer.New(test.cfg)
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: got %v, want %q", test.cfg, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the address: %v", err)
		}
	}
}

// Rule H1 and row R15: whatever a peer sends, only its own origins are requested.
func TestCheck(t *testing.T) {
	p := newPeer(
		t,
		peer.Config{
			URL:   "https://tools.example/rap/",
			Allow: []string{"https://answers.example:8443", "http://127.0.0.1:9000"},
		},
	)
	for raw, ok := range map[string]bool{
		"https://tools.example/answer/abc?x=1":               true,
		"https://tools.example:443/answer":                   true,
		"https://TOOLS.example/answer":                       true,
		"https://tools.example./answer":                      true,
		"https://answers.example:8443/a%2Fb":                 true,
		"http://127.0.0.1:9000/answer":                       true,
		"https://tools.example":                              true,
		"https://tools.example?":                             true,
		"http://tools.example/answer":                        false,
		"https://tools.example:8443/answer":                  false,
		"https://answers.example/answer":                     false,
		"http://127.0.0.1:9001/answer":                       false,
		"http://localhost:9000/answer":                       false,
		"http://[::1]:9000/answer":                           false,
		"https://127.0.0.1:9000/answer":                      false,
		"https://tools.example.evil.example/":                false,
		"https://evil.example/tools.example":                 false,
		"https://tools.example@evil.example/":                false,
		"https://evil.example\\@tools.example/":              false,
		"https://u:p@tools.example/":                         false,
		"https://tools.example/a#b":                          false,
		"https://tools.example/a#":                           false,
		"//tools.example/a":                                  false,
		"/answer":                                            false,
		"":                                                   false,
		"https:tools.example":                                false,
		"https://":                                           false,
		"ftp://tools.example/":                               false,
		"javascript:alert(1)":                                false,
		"https://tools.example/a b":                          false,
		"https://tools.example/a\nb":                         false,
		"https://tools.example/a|b":                          false,
		"https://tools.example/ä":                            false,
		"https://tools.example/%zz":                          false,
		"https://169.254.169.254/":                           false,
		"http://127.0.0.2:9000/a":                            false,
		"http://127.1:9000/a":                                false,
		"http://2130706433:9000/a":                           false,
		"http://0x7f000001:9000/a":                           false,
		"http://0177.0.0.1:9000/a":                           false,
		"http://0.0.0.0:9000/a":                              false,
		"http://[::ffff:127.0.0.1]:9000/a":                   false,
		"http://[::]:9000/a":                                 false,
		"http://127.0.0.1/a":                                 false,
		"http://127.0.0.1.nip.io:9000/a":                     false,
		"http://127.0.0.1:90000/a":                           false,
		"http://127.0.0.1:-1/a":                              false,
		"http://127.0.0.1%00:9000/a":                         false,
		"http://127.0.0.1%2eexample:9000/a":                  false,
		"http://１２７.0.0.1:9000/a":                            false,
		"http://user@127.0.0.1:9000/a":                       false,
		"http://@127.0.0.1:9000/a":                           false,
		"http://127.0.0.1:9000@127.0.0.1:9001/a":             false,
		"http://127.0.0.1:9000\\@127.0.0.1:9001/a":           false,
		"http://127.0.0.1:9001#@127.0.0.1:9000":              false,
		"http:///a":                                          false,
		"http:127.0.0.1:9000/a":                              false,
		" http://127.0.0.1:9000/a":                           false,
		"http://127.0.0.1:9000/\r\nHost: x":                  false,
		"http://127.0.0.1:9000/\x00":                         false,
		"ws://127.0.0.1:9000/a":                              false,
		"file:///etc/passwd":                                 false,
		"data:,a":                                            false,
		"?a":                                                 false,
		"https://tools.example/" + strings.Repeat("a", 4096): false,
	} {
		if err := p.Check(raw); (err == nil) != ok {
			t.Errorf("%q: got %v", raw, err)
		} else if err != nil && (peer.Again(err) || strings.Contains(err.Error(), "answer")) {
			t.Errorf("%q: %v is tried again or repeats the address", raw, err)
		}
	}
}

// exchange is a request as a server received it.
type exchange struct{ target, body, auth, kind string }

func recording(t *testing.T, status int) (*httptest.Server, func() []exchange) {
	t.Helper()
	seen := make(chan exchange, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen <- exchange{r.RequestURI, string(body), r.Header.Get("Authorization"), r.Header.Get("Content-Type")}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s, func() (out []exchange) {
		for len(seen) > 0 {
			out = append(out, <-seen)
		}
		return out
	}
}

// Row R16: the address arrives byte for byte.
func TestPostKeepsTheAddress(t *testing.T) {
	s, seen := recording(t, http.StatusNoContent)
	p := newPeer(t, peer.Config{URL: s.URL, Token: "sesame"})
	rapid.Check(t, func(t *rapid.T) {
		target := "/" + rapid.StringMatching(`([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2}){0,40}`+
			`(\?([A-Za-z0-9._~!$&'()*+,;=:@/?|{}-]|%[0-9A-Fa-f]{2}){0,40})?`).Draw(t, "target")
		if err := p.Post(context.Background(), s.URL+target, []byte(`{"id":"x"}`)); err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		if got := seen(); len(got) != 1 ||
			got[0] != (exchange{target, `{"id":"x"}`, "Bearer sesame", "application/json"}) {
			t.Fatalf("%q: got %+v", target, got)
		}
	})
}

// Row R10: a redirect is a failure and is not followed.
func TestRedirects(t *testing.T) {
	other, seen := recording(t, http.StatusOK)
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.RedirectHandler(other.URL, code))
		p := newPeer(t, peer.Config{URL: s.URL, Allow: []string{other.URL}})
		err := p.Deliver(t.Context(), s.URL, nil)
		if status, ok := errors.AsType[*peer.StatusError](err); !ok || status.Code != code || peer.Again(err) {
			t.Errorf("%d: got %v", code, err)
		}
		s.Close()
	}

	if got := seen(); len(got) != 0 {
		t.Errorf("followed: %+v", got)
	}
}

// A public origin whose name resolves to this machine, at first or later, is not connected to,
// and no proxy is used.
func TestRebinding(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	go func() {
		if c, err := listener.Accept(); err == nil {
			t.Error("somebody connected")
			_ = c.Close()
		}
	}()
	t.Setenv("HTTPS_PROXY", "http://"+listener.Addr().String())
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	address := "https://tools.example:" + port
	var ip atomic.Value
	testdns.Resolve(t, func() [4]byte { return ip.Load().([4]byte) })
	p := newPeer(t, peer.Config{URL: address, Allow: []string{"http://localhost:" + port}, Attempts: 3})
	for _, next := range [][4]byte{{127, 0, 0, 1}, {10, 0, 0, 1}, {169, 254, 169, 254}, {0, 0, 0, 0}} {
		ip.Store(next)
		if err := p.Deliver(t.Context(), address+"/answer", nil); !errors.Is(err, guard.ErrBlocked) || peer.Again(err) {
			t.Errorf("%v: got %v", next, err)
		}
	}
}

// An origin that resolves to a private network is reached only if that network is allowed.
func TestPrivateNetworks(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	conf := &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	testdns.Resolve(t, func() [4]byte { return [4]byte{127, 0, 0, 1} })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	address := "https://tools.example:" + port
	for networks, reached := range map[string]bool{"": false, "10.0.0.0/8": false, "127.0.0.0/8": true} {
		cfg := peer.Config{URL: address, TLS: conf}
		if networks != "" {
			cfg.Networks = []netip.Prefix{netip.MustParsePrefix(networks)}
		}
		err := newPeer(t, cfg).Post(t.Context(), address, nil)
		_, answered := errors.AsType[*peer.StatusError](err)
		if answered != reached || errors.Is(err, guard.ErrBlocked) == reached {
			t.Errorf("%q: got %v", networks, err)
		}
	}
}

// Rows R8, R9, T15: after 5xx and failed connections the same body is sent again, after 4xx it
// is not.
func TestDeliver(t *testing.T) {
	for status, attempts := range map[int]int{200: 1, 204: 1, 202: 1, 400: 1, 404: 1, 410: 1, 429: 3, 500: 3, 503: 3} {
		s, seen := recording(t, status)
		err := newPeer(t, peer.Config{
			URL:      s.URL,
			Attempts: 3,
			Backoff:  time.Millisecond,
		}).Deliver(t.Context(), s.URL+"/answer/secret", []byte(`{"n":1}`))
		got := seen()
		if len(got) != attempts || (err == nil) != (status < 300) ||
			err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %d attempts, %v", status, len(got), err)
		}
		for _, e := range got {
			if e.body != `{"n":1}` {
				t.Errorf("%d: another body: %+v", status, e)
			}
		}
	}

	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	err := newPeer(t, peer.Config{
		URL:      closed.URL,
		Attempts: 2,
		Backoff:  time.Millisecond,
	}).Deliver(t.Context(), closed.URL+"/secret", nil)
	if err == nil || !peer.Again(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// A peer that hangs runs into the timeout.
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		<-release
	}))
	defer s.Close()
	defer close(release)
	p := newPeer(t, peer.Config{URL: s.URL, Timeout: 50 * time.Millisecond})
	if err := p.Post(t.Context(), s.URL, nil); err == nil || !peer.Again(err) || asked.Load() != 1 {
		t.Errorf("got %v after %d requests", err, asked.Load())
	}
}

// A response must be JSON and has a size limit.
func TestGet(t *testing.T) {
	body, kind := `{"name":"x"}`, "application/json; charset=utf-8"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	p := newPeer(t, peer.Config{URL: s.URL, MaxBody: 20})
	if got, err := p.Get(t.Context(), s.URL); err != nil || string(got) != body {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := p.Exchange(t.Context(), s.URL, []byte(`{}`)); err != nil || string(got) != body {
		t.Errorf("got %q, %v", got, err)
	}
	body = strings.Repeat("x", 21)
	if _, err := p.Get(t.Context(), s.URL); err == nil || peer.Again(err) {
		t.Errorf("a long answer: %v", err)
	}
	body, kind = "{}", "text/html"
	if _, err := p.Get(t.Context(), s.URL); err == nil || peer.Again(err) {
		t.Errorf("another type: %v", err)
	}
}

// Waits grow, have jitter, and end.
func TestPause(t *testing.T) {
	p := newPeer(t, peer.Config{URL: "https://a.example", Attempts: 4, Backoff: time.Second})
	for attempt, bound := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second} {
		if wait, more := p.Pause(attempt); !more || wait < bound/2 || wait > bound {
			t.Errorf("after %d: %v, %v", attempt, wait, more)
		}
	}

	if _, more := p.Pause(4); more {
		t.Error("attempts are never spent")
	}
}

// The end of a context ends the wait.
func TestDeliverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, peer.Config{URL: "http://127.0.0.1:1", Attempts: 9, Backoff: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := p.Deliver(ctx, "http://127.0.0.1:1/x", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
