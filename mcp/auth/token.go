package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Algorithms returns the signature algorithms that may be allowed. All of them are asymmetric.
func Algorithms() (names []string) {
	for _, a := range algorithms() {
		names = append(names, string(a))
	}
	return names
}

func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512,
		jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512,
		jose.EdDSA,
	}
}

// maxToken is the maximum length of a token in bytes.
const maxToken = 16 << 10

// check validates the token of a request (RFC 9068 section 4) and returns its caller.
func (r *Resource) check(ctx context.Context, shown []string) (caller string, err error) {
	token, err := read(shown)
	if err != nil {
		return "", err
	}
	i, err := r.issuerOf(token)
	if err != nil {
		return "", err
	}
	said, err := i.verify(ctx, token)
	if err != nil {
		return "", err
	}

	if err := r.fits(i.URL, said); err != nil {
		return "", err
	}
	return r.who(i.URL, said)
}

// read parses the token of a request without checking it.
func read(shown []string) (*jwt.JSONWebToken, error) {
	raw, ok := bearer(shown)
	switch {
	case !ok:
		return nil, errNone
	case len(raw) > maxToken:
		return nil, fmt.Errorf("%w: it is longer than %d bytes", errToken, maxToken)
	}

	token, err := jwt.ParseSigned(raw, algorithms())
	if err != nil {
		return nil, fmt.Errorf("%w: expected a signed JWT", errToken)
	}
	return token, nil
}

// issuerOf returns the issuer that a token names.
func (r *Resource) issuerOf(token *jwt.JSONWebToken) (*issuer, error) {
	var claimed jwt.Claims
	if token.UnsafeClaimsWithoutVerification(&claimed) != nil {
		return nil, fmt.Errorf("%w: its claims can't be read", errToken)
	}
	if i := r.issuers[claimed.Issuer]; i != nil {
		return i, nil
	}
	return nil, fmt.Errorf("%w: it is of another issuer", errToken)
}

// claims are the claims of a token whose signature was checked.
type claims struct {
	jwt.Claims
	all map[string]any
}

// verify checks a token's signature by the issuer's keys.
func (i *issuer) verify(ctx context.Context, token *jwt.JSONWebToken) (*claims, error) {
	header := token.Headers[0] // the compact form has one
	switch {
	case !slices.Contains(i.Algorithms, header.Algorithm):
		return nil, fmt.Errorf("%w: its algorithm is not allowed", errToken)
	case !isAccessToken(header.ExtraHeaders[jose.HeaderType]):
		return nil, fmt.Errorf("%w: it is no access token (typ)", errToken)
	}

	keys, err := i.keys.Find(ctx, func(key *jose.JSONWebKey) bool { return isFor(key, &header) })
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		out := &claims{}
		if token.Claims(key.Key, &out.Claims, &out.all) == nil {
			return out, nil
		}
	}

	return nil, fmt.Errorf("%w: it is not signed by a key of its issuer", errToken)
}

// isFor reports whether a key may have signed a token.
func isFor(key *jose.JSONWebKey, header *jose.Header) bool {
	named := header.KeyID == "" || key.KeyID == header.KeyID
	return named && (key.Algorithm == "" || key.Algorithm == header.Algorithm)
}

// isAccessToken reports whether a token of this type may be an access token. Many issuers set no
// type, or JWT.
func isAccessToken(kind any) bool {
	text, is := kind.(string)
	if !is {
		return kind == nil
	}
	text = strings.TrimPrefix(strings.ToLower(text), "application/")
	return text == "at+jwt" || text == "jwt"
}

// fits checks the claims of a token.
func (r *Resource) fits(issuer string, said *claims) error {
	err := said.ValidateWithLeeway(jwt.Expected{
		Issuer:      issuer,
		AnyAudience: jwt.Audience{r.cfg.Audience},
		Time:        r.cfg.Now(),
	}, r.cfg.Skew)
	switch {
	case errors.Is(err, jwt.ErrInvalidAudience):
		return fmt.Errorf("%w: it is for another audience than %s", errToken, r.cfg.Audience)
	case errors.Is(err, jwt.ErrExpired):
		return fmt.Errorf("%w: it has expired", errToken)
	case err != nil:
		return fmt.Errorf("%w: it is not valid yet", errToken)
	case said.Expiry == nil:
		return fmt.Errorf("%w: it says no time at which it expires", errToken)
	case said.all["cnf"] != nil:
		return fmt.Errorf("%w: it is bound to a key (cnf), which is not checked here", errToken)
	}

	return r.reaches(said)
}

// reaches checks that a token has all required scopes.
func (r *Resource) reaches(said *claims) error {
	has := scopes(said.all)
	for _, scope := range r.cfg.Scopes {
		if !slices.Contains(has, scope) {
			return fmt.Errorf("%w: it lacks %s", errScope, scope)
		}
	}

	return nil
}

// who returns the caller for the subject of a token.
func (r *Resource) who(issuer string, said *claims) (caller string, err error) {
	name, _ := said.all[r.cfg.Claim].(string)
	if caller = r.callers[subject{issuer, name}]; caller == "" {
		return "", errCaller
	}
	return caller, nil
}

// scopes returns the scopes of a token from the claim scope, a text with blanks (RFC 8693 section
// 4.2), and from the claim scp, which some issuers use.
func scopes(all map[string]any) []string {
	return append(words(all["scope"]), words(all["scp"])...)
}

func words(said any) (out []string) {
	switch said := said.(type) {
	case string:
		return strings.Fields(said)
	case []any:
		for _, one := range said {
			if text, is := one.(string); is {
				out = append(out, text)
			}
		}
	}

	return out
}
