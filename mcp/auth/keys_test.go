package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
)

func newKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	return must.Get(rsa.GenerateKey(rand.Reader, bits))(t)
}

// TestNewKeysAreFound: a token signed with a new key is accepted, and one signed with a removed key
// is refused after the keys were reloaded.
func TestNewKeysAreFound(t *testing.T) {
	i := authtest.New(t)
	r, at := resource(t, i, nil)
	old := i.Sign(good(i, at.read()))
	opens(t, r, old, "ann")
	next := newKey(t, 2048)
	i.Set(func() { i.Keys = []jose.JSONWebKey{{Key: next.Public(), KeyID: "next"}} })
	at.forward(11 * time.Second)
	opens(t, r, authtest.Signed(t, "RS256", next, "next", "at+jwt", good(i, at.read())), "ann")
	refuses(t, r, old, 401, "not signed by a key")
}

// TestAKeyThatWasTakenAwayOpensNothing: its tokens are refused once the keys are old enough to be
// reloaded.
func TestAKeyThatWasTakenAwayOpensNothing(t *testing.T) {
	i := authtest.New(t)
	r, at := resource(t, i, nil)
	token := i.Sign(good(i, at.read()))
	opens(t, r, token, "ann")
	i.Set(func() { i.Keys = i.Keys[1:] })
	at.forward(14 * time.Minute)
	opens(t, r, token, "ann")
	if i.Count("/keys") != 1 {
		t.Errorf("the keys were loaded %d times", i.Count("/keys"))
	}
	at.forward(2 * time.Minute)
	testwait.Until(t, "the key counts no more", func() bool {
		_, refused := r.Authenticate(shown(token))
		return refused != nil && refused.Status == http.StatusUnauthorized
	})
}

// TestUnknownKeysAreAskedForSeldom: tokens with unknown keys cause at most one request to the
// issuer in ten seconds.
func TestUnknownKeysAreAskedForSeldom(t *testing.T) {
	i := authtest.New(t)
	r, at := resource(t, i, nil)
	claims := good(i, at.read())
	for range 3 {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				refuses(t, r, authtest.Signed(t, "RS256", i.RSA, "x", "at+jwt", claims), 401, "not signed by a key")
			})
		}

		all.Wait()
		opens(t, r, i.Sign(claims), "ann")
		at.forward(11 * time.Second)
	}

	if n := i.Count("/keys"); n != 3 {
		t.Errorf("the issuer was asked for its keys %d times", n)
	}
}

// TestWhileTheIssuerIsDown: known keys are valid for a day. Tokens with other keys are refused with
// a reason that doesn't blame the token.
func TestWhileTheIssuerIsDown(t *testing.T) {
	i := authtest.New(t)
	i.Set(func() { i.Down = true })
	r, at := resource(t, i, nil)
	claims := with(i, at.read(), map[string]any{"exp": at.read().Add(72 * time.Hour).Unix()})
	token := i.Sign(claims)
	refuses(t, r, token, http.StatusServiceUnavailable, "can't be fetched now")
	i.Set(func() { i.Down = false })
	refuses(t, r, token, http.StatusServiceUnavailable, "can't be fetched now") // it was asked a moment ago
	at.forward(11 * time.Second)
	opens(t, r, token, "ann")

	i.Set(func() { i.Down = true })
	at.forward(23 * time.Hour)
	opens(t, r, token, "ann")
	unknown := authtest.Signed(t, "RS256", i.RSA, "x", "at+jwt", claims)
	refuses(t, r, unknown, http.StatusServiceUnavailable, "can't be fetched now")
	at.forward(2 * time.Hour)
	refuses(t, r, token, http.StatusServiceUnavailable, "can't be fetched now")
	i.Set(func() { i.Down = false })
	at.forward(11 * time.Second)
	opens(t, r, token, "ann")
}

