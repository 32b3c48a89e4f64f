package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/assent-dev/assent/internal/keyset"
)

// ClientConfig configures how the gateway gets a token for a server by the client credentials grant
// (RFC 6749 section 4.4).
type ClientConfig struct {
	// TokenURL is the token endpoint. If it is empty, the endpoint is read from the metadata of
	// Issuer.
	TokenURL string
	Issuer   string
	ID       string
	Secret   func() (string, error) // read for each token
	Scopes   []string
	Resource string         // that the token is for (RFC 8707)
	Networks []netip.Prefix // private ones that the addresses may resolve to
	TLS      *tls.Config    // nil: the roots of the system
	Now      func() time.Time
}

// Client gets tokens and keeps the current one. It is safe for concurrent use.
type Client struct {
	cfg  ClientConfig
	http *http.Client

	turn   chan struct{} // mutex for the fields below, with a context
	grant  clientcredentials.Config
	token  string
	got    time.Time
	until  time.Time // zero: until it is refused
	failed error
	retry  time.Time // when a failure is old enough
}

const (
	early     = 30 * time.Second // before its end a token is renewed; a tenth of its life when that is less
	leastLife = 10 * time.Second // a token that is refused so soon is not renewed
	rests     = 3 * time.Second  // after no token could be had
)

// NewClient checks the configuration. It doesn't contact the issuer yet.
func NewClient(cfg ClientConfig) (*Client, error) {
	if (cfg.TokenURL == "") == (cfg.Issuer == "") {
		return nil, errors.New("expected either the address of tokens or the issuer")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	reach, err := clientOf(cmp.Or(cfg.TokenURL, cfg.Issuer), cfg.Networks, cfg.TLS)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg:  cfg,
		http: reach,
		turn: make(chan struct{}, 1),
		grant: clientcredentials.Config{
			ClientID: cfg.ID,
			TokenURL: cfg.TokenURL,
			Scopes:   cfg.Scopes,
		},
	}
	if cfg.Resource != "" {
		c.grant.EndpointParams = url.Values{"resource": {cfg.Resource}}
	}
	return c, nil
}

// Token returns the current token, or requests one. refused is the token that the server has refused,
// or empty: another one is then requested, unless that token is younger than leastLife. After a failed
// request, Token returns the same error until rests has passed. Concurrent callers wait for the same
// token.
func (c *Client) Token(ctx context.Context, refused string) (string, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}

	defer func() { <-c.turn }()
	now := c.cfg.Now()
	if c.good(now, refused) {
		return c.token, nil
	}
	if now.Before(c.retry) {
		return "", c.failed
	}
	token, err := c.get(ctx)
	if err != nil {
		c.failed, c.retry = err, now.Add(rests)
		return "", err
	}

	c.keep(token, now)
	return c.token, nil
}

// good reports whether the current token may be used.
func (c *Client) good(now time.Time, refused string) bool {
	old := !c.until.IsZero() && !now.Before(c.until)
	again := c.token == refused && now.Sub(c.got) >= leastLife
	return c.token != "" && !old && !again
}

func (c *Client) keep(t *oauth2.Token, now time.Time) {
	c.token, c.got = t.AccessToken, now
	c.until = t.Expiry
	if !t.Expiry.IsZero() {
		c.until = t.Expiry.Add(-min(early, t.Expiry.Sub(now)/10))
	}
}

// get requests a token. The token is shared, so the request doesn't end when the first caller's
// context ends.
func (c *Client) get(ctx context.Context) (*oauth2.Token, error) {
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, c.http)
	ctx, stop := context.WithTimeout(ctx, keyset.Patience)
	defer stop()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	token, err := c.grant.Token(ctx)
	if err != nil {
		return nil, grantError(err)
	}
	if !strings.EqualFold(token.Type(), "Bearer") {
		return nil, fmt.Errorf("the issuer gave a token of type %.20q, expected Bearer", token.Type())
	}

	return token, nil
}

// prepare finds the token endpoint and reads the secret.
func (c *Client) prepare(ctx context.Context) (err error) {
	if c.cfg.TokenURL == "" {
		c.grant.TokenURL, err = discover(ctx, c.http, c.cfg.Issuer, "token_endpoint")
	}
	if err != nil {
		return err
	}
	if c.grant.ClientSecret, err = c.cfg.Secret(); err != nil {
		return fmt.Errorf("the client's secret: %w", err)
	}
	return nil
}

// grantError reduces an error of the issuer to its error code and status, without the other text
// that the issuer sent.
func grantError(err error) error {
	if refused, is := errors.AsType[*oauth2.RetrieveError](err); is {
		status := 0
		if refused.Response != nil {
			status = refused.Response.StatusCode
		}
		return fmt.Errorf("the issuer gave no token: status %d, %.60q", status, refused.ErrorCode)
	}

	if unreached, is := errors.AsType[*url.Error](err); is {
		return fmt.Errorf("the issuer can't be reached: %w", unreached.Err)
	}
	return errors.New("the issuer's answer can't be read")
}
