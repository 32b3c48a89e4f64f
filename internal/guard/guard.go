// Package guard limits what a URL from an untrusted source can make this process do.
package guard

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// Guard limits what a configured URL can make this process do. Its clients reach only public
// addresses by https, follow no redirects, and ignore proxy variables of the environment. Addresses
// are checked when a connection is made, so a name that resolves to another address later gains
// nothing.
type Guard struct {
	Loopback bool           // this machine may be reached too, also by plain http
	Allow    []netip.Prefix // further networks that may be reached, such as 10.0.0.0/8
	TLS      *tls.Config    // roots and client certificates; nil: those of the system
	Connect  time.Duration  // for a connection to be made; 10s
	Idle     int            // connections to one host that are kept for later; 2
}

// Refusal is the error for a request that was not made. Trying again can't help.
type Refusal struct{ Err error }

// Error returns the text of the cause.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// ErrBlocked is the cause when an address may not be reached.
var ErrBlocked = errors.New("the address may not be reached")

// CheckURL returns an error for a URL that a client of this guard never requests. Its errors don't
// repeat the URL, because the paths of webhooks are often secrets.
func (g Guard) CheckURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("expected an https URL with a host")
	case u.User != nil:
		return nil, errors.New("expected a URL without user and password")
	case u.Scheme == "http" && !loopbackHost(u.Hostname()):
		return nil, errors.New("expected https: over plain http anybody on the way could read and change it")
	case u.Scheme == "http" && !g.Loopback:
		return nil, errors.New("expected https: plain http to this machine must be allowed by its own setting")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("expected an https URL")
	}

	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !g.may(ip) {
		return nil, fmt.Errorf(
			"%s: %w: expected a public address, or a network that is allowed by name",
			ip,
			ErrBlocked,
		)
	}

	return u, nil
}

// Naming returns the guard for a URL that an operator wrote. If its host is this machine or a
// private address, that address may be reached.
func (g Guard) Naming(u *url.URL) Guard {
	ip, err := netip.ParseAddr(u.Hostname())
	switch {
	case loopbackHost(u.Hostname()):
		g.Loopback = true
	case err == nil && ip.Unmap().IsPrivate():
		g.Allow = append([]netip.Prefix{netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())}, g.Allow...)
	}

	return g
}

func loopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Client returns a client that obeys the guard. Requests that it does not make fail with a
// *Refusal. timeout is for one whole exchange.
func (g Guard) Client(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &guarded{guard: g, https: g.transport(g.may), http: g.transport(loopbackOnly)},
	}
}

// guarded ensures that plain http is used only for this machine, whatever a name resolves to.
type guarded struct {
	guard       Guard
	https, http *http.Transport
}

// RoundTrip sends one request or returns a *Refusal.
func (t *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := t.guard.CheckURL(r.URL.String()); err != nil {
		return nil, &Refusal{err}
	}
	if r.URL.Scheme == "http" {
		return t.http.RoundTrip(r)
	}
	return t.https.RoundTrip(r)
}

// CloseIdleConnections implements the interface that http.Client.CloseIdleConnections looks for.
func (t *guarded) CloseIdleConnections() {
	t.http.CloseIdleConnections()
	t.https.CloseIdleConnections()
}

func (g Guard) transport(may func(netip.Addr) bool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: cmp.Or(g.Connect, 10*time.Second),
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil || !may(to.Addr()) {
				return &Refusal{fmt.Errorf("%s: %w", address, ErrBlocked)}
			}
			return nil
		},
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.TLS != nil {
		conf = g.TLS.Clone()
	}
	return &http.Transport{
		Proxy:                  nil, // a proxy would resolve names for us, past the check
		DialContext:            dialer.DialContext,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    dialer.Timeout,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    cmp.Or(g.Idle, 2),
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
	}
}

// may reports whether an address may be reached.
func (g Guard) may(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if slices.ContainsFunc(g.Allow, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return true
	}
	if ip.IsLoopback() {
		return g.Loopback
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(special(), func(p netip.Prefix) bool {
		return p.Contains(ip)
	}) && (ip.Is4() || global6().Contains(ip))
}

func loopbackOnly(ip netip.Addr) bool { return ip.Unmap().IsLoopback() }

// global6 returns the only part of IPv6 that is assigned for public use.
func global6() netip.Prefix { return netip.MustParsePrefix("2000::/3") }

// special returns networks that are not public: those of the registries of special-purpose
// addresses (RFC 6890) that net/netip does not know, tunnels that contain an IPv4 address, and the
// metadata services of clouds with public addresses.
func special() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range []string{
		"0.0.0.0/8",
		"100.64.0.0/10",
		"192.0.0.0/24",
		"192.0.2.0/24",
		"192.88.99.0/24",
		"198.18.0.0/15",
		"198.51.100.0/24",
		"203.0.113.0/24",
		"240.0.0.0/4",
		"168.63.129.16/32",
		"2001::/23",
		"2001:db8::/32",
		"2002::/16",
		"3fff::/20",
	} {
		out = append(out, netip.MustParsePrefix(p))
	}

	return out
}
