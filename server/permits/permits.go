// Package permits issues the permits of a service. It knows the tools that check permits,
// and publishes the keys for that.
package permits

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/permit"
)

// Audience is a tool that checks permits.
type Audience struct {
	Name     string        // the name that the tool expects in permits
	Targets  []string      // the calls that go to it, such as "tool trade"
	Lifetime time.Duration // of a permit; 0 means permit.DefaultLifetime
}

// Issuer issues the permits of one tenant.
type Issuer struct {
	signer    *permit.Signer
	keys      []byte
	audiences map[string]*Audience // by target
}

// New returns the issuer of a tenant. Its key is derived from a secret that all replicas
// share, and differs from those of other tenants. The issuer's URL is the address at which
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

// Issuers are the issuers by tenant. They implement approval.Permits.
type Issuers map[string]*Issuer

// audience returns the tool that a call goes to, or nil if it checks no permits.
func (is Issuers) audience(tenant string, r *approval.Request) *Audience {
	i := is[tenant]
	if i == nil {
		return nil
	}
	return i.audiences[r.Current().Call.Target()]
}

// Audience returns the name of the tool that the call of a request goes to, or an empty
// name if the tool checks no permits. It returns an error if no permit can be made for the
// arguments.
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

// Sign makes the permit of a consumed request. It uses only stored values, so that a
// repeated call returns the same permit.
func (is Issuers) Sign(tenant string, r *approval.Request) (string, error) {
	i := is[tenant]
	if i == nil {
		return "", nil // the tenant no longer has an issuer
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

// ServeHTTP answers with the public keys of the tenant in the path, at GET
// /permits/{tenant} and permit.KeysPath.
func (is Issuers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := is[r.PathValue("tenant")]
	if i == nil {
		http.Error(w, "No tenant of this name signs permits.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(i.keys) // a client that has disconnected needs no answer
}
