package approval

import (
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/quorum"
	"github.com/assent-dev/assent/policy"
)

// Answering is what tells whose answer a request waits for: the part of
// it that lists carry, so that they read no call.
type Answering = quorum.Answering

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
		Readers:   r.readers(),
	}
}

// distinctTexts sorts texts and drops empty and repeated ones.
func distinctTexts(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" })
	slices.Sort(texts)

	return slices.Compact(texts)
}

// StagesAt are the stages with those stand-ins alone that may fill
// seats at a time.
func (r *Request) StagesAt(now time.Time) []policy.Stage {
	a := r.answering()

	return a.StagesAt(now)
}
