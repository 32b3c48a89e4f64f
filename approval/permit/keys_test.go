package permit_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/internal/must"
)

// place is an issuer that responds over HTTP.
type place struct {
	*httptest.Server
	keys  atomic.Pointer[[]byte] // nil: it fails
	loads atomic.Int64
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.loads.Add(1)
		keys := p.keys.Load()
		switch {
		case r.URL.Path != "/permits/acme"+permit.KeysPath:
			http.NotFound(w, r)
		case keys == nil:
			http.Error(w, "broken", http.StatusInternalServerError)
		default:
			_, _ = w.Write(*keys)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *place) issuer() string { return p.URL + "/permits/acme" }

func (p *place) has(t *testing.T, s *permit.Signer) {
	t.Helper()
	keys := keysOf(t, s)
	p.keys.Store(&keys)
}

// Keys are loaded from the issuer if they are needed, and again if a permit names a new one.
func TestKeysAreLoadedFromTheIssuer(t *testing.T) {
	p := newPlace(t)
	at := now()
	v, err := permit.NewVerifier(permit.Config{
		Issuer:   p.issuer(),
		Audience: audience,
		Now:      func() time.Time { return at },
	})
	must.Do(t, err)
	try := func(id string, key byte) permit.Reason {
		t.Helper()
		call := good(t)
		call.Request = id
		_, err := v.Verify(t.Context(), sign(t, newSigner(t, p.issuer(), key), call), target, []byte(arguments))
		return reason(t, err)
	}

	if got := try("a", 1); got != permit.Unavailable {
		t.Errorf("with a broken issuer: %q", got)
	}
	p.has(t, newSigner(t, p.issuer(), 1))
	at = at.Add(11 * time.Second)
	if got := try("a", 1); got != "" {
		t.Errorf("with its key: %q", got)
	}
	p.has(t, newSigner(t, p.issuer(), 2))
	at = at.Add(11 * time.Second)
	if got := try("b", 2); got != "" {
		t.Errorf("with the next key: %q", got)
	}

	loads := p.loads.Load()
	for range 50 {
		if got := try("c", 9); got != permit.Untrusted {
			t.Errorf("with an unknown key: %q", got)
		}
	}
	if more := p.loads.Load() - loads; more > 1 {
		t.Errorf("50 unknown keys made %d loads", more)
	}
}

func TestConfigurationsThatCheckNothingAreRefused(t *testing.T) {
	for name, cfg := range map[string]permit.Config{
		"no issuer":         {Audience: audience},
		"http elsewhere":    {Issuer: "http://assent.example.com/permits/acme", Audience: audience},
		"no URL":            {Issuer: "acme", Audience: audience},
		"no audience":       {Issuer: issuer},
		"keys of nobody":    {Issuer: issuer, Audience: audience, Keys: []byte(`{"keys":[]}`)},
		"keys that are not": {Issuer: issuer, Audience: audience, Keys: []byte(`{`)},
	} {
		if _, err := permit.NewVerifier(cfg); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// The keys are found even if the issuer's URL ends with a slash.
func TestIssuerMayEndInASlash(t *testing.T) {
	p := newPlace(t)
	issuer := p.issuer() + "/"
	signer := newSigner(t, issuer, 1)
	p.has(t, signer)
	v, err := permit.NewVerifier(permit.Config{Issuer: issuer, Audience: audience, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), sign(t, signer, good(t)), target, []byte(arguments)); err != nil {
		t.Error(err)
	}
}
