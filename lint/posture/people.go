package posture

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/schema"
)

// mostCommittees limits the sets of people that are tried to find one that may approve on one side
// only.
const mostCommittees = 20_000

// askedGroups returns the groups whose people may approve calls of a side. An empty name means
// everyone: a rule that asks names no group.
func askedGroups(s Side) []string {
	var out []string
	for _, pol := range s.Plan.Policies() {
		for i := range pol.Rules {
			r := &pol.Rules[i]
			if r.Approval == nil && r.Unknown != policy.DoubtAsks {
				continue
			}
			q := r.Require.Join(policy.Require{})
			if len(q.Stages)+len(q.AnyOf) == 0 {
				out = append(out, "")
			}
			out = append(out, people.GroupsOf(q.Stages)...)
			for _, alternatives := range q.AnyOf {
				out = append(out, people.GroupsOf(slices.Concat(alternatives...))...)
			}
		}
	}

	if asksItself(s.Plan.Agent()) {
		out = append(out, "")
	}

	return out
}

// stagesOf returns the stages of a requirement, or the default stage if it has none.
func stagesOf(r policy.Require) []policy.Stage {
	if r = r.Join(policy.Require{}); len(r.Stages) > 0 {
		return r.Stages
	}
	return []policy.Stage{{People: 1}}
}

// asksItself reports whether the agent's own file asks for something.
func asksItself(a *schema.Agent) bool {
	space, asks := &a.ActionSpace, false
	note := func(ap *schema.Approval) { asks = asks || ap != nil && ap.Form != schema.Never }
	list := func(refs *[]schema.ToolRef) {
		if refs == nil {
			return
		}
		for _, r := range *refs {
			note(r.Approval)
		}
	}
	for i := range space.LocalTools {
		note(space.LocalTools[i].Approval)
	}
	for i := range space.LocalAgents {
		note(space.LocalAgents[i].Approval)
	}
	for i := range space.MCPServers {
		note(space.MCPServers[i].Approval)
		list(space.MCPServers[i].AllowedTools)
	}
	for i := range space.RemoteAgents {
		note(space.RemoteAgents[i].Approval)
		list(space.RemoteAgents[i].AllowedSkills)
	}

	return asks
}

// members returns who may answer for a group: every name of each of its people. If the directory
// lists the group, there is also an entry for people who sign in with it.
func members(d *people.Directory, group string) Protection {
	var names []string
	in, _ := d.Members(context.Background(), "", group) // a file answers without fail
	for _, p := range in {
		names = append(names, p.ID)
		for _, other := range p.Also {
			names = append(names, p.ID+" also as "+people.Key(other))
		}
	}

	if d.Lists(group) {
		names = append(names, "whoever signs in with it")
	}

	return setOf(names)
}

// people compares the members of the groups that both sides ask. For a group that only one side
// asks, the stages are compared instead.
func (c *comparer) people() {
	switch {
	case c.old.People == nil && c.new.People == nil:
		return
	case c.old.People == nil, c.new.People == nil:
		c.onePeople()
		return
	}

	there := askedGroups(c.new)
	shared := slices.DeleteFunc(askedGroups(c.old), func(g string) bool { return !slices.Contains(there, g) })
	c.compareFramed(aspectPeople, func(s Side) framed {
		out := framed{}
		for _, g := range shared {
			out[groupName(g)] = piece{protection: members(s.People, g), at: s.PeopleAt}
		}
		return out
	}, false)
}

func groupName(group string) string {
	if group == "" {
		return "everybody"
	}
	return "group " + group
}

// onePeople adds the change for people that are known on one side only.
func (c *comparer) onePeople() {
	change := Change{
		Kind:   "agent",
		Aspect: aspectPeople,
		Effect: Undecided,
		From:   "known",
		To:     "not known",
		Why:    "one side alone has a people.yaml, so that who may answer can't be compared",
		Old:    c.old.PeopleAt,
		New:    c.new.PeopleAt,
	}
	if c.old.People == nil {
		change.From, change.To = change.To, change.From
	}
	c.changes = append(c.changes, change)
}

// owners returns the people who may not answer because they own the agent, by id if people are
// known.
func (c *comparer) owners(s Side) framed {
	agent := s.Plan.Agent()
	names := people.Owners(agent.Metadata.Labels["owner"])
	if c.old.People != nil && c.new.People != nil {
		more, _ := s.People.Owners(context.Background(), "", agent.Metadata.ID)
		names = append(names, more...)
		for i, name := range names {
			if p, ok, _ := s.People.Person(context.Background(), "", name); ok {
				names[i] = p.ID
			}
		}
	}

	return framed{"": {setOf(names), at(s, agent.Metadata.Range)}}
}

// committees compares the stages of two requirements by the sets of people who may approve, if the
// names of their groups are not enough.
func (c *comparer) committees(old, new policy.Require) (order Order, why string) {
	const unordered = "neither side demands all that the other does"
	if c.old.People == nil || c.new.People == nil {
		return Incomparable, unordered
	}
	tighter, looser := true, true
	for _, after := range standInTimes(old.Stages, new.Stages) {
		was := sitting{c.old.People, stagesAt(old, after)}
		is := sitting{c.new.People, stagesAt(new, after)}
		now, known := exceeds(is, was)
		before, sure := exceeds(was, is)
		if !known || !sure {
			return Incomparable, unordered + ", and too many sets of people may approve to compare them"
		}
		tighter, looser = tighter && now == nil, looser && before == nil
		why = cmpOr(why, now, before)
	}

	return mutual(tighter, looser), why
}

