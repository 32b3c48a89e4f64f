package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/assent-dev/assent/internal/filelock"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/keyset"
)

// ErrSignIn means that a person must sign in before the gateway has a token for a server.
var ErrSignIn = errors.New("a person must sign in")

// SignInConfig configures the sign-in of a person to a server, by the authorization code grant with
// PKCE (RFC 6749 section 4.1, RFC 7636).
type SignInConfig struct {
	URL  string // of the server
	File string // where the tokens are kept; only its owner may read it
	// Headers are sent with the request by which a sign-in asks the server for its metadata.
	Headers map[string]string
	// Issuer of the tokens. If it is empty, it is the first one that the server names, and Secret
	// must be nil: the secret would be sent to any issuer that the server names.
	Issuer string
	// ID is the client that was registered at the issuer, with its Secret if it has one. If ID is
	// empty, each sign-in registers a client (RFC 7591).
	ID       string
	Secret   func() (string, error) // read for each token; nil: the client has none
	Scopes   []string               // that are requested; none: those that the server names
	Networks []netip.Prefix         // private ones that the addresses may resolve to
	TLS      *tls.Config            // nil: the roots of the system
	Now      func() time.Time
}

// SignIn gets tokens for a server at which a person has signed in. It is safe for concurrent use,
// and by several processes that have the same file.
type SignIn struct {
	cfg    SignInConfig
	server *url.URL
	http   *http.Client

	turn   chan struct{} // mutex for the fields below, with a context
	failed error
	retry  time.Time // when a failure is old enough
}

// NewSignIn checks the configuration.
func NewSignIn(cfg SignInConfig) (*SignIn, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	server, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("expected an https address")
	}
	g := guard.Guard{Allow: cfg.Networks, TLS: cfg.TLS, Connect: 5 * time.Second}.Naming(server)
	if _, err := g.CheckURL(cfg.URL); err != nil {
		return nil, err
	}
	if cfg.Secret != nil && cfg.Issuer == "" {
		return nil, errors.New("issuer: it must be set if the client has a secret")
	}
	if cfg.Issuer != "" {
		issuer, err := url.Parse(cfg.Issuer)
		if err != nil {
			return nil, errors.New("issuer: expected an https address")
		}
		g = g.Naming(issuer)
	}
	return &SignIn{
		cfg:    cfg,
		server: server,
		http:   g.Client(keyset.Patience),
		turn:   make(chan struct{}, 1),
	}, nil
}

// Token returns the current token, and renews it if it is about to end or is the refused one. It is
// empty if nobody has signed in. The error wraps ErrSignIn if only a person can help. After another
// failure, Token returns the same error until rests has passed.
func (s *SignIn) Token(ctx context.Context, refused string) (string, error) {
	kept, err := s.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case kept.usable(s.cfg.Now(), refused):
		return kept.Access, nil
	}

	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-s.turn }()
	// The token is shared and the refresh token may be used only once: the request doesn't end with
	// the context of the first caller.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*keyset.Patience)
	defer stop()
	return s.renew(ctx, refused)
}

// renew requests a token by the refresh token. If several processes notice that a token has ended,
// one requests another, and the others read it.
func (s *SignIn) renew(ctx context.Context, refused string) (token string, err error) {
	unlock, err := filelock.Lock(ctx, s.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the sign-in %s: %w", s.cfg.File, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	kept, err := s.read()
	now := s.cfg.Now()
	switch {
	case errors.Is(err, fs.ErrNotExist): // the person has signed out since Token read the file
		return "", nil
	case err != nil:
		return "", err
	case kept.usable(now, refused):
		return kept.Access, nil
	case kept.Ended != "" || kept.Refresh == "":
		return "", fmt.Errorf("%w: %s", ErrSignIn, cmp.Or(kept.Ended, "the token has ended and can't be renewed"))
	case now.Before(s.retry):
		return "", s.failed
	}

	err = s.refresh(ctx, kept)
	if errors.Is(err, ErrSignIn) {
		kept.end(strings.TrimPrefix(err.Error(), ErrSignIn.Error()+": "))
		return "", errors.Join(err, s.write(kept))
	}
	if err != nil {
		s.failed, s.retry = err, now.Add(rests)
		return "", err
	}
	return kept.Access, s.write(kept)
}

// refresh replaces the tokens. The error wraps ErrSignIn if the issuer doesn't take the refresh
// token any more.
func (s *SignIn) refresh(ctx context.Context, kept *signedIn) error {
	secret, err := s.secretOf(kept)
	if err != nil {
		return err
	}
	// This grant lets the type of the grant be set, and further parameters.
	grant := clientcredentials.Config{
		ClientID:     kept.Client,
		ClientSecret: secret,
		TokenURL:     kept.TokenURL,
		AuthStyle:    kept.style(),
		EndpointParams: url.Values{
			"grant_type":    {"refresh_token"},
			"refresh_token": {kept.Refresh},
			"resource":      {kept.Resource},
			"client_id":     {kept.Client},
		},
	}
	token, err := grant.Token(context.WithValue(ctx, oauth2.HTTPClient, s.http))
	if refused, is := errors.AsType[*oauth2.RetrieveError](err); is {
		switch refused.ErrorCode {
		case "invalid_grant", "invalid_client", "unauthorized_client":
			return fmt.Errorf("%w: %w", ErrSignIn, grantError(err))
		}
	}
	if err != nil {
		return grantError(err)
	}
	return kept.take(token, s.cfg.Now())
}

// secretOf returns the secret of the client, or an empty string if it has none.
func (s *SignIn) secretOf(kept *signedIn) (string, error) {
	if s.cfg.Secret == nil || s.cfg.ID != kept.Client {
		return kept.Secret, nil
	}
	secret, err := s.cfg.Secret()
	if err != nil {
		return "", fmt.Errorf("the client's secret: %w", err)
	}
	return secret, nil
}
