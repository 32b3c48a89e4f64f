package peer

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/guard"
)

// New returns a peer, or an error if the configuration is invalid.
func New(cfg Config) (*Peer, error) {
	cfg.Connect, cfg.Timeout = cmp.Or(cfg.Connect, 5*time.Second), cmp.Or(cfg.Timeout, 10*time.Second)
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 1<<20)
	cfg.Attempts = cmp.Or(cfg.Attempts, 6)
	cfg.Backoff = cmp.Or(cfg.Backoff, 500*time.Millisecond)
	p := &Peer{cfg: cfg, origins: map[string]*http.Client{}}
	if cfg.URL == "" && len(cfg.Allow) == 0 && len(cfg.AnyPort) == 0 {
		return nil, errors.New("expected the peer's URL or an origin")
	}
	if cfg.URL != "" {
		if err := p.register(cfg.URL, origin); err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
	}
	for i, text := range cfg.Allow {
		if err := p.allow(text, origin); err != nil {
			return nil, fmt.Errorf("allow[%d]: %w", i, withoutURL(err))
		}
	}
	for i, text := range cfg.AnyPort {
		if !LocalWithoutPort(text) {
			return nil, fmt.Errorf(
				"any port[%d]: expected an origin of this machine without a port, such as http://127.0.0.1",
				i,
			)
		}

		if err := p.allow(text, anyPort); err != nil {
			return nil, fmt.Errorf("any port[%d]: %w", i, withoutURL(err))
		}
	}

	return p, nil
}

func (p *Peer) allow(text string, as func(*url.URL) string) error {
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery {
		return errors.New("expected an origin: scheme, host and port alone")
	}

	return p.register(text, as)
}

// LocalWithoutPort reports whether a text is an address of this machine without a port:
// http://127.0.0.1, http://localhost, http://[::1].
func LocalWithoutPort(text string) bool {
	u, err := readable(text)

	return err == nil && local(u.Hostname()) && u.Port() == ""
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip, err := netip.ParseAddr(host)

	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// register allows the origin of an address. Each origin has a client of its own, so that only
// origins on this machine can reach it, whatever another name resolves to.
func (p *Peer) register(text string, as func(*url.URL) string) error {
	u, err := readable(text)
	if err != nil {
		return err
	}
	g := guard.Guard{
		Allow:   p.cfg.Networks,
		TLS:     p.cfg.TLS,
		Connect: p.cfg.Connect,
		Idle:    keptConnections,
	}
	g = g.Naming(u)
	if _, err := g.CheckURL(text); err != nil {
		return err
	}
	p.origins[as(u)] = g.Client(p.cfg.Timeout)
	return nil
}

// Check returns an error for an address that this peer's client never requests: not absolute
// http(s), with user or fragment, longer than 4096 bytes, or of another origin (ErrOrigin).
// Every request repeats the check.
func (p *Peer) Check(raw string) error {
	_, err := p.client(raw)
	return err
}

func (p *Peer) client(raw string) (*http.Client, error) {
	u, err := readable(raw)
	if err != nil {
		return nil, &guard.Refusal{Err: err}
	}
	c := cmp.Or(p.origins[origin(u)], p.origins[anyPort(u)])
	if c == nil {
		return nil, &guard.Refusal{Err: ErrOrigin}
	}
	return c, nil
}

const longestURL = 4096

// keptConnections is the number of connections that a gateway or runtime may use at once with
// one peer.
const keptConnections = 64

// readable parses an absolute address and refuses ambiguous ones.
func readable(raw string) (*url.URL, error) {
	if len(raw) > longestURL {
		return nil, fmt.Errorf("expected an address of at most %d bytes", longestURL)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return nil, errors.New("expected an address in printable ASCII, percent-encoded where it must be")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("expected an absolute http or https address")
	case u.User != nil:
		return nil, errors.New("expected an address without user and password")
	case strings.Contains(raw, "#"):
		return nil, errors.New("expected an address without a fragment")
	case u.EscapedPath() != rawPath(raw): // net/http would change its spelling
		return nil, errors.New("expected an address whose path is percent-encoded")
	}

	return u, nil
}

// rawPath returns the path of an absolute address in its original spelling.
func rawPath(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	rest, _, _ = strings.Cut(rest, "?")
	if at := strings.IndexByte(rest, '/'); at >= 0 {
		return rest[at:]
	}
	return ""
}

// origin returns scheme, host and port in normal form.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return host(u) + ":" + port
}

// anyPort returns the key of an origin for any port. Only local origins are registered so.
func anyPort(u *url.URL) string { return host(u) + ":*" }

// host returns scheme and host in normal form.
func host(u *url.URL) string {
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}
