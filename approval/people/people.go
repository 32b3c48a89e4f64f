// Package people reads people.yaml: the humans who may answer, whatever
// name a channel gives them, the groups that they are in and the agents
// that they own (docs/contracts/people.md). It also says which stages
// of a policy these people can fill.
//
// A name that nobody is known by resolves to nobody. There is no
// guessing: no display names, no look-alike addresses.
package people

import (
	"context"
	"slices"

	"github.com/assent-dev/assent/policy"
)

// Person is one human, whatever name a channel knows them by.
type Person struct {
	ID     string   `json:"id" doc:"id"` // canonical
	Name   string   `json:"name,omitempty" doc:"name"`
	Groups []string `json:"groups" doc:"groups"`
	// Also are the other names of the file, by which channels reach the
	// person. They are in no record and no answer.
	Also []string `json:"-" doc:"also"`
}

// Holds reports whether the person is in a group now. Every approver is
// in the group "".
func (p Person) Holds(group string) bool { return group == "" || slices.Contains(p.Groups, group) }

// Directory is one read people.yaml. It is immutable and safe for
// concurrent use. It answers for any tenant: whoever serves several
// holds one for each.
type Directory struct {
	people []Person       // by id
	names  map[string]int // key of every name → index in people
	owners map[string][]string
	groups []string // the list of groups; nil when the file has none
	// blocked are the keys of the names that are blocked, and of all
	// names of people of the file who have one of them.
	blocked map[string]bool
	// readers are the groups whose people read everything; everybody says
	// that all people do.
	readers   []string
	everybody bool
}

// Everybody is the value of readers that lets all people read everything.
const Everybody = "everybody"

// Reading is what a directory says about what one person may read.
type Reading struct {
	All   bool     // every request and ledger entry of the tenant
	Names []string // the names by which Person finds this person
	Owns  []string // ids of the agents that this person owns
}

// Reading returns what the file says about what a person may read.
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

// EverybodyReads reports whether the file lets all people read everything.
func (d *Directory) EverybodyReads() bool { return d.everybody }

// Person resolves any name of a human.
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

// Blocked reports whether a name is of somebody who is nobody here,
// whatever an identity provider or a token says.
func (d *Directory) Blocked(_, name string) bool { return d.blocked[Key(name)] }

// Len is how many people the file lists who are not blocked.
func (d *Directory) Len() int { return len(d.people) }

// Members lists who is in a group, by id; group "" lists everybody.
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

// Declares reports whether sign-ins may bring the group: the file lists it.
func (d *Directory) Declares(_, group string) bool { return slices.Contains(d.groups, group) }

// Closed reports whether the file has a list of groups.
func (d *Directory) Closed() bool { return d.groups != nil }

// Groups lists the groups that somebody is in, and those that the file
// lists, sorted.
func (d *Directory) Groups() []string {
	out := slices.Clone(d.groups)
	for _, p := range d.people {
		out = append(out, p.Groups...)
	}
	slices.Sort(out)

	return slices.Compact(out)
}

// Lists reports whether the file lists the group itself, so that
// sign-ins may bring more people into it.
func (d *Directory) Lists(group string) bool { return slices.Contains(d.groups, group) }

// Short tells for each stage that the people of the file can't fill, by
// its group, how many there are for it beside all other stages, whoever
// asks. The owners of the agent are not counted: by the file, and by the
// label of the agent. Without an id nobody is left out.
func (d *Directory) Short(stages []policy.Stage, agent, label string) map[string]int {
	excluded := map[string]string{}
	if agent != "" {
		for _, name := range slices.Concat(d.owners[agent], Owners(label)) {
			if p, known, _ := d.Person(context.Background(), "", name); known {
				excluded[p.ID] = agent
			}
		}
	}
	short, _ := FindShortages(stages, excluded, func(group string) ([]Person, error) { // a file's members can be read
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
