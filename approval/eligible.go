package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/assent-dev/assent/policy/quorum"
)

// Eligibility describes what one person's answer to a request would do now.
type Eligibility quorum.Eligibility

// The reasons why a person may not answer, or may not approve.
const (
	WhyUnknown   = quorum.WhyUnknown
	WhyToken     = quorum.WhyToken
	WhyTokens    = quorum.WhyTokens
	WhyPrincipal = quorum.WhyPrincipal
	WhyOwner     = quorum.WhyOwner
	WhyNotAsked  = quorum.WhyNotAsked
	WhyLooks     = quorum.WhyLooks
)

// May returns an error if the person may not give a verdict, or nil if they may. Edits require the
// same as approvals. All channels use it, and so does the request itself before it counts an
// answer.
func (e Eligibility) May(v Verdict) error {
	if quorum.Eligibility(e).Permits(v == Approve) {
		return nil
	}

	return fmt.Errorf("%w: %s", ErrNotEligible, e.Why)
}

// asksUser reports whether a question goes to the user of the agent rather than to groups.
func (r *Request) asksUser() bool { return r.Question != nil && len(r.Question.Groups) == 0 }

// OnlyUser reports whether only the person that the agent acts for may answer the request.
func (r *Request) OnlyUser() bool {
	a := r.answering()

	return a.OnlyUser()
}

// Eligible returns what a person's answer to a request would do now. Every channel calls it before
// it offers an answer; the same rules are applied again to the answer itself.
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
	e := eligibility(w, &a, p.ID)
	e.Waiting = e.Waiting && r.State == Pending

	return e, nil
}

// eligibility returns what a person may do.
func eligibility(w quorum.Standing, a *Answering, id string) Eligibility {
	return Eligibility(w.Eligibility(a, id))
}

// standing looks up all people who matter for an answer to the request.
func (s *Service) standing(
	ctx context.Context, tenant string, a *Answering, now time.Time, more ...Person,
) (quorum.Standing, error) {
	return quorum.Stand(ctx, s.people, tenant, a, now, more...)
}