// TestKeysOfAFile: a changed file is read again, and keys in it that are unfit for signatures are
// ignored.
func TestKeysOfAFile(t *testing.T) {
	i := authtest.New(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	write := func(keys ...jose.JSONWebKey) {
		t.Helper()
		text := must.Get(json.Marshal(jose.JSONWebKeySet{Keys: keys}))(t)
		must.Do(t, os.WriteFile(file, text, 0o600))
	}
	small := newKey(t, 1024)
	r, at := resource(t, i, func(cfg *auth.Config) { cfg.Issuers[0].KeysFile = file })
	claims := good(i, at.read())
	refuses(t, r, i.Sign(claims), http.StatusServiceUnavailable, "can't be fetched now")
	for _, key := range []jose.JSONWebKey{
		{Key: []byte("a secret that both know, 32 bytes"), KeyID: "r"},
		{Key: small.Public(), KeyID: "r"},
		{Key: i.RSA.Public(), KeyID: "r", Use: "enc"},
	} {
		write(key)
		at.forward(11 * time.Second)
		refuses(t, r, i.Sign(claims), http.StatusServiceUnavailable, "can't be fetched now")
	}

	write(jose.JSONWebKey{Key: small.Public(), KeyID: "s"}, jose.JSONWebKey{Key: i.RSA, KeyID: "r"})
	at.forward(11 * time.Second)
	opens(t, r, i.Sign(claims), "ann")
	refuses(t, r, authtest.Signed(t, "RS256", small, "s", "at+jwt", claims), 401, "not signed by a key")
	if i.Count("/keys") != 0 {
		t.Error("the issuer was asked")
	}
}

// TestMetadataThatIsNotFollowed: an issuer's metadata can't refer to other machines of a private
// network, redirects are not followed, and the metadata must be the issuer's own.
func TestMetadataThatIsNotFollowed(t *testing.T) {
	bait := httptest.NewTLSServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("%s was asked for", r.URL.Path)
		}),
	)
	defer bait.Close()
	plain := httptest.NewServer(bait.Config.Handler)
	defer plain.Close()
	i := authtest.New(t)
	key := i.URL + "/keys"
	for name, change := range map[string]func(){
		"private address":  func() { i.Meta = map[string]any{"jwks_uri": "https://10.0.0.1/keys"} },
		"link-local":       func() { i.Meta = map[string]any{"jwks_uri": "https://169.254.169.254/keys"} },
		"mapped address":   func() { i.Meta = map[string]any{"jwks_uri": "https://[::ffff:10.0.0.1]/keys"} },
		"plain http":       func() { i.Meta = map[string]any{"jwks_uri": "http://login.example.com/keys"} },
		"file":             func() { i.Meta = map[string]any{"jwks_uri": "file:///etc/passwd"} },
		"user":             func() { i.Meta = map[string]any{"jwks_uri": strings.Replace(key, "://", "://a:b@", 1)} },
		"another issuer's": func() { i.Meta = map[string]any{"issuer": bait.URL} },
		"no keys":          func() { i.Meta = map[string]any{"jwks_uri": ""} },
		"redirect":         func() { i.Moved = bait.URL },
		"redirect to http": func() { i.Moved = plain.URL },
	} {
		t.Run(name, func(t *testing.T) {
			i.Set(func() {
				i.Meta, i.Moved = nil, ""
				change()
			})
			r, at := resource(t, i, nil)
			refuses(t, r, i.Sign(good(i, at.read())), http.StatusServiceUnavailable, "can't be fetched now")
		})
	}

	i.Set(func() { i.Meta, i.Moved = nil, "" })
	r, at := resource(t, i, nil)
	opens(t, r, i.Sign(good(i, at.read())), "ann")
}

// TestKeysAtAnAddress: an address that an operator configured is requested, even on this machine.
func TestKeysAtAnAddress(t *testing.T) {
	i := authtest.New(t)
	const far = "https://login.example.com"
	r, at := resource(t, i, func(cfg *auth.Config) {
		cfg.Issuers[0] = auth.Issuer{URL: far, KeysURL: i.URL + "/keys", TLS: i.Roots()}
		cfg.Callers[0].Issuer = far
	})
	opens(t, r, i.Sign(with(i, at.read(), map[string]any{"iss": far})), "ann")
	refuses(t, r, i.Sign(good(i, at.read())), http.StatusUnauthorized, "of another issuer")
}
