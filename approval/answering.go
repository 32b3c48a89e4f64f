package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/policy"
)

// Answering is what tells whose answer a request waits for: the part of it that lists carry, so that they read no call.
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
		Answered:  r.voters(Approve, Deny, Respond, Choose, Dismiss),
	}
}

// distinctTexts sorts texts and drops empty and repeated ones.
func distinctTexts(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" })
	slices.Sort(texts)

	return slices.Compact(texts)
}

// Eligibility is what one person's answer to a request would do as of now.
type Eligibility struct {
	Answer  bool   // they may deny or respond; choose or dismiss, if it is a question
	Approve bool   // they may fill a seat, and edit
	Waiting bool   // it waits for them: they have not answered what stands now, and their answer would count
	Why     string // in words, where they may not approve
}

// standing is what the directory says as of now: who the people around a request are, and who of them may not answer it.
type standing struct {
	now      time.Time
	people   map[string]Person // by canonical id
	excluded map[string]string // canonical id → why
	user     string            // canonical id of the person whom the agent acts for; "" when nobody is known by that name
}

// eligibility says what a person may do. People who are called in to look may deny or answer, and fill no seat.
func (w standing) eligibility(a *Answering, id string) Eligibility {
	p, known := w.people[id]
	if !known {
		return Eligibility{Why: "not in the directory"}
	}
	if why, out := w.excluded[id]; out {
		return Eligibility{Why: why}
	}
	if a.ToUser && a.Principal != "" {
		if id != w.user {
			return Eligibility{Why: "the question is for the person whom the agent acts for"}
		}
		return Eligibility{Answer: true, Approve: true, Waiting: !slices.Contains(a.Answered, id)}
	}

	seat := slices.ContainsFunc(a.stagesAt(w.now), func(s policy.Stage) bool { return p.Fills(s) })
	say := seat || slices.ContainsFunc(a.Called, p.Holds)
	switch {
	case !say:
		return Eligibility{Why: "in none of the groups that are asked"}
	case !seat:
		return Eligibility{
			Answer:  true,
			Waiting: !slices.Contains(a.Answered, id),
			Why:     "called in to look, without a seat in a group that must agree",
		}
	}

	return Eligibility{Answer: true, Approve: true, Waiting: w.waitsFor(a, p)}
}

// waitsFor reports whether a person who may fill a seat would fill one that is empty.
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

// counted are the people whose approval of the current revision counts as of now, in the order they gave it.
func (w standing) counted(a *Answering) []Person {
	var out []Person
	for _, id := range a.Approved {
		if w.mayApprove(a, id) {
			out = append(out, w.people[id])
		}
	}

	return out
}

// mayApprove is the part of eligibility that counting needs.
func (w standing) mayApprove(a *Answering, id string) bool {
	p, known := w.people[id]
	_, out := w.excluded[id]
	if !known || out {
		return false
	}

	return slices.ContainsFunc(a.stagesAt(w.now), func(s policy.Stage) bool { return p.Fills(s) })
}

// stagesAt are the stages with those stand-ins alone that may fill seats by now.
func (a *Answering) stagesAt(now time.Time) []policy.Stage {
	out := slices.Clone(a.Stages)
	for i := range out {
		late := func(s policy.StandIn) bool { return now.Before(a.Asked.Add(s.After)) }
		out[i].StandIns = slices.DeleteFunc(slices.Clone(out[i].StandIns), late)
	}

	return out
}

// StagesAt are the stages with those stand-ins alone that may fill seats at a time.
func (r *Request) StagesAt(now time.Time) []policy.Stage {
	a := r.answering()

	return a.stagesAt(now)
}

// standing looks up everybody who matters for an answer to the request.
func (s *Service) standing(ctx context.Context, tenant string, a *Answering, now time.Time, more ...Person) (standing, error) {
	w := standing{now: now, people: map[string]Person{}, excluded: map[string]string{}}
	for _, p := range more {
		w.people[p.ID] = p
	}
	for _, id := range a.Answered {
		if _, done := w.people[id]; done {
			continue
		}
		p, ok, err := s.known(ctx, tenant, id)
		if err != nil {
			return w, err
		}
		if ok && p.ID == id {
			w.people[p.ID] = p
		}
	}
	if a.ToUser {
		user, ok, err := s.known(ctx, tenant, a.Principal)
		if err != nil {
			return w, err
		}
		if ok {
			w.user = user.ID
		}
	}

	return w, s.exclude(ctx, tenant, a, w)
}

// exclude bars whoever asks, whoever the agent acts for, and whoever owns it, under whatever name the directory knows them.
func (s *Service) exclude(ctx context.Context, tenant string, a *Answering, w standing) error {
	var errs []error
	bar := func(name, why string) {
		p, ok, err := s.known(ctx, tenant, name)
		if ok {
			name = p.ID
		}
		w.excluded[name] = why
		errs = append(errs, err)
	}
	for _, name := range a.Tokens {
		bar(name, "this is the token that asks")
	}
	if a.ToUser { // they may own the agent, and the token may be theirs: it is them that the tool asks
		return errors.Join(errs...)
	}

	for _, name := range a.People {
		bar(name, "the token that asks is this person's")
	}
	if a.Principal != "" {
		bar(a.Principal, "the agent acts for this person")
	}
	owners, err := s.people.Owners(ctx, tenant, a.Agent)
	if err != nil {
		errs = append(errs, fmt.Errorf("ask the directory: %w", err))
	}
	for _, o := range slices.Concat(owners, a.Owners) {
		bar(o, "an owner of the agent")
	}

	return errors.Join(errs...)
}

// Eligible says what a person's answer to a request would do as of now. Every channel asks here before it offers an
// answer; the answer itself is held to the same rules.
func (s *Service) Eligible(ctx context.Context, r *Request, person string) (Eligibility, error) {
	a := r.answering()
	p, known, err := s.known(ctx, r.Tenant, person)
	if err != nil {
		return Eligibility{}, err
	}
	if !known {
		return Eligibility{Why: "not in the directory"}, nil
	}
	w, err := s.standing(ctx, r.Tenant, &a, s.clock.Now(), p)
	if err != nil {
		return Eligibility{}, err
	}
	e := w.eligibility(&a, p.ID)
	e.Waiting = e.Waiting && r.State == Pending

	return e, nil
}
