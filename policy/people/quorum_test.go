package people

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
)

// maxFlow is the reference implementation: people and the groups' seats form a network with unit
// capacities at people. It is solved by breadth-first augmenting paths (Edmonds and Karp) over an
// explicit residual matrix. It shares no code with Seat.
func maxFlow(stages []policy.Stage, people []Person) int {
	ids := map[string]bool{}
	var distinct []Person
	for _, p := range people {
		if !ids[p.ID] {
			ids[p.ID] = true
			distinct = append(distinct, p)
		}
	}

	n := 2 + len(distinct) + len(stages)
	source, sink := n-2, n-1
	left := make([][]int, n)
	for i := range left {
		left[i] = make([]int, n)
	}
	for i, p := range distinct {
		left[source][i] = 1
		for j, s := range stages {
			if s.Group == "" || slices.Contains(p.Groups, s.Group) {
				left[i][len(distinct)+j] = 1
			}
		}
	}

	for j, s := range stages {
		left[len(distinct)+j][sink] = s.People
	}
	flow := 0
	for {
		from := make([]int, n)
		for i := range from {
			from[i] = -1
		}
		from[source] = source
		for queue := []int{source}; len(queue) > 0 && from[sink] < 0; queue = queue[1:] {
			for v, c := range left[queue[0]] {
				if c > 0 && from[v] < 0 {
					from[v] = queue[0]
					queue = append(queue, v)
				}
			}
		}

		if from[sink] < 0 {
			return flow
		}
		for v := sink; v != source; v = from[v] {
			left[from[v]][v]--
			left[v][from[v]]++
		}
		flow++
	}
}

func seats(stages []policy.Stage) int {
	n := 0
	for _, s := range stages {
		n += s.People
	}
	return n
}

// organisation returns random stages and people. It uses few groups, so that people compete for
// seats.
func organisation(r *rand.Rand) ([]policy.Stage, []Person) {
	groups := make([]string, 1+r.IntN(5))
	var stages []policy.Stage
	for i := range groups {
		groups[i] = "g" + strconv.Itoa(i)
		if r.IntN(3) > 0 {
			stages = append(stages, policy.Stage{Group: groups[i], People: 1 + r.IntN(3)})
		}
	}

	if len(stages) == 0 || r.IntN(10) == 0 {
		stages = append(stages, policy.Stage{Group: "", People: 1 + r.IntN(2)})
	}
	people := make([]Person, r.IntN(9))
	for i := range people {
		people[i].ID = "p" + strconv.Itoa(r.IntN(9)) // may occur twice
		for _, g := range groups {
			if r.IntN(3) == 0 {
				people[i].Groups = append(people[i].Groups, g)
			}
		}
	}

	for i := range people { // a person has one set of groups
		for j := range i {
			if people[j].ID == people[i].ID {
				people[i].Groups = people[j].Groups
			}
		}
	}

	return stages, people
}

// TestSeatAgreesWithMaximumFlow is the acceptance test of the issue: the same result as a maximum
// flow on 100,000 random organisations.
func TestSeatAgreesWithMaximumFlow(t *testing.T) {
	const cases = 100_000
	r := rand.New(rand.NewPCG(1, 2))
	verdicts := map[bool]int{}
	for range cases {
		stages, people := organisation(r)
		seatings, met := Seat(stages, people)
		flow := maxFlow(stages, people)
		if met != (flow == seats(stages)) {
			t.Fatalf("Seat says %v, flow %d of %d\nstages %v\npeople %v", met, flow, seats(stages), stages, people)
		}

		if err := sound(stages, people, seatings, flow); err != nil {
			t.Fatalf("%v\nstages %v\npeople %v\nseatings %v", err, stages, people, seatings)
		}
		verdicts[met]++
	}

	if verdicts[true] < cases/20 || verdicts[false] < cases/20 {
		t.Errorf("the organisations are one-sided: %v", verdicts)
	}
}

// sound checks a seating on its own: different people, correct groups, no stage with too many
// people, and as many filled seats as the maximum flow.
func sound(stages []policy.Stage, people []Person, seatings []Seating, flow int) error {
	seen, filled := map[string]bool{}, 0
	for i, s := range seatings {
		if len(s.People)+s.Missing != stages[i].People || s.Missing < 0 {
			return fmt.Errorf(
				"stage %d has %d people, %d missing, of %d",
				i,
				len(s.People),
				s.Missing,
				stages[i].People,
			)
		}

		for _, id := range s.People {
			at := slices.IndexFunc(people, func(p Person) bool { return p.ID == id })
			if seen[id] || at < 0 || !people[at].Holds(stages[i].Group) {
				return fmt.Errorf("%s may not sit in stage %d", id, i)
			}
			seen[id] = true
			filled++
		}
	}

	if filled != flow {
		return fmt.Errorf("%d seats are filled, %d can be", filled, flow)
	}
	return nil
}

// TestSeatIsMonotoneAndOrderless: more people never lose a quorum, and the order and repetition of
// votes don't matter.
func TestSeatIsMonotoneAndOrderless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		stages, people := organisation(r)
		_, met := Seat(stages, people)
		shuffled := append(slices.Clone(people), people...)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if _, again := Seat(stages, shuffled); again != met {
			t.Fatalf("order or repetition matters: %v %v", stages, people)
		}
		if _, more := Seat(stages, append(people, Person{ID: "new", Groups: []string{"g0"}})); met && !more {
			t.Fatalf("one more person lost the quorum: %v %v", stages, people)
		}
		if _, fewer := Seat(append(stages, policy.Stage{Group: "g0", People: 1}), people); fewer && !met {
			t.Fatalf("one more stage met the quorum: %v %v", stages, people)
		}
	})
}

func TestSeatNeedsStages(t *testing.T) {
	if _, met := Seat(nil, []Person{{ID: "a"}}); met {
		t.Error("no stages at all must not be met")
	}
}
