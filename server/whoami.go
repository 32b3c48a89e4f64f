package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// infoOps are the operations that describe the service and its agents.
type infoOps struct{ *exchange }

// whoami returns the token's identity and rights.
func (x infoOps) whoami() error {
	t := x.token
	out := openapi.Whoami{
		ID:      t.ID,
		Name:    t.Name,
		Tenant:  t.Tenant,
		Scopes:  ofUse(t),
		Agents:  t.Agents,
		Created: t.Created,
		Expires: t.Expires,
	}
	for _, s := range out.Scopes {
		if role := roleOf(s); !slices.Contains(out.Roles, role) {
			out.Roles = append(out.Roles, role)
		}
	}

	if t.Person != "" {
		person, err := x.whois(t.Person)
		if err != nil {
			return err
		}
		out.Person = person
	}

	return x.answer(http.StatusOK, out)
}

// ofUse returns the scopes that the token may use.
func ofUse(t *store.Token) []openapi.Scope {
	out := []openapi.Scope{}
	for _, name := range t.Scopes {
		if s := openapi.Scope(name); may(t, s) {
			out = append(out, s)
		}
	}

	return out
}

// roleOf returns the role that a scope gives.
func roleOf(s openapi.Scope) openapi.Role {
	switch s {
	case openapi.ScopeDecide, openapi.ScopeRequest:
		return openapi.RoleAgent
	case openapi.ScopeVote:
		return openapi.RoleApprover
	case openapi.ScopeAdmin:
		return openapi.RoleAdministrator
	case openapi.ScopeWitness:
		return openapi.RoleWitness
	}

	return openapi.RoleReader
}

// whois returns the directory's current entry for a person.
func (x infoOps) whois(id string) (*openapi.WhoamiPerson, error) {
	p, known, err := x.cfg.Directory.Person(x.r.Context(), x.tenant(), id)
	if err != nil {
		return nil, fmt.Errorf("look up the token's person: %w", err)
	}
	out := &openapi.WhoamiPerson{
		ID:     id,
		Name:   p.Name,
		Known:  known,
		Groups: some(slices.Sorted(slices.Values(p.Groups))),
	}

	return out, nil
}
