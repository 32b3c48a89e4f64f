// Package authtest is an OAuth issuer for tests, over real HTTP and with
// real keys: it publishes metadata and keys, signs access tokens, and
// gives some by client credentials.
package authtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Issuer is an authorization server. Tests change it through Set.
type Issuer struct {
	*httptest.Server
	RSA *rsa.PrivateKey   // of the key "r", for RS256
	EC  *ecdsa.PrivateKey // of the key "e", for ES256

	Keys   []jose.JSONWebKey // that it publishes
	Meta   map[string]any    // over the usual members of its metadata
	Down   bool
	Moved  string // where it redirects to; "": nowhere
	Grants []http.Request
	Grant  func(w http.ResponseWriter, n int) // answers for the n-th token, from 1; nil: there are none

	t     testing.TB
	mu    sync.Mutex
	calls map[string]int
}

// New starts an issuer with https.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := fresh(t)
	i.Server = httptest.NewTLSServer(i)
	t.Cleanup(i.Close)
	return i
}

// NewPlain starts an issuer with plain http, for programs that don't trust the test certificate.
func NewPlain(t testing.TB) *Issuer {
	t.Helper()
	i := fresh(t)
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func fresh(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, calls: map[string]int{}}
	var err error
	if i.RSA, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if i.EC, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	i.Keys = []jose.JSONWebKey{
		{Key: i.RSA.Public(), KeyID: "r", Algorithm: "RS256", Use: "sig"},
		{Key: i.EC.Public(), KeyID: "e"},
	}
	return i
}

func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls[r.URL.Path]++
	switch {
	case i.Down:
		w.WriteHeader(http.StatusBadGateway)
	case i.Moved != "":
		http.Redirect(w, r, i.Moved+r.URL.Path, http.StatusFound)
	case r.URL.Path == "/.well-known/openid-configuration":
		meta := map[string]any{
			"issuer":         i.URL,
			"jwks_uri":       i.URL + "/keys",
			"token_endpoint": i.URL + "/token",
		}
		maps.Copy(meta, i.Meta)
		i.say(w, meta)
	case r.URL.Path == "/keys":
		i.say(w, jose.JSONWebKeySet{Keys: i.Keys})
	case r.URL.Path == "/token" && i.Grant != nil:
		_ = r.ParseForm()
		i.Grants = append(i.Grants, *r)
		i.Grant(w, len(i.Grants))
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) say(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		i.t.Error(err)
	}
}

// Set changes the issuer between requests.
func (i *Issuer) Set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// Count returns how often a path was requested.
func (i *Issuer) Count(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[path]
}

// Roots returns a TLS configuration that trusts the issuer.
func (i *Issuer) Roots() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(i.Certificate())
	return &tls.Config{RootCAs: pool}
}

// Sign signs claims in the form of the issuer's access tokens.
func (i *Issuer) Sign(claims map[string]any) string {
	i.t.Helper()
	return Signed(i.t, "RS256", i.RSA, "r", "at+jwt", claims)
}

// Signed signs claims with a key and the header members alg, kid and typ. The last two are left out
// if they are empty.
func Signed(t testing.TB, alg string, key any, kid, kind string, claims any) string {
	t.Helper()
	t.Helper()
	options := &jose.SignerOptions{}
	if kind != "" {
		options = options.WithType(jose.ContentType(kind))
	}
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Gives makes the issuer return the tokens t1, t2 and so on. more is appended to the members of its
// answer, for example ,"expires_in":600.
func (i *Issuer) Gives(more string) {
	i.Grant = func(w http.ResponseWriter, n int) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"t%d","token_type":"Bearer"%s}`, n, more)
	}
}
