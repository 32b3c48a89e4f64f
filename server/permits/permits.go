// Package permits issues the permits of a service: it knows which calls
// go to tools that check them, and publishes the keys to check them by.
package permits

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/permit"
)

// Audience is a tool that checks permits.
type Audience struct {
	Name     string        // by which the tool knows itself
	Targets  []string      // calls that go to it, such as "tool trade"
	Lifetime time.Duration // of a permit; 0: permit.DefaultLifetime
}

// Issuer issues the permits of one tenant.
type Issuer struct {
	signer    *permit.Signer
	keys      []byte
	audiences map[string]*Audience // by target
}

// New makes the issuer of a tenant. Its key comes of a secret that all
// replicas share, and is no other tenant's; the issuer's URL is where
// Issuers answer, below /permits/TENANT.
func New(url, tenant string, secret []byte, audiences []Audience) (*Issuer, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, "assent permits of the tenant "+tenant, 32)
	if err != nil {
		return nil, fmt.Errorf("permits: %w", err)
	}
	signer, err := permit.NewSigner(url, seed)
	if err != nil {
		return nil, err
	}
	keys, err := signer.Keys()
	if err != nil {
		return nil, fmt.Errorf("permits: %w", err)
	}

	i := &Issuer{signer: signer, keys: keys, audiences: map[string]*Audience{}}
	for _, a := range audiences {
		if a.Lifetime == 0 {
			a.Lifetime = permit.DefaultLifetime
		}
		for _, target := range a.Targets {
			if i.audiences[target] != nil {
				return nil, fmt.Errorf("permits: %s stands twice: a call is for one tool", target)
			}
			i.audiences[target] = &a
		}
	}

	return i, nil
}

// Issuers are those of the tenants that have one. They are the
// approval.Permits of a service.
type Issuers map[string]*Issuer

// audience is the tool that a call goes to; nil: it checks no permits.
func (is Issuers) audience(tenant string, r *approval.Request) *Audience {
	i := is[tenant]
	if i == nil {
		return nil
	}
	return i.audiences[r.Current().Call.Target()]
}

// Audience names the tool that the call of a request goes to, "" where
// it checks no permits. Arguments that no permit can be for are an
// error.
func (is Issuers) Audience(tenant string, r *approval.Request) (name string, life time.Duration, err error) {
	a := is.audience(tenant, r)
	if a == nil {
		return "", 0, nil
	}
	if _, err := permit.Digest(r.Current().Call.Args); err != nil {
		return "", 0, err
	}
	return a.Name, a.Lifetime, nil
}

// Sign makes the permit of a consumed request, of nothing but what was
// stored then, so that whoever asks again gets the same.
func (is Issuers) Sign(tenant string, r *approval.Request) (string, error) {
	i := is[tenant]
	if i == nil {
		return "", nil // it signs no more
	}
	call := r.Current().Call
	arguments, err := permit.Digest(call.Args)
	if err != nil {
		return "", err
	}

	return i.signer.Sign(&permit.Permit{
		Audience:  r.Permit.Audience,
		Agent:     r.Agent.ID,
		Request:   r.ID,
		Binding:   r.Binding(),
		Target:    call.Target(),
		Arguments: arguments,
		Principal: call.Principal,
		Issued:    r.Permit.Consumed.Truncate(time.Second),
		Expires:   r.Permit.Until.Truncate(time.Second),
	})
}

// ServeHTTP answers with the public keys of the tenant that the path
// names, at GET /permits/{tenant} and permit.KeysPath.
func (is Issuers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := is[r.PathValue("tenant")]
	if i == nil {
		http.Error(w, "No tenant of this name signs permits.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(i.keys) // who went away needs none
}