// cmpOr returns a sentence about who may approve on one side only, unless an explanation exists
// already.
func cmpOr(said string, now, before []string) string {
	if said != "" || now == nil || before == nil {
		return said
	}
	return strings.Join(now, " and ") + " may approve now and might not before, " +
		strings.Join(before, " and ") + " might before and may not now"
}

// standInTimes returns the times after which further groups may fill seats, beginning with the
// moment of asking.
func standInTimes(lists ...[]policy.Stage) []time.Duration {
	times := []time.Duration{0}
	for _, s := range slices.Concat(lists...) {
		for _, i := range s.StandIns {
			times = append(times, i.After)
		}
	}
	slices.Sort(times)

	return slices.Compact(times)
}

// stagesAt returns the stages of a requirement with the people who may stand in by a time.
func stagesAt(r policy.Require, after time.Duration) []policy.Stage {
	out := slices.Clone(stagesOf(r))
	for i := range out {
		out[i].StandIns = slices.DeleteFunc(
			slices.Clone(out[i].StandIns),
			func(s policy.StandIn) bool { return s.After > after },
		)
	}

	return out
}

// sitting decides whether a set of people may approve.
type sitting struct {
	people *people.Directory
	stages []policy.Stage
}

// as returns a person as a side sees them. The side may not know the person.
func (s sitting) as(p people.Person) people.Person {
	if strings.HasPrefix(p.ID, signedIn) {
		if !s.people.Lists(p.Groups[0]) {
			p.Groups = nil
		}
		return p
	}

	there, ok, _ := s.people.Person(context.Background(), "", p.ID) // a file answers without fail
	if !ok || there.ID != p.ID {
		return people.Person{ID: p.ID}
	}

	return there
}

// fills returns a key of the stages for which a person may answer.
func (s sitting) fills(p people.Person) string {
	var b []byte
	known := len(p.Groups) > 0 || s.isIn(p)
	for _, stage := range s.stages {
		b = strconv.AppendBool(b, known && p.Fills(stage))
	}
	return string(b)
}

func (s sitting) isIn(p people.Person) bool {
	_, ok, _ := s.people.Person(context.Background(), "", p.ID)
	return ok
}

// seats returns the number of people that the stages require.
func (s sitting) seats() int {
	n := 0
	for _, stage := range s.stages {
		n += stage.People
	}
	return n
}

// met reports whether these people may approve together.
func (s sitting) met(list []people.Person) bool {
	var there []people.Person
	for _, p := range list {
		if here := s.as(p); len(here.Groups) > 0 || s.isIn(here) {
			there = append(there, here)
		}
	}
	_, met := people.Seat(s.stages, there)

	return met
}

// signedIn begins the id of an invented person who signs in with a group.
const signedIn = "somebody who signs in with "

// candidates returns the people of a side, and, for each group that the file lists, as many
// invented people who sign in with that group as there are seats.
func (s sitting) candidates() []people.Person {
	all, _ := s.people.Members(context.Background(), "", "")
	for _, group := range people.GroupsOf(s.stages) {
		for i := 0; i < s.seats() && s.people.Lists(group); i++ {
			all = append(all, people.Person{
				ID:     signedIn + group + strings.Repeat(" too", i),
				Groups: []string{group},
			})
		}
	}

	return all
}

// exceeds returns people who may approve on side s and not on the other, or nil if there are none.
// It returns false if there are too many sets of people to try. Of people who may answer for the
// same stages on both sides, it tries only as many as there are seats.
func exceeds(s, other sitting) (who []string, known bool) {
	search := committee{s: s, other: other, left: mostCommittees}
	kinds := map[string]int{}
	for _, p := range s.candidates() {
		key := s.fills(s.as(p)) + " " + other.fills(other.as(p))
		if kinds[key] >= s.seats() {
			continue
		}
		kinds[key]++
		search.people = append(search.people, p)
	}

	search.grow(nil, 0)

	return search.found, search.left > 0 || search.found != nil
}

// committee searches for people who may approve on one side only.
type committee struct {
	s, other sitting
	people   []people.Person
	left     int
	found    []string
}

// grow tries all sets that add people from an index on.
func (c *committee) grow(chosen []people.Person, from int) {
	if c.left--; c.left <= 0 || c.found != nil {
		return
	}
	if c.s.met(chosen) {
		if !c.other.met(chosen) {
			c.found = namesOf(chosen)
		}
		return // more people are no worse on either side
	}

	if len(chosen) == c.s.seats() {
		return
	}
	for i := from; i < len(c.people); i++ {
		c.grow(append(slices.Clone(chosen), c.people[i]), i+1)
	}
}

func namesOf(list []people.Person) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.ID)
	}
	return out
}

// peopleAspects returns the aspects about who may answer.
func peopleAspects() []Aspect {
	names := func(p Protection) string { return showNames(p) }
	return []Aspect{
		{
			aspectPeople,
			"fewer people are in the group that is asked, under fewer names",
			fewer,
			names,
		},
		{
			aspectOwners,
			"more people may not answer, since they own the agent",
			func(old, new Protection) Order { return fewer(new, old) },
			names,
		},
	}
}
