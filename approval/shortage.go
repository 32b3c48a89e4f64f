package approval

import (
	"context"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/policy/quorum"
)

// Shortage is a stage that can't be filled.
type Shortage = people.Shortage

// Shortages lists the stages of a pending request that can't be filled with the current people. It
// takes all stand-ins into account, including those who may only fill seats later.
func (s *Service) Shortages(ctx context.Context, r *Request) ([]Shortage, error) {
	if r.State != Pending || r.Question != nil {
		return nil, nil
	}
	a := r.answering()
	w, err := s.standing(ctx, r.Tenant, &a, s.clock.Now())
	if err != nil {
		return nil, err
	}

	return ShortagesOf(r.Stages, r.AnyOf, w.Excluded, func(group string) ([]Person, error) {
		return s.members(ctx, r.Tenant, group)
	})
}

// ShortagesOf lists the stages that can't be filled, of the alternatives for which the fewest people
// are missing. It lists none if one of the alternatives can be filled.
func ShortagesOf(
	stages []policy.Stage, anyOf []policy.AnyOf, excluded map[string]string,
	members func(group string) ([]Person, error),
) ([]Shortage, error) {
	options, ok := policy.Options(stages, anyOf)
	if !ok {
		return []Shortage{{Need: 1}}, nil
	}
	var best []Shortage
	least := -1
	for _, option := range options {
		short, err := people.FindShortages(option, excluded, members)
		if err != nil {
			return nil, err
		}
		missing := 0
		for _, s := range short {
			missing += s.Need - s.Have
		}
		if least < 0 || missing < least {
			best, least = short, missing
		}
	}

	return best, nil
}

func (s *Service) members(ctx context.Context, tenant, group string) ([]Person, error) {
	members, err := s.people.Members(ctx, tenant, group)
	if err != nil {
		return nil, fmt.Errorf("ask the directory: %w", err)
	}

	return members, nil
}

// StageView is the current state of one stage of a request.
type StageView struct {
	Group   string
	Needed  int      // number of people
	Seated  []string // ids of people whose approval fills a seat
	Missing int      // number of seats that are not filled
	// Could lists people who may fill a missing seat. It is nil if no seat is missing or if the
	// request has ended.
	Could    []Person
	StandIns []policy.StandIn // who may fill seats now or some time after the request was opened
}

// Stages returns the current state of the stages of a request, with the people who may still fill
// their seats.
func (s *Service) Stages(ctx context.Context, r *Request) ([]StageView, error) {
	a := r.answering()
	w, err := s.standing(ctx, r.Tenant, &a, s.clock.Now())
	if err != nil {
		return nil, err
	}
	stages, seatings, _ := w.Nearest(&a)

	out := make([]StageView, len(seatings))
	for i, x := range seatings {
		out[i] = StageView{
			Group:    x.Group,
			Needed:   len(x.People) + x.Missing,
			Seated:   x.People,
			Missing:  x.Missing,
			StandIns: r.standIns(stages[i]),
		}
		if x.Missing == 0 || r.State != Pending {
			continue
		}
		if out[i].Could, err = s.could(ctx, r.Tenant, stages[i], &a, w); err != nil {
			return nil, err
		}
	}

	return out, nil
}

// standIns returns who may fill seats of a stage now or later. In alternatives they are listed as
// soon as they may.
func (r *Request) standIns(s policy.Stage) []policy.StandIn {
	i := slices.IndexFunc(r.Stages, func(o policy.Stage) bool { return o.Group == s.Group })
	if i >= 0 && len(r.AnyOf) == 0 {
		return r.Stages[i].StandIns
	}
	return s.StandIns
}

// could lists the people who may fill a seat of a stage and have not approved yet.
func (s *Service) could(
	ctx context.Context, tenant string, stage policy.Stage, a *Answering, w quorum.Standing,
) ([]Person, error) {
	var out []Person
	for _, group := range people.GroupsOf([]policy.Stage{stage}) {
		members, err := s.members(ctx, tenant, group)
		if err != nil {
			return nil, err
		}
		for _, p := range members {
			_, barred := w.Excluded[p.ID]
			listed := slices.ContainsFunc(out, func(o Person) bool { return o.ID == p.ID })
			if !barred && !listed && !slices.Contains(a.Approved, p.ID) {
				out = append(out, p)
			}
		}
	}

	return out, nil
}
