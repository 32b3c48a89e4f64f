package approval

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
)

// TestWaitingIsWhatAnAnswerWouldChange uses random stages, stand-ins, votes, edits, escalations,
// changes of groups and exclusions. A request waits for a person if and only if they have not answered
// its current revision and their answer would change something: an approval fills an empty seat.
func TestWaitingIsWhatAnAnswerWouldChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTrial(t)
		x.s.clock = &clock{now: func() time.Time { return x.now }}
		check := func(t *rapid.T) {
			x.t = t
			for i := range somePeople + 1 {
				x.waits(person(i))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"vote":       x.Vote,
			"vote again": x.Vote,
			"edit":       x.Edit,
			"time":       x.Time,
			"move":       x.Move,
			"withdraw":   x.Withdraw,
			"":           check,
		})
	})
}

// waits compares the lists with the effect of an answer.
func (x *trial) waits(name string) {
	p, known, err := x.s.known(context.Background(), "t", name)
	must.Do(x.t, err)
	if !known {
		return
	}
	x.tick()
	listed, err := x.s.waitsFor(context.Background(), "t", Summarize(x.r), p)
	must.Do(x.t, err)
	listed = listed && x.r.State == Pending // lists contain pending requests only

	if want := x.wouldChange(p.ID); listed != want {
		x.t.Fatalf("%s: listed %v, an answer would change something: %v", p.ID, listed, want)
	}
}

// wouldChange tries the answers of a person on a copy.
func (x *trial) wouldChange(id string) bool {
	if x.r.State != Pending {
		return false
	}
	filled := x.filled(x.counted())
	outcome := x.tryVote(id, Approve)
	switch outcome {
	case VoteCounted, VoteApproved:
		return x.filled(append(x.counted(), id)) > filled
	case VoteDuplicate:
		return false
	}

	if _, answered := x.m.approvals[id]; answered {
		return false // moved to a group that only looks after an approval of this revision
	}

	return x.tryVote(id, Deny) == VoteDenied
}

func (x *trial) tryVote(id string, v Verdict) VoteOutcome {
	whole := x.r
	x.r = whole.Clone()
	defer func() { x.r = whole }()
	outcome, _, err := x.give(id, v, true)
	must.Do(x.t, err)

	return outcome
}

// counted returns the people whose approval counts according to the model.
func (x *trial) counted() []string {
	var out []string
	for _, p := range slices.Sorted(maps.Keys(x.m.approvals)) {
		if _, approve := x.says(p); approve {
			out = append(out, p)
		}
	}

	return out
}

// filled returns the largest number of seats that the people can fill, by trying all assignments.
func (x *trial) filled(people []string) int {
	var most func(left map[string]int, people []string) int
	most = func(left map[string]int, people []string) int {
		if len(people) == 0 {
			return 0
		}
		best := most(left, people[1:])
		for stage, free := range left {
			if free == 0 || !x.fits(people[0], stage) {
				continue
			}
			less := maps.Clone(left)
			less[stage]--
			best = max(best, 1+most(less, people[1:]))
		}

		return best
	}

	return most(x.m.stages, people)
}
