package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/policy"
)

// Eligibility is what one person's answer to a request would do as of now.
type Eligibility struct {
	Answer  bool   // they may deny or respond; choose or dismiss, if it is a question
	Approve bool   // they may fill a seat, and edit
	Waiting bool   // it waits for them: they have not answered what stands now, and their answer would count
	Why     string // one of the reasons below, where they may not approve
}

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

// May says why a person may not give a verdict; nil when they may. An
// edit takes what an approval takes. Every channel asks here, and so
// does the request itself before it counts an answer.
func (e Eligibility) May(v Verdict) error {
	if e.Approve || e.Answer && v != Approve {
		return nil
	}

	return fmt.Errorf("%w: %s", ErrNotEligible, e.Why)
}

// asksUser reports whether a question goes to the user of the agent,
// rather than to groups.
func (r *Request) asksUser() bool { return r.Question != nil && len(r.Question.Groups) == 0 }

// onlyUser reports whether nobody but the person whom the agent acts for may
// answer. Where no such person was named, any approver may.
func (a *Answering) onlyUser() bool { return a.ToUser && a.Principal != "" }

// OnlyUser reports whether nobody but the person whom the agent acts
// for may answer the request.
func (r *Request) OnlyUser() bool {
	a := r.answering()

	return a.onlyUser()
}

// Eligible says what a person's answer to a request would do as of now.
// Every channel asks here before it offers an answer; the answer itself
// is held to the same rules.
func (s *Service) Eligible(ctx context.Context, r *Request, person string) (Eligibility, error) {
	a := r.answering()
	p, known, err := s.known(ctx, r.Tenant, person)
	if err != nil {
		return Eligibility{}, err
	}
	if !known {
		return Eligibility{Why: WhyUnknown}, nil
	}
	w, err := s.standing(ctx, r.Tenant, &a, s.clock.Now(), p)
	if err != nil {
		return Eligibility{}, err
	}
	e := w.eligibility(&a, p.ID)
	e.Waiting = e.Waiting && r.State == Pending

	return e, nil
}

// standing is what the directory says as of now: who the people around
// a request are, and who of them may not answer it.
type standing struct {
	now      time.Time
	people   map[string]Person // by canonical id
	excluded map[string]string // canonical id → why
	// canonical id of the person whom the agent acts for; "" when
	// nobody is known by that name
	user string
}

// eligibility says what a person may do. People who are called in to
// look may deny or answer, and fill no seat.
func (w standing) eligibility(a *Answering, id string) Eligibility {
	p := w.people[id]
	silent := !slices.Contains(a.Answered, id)
	barred := w.barred(id)
	switch {
	case barred != "":
		return Eligibility{Why: barred}
	case a.onlyUser() && id != w.user:
		return Eligibility{Why: WhyNotTheUser}
	case a.onlyUser():
		return Eligibility{
			Answer:  true,
			Approve: true,
			Waiting: silent,
		}
	case w.seats(a, p):
		return Eligibility{
			Answer:  true,
			Approve: true,
			Waiting: w.waitsFor(a, p),
		}
	case slices.ContainsFunc(a.Called, p.Holds):
		return Eligibility{
			Answer:  true,
			Waiting: silent,
			Why:     WhyLooks,
		}
	}

	return Eligibility{Why: WhyNotAsked}
}

// barred says why a person may not answer whatever groups they are in;
// "" when they may.
func (w standing) barred(id string) string {
	if _, known := w.people[id]; !known {
		return WhyUnknown
	}

	return w.excluded[id]
}

// seats reports whether a person may fill a seat of some stage by now.
func (w standing) seats(a *Answering, p Person) bool {
	return slices.ContainsFunc(a.stagesAt(w.now), func(s policy.Stage) bool { return p.Fills(s) })
}

// standing looks up everybody who matters for an answer to the request.
func (s *Service) standing(
	ctx context.Context, tenant string, a *Answering, now time.Time, more ...Person,
) (standing, error) {
	w := standing{
		now:      now,
		people:   map[string]Person{},
		excluded: map[string]string{},
	}
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

// exclude bars whoever asks, whoever the agent acts for, and whoever
// owns it, under whatever name the directory knows them.
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
		bar(name, WhyToken)
	}
	if a.ToUser { // they may own the agent, and the token may be theirs: it is them that the tool asks
		return errors.Join(errs...)
	}

	for _, name := range a.People {
		bar(name, WhyTokens)
	}
	if a.Principal != "" {
		bar(a.Principal, WhyPrincipal)
	}
	owners, err := s.people.Owners(ctx, tenant, a.Agent)
	if err != nil {
		errs = append(errs, fmt.Errorf("ask the directory: %w", err))
	}
	for _, o := range slices.Concat(owners, a.Owners) {
		bar(o, WhyOwner)
	}

	return errors.Join(errs...)
}
