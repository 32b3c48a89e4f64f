package permit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/assent-dev/assent/approval/permit"
)

// signedClaims signs claims that Sign refuses, with the issuer's own key.
func signedClaims(t testing.TB, claims map[string]any) string {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(keysOf(t, newSigner(t, issuer, 1)), &set); err != nil {
		t.Fatal(err)
	}
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = 1
	key := jose.JSONWebKey{Key: ed25519.NewKeyFromSeed(seed), KeyID: set.Keys[0].KeyID}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: key},
		(&jose.SignerOptions{}).WithType(permit.Type),
	)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Claims outside of the limits are refused, even if the issuer signed them.
func TestClaimsHaveBounds(t *testing.T) {
	p := good(t)
	for name, c := range map[string]struct {
		claim  string
		value  any
		now    int64
		reason permit.Reason
	}{
		"as it is":             {"iat", 1000, 1000, ""},
		"no id":                {"jti", "", 1000, permit.Malformed},
		"no time of issue":     {"iat", 0, 1000, permit.Malformed},
		"a time before 1970":   {"iat", -1, 1000, permit.Malformed},
		"the first second":     {"iat", 1, 1000, ""},
		"no life":              {"iat", 2000, 1950, permit.Malformed},
		"a life that ends":     {"iat", 2001, 1950, permit.Malformed},
		"a second of life":     {"iat", 1999, 1999, ""},
		"an hour of life":      {"exp", 1000 + 3600, 1000, ""},
		"more than an hour":    {"exp", 1000 + 3601, 1000, permit.Malformed},
		"a text as its expiry": {"exp", "soon", 1000, permit.Malformed},
	} {
		claims := map[string]any{
			"iss": issuer, "aud": audience, "sub": "desk", "jti": "req_1", "iat": 1000, "exp": 2000,
			"binding": p.Binding, "target": target, "arguments": p.Arguments,
		}
		claims[c.claim] = c.value
		v := newVerifier(t, time.Unix(c.now, 0))
		_, err := v.Verify(t.Context(), signedClaims(t, claims), target, []byte(arguments))
		if got := reason(t, err); got != c.reason {
			t.Errorf("%s: %q (%v), expected %q", name, got, err, c.reason)
		}
	}
}

func TestTextsHaveOneSpellingAndABound(t *testing.T) {
	text := sign(t, newSigner(t, issuer, 1), good(t))
	longest := text + strings.Repeat("A", 8<<10-len(text))
	if len(longest[strings.LastIndexByte(longest, '.')+1:])%4 == 1 {
		t.Fatal("no base64 has this length: add a character to the issuer")
	}
	for name, c := range map[string]struct {
		text   string
		reason permit.Reason
	}{
		"the longest":       {longest, permit.Untrusted},
		"longer":            {longest + "A", permit.Malformed},
		"a carriage return": {strings.Replace(text, ".", "\r.", 1), permit.Malformed},
		"a line feed":       {text + "\n", permit.Malformed},
	} {
		_, err := newVerifier(t, now()).Verify(t.Context(), c.text, target, []byte(arguments))
		if got := reason(t, err); got != c.reason {
			t.Errorf("%s: %q (%v), expected %q", name, got, err, c.reason)
		}
	}
}

func TestPermitsLiveFromASecondToAnHour(t *testing.T) {
	for life, want := range map[time.Duration]bool{
		time.Second - 1:        false,
		time.Second:            true,
		permit.MaxLifetime:     true,
		permit.MaxLifetime + 1: false,
	} {
		p := good(t)
		p.Expires = p.Issued.Add(life)
		if _, err := newSigner(t, issuer, 1).Sign(&p); (err == nil) != want {
			t.Errorf("%v: %v", life, err)
		}
	}
}

func TestIssuersAreHTTPSOrOnThisMachine(t *testing.T) {
	for issuer, want := range map[string]bool{
		"https://assent.example.com/permits": true,
		"http://localhost:8080/permits":      true,
		"http://127.0.0.1:8080/permits":      true,
		"http://[::1]:8080/permits":          true,
		"http://assent.example.com/permits":  false,
		"http://10.0.0.1/permits":            false,
		"http://localhost.example.com":       false,
		"ftp://localhost/":                   false,
		"https:///permits":                   false,
		"https://a b/":                       false,
		"https://\x7f":                       false,
		"":                                   false,
	} {
		_, err := permit.NewVerifier(permit.Config{Issuer: issuer, Audience: audience})
		if (err == nil) != want {
			t.Errorf("%q: %v", issuer, err)
		}
	}
	if _, err := permit.NewVerifier(permit.Config{Issuer: issuer}); err == nil {
		t.Error("no audience was taken")
	}
	if _, err := permit.NewVerifier(permit.Config{Issuer: issuer, Audience: audience, Keys: []byte("{")}); err == nil {
		t.Error("keys that can't be read were taken")
	}
}

// If the limit is reached, expired permits are removed even within a minute after the last
// sweep.
func TestFullUsesForgetAtOnce(t *testing.T) {
	at := now()
	u := permit.NewUses(2, func() time.Time { return at })
	for _, id := range []string{"a", "b"} {
		if first, err := u.Use(t.Context(), id, at.Add(30*time.Second)); !first || err != nil {
			t.Fatalf("%s: %v, %v", id, first, err)
		}
	}
	at = at.Add(30 * time.Second)
	if first, err := u.Use(t.Context(), "c", at.Add(time.Minute)); first || err == nil {
		t.Errorf("a permit was forgotten in its last moment: %v, %v", first, err)
	}
	at = at.Add(time.Second)
	if first, err := u.Use(t.Context(), "c", at.Add(time.Minute)); !first || err != nil {
		t.Errorf("%v, %v", first, err)
	}
}

type brokenUses struct{}

func (brokenUses) Use(context.Context, string, time.Time) (bool, error) {
	return true, errors.New("the table is locked")
}

// If Uses fails, the call does not run, and the log has the reason.
func TestBrokenUsesRefuse(t *testing.T) {
	var log bytes.Buffer
	signer := newSigner(t, issuer, 1)
	v, err := permit.NewVerifier(permit.Config{
		Issuer:   issuer,
		Audience: audience,
		Keys:     keysOf(t, signer),
		Uses:     brokenUses{},
		Now:      now,
		Logger:   slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Verify(t.Context(), sign(t, signer, good(t)), target, []byte(arguments))
	if reason(t, err) != permit.Unavailable || strings.Contains(err.Error(), "locked") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), `level=ERROR`) ||
		!strings.Contains(log.String(), `error="the table is locked"`) {
		t.Errorf("the log says %s", log.String())
	}
}
