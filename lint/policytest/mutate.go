package policytest

import (
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
)

// Mutant is one change of an agent or a policy.
type Mutant struct {
	File  string
	Range diag.Range
	What  string // "gt becomes gte"
	root  *yamldoc.Node
	at    *yamldoc.Node // a value, or a key
	with  *yamldoc.Node // nil: it is left out
}

// Suite is test files of one world.
type Suite struct {
	Files []*File
	World *World
	Built *Built

	failed int // the test that failed last, of all files
}

// Survivor is a mutant that no test noticed.
type Survivor struct {
	Mutant
	// Witness is a call that both decide differently, in the words of
	// `assent decide`; "" when none was found, and the change may make
	// no difference at all.
	Witness       string
	Before, After string // what each makes of it
}

// Score is what became of all mutants.
type Score struct {
	Killed    int
	Survivors []Survivor
	Unusable  int // changes after which a file does not load
}

// Percent is how many of those mutants were killed that are known to
// make a difference, rounded down.
func (s *Score) Percent() int {
	seen := 0
	for _, x := range s.Survivors {
		if x.Witness != "" {
			seen++
		}
	}

	return Percent(s.Killed, s.Killed+seen)
}

// Mutate changes the agents and policies of the suites in memory, one
// thing at a time, and runs all tests on each change.
func Mutate(suites []*Suite) *Score {
	s := &Score{}
	for _, m := range mutantsOf(suites) {
		s.try(&m, suites)
	}

	return s
}

// mutantsOf are the changes of all files, each once.
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

// try runs the tests of every suite on one change.
func (s *Score) try(m *Mutant, suites []*Suite) {
	survivor := Survivor{Mutant: *m}
	usable := false
	for _, suite := range suites {
		built, ok := suite.mutated(m)
		if !ok {
			continue
		}
		usable = true
		if suite.notices(built) {
			s.Killed++
			return
		}
		if survivor.Witness == "" {
			survivor.search(suite.Built, built)
		}
	}

	if !usable {
		s.Unusable++
		return
	}
	s.Survivors = append(s.Survivors, survivor)
}

// mutated builds the world of a suite with the change; false where the
// change is not in it, or makes it unusable.
func (s *Suite) mutated(m *Mutant) (*Built, bool) {
	w := *s.World
	w.Agents = slices.Clone(w.Agents)
	w.Policies = slices.Clone(w.Policies)
	changed := false
	for _, files := range [][]policy.File{w.Agents, w.Policies} {
		for i := range files {
			if files[i].Name == m.File {
				files[i].Text = appendJSON(nil, edited(m.root, m.at, m.with))
				changed = true
			}
		}
	}

	if !changed {
		return nil, false
	}
	built, err := w.Build()

	return built, err == nil
}

// notices reports whether a test fails. It begins with the one that
// failed last: the next change is mostly beside the last one.
func (s *Suite) notices(b *Built) bool {
	var all []func(*Built) Result
	for _, f := range s.Files {
		all = append(all, f.tests()...)
	}
	for i := range all {
		at := (s.failed + i) % len(all)
		if r := all[at](b); !r.Passed() {
			s.failed = at
			return true
		}
	}

	return false
}

// tests are the tests of a file, in their order.
func (f *File) tests() []func(*Built) Result {
	var out []func(*Built) Result
	for i := range f.Calls {
		out = append(out, f.Calls[i].run)
	}
	for i := range f.Cases {
		out = append(out, f.Cases[i].run)
	}

	return out
}

// search looks for a call that the change decides differently, among
// the boundary calls of both; one with another outcome, if there is one.
func (s *Survivor) search(before, after *Built) {
	for _, x := range append(Boundaries(before), Boundaries(after)...) {
		was, is := before.Plan.Decide(&x.Call), after.Plan.Decide(&x.Call)
		a, b := expectation(was), expectation(is)
		if a == b || s.Witness != "" && was.Outcome == is.Outcome {
			continue
		}
		text, err := x.Call.JSON()
		if err != nil {
			continue
		}
		s.Witness = string(text)
		s.Before, s.After = a, b
		if was.Outcome != is.Outcome {
			return
		}
	}
}

// edited is a tree with another node in the place of one, or without it.
// What is not on the way is shared.
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
