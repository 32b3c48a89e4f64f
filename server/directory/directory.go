// Package directory knows people as of now: what people.yaml says, read
// anew when it changes, joined with the groups that a sign-in at an
// identity provider brought, for as long as they hold.
package directory

import (
	"context"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/people"
)

// Base is a directory that comes from files, and knows which groups
// sign-ins may bring.
type Base interface {
	approval.Directory
	// Declares reports whether sign-ins may bring a group in the
	// tenant: it is on the file's list. Without a list they bring none.
	Declares(tenant, group string) bool
	// Blocked reports whether the file bars whoever has a name.
	Blocked(tenant, name string) bool
}

// Reserve returns a directory of which sign-ins don't bring one group:
// nobody but the file puts people into it.
func Reserve(base Base, group string) Base { return reservation{base, group} }

type reservation struct {
	Base
	group string
}

// Declares reports whether sign-ins may bring the group.
func (r reservation) Declares(tenant, group string) bool {
	return group != r.group && r.Base.Declares(tenant, group)
}

// Tenants holds a directory for each tenant. Nobody is known in a
// tenant without one.
type Tenants map[string]Base

// Person resolves a name in the tenant's directory.
func (t Tenants) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	if d, ok := t[tenant]; ok {
		return d.Person(ctx, tenant, name)
	}
	return approval.Person{}, false, nil
}

// Members lists who is in a group of the tenant.
func (t Tenants) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	if d, ok := t[tenant]; ok {
		return d.Members(ctx, tenant, group)
	}
	return nil, nil
}

// Owners lists who owns an agent of the tenant.
func (t Tenants) Owners(ctx context.Context, tenant, agent string) ([]string, error) {
	if d, ok := t[tenant]; ok {
		return d.Owners(ctx, tenant, agent)
	}
	return nil, nil
}

// Reading returns what a person of the tenant may read.
func (t Tenants) Reading(ctx context.Context, tenant string, p approval.Person) (people.Reading, error) {
	if d, ok := t[tenant]; ok {
		return d.Reading(ctx, tenant, p)
	}
	return people.Reading{}, nil
}

// Declares reports whether sign-ins may bring the group in the tenant.
func (t Tenants) Declares(tenant, group string) bool {
	d, ok := t[tenant]
	return ok && d.Declares(tenant, group)
}

// Blocked reports whether the tenant's file bars whoever has a name.
func (t Tenants) Blocked(tenant, name string) bool {
	d, ok := t[tenant]
	return ok && d.Blocked(tenant, name)
}

// byID orders people.
func byID(a, b approval.Person) int { return strings.Compare(a.ID, b.ID) }
