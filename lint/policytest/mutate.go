package policytest

import (
	"runtime"
	"sync"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Mutant is one change of an agent or a policy.
type Mutant struct {
	File  string
	Range diag.Range
	What  string // "gt becomes gte"
	root  *yamldoc.Node
	at    *yamldoc.Node // a value, or a key
	with  *yamldoc.Node // nil: it is left out
	// entry is the alias in the action space, or the rule's id, that contains the change. It is
	// empty if neither does.
	entry string
}

// Suite is the test files of one world.
type Suite struct {
	Files []*File
	World *World
	Built *Built

	parts *parts // of World
}

// Survivor is a mutant that no test noticed.
type Survivor struct {
	Mutant
	// Witness is a call that both versions decide differently, in the format of `assent decide`. It
	// is empty if none was found; the change may then make no difference.
	Witness       string
	Before, After string // what each makes of it
	// Untried is the reason why the change could not be tried at every edge. It may then make a
	// difference even if no call was found.
	Untried string
}

// Score is the result for all mutants.
type Score struct {
	Killed    int
	Survivors []Survivor
	Unusable  int // changes after which a file does not load
}

// Percent returns the percentage of killed mutants among those that make, or may make, a
// difference. It is rounded down.
func (s *Score) Percent() int {
	seen, untried := s.counts()

	return Percent(s.Killed, s.Killed+seen+untried)
}

// counts returns the number of survivors with a known difference, and of those that could not be
// tried.
func (s *Score) counts() (seen, untried int) {
	for _, x := range s.Survivors {
		switch {
		case x.Witness != "":
			seen++
		case x.Untried != "":
			untried++
		}
	}

	return seen, untried
}

// Mutate changes the agents and policies of the suites in memory, one
// thing at a time, and runs all tests on each change that it could
// touch. It works on all cores; the score is the same on any number.
func Mutate(suites []*Suite) *Score { return mutate(suites, false) }

func mutate(suites []*Suite, whole bool) *Score {
	for _, s := range suites {
		s.parts, _ = s.World.read() // it was built before
	}
	run := &trials{
		suites:  suites,
		whole:   whole,
		mutants: mutantsOf(suites),
		jobs:    make(chan [2]int),
	}
	run.fates = make([]fate, len(run.mutants))
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(run.work)
	}
	run.hand()
	workers.Wait()

	return scoreOf(run.fates)
}

// trials are all changes and their results. A job is a range of changes in one entry.
type trials struct {
	suites  []*Suite
	whole   bool
	mutants []Mutant
	fates   []fate
	jobs    chan [2]int
}

// work does jobs until there are no more.
func (t *trials) work() {
	for job := range t.jobs {
		x := experiment{suites: t.suites, whole: t.whole}
		for i := job[0]; i < job[1]; i++ {
			t.fates[i] = x.try(&t.mutants[i])
		}
	}
}

// hand hands out all jobs.
func (t *trials) hand() {
	defer close(t.jobs)
	for from := 0; from < len(t.mutants); {
		to := from + 1
		for to < len(t.mutants) && t.mutants[to].beside(&t.mutants[from]) {
			to++
		}
		t.jobs <- [2]int{from, to}
		from = to
	}
}

// beside reports whether two changes are in the same entry.
func (m *Mutant) beside(o *Mutant) bool {
	return m.File == o.File && m.entry == o.entry
}

// fate is the result of one change.
type fate struct {
	unusable bool
	killed   bool
	survivor Survivor
}

func scoreOf(fates []fate) *Score {
	s := &Score{}
	for i := range fates {
		s.add(&fates[i])
	}

	return s
}

func (s *Score) add(f *fate) {
	switch {
	case f.unusable:
		s.Unusable++
	case f.killed:
		s.Killed++
	default:
		s.Survivors = append(s.Survivors, f.survivor)
	}
}

// mutantsOf returns the changes of all files, each once.
func mutantsOf(suites []*Suite) []Mutant {
	var out []Mutant
	seen := map[string]bool{}
	for _, suite := range suites {
		for _, a := range suite.Built.Agents {
			if !seen[a.File] {
				seen[a.File] = true
				c := changes{file: a.File, root: a.Doc.Root}
				c.agent()
				out = append(out, c.out...)
			}
		}

		for _, p := range suite.Built.Policies {
			if !seen[p.File] {
				seen[p.File] = true
				c := changes{file: p.File, root: p.Doc.Root}
				c.policy()
				out = append(out, c.out...)
			}
		}
	}

	return out
}

// edited returns a tree with one node replaced or removed. All nodes that are not ancestors of it
// are shared.
func edited(n, at, with *yamldoc.Node) *yamldoc.Node {
	if n == at {
		return with
	}
	next := *n
	next.Items, next.Fields = nil, nil
	for _, item := range n.Items {
		if item = edited(item, at, with); item != nil {
			next.Items = append(next.Items, item)
		}
	}
	for _, f := range n.Fields {
		if f.Key == at {
			f.Key = with
		}
		if f.Value = edited(f.Value, at, with); f.Value != nil && f.Key != nil {
			next.Fields = append(next.Fields, f)
		}
	}

	return &next
}
