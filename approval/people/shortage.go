package people

import (
	"strconv"

	"github.com/assent-dev/assent/policy"
)

// Shortage is a stage that can't be filled: not enough different people
// hold the group, or stand in for it, and may answer.
type Shortage struct {
	Group string `json:"group"`
	Need  int    `json:"need"` // people
	Have  int    `json:"have"` // people who could fill the stage beside all others
}

// String says what is short: "2 of risk are needed, and only 1 may
// answer this".
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

// FindShortages lists the stages that the members of the groups can't
// fill: by distinct people, none of them excluded. With nobody excluded
// it holds for whoever asks, which is for those who load rules.
func FindShortages(
	stages []policy.Stage, excluded map[string]string, members func(group string) ([]Person, error),
) ([]Shortage, error) {
	seats := 0
	for _, stage := range stages {
		seats += stage.People
	}
	// A group of which as many people may answer as there are seats is
	// large enough whoever they are, so no more are needed.
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

// GroupsOf are the groups whose members may fill seats, each once.
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
