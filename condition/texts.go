package condition

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/automata"
)

// texts is a set of strings: those of a finite set or of its complement that match all positive
// patterns, match no negative pattern, and are in none of the sets in outside.
type texts struct {
	but     bool     // the complement of list
	list    []string // sorted, without duplicates, valid UTF-8
	pats    []literal
	outside []*texts
}

// literal is a pattern that must match, or must not.
type literal struct {
	pat *pattern
	not bool
}

func allTexts(yes bool) texts { return texts{but: yes} }

// plain reports whether the set is defined by the list alone.
func (a *texts) plain() bool { return len(a.pats) == 0 && len(a.outside) == 0 }

func (a *texts) full() bool { return a.but && len(a.list) == 0 && a.plain() }

// empty reports whether the set is certainly empty, without using an automaton. It is exact for
// finite sets.
func (a *texts) empty() bool { return !a.but && len(a.list) == 0 }

func (a *texts) has(s string) bool {
	if _, listed := slices.BinarySearch(a.list, s); listed == a.but {
		return false
	}
	for _, l := range a.pats {
		l.pat.compile()
		if l.pat.holds(s) == l.not {
			return false
		}
	}

	return !slices.ContainsFunc(a.outside, func(o *texts) bool { return o.has(s) })
}

func (a texts) and(b texts) texts {
	c := texts{
		but:     a.but && b.but,
		outside: slices.Concat(a.outside, b.outside),
		pats:    slices.Clip(a.pats),
	}
	switch {
	case c.but:
		c.list = union(a.list, b.list)
	case a.but:
		c.list = b.list
	default:
		c.list = a.list
	}

	for _, l := range b.pats {
		switch at := a.find(l.pat); {
		case at < 0:
			c.pats = append(c.pats, l)
		case a.pats[at].not != l.not:
			return texts{}
		}
	}

	if c.but {
		return c
	}
	keep := func(s string) bool { return a.has(s) && b.has(s) }
	return texts{list: filter(c.list, keep)}
}

// minus removes b. It first drops patterns of b that a already decides.
func (a texts) minus(b texts) texts {
	if !a.but {
		return texts{list: filter(a.list, func(s string) bool { return !b.has(s) })}
	}
	var open []literal
	for _, l := range b.pats {
		at := a.find(l.pat)
		if at >= 0 && a.pats[at].not != l.not {
			return a // they are disjoint
		}
		if at < 0 {
			open = append(open, l)
		}
	}

	b.pats = open
	switch {
	case b.plain():
		return a.and(texts{but: !b.but, list: b.list})
	case len(b.pats) == 1 && len(b.outside) == 0 && b.but && len(b.list) == 0:
		l := b.pats[0]
		return a.and(texts{but: true, pats: []literal{{l.pat, !l.not}}})
	}

	a.outside = append(slices.Clip(a.outside), &b)
	return a
}

func (a *texts) find(p *pattern) int {
	return slices.IndexFunc(a.pats, func(l literal) bool { return l.pat.source == p.source && l.pat.trims == p.trims })
}

