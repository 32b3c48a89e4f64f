package main

import (
	"net/url"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/server/permits"
)

// permitIssuers returns the signers of permits for the tenants whose tools check them. The issuer
// URL of a tenant is below that of this server.
func permitIssuers(tenants []config.Tenant, base *url.URL, secret []byte) (permits.Issuers, error) {
	out := permits.Issuers{}
	for _, t := range tenants {
		if len(t.Permits) == 0 {
			continue
		}
		var audiences []permits.Audience
		for _, p := range t.Permits {
			audiences = append(audiences, permits.Audience{Name: p.Audience, Targets: p.Targets, Lifetime: p.Lifetime})
		}
		i, err := permits.New(base.JoinPath("permits", t.Name).String(), t.Name, secret, audiences)
		if err != nil {
			return nil, err
		}
		out[t.Name] = i
	}

	return out, nil
}
