package people

import (
	"slices"

	"github.com/assent-dev/assent/policy"
)

// Seating is one stage with the people who fill its seats.
type Seating struct {
	Group   string   `json:"group"`
	People  []string `json:"people"`
	Missing int      `json:"missing"`
}

// Seat assigns different people to the seats of all stages, so that as many seats as possible are
// filled. A person fills at most one seat, and only in a stage whose group they are in or that lists
// one of their groups in StandIns. The assignment is a maximum matching, so a quorum is met if any
// assignment meets it, whatever the order of the votes. Earlier people keep their seat if that
// makes no difference. All StandIns of the stages count, whatever their times.
func Seat(stages []policy.Stage, people []Person) (seatings []Seating, met bool) {
	m := matching{stages: stages, people: distinct(people), seated: make([][]int, len(stages))}
	for i := range m.people {
		m.place(i, make([]bool, len(stages)))
	}
	return m.result()
}

// Fills reports whether a person may fill a seat of a stage.
func (p Person) Fills(s policy.Stage) bool {
	return p.Holds(s.Group) ||
		slices.ContainsFunc(s.StandIns, func(i policy.StandIn) bool { return p.Holds(i.Group) })
}

func distinct(people []Person) []Person {
	out := make([]Person, 0, len(people))
	for _, p := range people {
		if !slices.ContainsFunc(out, func(q Person) bool { return q.ID == p.ID }) {
			out = append(out, p)
		}
	}
	return out
}

// matching grows by augmenting paths: to seat one more person, people who already have a seat may
// move to another one.
type matching struct {
	stages []policy.Stage
	people []Person
	seated [][]int // indexes of people, by stage
}

func (m *matching) place(person int, tried []bool) bool {
	for s, stage := range m.stages {
		if tried[s] || !m.people[person].Fills(stage) {
			continue
		}
		tried[s] = true
		if len(m.seated[s]) < stage.People {
			m.seated[s] = append(m.seated[s], person)
			return true
		}
		for i, other := range m.seated[s] {
			if m.place(other, tried) {
				m.seated[s][i] = person
				return true
			}
		}
	}

	return false
}

func (m *matching) result() ([]Seating, bool) {
	out, met := make([]Seating, len(m.stages)), true
	for s, stage := range m.stages {
		out[s] = Seating{
			Group:   stage.Group,
			People:  []string{},
			Missing: stage.People - len(m.seated[s]),
		}
		slices.Sort(m.seated[s])
		for _, i := range m.seated[s] {
			out[s].People = append(out[s].People, m.people[i].ID)
		}
		met = met && out[s].Missing <= 0
	}

	return out, met && len(m.stages) > 0
}