func filter(list []string, keep func(string) bool) []string {
	var kept []string
	for _, s := range list {
		if keep(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// guess tries a few strings that are likely to be in the set. If it fails, the set may still
// have elements, unless it is finite. The strings affect only speed and the example that is
// shown, never the answer.
func (a *texts) guess() (string, bool) {
	if !a.but {
		return strings.Join(a.list[:min(1, len(a.list))], ""), len(a.list) > 0
	}
	if a.plain() {
		return a.fresh(), true
	}
	var samples []string
	forward, backward := "", ""
	for _, l := range a.pats {
		if l.pat.fact != nil {
			samples = append(samples, l.pat.fact.samples...)
			continue
		}
		if s, ok := sample(l.pat.tree); ok && !l.not {
			samples = append(samples, s)
			forward, backward = forward+s, s+backward
		}
	}

	if forward != "" {
		samples = append(samples, forward, backward)
	}
	samples = append(samples, "x", "")
	if i := slices.IndexFunc(samples, a.has); i >= 0 {
		return samples[i], true
	}
	return "", false
}

// fresh returns a string that is not in the list.
func (a *texts) fresh() string {
	s := "x"
	for i := 0; !a.has(s); i++ {
		s = "x" + strconv.Itoa(i)
	}
	return s
}

// pick returns a string of the set, or No if there is none, or Undecided if finding out takes
// more effort than is left.
func (a *texts) pick(e *effort) (string, Verdict) {
	if s, ok := a.guess(); ok {
		return s, Yes
	}
	if facts := a.facts(nil); len(facts) > 0 {
		return a.pickByFacts(facts, e)
	}
	return a.search(e)
}

// search looks for a string of a set without facts.
func (a *texts) search(e *effort) (string, Verdict) {
	if a.empty() {
		return "", No
	}
	if e.steps <= 0 {
		return "", Undecided
	}
	q := machines{patterns: map[*pattern]int{}, words: map[*texts]int{}, effort: e}
	q.add(a)
	s, outcome := automata.FindWithin(
		q.list,
		func(contains []bool) bool { return q.in(a, contains) },
		e.states,
		&e.steps,
	)
	switch outcome {
	case automata.Found:
		return s, Yes
	case automata.None:
		return "", No
	}

	return "", Undecided
}

// effort limits the use of automata by a question.
type effort struct {
	states int // of one automaton
	steps  int // remaining for the question
}

// stepsPerLetter is the number of steps to build the automaton of a list, per letter.
const stepsPerLetter = 10

// machines has an automaton for every pattern and every list of a set.
type machines struct {
	list     []automata.Machine
	patterns map[*pattern]int
	words    map[*texts]int
	effort   *effort
}

func (q *machines) add(a *texts) {
	if len(a.list) > 0 {
		q.words[a] = len(q.list)
		q.list = append(q.list, automata.NewWords(a.list))
		for _, word := range a.list {
			q.effort.steps -= stepsPerLetter * len(word)
		}
	}
	for _, l := range a.pats {
		if _, known := q.patterns[l.pat]; !known {
			q.patterns[l.pat] = len(q.list)
			q.list = append(q.list, l.pat.automaton())
		}
	}

	for _, o := range a.outside {
		q.add(o)
	}
}

// in does the same as has, for a string of which only the containing machines are known.
func (q *machines) in(a *texts, contains []bool) bool {
	if listed := len(a.list) > 0 && contains[q.words[a]]; listed == a.but {
		return false
	}
	for _, l := range a.pats {
		if contains[q.patterns[l.pat]] == l.not {
			return false
		}
	}
	return !slices.ContainsFunc(a.outside, func(o *texts) bool { return q.in(o, contains) })
}

// sample returns a string that the expression probably matches, ignoring assertions. Its result
// must be checked.
func sample(re *syntax.Regexp) (string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune), true
	case syntax.OpCharClass:
		return sampleClass(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x", true
	case syntax.OpCapture, syntax.OpPlus, syntax.OpAlternate:
		return sample(re.Sub[0])
	case syntax.OpRepeat:
		s, ok := sample(re.Sub[0])
		return strings.Repeat(s, re.Min), ok || re.Min == 0
	case syntax.OpConcat:
		all := ""
		for _, sub := range re.Sub {
			s, ok := sample(sub)
			if !ok {
				return "", false
			}
			all += s
		}

		return all, true
	}

	return "", true // expressions that may match nothing, and assertions
}

// sampleClass returns a character of a class, preferably a letter or digit. It returns false if
// the class is empty.
func sampleClass(set []rune) (string, bool) {
	for _, liked := range "x0X_- ." {
		for i := 0; i < len(set); i += 2 {
			if set[i] <= liked && liked <= set[i+1] {
				return string(liked), true
			}
		}
	}

	return string(set[:min(1, len(set))]), len(set) > 0
}
