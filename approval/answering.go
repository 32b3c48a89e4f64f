package approval

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
}

// answering is what lists need to know of the request.
func (r *Request) answering() Answering {
	return Answering{
		Agent:     r.Agent.ID,
		Asked:     r.Created,
		Stages:    r.Stages,
		Called:    r.Called,
		ToUser:    r.asksUser(),
		Principal: r.Requester.Principal,
		Tokens:    append([]string{r.Requester.Runtime}, r.Requester.Also...),
		People:    distinctTexts(append([]string{r.Requester.Person}, r.Requester.AlsoOf...)),
		Owners:    r.Requester.Owners,
		Approved:  r.voters(Approve),
		Answered:  r.voters(Approve, Deny, Respond, Choose, Submit, Dismiss),
	}
}

// distinctTexts sorts texts and drops empty and repeated ones.
func distinctTexts(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" })
	slices.Sort(texts)

	return slices.Compact(texts)
}

// waitsFor reports whether a person who may fill a seat would fill one
// that is empty.
func (w standing) waitsFor(a *Answering, p Person) bool {
	if slices.Contains(a.Answered, p.ID) {
		return false
	}
	stages, approvers := a.stagesAt(w.now), w.counted(a)

	return seated(people.Seat(stages, append(approvers, p))) > seated(people.Seat(stages, approvers))
}

func seated(seatings []people.Seating, _ bool) int {
	n := 0
	for _, s := range seatings {
		n += len(s.People)
	}

	return n
}

// counted are the people whose approval of the current revision counts
// as of now, in the order they gave it.
func (w standing) counted(a *Answering) []Person {
	var out []Person
	for _, id := range a.Approved {
		if p := w.people[id]; w.barred(id) == "" && w.seats(a, p) {
			out = append(out, p)
		}
	}

	return out
}

// stagesAt are the stages with those stand-ins alone that may fill
// seats by now.
func (a *Answering) stagesAt(now time.Time) []policy.Stage {
	out := slices.Clone(a.Stages)
	for i := range out {
		late := func(s policy.StandIn) bool { return now.Before(a.Asked.Add(s.After)) }
		out[i].StandIns = slices.DeleteFunc(slices.Clone(out[i].StandIns), late)
	}

	return out
}

// StagesAt are the stages with those stand-ins alone that may fill
// seats at a time.
func (r *Request) StagesAt(now time.Time) []policy.Stage {
	a := r.answering()

	return a.stagesAt(now)
}
