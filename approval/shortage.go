package approval

import (
	"context"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/policy"
)

// Shortage is a stage that can't be filled: not enough different people hold the group, or stand in for it, and may answer.
type Shortage struct {
	Group string `json:"group"`
	Need  int    `json:"need"` // people
	Have  int    `json:"have"` // people who could fill the stage beside all others
}

// Shortages lists the stages of a pending request that nobody can fill as of now, with all stand-ins who may still come in.
func (s *Service) Shortages(ctx context.Context, r *Request) ([]Shortage, error) {
	if r.State != Pending || r.Question != nil {
		return nil, nil
	}
	a := r.answering()
	w, err := s.standing(ctx, r.Tenant, &a, s.clock.Now())
	if err != nil {
		return nil, err
	}

	return FindShortages(r.Stages, w.excluded, func(group string) ([]Person, error) {
		members, err := s.people.Members(ctx, r.Tenant, group)
		if err != nil {
			return nil, fmt.Errorf("ask the directory: %w", err)
		}

		return members, nil
	})
}

// FindShortages lists the stages that the members of the groups can't fill: by distinct people, none of them excluded. With
// nobody excluded it holds for whoever asks, which is for those who load rules.
func FindShortages(stages []policy.Stage, excluded map[string]string, members func(group string) ([]Person, error)) ([]Shortage, error) {
	seats := 0
	for _, stage := range stages {
		seats += stage.People
	}
	// A group of which as many people may answer as there are seats is large enough whoever they are, so no more are needed.
	var people []Person
	for _, group := range groupsOf(stages) {
		all, err := members(group)
		if err != nil {
			return nil, err
		}
		people = append(people, firstOf(all, excluded, seats)...)
	}

	seatings, met := Seat(stages, people)
	if met {
		return nil, nil
	}
	var out []Shortage
	for _, x := range seatings {
		if x.Missing > 0 {
			out = append(out, Shortage{Group: x.Group, Need: len(x.People) + x.Missing, Have: len(x.People)})
		}
	}

	return out, nil
}

// StageView is one stage of a request as of now.
type StageView struct {
	Group    string
	Needed   int              // people
	Seated   []string         // ids of people whose approval fills a seat
	Missing  int              // seats that nobody fills
	Could    []Person         // people who may fill a seat that is missing; nil when none is, or when the request has ended
	StandIns []policy.StandIn // who may fill seats by now, or will some time after the request was opened
}

// Stages tells how the stages of a request stand, and who may still fill their seats.
func (s *Service) Stages(ctx context.Context, r *Request) ([]StageView, error) {
	a := r.answering()
	w, err := s.standing(ctx, r.Tenant, &a, s.clock.Now())
	if err != nil {
		return nil, err
	}
	stages := a.stagesAt(w.now)
	seatings, _ := Seat(stages, w.counted(&a))

	out := make([]StageView, len(seatings))
	for i, x := range seatings {
		out[i] = StageView{
			Group: x.Group, Needed: len(x.People) + x.Missing, Seated: x.People, Missing: x.Missing, StandIns: r.Stages[i].StandIns,
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

// could lists the people who may fill a seat of a stage, and have not approved.
func (s *Service) could(ctx context.Context, tenant string, stage policy.Stage, a *Answering, w standing) ([]Person, error) {
	var out []Person
	for _, group := range groupsOf([]policy.Stage{stage}) {
		members, err := s.people.Members(ctx, tenant, group)
		if err != nil {
			return nil, fmt.Errorf("ask the directory: %w", err)
		}
		for _, p := range members {
			_, barred := w.excluded[p.ID]
			listed := slices.ContainsFunc(out, func(o Person) bool { return o.ID == p.ID })
			if !barred && !listed && !slices.Contains(a.Approved, p.ID) {
				out = append(out, p)
			}
		}
	}

	return out, nil
}

// groupsOf are the groups whose members may fill seats, each once.
func groupsOf(stages []policy.Stage) []string {
	var out []string
	seen := map[string]bool{}
	add := func(group string) {
		if !seen[group] {
			seen[group] = true
			out = append(out, group)
		}
	}
	for _, stage := range stages {
		add(stage.Group)
		for _, i := range stage.StandIns {
			add(i.Group)
		}
	}

	return out
}

// firstOf are up to so many of the people who are not excluded.
func firstOf(people []Person, excluded map[string]string, most int) []Person {
	var out []Person
	for _, p := range people {
		if _, barred := excluded[p.ID]; barred {
			continue
		}
		if out = append(out, p); len(out) == most {
			break
		}
	}

	return out
}
