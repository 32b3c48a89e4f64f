// Package people reads people.yaml (docs/contracts/people.md): the people who may answer, with all
// names that channels use for them, their groups, and the agents that they own. It also computes
// which stages of a policy these people can fill.
//
// An unknown name matches no person. There is no guessing by display names or similar addresses.
package people

import (
	"context"
	"slices"

	"github.com/assent-dev/assent/policy"
)

// Person is one human with all the names that channels use for them.
type Person struct {
	ID     string   `json:"id" doc:"id"` // canonical id
	Name   string   `json:"name,omitempty" doc:"name"`
	Groups []string `json:"groups" doc:"groups"`
	// Also lists the other names in the file, by which channels reach the person. They are not
	// stored in records or sent in answers.
	Also []string `json:"-" doc:"also"`
}

// Holds reports whether the person is in a group. Every person is in the group "".
func (p Person) Holds(group string) bool { return group == "" || slices.Contains(p.Groups, group) }

// Directory is a parsed people.yaml. It is immutable and safe for concurrent use. It ignores the
// tenant, so a server with several tenants needs one Directory for each.
type Directory struct {
	people []Person       // sorted by id
	names  map[string]int // key of every name → index in people
	owners map[string][]string
	groups []string // the list of groups; nil if the file has none
	// blocked contains the keys of the blocked names, and of all names of people in the file who
	// have a blocked name.
	blocked map[string]bool
	// readers are the groups whose members may read everything; everybody is set if all people may.
	readers   []string
	everybody bool
}

// Everybody is the value of readers that allows all people to read everything.
const Everybody = "everybody"

// Reading describes what a person may read according to a directory.
type Reading struct {
	All   bool     // may read every request and ledger entry of the tenant
	Names []string // the names that Person accepts for this person
	Owns  []string // ids of the agents that this person owns
}

// Reading returns what a person may read according to the file.
func (d *Directory) Reading(_ context.Context, _ string, p Person) (Reading, error) {
	out := Reading{
		All:   d.everybody || slices.ContainsFunc(d.readers, p.Holds),
		Names: append(slices.Clone(p.Also), p.ID),
	}
	for agent, owners := range d.owners {
		if slices.Contains(owners, p.ID) {
			out.Owns = append(out.Owns, agent)
		}
	}
	slices.Sort(out.Owns)

	return out, nil
}

// EverybodyReads reports whether the file allows all people to read everything.
func (d *Directory) EverybodyReads() bool { return d.everybody }

// Person returns the person with this name, and false if there is none.
func (d *Directory) Person(_ context.Context, _, name string) (Person, bool, error) {
	if message, _ := IdentityProblem(name); message != "" {
		return Person{}, false, nil
	}
	i, ok := d.names[Key(name)]
	if !ok {
		return Person{}, false, nil
	}
	return clone(d.people[i]), true, nil
}

// Blocked reports whether a name is blocked, whatever an identity provider or a token claims.
func (d *Directory) Blocked(_, name string) bool { return d.blocked[Key(name)] }

// Len returns the number of people in the file who are not blocked.
func (d *Directory) Len() int { return len(d.people) }

// Members lists the people in a group, by id. An empty group lists all people.
func (d *Directory) Members(_ context.Context, _, group string) ([]Person, error) {
	var members []Person
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

// Declares reports whether sign-ins may add people to the group, because the file lists it.
func (d *Directory) Declares(_, group string) bool { return slices.Contains(d.groups, group) }

// Closed reports whether the file has a list of groups.
func (d *Directory) Closed() bool { return d.groups != nil }

// Groups returns the groups with members and the groups that the file lists, sorted.
func (d *Directory) Groups() []string {
	out := slices.Clone(d.groups)
	for _, p := range d.people {
		out = append(out, p.Groups...)
	}
	slices.Sort(out)

	return slices.Compact(out)
}

// Lists reports whether the file lists the group itself, so that sign-ins may add people to it.
func (d *Directory) Lists(group string) bool { return slices.Contains(d.groups, group) }

// Short returns the stages that the people in the file can't fill, for any asker: by group, the
// number of people who are available for the stage after all other stages are filled. It excludes
// the agent's owners according to the file and to the agent's label. If agent is empty, it excludes
// no one.
func (d *Directory) Short(stages []policy.Stage, agent, label string) map[string]int {
	excluded := map[string]string{}
	if agent != "" {
		for _, name := range slices.Concat(d.owners[agent], Owners(label)) {
			if p, known, _ := d.Person(context.Background(), "", name); known {
				excluded[p.ID] = agent
			}
		}
	}
	short, _ := FindShortages(stages, excluded, func(group string) ([]Person, error) { // this never fails
		return d.Members(context.Background(), "", group)
	})
	out := map[string]int{}
	for _, s := range short {
		out[s.Group] = s.Have
	}

	return out
}

func clone(p Person) Person {
	p.Groups, p.Also = slices.Clone(p.Groups), slices.Clone(p.Also)
	return p
}
