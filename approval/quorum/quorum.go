// Package quorum says whose answer counts: who may answer a request,
// who of them fills which seat, and when enough people agreed. The
// service asks here before it counts an answer, every channel before it
// offers one, and policy tests before anything ships.
//
// It keeps nothing and has no clock: the caller says what was asked,
// who answered so far, and what time it is.
package quorum

import (
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/policy"
)

// Answering is what tells whose answer a request waits for: the part of
// it that lists carry, so that they read no call.
type Answering struct {
	Agent     string         `json:"agent"` // id
	Asked     time.Time      `json:"asked"` // stand-ins may come in some time after it
	Stages    []policy.Stage `json:"stages"`
	Called    []string       `json:"called,omitempty"`    // groups that escalation has called in
	ToUser    bool           `json:"to_user,omitempty"`   // a question to the person whom the agent acts for
	Principal string         `json:"principal,omitempty"` // that person, by the name that the asker gave
	Tokens    []string       `json:"tokens"`              // names of the tokens that ask
	People    []string       `json:"people,omitempty"`    // whose tokens those are
	Owners    []string       `json:"owners,omitempty"`    // of the agent, by its file and the directory when it asked
	Approved  []string       `json:"approved,omitempty"`  // ids of those who approved the current revision
	Answered  []string       `json:"answered,omitempty"`  // ids of those who gave any answer to it
	// Readers are the keys of those who may read the request; nil for
	// records from before lists carried them.
	Readers []string `json:"readers,omitempty"`
}

// OnlyUser reports whether nobody but the person whom the agent acts
// for may answer. Where no such person was named, any approver may.
func (a *Answering) OnlyUser() bool { return a.ToUser && a.Principal != "" }

// StagesAt are the stages with those stand-ins alone that may fill
// seats by now.
func (a *Answering) StagesAt(now time.Time) []policy.Stage {
	out := slices.Clone(a.Stages)
	for i := range out {
		late := func(s policy.StandIn) bool { return now.Before(a.Asked.Add(s.After)) }
		out[i].StandIns = slices.DeleteFunc(slices.Clone(out[i].StandIns), late)
	}

	return out
}

// Eligibility is what one person's answer to a request would do as of now.
type Eligibility struct {
	Answer  bool   // they may deny or respond; choose or dismiss, if it is a question
	Approve bool   // they may fill a seat, and edit
	Waiting bool   // it waits for them: they have not answered what stands now, and their answer would count
	Why     string // one of the reasons below, where they may not approve
}

// Permits reports whether a person may approve, or give any other answer.
func (e Eligibility) Permits(approve bool) bool { return e.Approve || e.Answer && !approve }

// The reasons why somebody may not answer, or not approve.
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

// Standing is what the directory says as of now: who the people around
// a request are, and who of them may not answer it.
type Standing struct {
	Now      time.Time
	People   map[string]people.Person // by canonical id
	Excluded map[string]string        // canonical id → why
	// User is the canonical id of the person whom the agent acts for;
	// "" when nobody is known by that name.
	User string
}

// Eligibility says what a person may do. People who are called in to
// look may deny or answer, and fill no seat.
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

// barred says why a person may not answer whatever groups they are in;
// "" when they may.
func (w Standing) barred(id string) string {
	if _, known := w.People[id]; !known {
		return WhyUnknown
	}

	return w.Excluded[id]
}

// seats reports whether a person may fill a seat of some stage by now.
func (w Standing) seats(a *Answering, p people.Person) bool {
	return slices.ContainsFunc(a.StagesAt(w.Now), func(s policy.Stage) bool { return p.Fills(s) })
}

// waitsFor reports whether a person who may fill a seat would fill one
// that is empty.
func (w Standing) waitsFor(a *Answering, p people.Person) bool {
	if slices.Contains(a.Answered, p.ID) {
		return false
	}
	stages, approvers := a.StagesAt(w.Now), w.Counted(a)

	return seated(people.Seat(stages, append(approvers, p))) > seated(people.Seat(stages, approvers))
}

func seated(seatings []people.Seating, _ bool) int {
	n := 0
	for _, s := range seatings {
		n += len(s.People)
	}

	return n
}

// Counted are the people whose approval of the current revision counts
// as of now, in the order they gave it.
func (w Standing) Counted(a *Answering) []people.Person {
	var out []people.Person
	for _, id := range a.Approved {
		if p := w.People[id]; w.barred(id) == "" && w.seats(a, p) {
			out = append(out, p)
		}
	}

	return out
}

// Met reports whether distinct people who hold the groups now fill
// every seat, and how they are seated.
func (w Standing) Met(a *Answering) ([]people.Seating, bool) {
	return people.Seat(a.StagesAt(w.Now), w.Counted(a))
}
