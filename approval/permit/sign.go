package permit

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Signer signs the permits of one issuer. It is safe for concurrent use.
type Signer struct {
	issuer string
	public jose.JSONWebKey
	signer jose.Signer
}

// NewSigner returns the signer of an issuer. The key is derived from the 32 secret bytes of
// seed. issuer is the URL below which KeysPath has the public keys; it must be unique to this
// signer.
func NewSigner(issuer string, seed []byte) (*Signer, error) {
	if issuer == "" || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("permit: expected an issuer, and a seed of %d bytes", ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public := jose.JSONWebKey{Key: private.Public(), Algorithm: string(jose.EdDSA), Use: "sig"}
	print, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("permit: %w", err)
	}

	public.KeyID = base64.RawURLEncoding.EncodeToString(print)
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: public.KeyID}},
		(&jose.SignerOptions{}).WithType(Type),
	)
	if err != nil {
		return nil, fmt.Errorf("permit: %w", err)
	}
	return &Signer{issuer: issuer, public: public, signer: signer}, nil
}

// Issuer returns the issuer's URL.
func (s *Signer) Issuer() string { return s.issuer }

// Keys returns the set of public keys (RFC 7517 §5) that verifiers load.
func (s *Signer) Keys() ([]byte, error) {
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{s.public}})
}

// Sign returns the text of a permit. The same permit always has the same text. Permit.Issuer is
// ignored; the signer's own issuer is used. Times are truncated to seconds.
func (s *Signer) Sign(p *Permit) (string, error) {
	if p.Audience == "" || p.Request == "" || p.Target == "" || p.Arguments == "" {
		return "", errors.New("permit: expected an audience, a request, a target and the digest of the arguments")
	}
	if life := p.Expires.Sub(p.Issued); life < time.Second || life > MaxLifetime {
		return "", fmt.Errorf("permit: expected a life of one second to %v, and found %v", MaxLifetime, life)
	}

	text, err := json.Marshal(claims{
		Issuer:    s.issuer,
		Audience:  p.Audience,
		Agent:     p.Agent,
		Request:   p.Request,
		Issued:    p.Issued.Unix(),
		Expires:   p.Expires.Unix(),
		Binding:   p.Binding,
		Target:    p.Target,
		Arguments: p.Arguments,
		Principal: p.Principal,
	})
	if err != nil {
		return "", fmt.Errorf("permit: %w", err)
	}
	signed, err := s.signer.Sign(text)
	if err != nil {
		return "", fmt.Errorf("permit: %w", err)
	}
	return signed.CompactSerialize()
}

// claims are the signed form of a permit: the registered names of RFC 7519 §4.1, and four of
// our own.
type claims struct {
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
	Agent     string `json:"sub"`
	Request   string `json:"jti"`
	Issued    int64  `json:"iat"` // seconds since 1970
	Expires   int64  `json:"exp"`
	Binding   string `json:"binding"`
	Target    string `json:"target"`
	Arguments string `json:"arguments"`
	Principal string `json:"principal,omitempty"`
}

func (c *claims) permit() *Permit {
	return &Permit{
		Issuer:    c.Issuer,
		Audience:  c.Audience,
		Agent:     c.Agent,
		Request:   c.Request,
		Binding:   c.Binding,
		Target:    c.Target,
		Arguments: c.Arguments,
		Principal: c.Principal,
		Issued:    time.Unix(c.Issued, 0).UTC(),
		Expires:   time.Unix(c.Expires, 0).UTC(),
	}
}
