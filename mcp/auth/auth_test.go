package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/auth"
	"github.com/assent-dev/assent/mcp/auth/authtest"
)

// opens checks that a token is accepted as a caller's.
func opens(t *testing.T, r *auth.Resource, token, caller string) {
	t.Helper()
	got, refused := r.Authenticate(shown(token))
	if refused != nil || got != caller {
		t.Errorf("got %q, %+v, expected %s", got, refused, caller)
	}
}

// refuses checks that a token is refused with a status and a reason, and that no part of it is
// repeated.
func refuses(t *testing.T, r *auth.Resource, token string, status int, reason string) {
	t.Helper()
	caller, refused := r.Authenticate(shown(token))
	switch {
	case refused == nil || caller != "":
		t.Errorf("%s: the token is %q's", reason, caller)
	case refused.Status != status || !strings.Contains(refused.Reason, reason):
		t.Errorf("got %d %s, expected %d %s", refused.Status, refused.Reason, status, reason)
	case len(token) > 20 && strings.Contains(refused.Reason+refused.Challenge, token[:20]):
		t.Errorf("the token is repeated: %+v", refused)
	}
}

func TestTokensThatOpen(t *testing.T) {
	i := authtest.New(t)
	r, at := resource(t, i, func(cfg *auth.Config) {
		cfg.Callers = append(cfg.Callers, auth.Caller{Name: "bob", Issuer: i.URL, Subject: "00u2"})
	})
	now := at.read()
	for _, change := range []map[string]any{
		nil,
		{"aud": []string{"https://other.example", gatewayURL}},
		{"scope": nil, "scp": []string{scope}},
		{"scope": nil, "scp": scope},
		{"exp": now.Add(-30 * time.Second).Unix()},
		{"nbf": now.Add(30 * time.Second).Unix()},
	} {
		opens(t, r, i.Sign(with(i, now, change)), "ann")
	}

	opens(t, r, i.Sign(with(i, now, map[string]any{"sub": "00u2"})), "bob")
	for _, one := range []struct {
		alg, kid, kind string
		key            any
	}{
		{"RS256", "", "at+jwt", i.RSA},
		{"RS256", "r", "JWT", i.RSA},
		{"RS256", "r", "", i.RSA},
		{"RS256", "r", "application/at+jwt", i.RSA},
		{"ES256", "e", "at+jwt", i.EC},
	} {
		opens(t, r, authtest.Signed(t, one.alg, one.key, one.kid, one.kind, good(i, now)), "ann")
	}
}

func TestTokensThatOpenNothing(t *testing.T) {
	i, other := authtest.New(t), authtest.New(t)
	r, at := resource(t, i, nil)
	now := at.read()
	one := func(claim string, value any) string { return i.Sign(with(i, now, map[string]any{claim: value})) }
	claims := good(i, now)
	by := func(alg string, key any, kid string) string {
		return authtest.Signed(t, alg, key, kid, "at+jwt", claims)
	}
	for _, test := range []struct {
		name, token string
		status      int
		reason      string
	}{
		{"nothing", "", 401, "expected one bearer token"},
		{"no JWT", "0123456789abcdef", 401, "expected a signed JWT"},
		{"expired", one("exp", now.Add(-2*time.Minute).Unix()), 401, "it has expired"},
		{"without an end", one("exp", nil), 401, "no time at which it expires"},
		{"not yet", one("nbf", now.Add(2*time.Minute).Unix()), 401, "not valid yet"},
		{"issued later", one("iat", now.Add(2*time.Minute).Unix()), 401, "not valid yet"},
		{"other audience", one("aud", "https://mcp.example.com"), 401, "another audience than " + gatewayURL},
		{"audience with a slash", one("aud", gatewayURL+"/"), 401, "another audience"},
		{"no audience", one("aud", nil), 401, "another audience"},
		{"other issuer", one("iss", other.URL), 401, "of another issuer"},
		{"issuer with a slash", one("iss", i.URL+"/"), 401, "of another issuer"},
		{"no issuer", one("iss", nil), 401, "of another issuer"},
		{"another's key", by("RS256", other.RSA, "r"), 401, "not signed by a key of its issuer"},
		{"unknown kid", by("RS256", i.RSA, "x"), 401, "not signed by a key"},
		{"algorithm of another key", by("ES256", other.EC, "r"), 401, "not signed by a key"},
		{"algorithm that the key excludes", by("PS256", i.RSA, "r"), 401, "not signed by a key"},
		{"another type", authtest.Signed(t, "RS256", i.RSA, "r", "logout+jwt", claims), 401, "no access token"},
		{"bound to a key", one("cnf", map[string]any{"jkt": "x"}), 401, "bound to a key"},
		{"small scope", one("scope", "mcp:tool"), 403, "it lacks " + scope},
		{"no scope", one("scope", nil), 403, "it lacks " + scope},
		{"scope of another type", one("scope", 7), 403, "it lacks " + scope},
		{"unknown subject", one("sub", "00u3"), 403, "no caller"},
		{"no subject", one("sub", nil), 403, "no caller"},
		{"empty subject", one("sub", ""), 403, "no caller"},
		{"subject of another type", one("sub", []string{"00u1"}), 401, "its claims can't be read"},
		{"long", one("pad", strings.Repeat("x", 16<<10)), 401, "longer than"},
		{"no signature", unsigned(t, claims), 401, "expected a signed JWT"},
		{"cut signature", cut(i.Sign(claims)), 401, "not signed by a key"},
		{"a MAC by the public key", hs256(t, i, claims), 401, "expected a signed JWT"},
		{"key of its own", embedded(t, other, claims), 401, "not signed by a key"},
		{"claim that stands twice", twice(t, i, claims), 401, "its claims can't be read"},
	} {
		t.Run(test.name, func(t *testing.T) { refuses(t, r, test.token, test.status, test.reason) })
	}
}

