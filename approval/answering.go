package approval

import (
	"slices"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/quorum"
)

// Answering is the part of a request that decides whose answer it waits for. Lists contain it, so
// that they need not load the calls.
type Answering = quorum.Answering

// answering returns the part of the request that lists need.
func (r *Request) answering() Answering {
	return Answering{
		Agent:     r.Agent.ID,
		Asked:     r.Created,
		Stages:    r.Stages,
		AnyOf:     r.AnyOf,
		Called:    r.Called,
		ToUser:    r.asksUser(),
		Principal: r.Requester.Principal,
		Tokens:    append([]string{r.Requester.Runtime}, r.Requester.Also...),
		People:    distinctTexts(append([]string{r.Requester.Person}, r.Requester.AlsoOf...)),
		Owners:    r.Requester.Owners,
		Approved:  r.voters(Approve),
		Answered:  r.voters(Approve, Deny, Respond, Choose, Submit, Dismiss),
		Readers:   r.readers(),
	}
}

// distinctTexts returns the texts sorted, without empty and repeated ones.
func distinctTexts(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" })
	slices.Sort(texts)

	return slices.Compact(texts)
}

// OptionsAt returns the alternative lists of stages, without the stand-ins that may not fill seats
// yet.
func (r *Request) OptionsAt(now time.Time) [][]policy.Stage {
	a := r.answering()

	return a.OptionsAt(now)
}
