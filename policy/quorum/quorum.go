// Package quorum decides whose answer counts: who may answer a request, which seat each person
// fills, and when enough people agreed. The service uses it before it counts an answer, every
// channel before it offers one, and policy tests before anything is deployed.
//
// It stores nothing and has no clock: the caller passes what was asked, who has answered so far,
// and the time.
package quorum

import (
	"slices"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
)

// Answering is the part of a request that decides whose answer it waits for. Lists contain it, so
// that they need not load the calls.
type Answering struct {
	Agent     string         `json:"agent"` // id
	Asked     time.Time      `json:"asked"` // when it was opened; the times of stand-ins start here
	Stages    []policy.Stage `json:"stages"`
	AnyOf     []policy.AnyOf `json:"any_of,omitempty"`    // alternatives next to Stages
	Called    []string       `json:"called,omitempty"`    // groups that escalation has called in
	ToUser    bool           `json:"to_user,omitempty"`   // a question to the person that the agent acts for
	Principal string         `json:"principal,omitempty"` // name of that person, as the asker gave it
	Tokens    []string       `json:"tokens"`              // names of the tokens that ask
	People    []string       `json:"people,omitempty"`    // owners of those tokens
	Owners    []string       `json:"owners,omitempty"`    // of the agent, by its file and the directory when it asked
	Approved  []string       `json:"approved,omitempty"`  // ids of people who approved the current revision
	Answered  []string       `json:"answered,omitempty"`  // ids of people who answered the current revision
	// Readers are the keys of those who may read the request. It is nil in records that were stored
	// before lists contained it.
	Readers []string `json:"readers,omitempty"`
}

// OnlyUser reports whether only the person that the agent acts for may answer. If the call has no
// principal, any approver may.
func (a *Answering) OnlyUser() bool { return a.ToUser && a.Principal != "" }

// StagesAt returns the stages, without those stand-ins that may not fill seats yet.
func (a *Answering) StagesAt(now time.Time) []policy.Stage { return a.at(a.Stages, now) }

func (a *Answering) at(stages []policy.Stage, now time.Time) []policy.Stage {
	out := slices.Clone(stages)
	for i := range out {
		late := func(s policy.StandIn) bool { return now.Before(a.Asked.Add(s.After)) }
		out[i].StandIns = slices.DeleteFunc(slices.Clone(out[i].StandIns), late)
	}

	return out
}

// OptionsAt returns the lists of stages of which one must be filled, without those stand-ins that
// may not fill seats yet. There are none if the alternatives have too many combinations: nothing
// then fulfils them.
func (a *Answering) OptionsAt(now time.Time) [][]policy.Stage {
	if len(a.AnyOf) == 0 {
		return [][]policy.Stage{a.StagesAt(now)}
	}
	var anyOf []policy.AnyOf
	for _, alternatives := range a.AnyOf {
		var all policy.AnyOf
		for _, stages := range alternatives {
			all = append(all, a.at(stages, now))
		}
		anyOf = append(anyOf, all)
	}
	options, _ := policy.Options(a.StagesAt(now), anyOf)

	return options
}

// Eligibility describes what one person's answer to a request would do now.
type Eligibility struct {
	Answer  bool   // may deny or respond; for a question, choose or dismiss
	Approve bool   // may fill a seat, and edit
	Waiting bool   // has not answered the current revision, and the answer would count
	Why     string // one of the reasons below if the person may not approve
}

// Permits reports whether a person may approve, or give any other answer.
func (e Eligibility) Permits(approve bool) bool { return e.Approve || e.Answer && !approve }

// The reasons why a person may not answer, or may not approve.
const (
	WhyUnknown    = "not in the directory"
	WhyToken      = "this is the token that asks"
	WhyTokens     = "the token that asks is this person's"
	WhyPrincipal  = "the agent acts for this person"
	WhyOwner      = "an owner of the agent"
	WhyNotAsked   = "in none of the groups that are asked"
	WhyNotTheUser = "the question is for the person whom the agent acts for"
	WhyLooks      = "called in to look, without a seat in a group that must agree"
)

// Standing is the information of the directory about a request at one time: its people, and which
// of them may not answer it.
type Standing struct {
	Now      time.Time
	People   map[string]people.Person // by canonical id
	Excluded map[string]string        // canonical id → why
	// User is the canonical id of the principal. It is empty if the directory does not contain the
	// principal.
	User string
}

// Eligibility returns what a person may do. Members of groups that escalations add only as readers
// may deny or answer, but fill no seat.
func (w Standing) Eligibility(a *Answering, id string) Eligibility {
	p := w.People[id]
	silent := !slices.Contains(a.Answered, id)
	barred := w.barred(id)
	switch {
	case barred != "":
		return Eligibility{Why: barred}
	case a.OnlyUser() && id != w.User:
		return Eligibility{Why: WhyNotTheUser}
	case a.OnlyUser():
		return Eligibility{Answer: true, Approve: true, Waiting: silent}
	case w.seats(a, p):
		return Eligibility{Answer: true, Approve: true, Waiting: w.waitsFor(a, p)}
	case slices.ContainsFunc(a.Called, p.Holds):
		return Eligibility{Answer: true, Waiting: silent, Why: WhyLooks}
	}

	return Eligibility{Why: WhyNotAsked}
}

// barred returns why a person may not answer in spite of their groups, or an empty string if they
// may.
func (w Standing) barred(id string) string {
	if _, known := w.People[id]; !known {
		return WhyUnknown
	}

	return w.Excluded[id]
}

// seats reports whether a person may fill a seat of any stage now.
func (w Standing) seats(a *Answering, p people.Person) bool {
	return slices.ContainsFunc(a.OptionsAt(w.Now), func(stages []policy.Stage) bool {
		return slices.ContainsFunc(stages, p.Fills)
	})
}

// waitsFor reports whether a person would fill an empty seat.
func (w Standing) waitsFor(a *Answering, p people.Person) bool {
	if slices.Contains(a.Answered, p.ID) {
		return false
	}
	approvers := w.Counted(a)
	more := append(slices.Clip(approvers), p)

	return slices.ContainsFunc(a.OptionsAt(w.Now), func(stages []policy.Stage) bool {
		return seated(people.Seat(stages, more)) > seated(people.Seat(stages, approvers))
	})
}

func seated(seatings []people.Seating, _ bool) int {
	n := 0
	for _, s := range seatings {
		n += len(s.People)
	}

	return n
}

// Counted returns the people whose approval of the current revision counts now, in the order of
// their votes.
func (w Standing) Counted(a *Answering) []people.Person {
	var out []people.Person
	for _, id := range a.Approved {
		if p := w.People[id]; w.barred(id) == "" && w.seats(a, p) {
			out = append(out, p)
		}
	}

	return out
}

// Met reports whether different people who are in the groups now fill every seat, and returns the
// assignment.
func (w Standing) Met(a *Answering) ([]people.Seating, bool) {
	_, seatings, met := w.Nearest(a)
	return seatings, met
}

// Nearest returns the stages that Met assigns people to. If there are alternatives, it is the first
// list of stages with the fewest empty seats.
func (w Standing) Nearest(a *Answering) (stages []policy.Stage, seatings []people.Seating, met bool) {
	least, approvers := -1, w.Counted(a)
	for _, option := range a.OptionsAt(w.Now) {
		filled, all := people.Seat(option, approvers)
		empty := 0
		for _, s := range filled {
			empty += s.Missing
		}
		if least < 0 || empty < least {
			least, stages, seatings, met = empty, option, filled, all
		}
	}

	return stages, seatings, met
}
