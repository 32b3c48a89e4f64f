package people

import (
	"strconv"

	"github.com/assent-dev/assent/policy"
)

// Shortage is a stage that can't be filled, because too few different people who may answer are in
// its group or in the group of one of its StandIns.
type Shortage struct {
	Group string `json:"group"`
	Need  int    `json:"need"` // number of people
	Have  int    `json:"have"` // number of people who could fill the stage after all other stages are filled
}

// String describes the shortage: "2 of risk are needed, and only 1 may answer this".
func (s Shortage) String() string {
	who := s.Group
	if who == "" {
		who = "all approvers"
	}
	have := "only " + strconv.Itoa(s.Have) + " of them may answer this"
	if s.Have == 0 {
		have = "nobody of them may answer this"
	}

	return strconv.Itoa(s.Need) + " of " + who + ": " + have
}

// FindShortages lists the stages that the members of the groups can't fill with different people,
// without the excluded people. With no exclusions, the result holds for every asker, which is
// useful when rules are loaded.
func FindShortages(
	stages []policy.Stage, excluded map[string]string, members func(group string) ([]Person, error),
) ([]Shortage, error) {
	seats := 0
	for _, stage := range stages {
		seats += stage.People
	}
	// If a group has as many eligible members as there are seats in all stages, it is large enough
	// whichever they are, so no more members are needed.
	var candidates []Person
	for _, group := range GroupsOf(stages) {
		all, err := members(group)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, firstOf(all, excluded, seats)...)
	}

	seatings, met := Seat(stages, candidates)
	if met {
		return nil, nil
	}
	var out []Shortage
	for _, x := range seatings {
		if x.Missing > 0 {
			out = append(out, Shortage{
				Group: x.Group,
				Need:  len(x.People) + x.Missing,
				Have:  len(x.People),
			})
		}
	}

	return out, nil
}

// GroupsOf returns the groups whose members may fill seats, without duplicates.
func GroupsOf(stages []policy.Stage) []string {
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

// firstOf returns the first people who are not excluded, at most that many.
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