// segment returns a part of a JWT.
func segment(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return base64.RawURLEncoding.EncodeToString(text)
}

func unsigned(t *testing.T, claims any) string {
	t.Helper()
	header := segment(t, map[string]any{"alg": "none", "typ": "at+jwt"})
	return header + "." + segment(t, claims) + "."
}

// cut returns a token without its signature.
func cut(token string) string { return token[:strings.LastIndex(token, ".")+1] }

// hs256 returns a token whose MAC uses the issuer's public key as the secret.
func hs256(t *testing.T, i *authtest.Issuer, claims any) string {
	t.Helper()
	der := must.Get(x509.MarshalPKIXPublicKey(i.RSA.Public()))(t)
	text := segment(t, map[string]any{"alg": "HS256", "kid": "r"}) + "." + segment(t, claims)
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	fmt.Fprint(mac, text)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// embedded returns a token that contains the key that signed it.
func embedded(t *testing.T, by *authtest.Issuer, claims any) string {
	t.Helper()
	signer := must.Get(jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: by.RSA},
		&jose.SignerOptions{EmbedJWK: true},
	))(t)
	return compact(t, signer, segmentless(t, claims))
}

func segmentless(t *testing.T, claims any) []byte {
	t.Helper()
	return must.Get(json.Marshal(claims))(t)
}

func compact(t *testing.T, signer jose.Signer, payload []byte) string {
	t.Helper()
	object := must.Get(signer.Sign(payload))(t)
	return must.Get(object.CompactSerialize())(t)
}

// twice returns a token of the issuer with a duplicate claim.
func twice(t *testing.T, i *authtest.Issuer, claims any) string {
	t.Helper()
	signer := must.Get(jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: i.RSA}, nil))(t)
	text := segmentless(t, claims)
	return compact(t, signer, []byte(`{"sub":"00u1",`+string(text[1:])))
}

// TestNoForgedTokenOpens: no token is accepted that differs from the issuer's in any byte of its
// header, claims or signature, or that was signed with another key.
func TestNoForgedTokenOpens(t *testing.T) {
	i, other := authtest.New(t), authtest.New(t)
	r, at := resource(t, i, nil)
	claims := good(i, at.read())
	token := i.Sign(claims)
	opens(t, r, token, "ann")
	rapid.Check(t, func(rt *rapid.T) {
		forged := forge(t, rt, other, token, claims)
		if caller, _ := r.Authenticate(shown(forged)); caller != "" {
			rt.Fatalf("%s opens as %s", forged, caller)
		}
	})
}

