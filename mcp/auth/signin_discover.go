package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/keyset"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/value"
)

// maxList bounds the lists in metadata.
const maxList = 1_000

// probe is the request by which a server is asked whether it wants a token.
const probe = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + wire.V20251125 +
	`","capabilities":{},"clientInfo":{"name":"assent","version":"0"}}}`

// protected holds what a server publishes about itself as a protected resource.
type protected struct {
	resource string
	issuers  []string
	scopes   []string // that a client may need
}

// issuing holds the metadata of an authorization server.
type issuing struct {
	issuer, authorize, token, register string

	methods []string // for clients at the token endpoint; none: client_secret_basic
	names   bool     // its answers name it (RFC 9207)
	offline bool     // it knows the scope offline_access
}

// challenge asks the server without a token. wanted reports whether it answered 401.
func (s *SignIn) challenge(ctx context.Context) (c wire.Challenge, wanted bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, strings.NewReader(probe))
	if err != nil {
		return c, false, errors.New("a request can't be made of the address")
	}
	for name, value := range s.cfg.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("User-Agent", "assent")
	resp, err := s.http.Do(r)
	if err != nil {
		return c, false, fmt.Errorf("the server can't be reached: %w", withoutURL(err))
	}
	_ = resp.Body.Close()
	c, _ = wire.ReadChallenge(resp.Header.Values("WWW-Authenticate"))
	return c, resp.StatusCode == http.StatusUnauthorized, nil
}

// withoutURL returns an error of net/http without the address, whose query may be secret.
func withoutURL(err error) error {
	if inner, is := errors.AsType[*url.Error](err); is {
		return inner.Err
	}
	return err
}

// discover finds out what the server requires, and who issues its tokens.
func (s *SignIn) discover(ctx context.Context) (p protected, i issuing, err error) {
	c, wanted, err := s.challenge(ctx)
	if err != nil {
		return p, i, err
	}
	p, err = s.protected(ctx, c)
	switch {
	case errors.Is(err, errNoMetadata) && !wanted:
		return p, i, errors.New("the server doesn't ask for a sign-in")
	case errors.Is(err, errNoMetadata):
		// Servers of 2025-03-26 are their own issuers.
		origin := s.origin()
		p = protected{resource: origin.String(), issuers: []string{origin.String()}}
	case err != nil:
		return p, i, err
	}
	if c.Scope != "" {
		p.scopes = strings.Fields(c.Scope)
	}

	issuer := s.cfg.Issuer
	switch {
	case issuer == "":
		issuer = p.issuers[0]
	case !slices.ContainsFunc(p.issuers, func(named string) bool { return sameIssuer(named, issuer) }):
		return p, i, fmt.Errorf("the server doesn't name the issuer of the configuration, but %.200q", p.issuers)
	}
	i, err = s.issuing(ctx, issuer)
	return p, i, err
}

// origin returns the address of the server without its path.
func (s *SignIn) origin() *url.URL { return &url.URL{Scheme: s.server.Scheme, Host: s.server.Host} }

// errNoMetadata means that a server publishes no metadata as a protected resource.
var errNoMetadata = errors.New("the server's metadata can't be fetched")

// protected reads the metadata of the server (RFC 9728), at the address of its challenge or at the
// well-known ones.
func (s *SignIn) protected(ctx context.Context, c wire.Challenge) (protected, error) {
	if c.Metadata != "" {
		text, err := keyset.Fetch(ctx, s.http, c.Metadata)
		if err != nil {
			return protected{}, fmt.Errorf("the server's metadata can't be fetched: %w", withoutURL(err))
		}
		return s.readProtected(text)
	}
	var failed error
	for _, path := range slices.Compact([]string{wellKnown + strings.TrimRight(s.server.Path, "/"), wellKnown}) {
		at := s.origin()
		at.Path = path
		text, err := keyset.Fetch(ctx, s.http, at.String())
		if err == nil {
			return s.readProtected(text)
		}
		failed = errors.Join(failed, err)
	}
	return protected{}, fmt.Errorf("%w: %w", errNoMetadata, failed)
}

func (s *SignIn) readProtected(text []byte) (p protected, err error) {
	f := jsonmsg.Read(text, value.DefaultLimits())
	p.resource = f.NonEmpty("resource")
	p.issuers = texts(f, "authorization_servers")
	p.scopes = texts(f, "scopes_supported")
	switch {
	case f.Err() != nil:
		return p, fmt.Errorf("the server's metadata: %w", f.Err())
	case !s.isOwn(p.resource):
		return p, fmt.Errorf("the server's metadata is that of %.200q, not of the server", p.resource)
	case len(p.issuers) == 0:
		return p, errors.New("the server's metadata names no authorization server")
	}
	return p, nil
}

// texts returns a list of strings, which may be absent.
func texts(f jsonmsg.Fields, name string) (out []string) {
	if !f.Has(name) {
		return nil
	}
	for path, raw := range f.Elements(name, maxList) {
		text, _ := f.String(path, raw)
		out = append(out, text)
	}
	return out
}

