// Package auth authenticates the callers of the MCP gateway by tokens of an OAuth issuer, and gets
// the gateway's own tokens for servers. As a resource server (RFC 9728, RFC 9068) the gateway
// accepts tokens of the configured issuers that were issued for it and whose subject is one of its
// callers. Tokens of callers are never passed on.
package auth

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/keyset"
	"github.com/assent-dev/assent/mcp/server"
)

// Config sets which tokens the gateway accepts. Fields that are zero have the default that their
// comment names.
type Config struct {
	// URL is the address by which clients reach the gateway and for which they request tokens (RFC
	// 8707). It has no fragment and no slash at its end.
	URL      string
	Audience string   // that tokens must name; URL
	Scopes   []string // each of which a token must have
	Claim    string   // that tells whose token it is; "sub"
	Issuers  []Issuer
	Callers  []Caller
	Skew     time.Duration // how far clocks may be apart; 1m
	Now      func() time.Time
	Log      *slog.Logger
}

// Issuer is an authorization server whose tokens are accepted.
type Issuer struct {
	URL string // exactly as its tokens name it
	// KeysURL or KeysFile is the location of the issuer's keys (RFC 7517). Without both, it is read
	// from the issuer's metadata (RFC 8414, OpenID Connect Discovery).
	KeysURL  string
	KeysFile string
	// Algorithms lists the signature algorithms that the issuer's tokens may use. Default: all of
	// Algorithms(). Others can't be configured.
	Algorithms []string
	Networks   []netip.Prefix // private ones that its addresses may resolve to
	TLS        *tls.Config    // nil: the roots of the system
}

// Caller maps a subject of an issuer to a caller of the gateway.
type Caller struct {
	Name    string
	Issuer  string // by its URL
	Subject string
}

// Resource is a gateway that accepts tokens. It is safe for concurrent use.
type Resource struct {
	cfg     Config
	issuers map[string]*issuer
	callers map[subject]string
}

type subject struct{ issuer, name string }

// New checks the configuration. It doesn't contact any issuer yet.
func New(cfg Config) (*Resource, error) {
	cfg.Audience = cmp.Or(cfg.Audience, cfg.URL)
	cfg.Claim = cmp.Or(cfg.Claim, "sub")
	cfg.Skew = cmp.Or(cfg.Skew, time.Minute)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Fragment != "" || strings.HasSuffix(cfg.URL, "/") {
		return nil, errors.New("oauth: expected the gateway's URL, without a fragment and a slash at its end")
	}
	r := &Resource{
		cfg:     cfg,
		issuers: map[string]*issuer{},
		callers: map[subject]string{},
	}
	for _, i := range cfg.Issuers {
		if r.issuers[i.URL], err = newIssuer(i, cfg.Now, cfg.Log); err != nil {
			return nil, fmt.Errorf("oauth: issuer %q: %w", i.URL, err)
		}
	}

	for _, c := range cfg.Callers {
		if err := r.add(c); err != nil {
			return nil, fmt.Errorf("oauth: caller %s: %w", c.Name, err)
		}
	}

	return r, nil
}

// add adds a caller. It returns an error if the subject is missing or already in use.
func (r *Resource) add(c Caller) error {
	key := subject{c.Issuer, c.Subject}
	switch {
	case c.Subject == "":
		return errors.New("expected a subject")
	case r.issuers[c.Issuer] == nil:
		return fmt.Errorf("no issuer is called %q", c.Issuer)
	case r.callers[key] != "":
		return fmt.Errorf("the subject is that of %s already", r.callers[key])
	}

	r.callers[key] = c.Name
	return nil
}

// Authenticate finds the caller whose token a request carries. A refusal never repeats any part of
// the token.
func (r *Resource) Authenticate(q *http.Request) (caller string, refused *server.Refusal) {
	caller, err := r.check(q.Context(), q.Header.Values("Authorization"))
	if err != nil {
		return "", r.refuse(err)
	}
	return caller, nil
}

// bearer returns the token of a request (RFC 6750 section 2.1).
func bearer(shown []string) (token string, ok bool) {
	if len(shown) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(shown[0], " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// The reasons why a token is refused.
var (
	errNone   = errors.New("expected one bearer token in the header Authorization")
	errToken  = errors.New("the token is refused")
	errScope  = errors.New("the token has too small a scope")
	errCaller = errors.New("no caller of this gateway is the token's subject")
)

// refuse returns the response to a refused request (RFC 6750 section 3, RFC 9728 section 5.1).
func (r *Resource) refuse(err error) *server.Refusal {
	out := &server.Refusal{Status: http.StatusUnauthorized, Reason: err.Error()}
	switch {
	case errors.Is(err, errCaller):
		out.Status = http.StatusForbidden
		return out
	case errors.Is(err, keyset.ErrUnavailable):
		out.Status = http.StatusServiceUnavailable
		return out
	case errors.Is(err, errScope):
		out.Status = http.StatusForbidden
		out.Challenge = r.challenge("insufficient_scope", err)
	case errors.Is(err, errNone):
		out.Challenge = r.challenge("", nil)
	default:
		out.Challenge = r.challenge("invalid_token", err)
	}

	return out
}

// challenge returns the value of the header WWW-Authenticate.
func (r *Resource) challenge(code string, err error) string {
	parts := []string{parameter("resource_metadata", r.metadataURL())}
	if code != "" {
		parts = append(parts, parameter("error", code), parameter("error_description", err.Error()))
	}
	if len(r.cfg.Scopes) > 0 {
		parts = append(parts, parameter("scope", strings.Join(r.cfg.Scopes, " ")))
	}
	return "Bearer " + strings.Join(parts, ", ")
}

func parameter(name, value string) string {
	return name + `="` + strings.NewReplacer(`\`, "", `"`, "'").Replace(value) + `"`
}
