package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/mcp/auth"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/mcp/upstream"
)

// mcpResource returns the resource server of a gateway that accepts tokens of issuers, or nil if it
// accepts none. at is the address on which the gateway listens.
func mcpResource(cfg config.MCP, at net.Addr, log *slog.Logger) (*auth.Resource, error) {
	if cfg.OAuth == nil {
		return nil, nil
	}
	out := auth.Config{
		URL:      resourceURL(cfg, at),
		Audience: cfg.OAuth.Audience,
		Scopes:   cfg.OAuth.Scopes,
		Claim:    cfg.OAuth.Claim,
		Log:      log,
	}
	for _, i := range cfg.OAuth.Issuers {
		networks, err := prefixes(i.Networks)
		if err != nil {
			return nil, err
		}
		out.Issuers = append(out.Issuers, auth.Issuer{
			URL:        i.Issuer,
			KeysURL:    i.JWKSURL,
			KeysFile:   i.JWKSFile,
			Algorithms: i.Algorithms,
			Networks:   networks,
		})
	}

	for _, c := range cfg.Callers {
		if c.Subject != "" {
			out.Callers = append(out.Callers, auth.Caller{
				Name:    c.Name,
				Issuer:  cfg.IssuerOf(c),
				Subject: c.Subject,
			})
		}
	}

	return auth.New(out)
}

// resourceURL returns the address of a gateway for which clients request tokens.
func resourceURL(cfg config.MCP, at net.Addr) string {
	base := cfg.PublicURL
	if base == "" {
		base = "http://" + at.String()
	}
	return strings.TrimRight(base, "/") + mcpPath
}

// withMetadata serves the gateway's metadata in addition to its endpoint.
func withMetadata(endpoint http.Handler, r *auth.Resource) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(mcpPath, endpoint)
	if r == nil {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if r.IsMetadata(q.URL.Path, mcpPath) {
			r.ServeHTTP(w, q)
			return
		}
		mux.ServeHTTP(w, q)
	})
}

// tokenSource returns the token for a server, or a replacement for a token that the server refused.
type tokenSource = func(ctx context.Context, refused string) (string, error)

// tokenOf returns the source of a server's token, or nil if it has none. A token file is read for
// each request, so a new token takes effect immediately.
func tokenOf(u mcpconfig.Upstream) (tokenSource, error) {
	switch {
	case u.TokenFile != "":
		return func(context.Context, string) (string, error) { return readSecret(u.TokenFile) }, nil
	case u.TokenEnv != "":
		return func(context.Context, string) (string, error) { return variable("token_env", u.TokenEnv) }, nil
	case u.OAuth != nil:
		return issuedTokens(u)
	}

	return nil, nil
}

func issuedTokens(u mcpconfig.Upstream) (tokenSource, error) {
	c, err := clientOf(u)
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return c.Token, nil
}

// clientOf gets tokens for a server at an issuer.
func clientOf(u mcpconfig.Upstream) (*auth.Client, error) {
	networks, err := prefixes(u.OAuth.Networks)
	if err != nil {
		return nil, err
	}
	return auth.NewClient(auth.ClientConfig{
		TokenURL: u.OAuth.TokenURL,
		Issuer:   u.OAuth.Issuer,
		ID:       u.OAuth.ID,
		Secret:   func() (string, error) { return readSecret(u.OAuth.SecretFile) },
		Scopes:   u.OAuth.Scopes,
		Resource: resourceOf(u),
		Networks: networks,
	})
}

// withSignIn makes a server use the tokens of a person's sign-in, unless it gets tokens in another
// way. It returns the command by which a person signs in.
func withSignIn(to *upstream.Config, u mcpconfig.Upstream, own mcpOwn) (command string, err error) {
	if own.signIn == nil || own.file == "" || !u.SignsIn() {
		return "", nil
	}
	s, err := forSignIns().SignInOf(u, own.signIn(u.Alias))
	if err != nil {
		return "", fmt.Errorf("sign_in: %w", err)
	}
	to.TokenVersion = s.Version
	to.Token = func(ctx context.Context, refused string) (string, error) {
		token, err := s.Token(ctx, refused)
		if errors.Is(err, auth.ErrSignIn) {
			return "", fmt.Errorf("%w: %w", upstream.ErrSignIn, err)
		}
		return token, err
	}
	return config.SignInCommand(u.Alias, own.file), nil
}

// resourceOf returns the resource for which a server's token is requested.
func resourceOf(u mcpconfig.Upstream) string {
	address, _, _ := strings.Cut(u.URL, "?")
	return cmp.Or(u.OAuth.Resource, address)
}

// prefixes parses the networks of a field.
func prefixes(names []string) (out []netip.Prefix, err error) {
	for _, name := range names {
		p, err := netip.ParsePrefix(name)
		if err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
		out = append(out, p)
	}

	return out, nil
}