// isOwn reports whether a resource identifier is that of the server: its address, or its origin,
// which many servers use.
func (s *SignIn) isOwn(resource string) bool {
	u, err := url.Parse(resource)
	if err != nil || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	return sameOrigin(u, s.server) && (u.RawQuery == "" || u.RawQuery == s.server.RawQuery) &&
		(path == "" || path == strings.TrimRight(s.server.EscapedPath(), "/"))
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// issuing reads the metadata of an authorization server (RFC 8414, OpenID Connect Discovery).
func (s *SignIn) issuing(ctx context.Context, issuer string) (i issuing, err error) {
	if u, err := url.Parse(issuer); err != nil || u.RawQuery != "" || u.Fragment != "" {
		return i, fmt.Errorf("the issuer %.200q: expected an address without query and fragment", issuer)
	}
	var failed error
	for _, at := range metadataOf(issuer) {
		text, err := keyset.Fetch(ctx, s.http, at)
		if err != nil {
			if _, refused := errors.AsType[*guard.Refusal](err); refused {
				return i, fmt.Errorf("the issuer %.200q: %w", issuer, withoutURL(err))
			}
			failed = errors.Join(failed, err)
			continue
		}
		return readIssuing(text, issuer)
	}
	return i, fmt.Errorf("the metadata of the issuer %.200q can't be fetched: %w", issuer, failed)
}

func readIssuing(text []byte, issuer string) (i issuing, err error) {
	f := jsonmsg.Read(text, value.DefaultLimits())
	i.issuer = f.NonEmpty("issuer")
	i.authorize = f.NonEmpty("authorization_endpoint")
	i.token = f.NonEmpty("token_endpoint")
	i.register = f.Text("registration_endpoint")
	i.methods = texts(f, "token_endpoint_auth_methods_supported")
	i.offline = slices.Contains(texts(f, "scopes_supported"), offline)
	challenges := texts(f, "code_challenge_methods_supported")
	if names := f.Bool("authorization_response_iss_parameter_supported"); names != nil {
		i.names = *names
	}
	switch {
	case f.Err() != nil:
		return i, fmt.Errorf("the issuer's metadata: %w", f.Err())
	case !sameIssuer(i.issuer, issuer):
		return i, fmt.Errorf("the metadata of the issuer %.200q is that of %.200q", issuer, i.issuer)
	case !slices.Contains(challenges, "S256"):
		return i, fmt.Errorf("the issuer %.200q does not support PKCE with S256", issuer)
	}
	return i, nil
}

// sameIssuer compares issuers. Some libraries add a slash to an address, so one at the end doesn't
// count.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// offline is the scope by which an OpenID provider gives a refresh token.
const offline = "offline_access"

// register registers a client (RFC 7591).
func (s *SignIn) register(ctx context.Context, i issuing, redirect string, kept *signedIn) error {
	method := methodNone
	switch {
	case len(i.methods) == 0, slices.Contains(i.methods, methodNone):
	case slices.Contains(i.methods, methodPost):
		method = methodPost
	case slices.Contains(i.methods, methodBasic):
		method = methodBasic
	default:
		return fmt.Errorf("the issuer supports no client authentication method that assent supports: %.200q", i.methods)
	}
	body, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("client_name", "assent")
		w.Name("redirect_uris").Strings([]string{redirect})
		w.Name("grant_types").Strings([]string{"authorization_code", "refresh_token"})
		w.Name("response_types").Strings([]string{"code"})
		w.Member("token_endpoint_auth_method", method)
		w.Member("application_type", "native")
	})
	if err != nil {
		return err
	}
	text, err := s.post(ctx, i.register, body)
	if err != nil {
		return fmt.Errorf("client registration failed: %w", err)
	}
	f := jsonmsg.Read(text, value.DefaultLimits())
	kept.Client, kept.Secret = f.NonEmpty("client_id"), f.Text("client_secret")
	if given := f.Text("token_endpoint_auth_method"); given != "" {
		method = given
	}
	if kept.Secret == "" {
		method = methodNone
	}
	kept.Method = method
	switch {
	case f.Err() != nil:
		return fmt.Errorf("the issuer's registration: %w", f.Err())
	case f.Has("redirect_uris") && !slices.Contains(texts(f, "redirect_uris"), redirect):
		return errors.New("the issuer registered a different redirect URI")
	case !slices.Contains([]string{methodNone, methodBasic, methodPost}, method):
		return fmt.Errorf("the issuer wants clients to identify themselves by %.60q, which is not supported", method)
	}
	return nil
}

// post sends a JSON document, and returns the answer.
func (s *SignIn) post(ctx context.Context, to string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(string(body)))
	if err != nil {
		return nil, errors.New("a request can't be made of the address")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "assent")
	resp, err := s.http.Do(r)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxFile))
	if err == nil && resp.StatusCode/100 != 2 {
		code, _ := jsonmsg.ReadString(jsonmsg.Get(text, "error"))
		err = fmt.Errorf("status %d, %.60q", resp.StatusCode, code)
	}
	return text, err
}
