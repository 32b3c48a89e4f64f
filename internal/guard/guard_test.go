package guard_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/must"
)

func TestGuardChecksAddresses(t *testing.T) {
	loopback := guard.Guard{Loopback: true}
	office := guard.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	for _, test := range []struct {
		guard guard.Guard
		url   string
		want  string // part of the error, "" for none
	}{
		{guard.Guard{}, "https://example.com/hook", ""},
		{guard.Guard{}, "https://93.184.216.34/", ""},
		{guard.Guard{}, "https://[2606:2800:220:1::1]/", ""},
		{guard.Guard{}, "http://example.com/hook", "plain http"},
		{loopback, "http://example.com/hook", "plain http"},
		{guard.Guard{}, "http://127.0.0.1:8080/", "plain http"},
		{loopback, "http://127.0.0.1:8080/", ""},
		{loopback, "http://localhost:8080/", ""},
		{loopback, "http://[::1]:8080/", ""},
		{loopback, "http://127.0.0.1.example.com/", "plain http"},
		{guard.Guard{}, "https://user:pw@example.com/", "without user"},
		{guard.Guard{}, "https:///hook", "with a host"},
		{guard.Guard{}, "https://:443/hook", "with a host"},
		{guard.Guard{}, "ftp://example.com/", "https"},
		{guard.Guard{}, "file:///etc/passwd", "https"},
		{guard.Guard{}, "://", "https"},
		{office, "https://10.1.2.3/", ""},
		{office, "https://10.2.2.3/", "public address"},
		{loopback, "https://10.1.2.3/", "public address"},
	} {
		_, err := test.guard.CheckURL(test.url)
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.url, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "/hook") {
			t.Errorf("%s: the error repeats the path: %v", test.url, err)
		}
	}
}

func TestGuardBlocksSpecialAddresses(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1",
		"127.8.8.8",
		"0.0.0.0",
		"0.1.2.3",
		"10.0.0.1",
		"172.16.0.1",
		"172.31.255.255",
		"192.168.1.1",
		"169.254.169.254",
		"169.254.170.2",
		"100.64.0.1",
		"100.100.100.200",
		"192.0.0.192",
		"168.63.129.16",
		"198.18.0.1",
		"192.0.2.1",
		"198.51.100.7",
		"203.0.113.9",
		"224.0.0.1",
		"240.0.0.1",
		"255.255.255.255",
		"[::]",
		"[::1]",
		"[::ffff:127.0.0.1]",
		"[::ffff:169.254.169.254]",
		"[::ffff:a00:1]",
		"[fe80::1]",
		"[fc00::1]",
		"[fd00:ec2::254]",
		"[fec0::1]",
		"[ff02::1]",
		"[64:ff9b::a9fe:a9fe]",
		"[2002:7f00:1::]",
		"[2001:0:1::1]",
		"[2001:db8::1]",
		"[100::1]",
	} {
		if _, err := (guard.Guard{}).CheckURL("https://" + host + "/"); !errors.Is(err, guard.ErrBlocked) {
			t.Errorf("%s: got %v, want it blocked", host, err)
		}
	}
}

// guardFor returns a guard that trusts a test server's certificate.
func guardFor(s *httptest.Server) guard.Guard {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return guard.Guard{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ServerName: "example.com"}}
}

func TestClientChecksWhatNamesResolveTo(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the server was reached")
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	must.Do(t, err)
	_, err = guardFor(s).Client(time.Second).Get("https://localhost:" + u.Port() + "/")
	if _, ok := errors.AsType[*guard.Refusal](err); !errors.Is(err, guard.ErrBlocked) || !ok {
		t.Errorf("got %v, want it blocked for good", err)
	}
}

func TestClientReachesWhatIsAllowed(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	for name, change := range map[string]func(*guard.Guard){
		"loopback": func(g *guard.Guard) { g.Loopback = true },
		"network": func(g *guard.Guard) {
			g.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		},
	} {
		g := guardFor(s)
		change(&g)
		answer, err := g.Client(5 * time.Second).Get(s.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = answer.Body.Close()
	}
}

func TestClientFollowsNothingAndNobody(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	s := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/", http.StatusFound))
	defer s.Close()
	answer := must.Get(guard.Guard{Loopback: true}.Client(5 * time.Second).Get(s.URL))(t)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		t.Errorf("got %d, want the redirect itself", answer.StatusCode)
	}
}
