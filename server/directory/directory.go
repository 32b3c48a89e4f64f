// Package directory looks people up: in people.yaml, which is read again when it changes,
// joined with the groups from sign-ins at an identity provider while these are valid.
package directory

import (
	"context"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy/people"
)

// Base is a directory from files. It also has the list of groups that sign-ins may give.
type Base interface {
	approval.Directory
	// Declares reports whether sign-ins may give a group in the tenant, because the file
	// lists it. Without a list they may give none.
	Declares(tenant, group string) bool
	// Blocked reports whether the file blocks the person with a name.
	Blocked(tenant, name string) bool
}

// Reserve returns a directory in which sign-ins can't give one group: only the file can.
func Reserve(base Base, group string) Base { return reservation{base, group} }

type reservation struct {
	Base
	group string
}

// Declares reports whether sign-ins may give the group.
func (r reservation) Declares(tenant, group string) bool {
	return group != r.group && r.Base.Declares(tenant, group)
}

// Tenants has a directory for each tenant. A tenant without one has no people.
type Tenants map[string]Base

// Person resolves a name in the tenant's directory.
func (t Tenants) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	if d, ok := t[tenant]; ok {
		return d.Person(ctx, tenant, name)
	}
	return approval.Person{}, false, nil
}

// Members lists the people in a group of the tenant.
func (t Tenants) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	if d, ok := t[tenant]; ok {
		return d.Members(ctx, tenant, group)
	}
	return nil, nil
}

// Owners lists the owners of an agent of the tenant.
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

// Declares reports whether sign-ins may give the group in the tenant.
func (t Tenants) Declares(tenant, group string) bool {
	d, ok := t[tenant]
	return ok && d.Declares(tenant, group)
}

// Blocked reports whether the tenant's file blocks the person with a name.
func (t Tenants) Blocked(tenant, name string) bool {
	d, ok := t[tenant]
	return ok && d.Blocked(tenant, name)
}

// byID orders people.
func byID(a, b approval.Person) int { return strings.Compare(a.ID, b.ID) }
