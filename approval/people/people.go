// Package people knows the humans who may answer: who they are whatever name a channel gives them, which groups they are in, which
// agents they own. A directory is a reviewed file, people.yaml (docs/contracts/people.md); With joins it with the groups that a sign-in
// at an identity provider brought, for as long as they hold.
//
// A name that nobody is known by resolves to nobody. There is no guessing: no display names, no look-alike addresses (threats 14, 22).
package people

import (
	"context"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
)

// Directory is one read people.yaml. It is immutable and safe for concurrent use. It answers for any tenant: whoever serves several
// holds one for each (Tenants).
type Directory struct {
	people []approval.Person // by id
	names  map[string]int    // key of every name → index in people
	owners map[string][]string
	groups []string // the list of groups; nil when the file has none
}

// Base is a directory that comes from files, and knows which groups sign-ins may bring.
type Base interface {
	approval.Directory
	// Declares reports whether sign-ins may bring a group in the tenant: it is on the file's list. Without a list they
	// bring none.
	Declares(tenant, group string) bool
}

// Person resolves any name of a human.
func (d *Directory) Person(_ context.Context, _, name string) (approval.Person, bool, error) {
	if message, _ := wrong(name); message != "" {
		return approval.Person{}, false, nil
	}
	i, ok := d.names[key(name)]
	if !ok {
		return approval.Person{}, false, nil
	}
	return clone(d.people[i]), true, nil
}

// Members lists who is in a group, by id; group "" lists everybody.
func (d *Directory) Members(_ context.Context, _, group string) ([]approval.Person, error) {
	var members []approval.Person
	for _, p := range d.people {
		if p.Holds(group) {
			members = append(members, clone(p))
		}
	}
	return members, nil
}

// Owners lists the ids of the people who own an agent.
func (d *Directory) Owners(_ context.Context, _, agent string) ([]string, error) {
	return slices.Clone(d.owners[agent]), nil
}

// Declares reports whether sign-ins may bring the group: the file lists it.
func (d *Directory) Declares(_, group string) bool { return slices.Contains(d.groups, group) }

// Closed reports whether the file has a list of groups.
func (d *Directory) Closed() bool { return d.groups != nil }

// held lists the groups that people of the file are in.
func (d *Directory) held() []string {
	var all []string
	for _, p := range d.people {
		all = append(all, p.Groups...)
	}
	return set(all)
}

// Reserve returns a directory of which sign-ins don't bring one group: nobody but the file puts people into it.
func Reserve(base Base, group string) Base { return reservation{base, group} }

type reservation struct {
	Base
	group string
}

// Declares reports whether sign-ins may bring the group.
func (r reservation) Declares(tenant, group string) bool {
	return group != r.group && r.Base.Declares(tenant, group)
}

// Groups lists the groups that somebody is in, and those that the file lists, sorted.
func (d *Directory) Groups() []string {
	out := slices.Clone(d.groups)
	for _, p := range d.people {
		out = append(out, p.Groups...)
	}
	slices.Sort(out)

	return slices.Compact(out)
}

// Lists reports whether the file lists the group itself, so that sign-ins may bring more people into it.
func (d *Directory) Lists(group string) bool { return slices.Contains(d.groups, group) }

// Short tells for each stage that the people of the file can't fill, by its group, how many there are for it beside all
// other stages, whoever asks.
func (d *Directory) Short(stages []policy.Stage) map[string]int {
	short, _ := approval.FindShortages(stages, nil, func(group string) ([]approval.Person, error) { // a file's members can be read
		return d.Members(context.Background(), "", group)
	})
	out := map[string]int{}
	for _, s := range short {
		out[s.Group] = s.Have
	}

	return out
}

func clone(p approval.Person) approval.Person {
	p.Groups = slices.Clone(p.Groups)
	return p
}

// Tenants holds a directory for each tenant. Nobody is known in a tenant without one.
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

// Declares reports whether sign-ins may bring the group in the tenant.
func (t Tenants) Declares(tenant, group string) bool {
	d, ok := t[tenant]
	return ok && d.Declares(tenant, group)
}

// byID orders people.
func byID(a, b approval.Person) int { return strings.Compare(a.ID, b.ID) }