func forge(t *testing.T, rt *rapid.T, other *authtest.Issuer, token string, claims map[string]any) string {
	parts := strings.Split(token, ".")
	switch rapid.IntRange(0, 3).Draw(rt, "how") {
	case 0: // other bytes in a part
		n := rapid.IntRange(0, 2).Draw(rt, "part")
		raw := must.Get(base64.RawURLEncoding.DecodeString(parts[n]))(t)
		at := rapid.IntRange(0, len(raw)-1).Draw(rt, "at")
		raw[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		parts[n] = base64.RawURLEncoding.EncodeToString(raw)
	case 1: // another header over the same signature
		parts[0] = segment(t, map[string]any{
			"alg": rapid.SampledFrom([]string{"none", "HS256", "RS512", "PS256", "ES256", ""}).
				Draw(rt, "alg"),
			"kid": rapid.SampledFrom([]string{"r", "e", ""}).Draw(rt, "kid"),
		})
	case 2: // other claims over the same signature
		said := map[string]any{"sub": rapid.String().Draw(rt, "sub"), "iss": claims["iss"], "aud": claims["aud"]}
		parts[1] = segment(t, said)
	default: // the same claims by another's key
		kid := rapid.SampledFrom([]string{"r", "e", ""}).Draw(rt, "kid")
		if rapid.Bool().Draw(rt, "curve") {
			return authtest.Signed(t, "ES256", other.EC, kid, "at+jwt", claims)
		}
		return authtest.Signed(t, "RS256", other.RSA, kid, "at+jwt", claims)
	}

	return strings.Join(parts, ".")
}

func TestAlgorithmsThatAreNotAllowed(t *testing.T) {
	i := authtest.New(t)
	r, at := resource(t, i, func(cfg *auth.Config) { cfg.Issuers[0].Algorithms = []string{"ES256"} })
	claims := good(i, at.read())
	opens(t, r, authtest.Signed(t, "ES256", i.EC, "e", "at+jwt", claims), "ann")
	refuses(t, r, i.Sign(claims), 401, "its algorithm is not allowed")
	for _, name := range []string{"HS256", "none", "RS1"} {
		_, err := auth.New(auth.Config{
			URL:     gatewayURL,
			Issuers: []auth.Issuer{{URL: i.URL, Algorithms: []string{name}}},
		})
		if err == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}

func TestChallenges(t *testing.T) {
	i := authtest.New(t)
	r, at := resource(t, i, nil)
	const where = `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", `
	expired := i.Sign(with(i, at.read(), map[string]any{"exp": 1}))
	small := i.Sign(with(i, at.read(), map[string]any{"scope": "a"}))
	for token, want := range map[string]string{
		"":      where + `scope="mcp:tools"`,
		expired: where + `error="invalid_token", error_description="the token is refused: it has expired", scope="mcp:tools"`,
		small: where + `error="insufficient_scope", ` +
			`error_description="the token has too small a scope: it lacks mcp:tools", scope="mcp:tools"`,
	} {
		_, refused := r.Authenticate(shown(token))
		if refused == nil || refused.Challenge != want {
			t.Errorf("got %+v, expected %s", refused, want)
		}
	}

	two := shown(i.Sign(good(i, at.read())))
	two.Header.Add("Authorization", two.Header.Get("Authorization"))
	if caller, refused := r.Authenticate(two); refused == nil {
		t.Errorf("two headers open as %q", caller)
	}
}

func TestMetadataOfTheGateway(t *testing.T) {
	i := authtest.New(t)
	r, _ := resource(t, i, nil)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource", nil))
	want := fmt.Sprintf(
		`{"resource":%q,"authorization_servers":[%q],"scopes_supported":["mcp:tools"],`+
			`"bearer_methods_supported":["header"],"resource_name":"assent"}`,
		gatewayURL,
		i.URL,
	)
	if w.Code != 200 || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s, expected %s", w.Code, w.Body, want)
	}
	w = httptest.NewRecorder()
	if r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	behind, _ := resource(t, i, func(cfg *auth.Config) { cfg.URL = "https://example.com/assent/mcp" })
	for path, want := range map[string]bool{
		"/.well-known/oauth-protected-resource":            true,
		"/.well-known/oauth-protected-resource/mcp":        true,
		"/.well-known/oauth-protected-resource/assent/mcp": true,
		"/.well-known/oauth-protected-resource/other":      false,
		"/mcp": false,
	} {
		if behind.IsMetadata(path, "/mcp") != want {
			t.Errorf("%s: expected %t", path, want)
		}
	}
}

func TestConfigurationsThatCanNotWork(t *testing.T) {
	const at = "https://login.example.com"
	issuers := []auth.Issuer{{URL: at}}
	ann := auth.Caller{Name: "ann", Issuer: at, Subject: "1"}
	for want, cfg := range map[string]auth.Config{
		"expected the gateway's URL": {URL: gatewayURL + "/"},
		"expected https":             {Issuers: []auth.Issuer{{URL: "http://login.example.com"}}},
		"without query":              {Issuers: []auth.Issuer{{URL: at + "?a"}}},
		"without user":               {Issuers: []auth.Issuer{{URL: "https://a:b@login.example.com"}}},
		"expected a subject":         {Issuers: issuers, Callers: []auth.Caller{{Name: "ann", Issuer: at}}},
		"no issuer is called":        {Callers: []auth.Caller{ann}},
		"is that of ann already":     {Issuers: issuers, Callers: []auth.Caller{ann, ann}},
	} {
		if cfg.URL == "" {
			cfg.URL = gatewayURL
		}
		if _, err := auth.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %s", err, want)
		}
	}
}

// FuzzToken: no text makes the reader panic, and every accepted token has the claims that the
// issuer signed.
func FuzzToken(f *testing.F) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(f)
	set := must.Get(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "e"}}}))(f)
	file := filepath.Join(f.TempDir(), "keys")
	must.Do(f, os.WriteFile(file, set, 0o600))
	const at = "https://login.example.com"
	r := must.Get(auth.New(auth.Config{
		URL:     gatewayURL,
		Issuers: []auth.Issuer{{URL: at, KeysFile: file}},
		Callers: []auth.Caller{{Name: "ann", Issuer: at, Subject: "1"}},
	}))(f)
	token := authtest.Signed(f, "ES256", key, "e", "at+jwt", map[string]any{
		"iss": at,
		"aud": gatewayURL,
		"sub": "1",
		"exp": time.Now().Add(24 * time.Hour).Unix(),
	})
	f.Add(token)
	f.Add(cut(token))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		caller, refused := r.Authenticate(shown(text))
		same := strings.HasPrefix(text, cut(token)) // a signature may be written in several ways
		if (caller == "") == (refused == nil) || caller != "" && !same {
			t.Errorf("%q: %q, %+v", text, caller, refused)
		}
	})
}
