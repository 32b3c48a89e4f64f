package condition

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Verdict is the answer to a question about all possible arguments.
type Verdict uint8

// No and Yes are certain. Undecided means that the question was too large; treat it as the
// unsafe answer.
const (
	No Verdict = iota
	Yes
	Undecided
)

// String returns "no", "yes" or "undecided".
func (v Verdict) String() string {
	switch v {
	case No:
		return "no"
	case Yes:
		return "yes"
	}

	return "undecided"
}

func (v Verdict) not() Verdict {
	switch v {
	case No:
		return Yes
	case Yes:
		return No
	}

	return Undecided
}

// Limits of one question, and of what is cached for the next.
const (
	defaultStates = 10_000
	maxWork       = 20_000    // boxes examined
	maxCompared   = 1_000_000 // boxes examined in a Comparison
	maxSteps      = 4_000_000 // steps of automata in one question
	stepsPerBox   = 250_000   // additional steps for each box of the compared gates
	maxWordSteps  = 1_000_000 // steps to describe a region
	maxAbsorbed   = 128       // boxes that are searched for redundant ones
	maxPlaces     = 2_000
	maxBoxes      = 1_024 // boxes into which dotted keys may split a group
	maxPathDepth  = 64    // deeper paths are not analyzed, because limits may exclude them from arguments
	keepPatterns  = 512
	keepStates    = 4 << 20 // words of automata
)

// Analyzer answers questions about conditions for all possible arguments, exactly or with
// Undecided. Witnesses are objects of the use's document (see Places); evaluated by a Program,
// they have the promised result. An Analyzer caches compiled patterns, up to a limit. It must
// not be used concurrently.
type Analyzer struct {
	reading  reading
	states   int
	patterns map[patternKey]*pattern
	bounds   []Bound // of the arguments that are considered
}

// reading is the use of a condition, and the choices where the standard is silent.
type reading struct {
	use Use
	sem Semantics
	// whole means that the document is that of Governance for any use.
	whole bool
	// noParent means that there is no parent's input.
	noParent bool
}

// places returns the places of a key in the document of the reading.
func (r reading) places(key string) (places [][]string, fault string) {
	places, fault = Places(r.use, key)
	if r.whole && r.use == Delegation {
		for i := range places {
			places[i] = append([]string{parentInput}, places[i]...)
		}
	}
	if r.noParent && len(places) > 0 && places[0][0] == parentInput {
		return nil, WhyNoParentInput
	}
	return places, fault
}

// patternKey identifies a pattern: its text, and the settings that change what it matches.
type patternKey struct {
	text   string
	anchor Anchor
	trim   Trim
}

// NewAnalyzer returns an analyzer for conditions of one use. states limits the states of the
// automata for one question; 0 means 10,000.
func NewAnalyzer(use Use, sem Semantics, states int) *Analyzer {
	if states <= 0 {
		states = defaultStates
	}
	return &Analyzer{
		reading:  reading{use: use, sem: sem},
		states:   states,
		patterns: map[patternKey]*pattern{},
	}
}

// Satisfiable reports whether there are arguments for which the condition is True, and returns
// them as the witness.
func (a *Analyzer) Satisfiable(e *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within(q.boxes(e, True)), nil)
}

// CanBeFalse reports whether there are arguments for which the condition is False, so that some
// call does not need approval, and returns them as the witness.
func (a *Analyzer) CanBeFalse(e *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within([]box{nil}), q.boxes(e, Unknown))
}

// CanBeUnknown reports whether there are arguments for which the condition is neither True nor
// False, and returns them as the witness.
func (a *Analyzer) CanBeUnknown(e *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within(q.boxes(e, Unknown)), q.boxes(e, True))
}

// TrueWithout reports whether there are arguments for which x is True and y is False, and
// returns them as the witness.
func (a *Analyzer) TrueWithout(x, y *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within(q.boxes(x, True)), q.boxes(y, Unknown))
}

// Implies reports whether y is at least as true as x for all arguments. With No it returns
// arguments for which y is less true as the witness.
func (a *Analyzer) Implies(x, y *Expr) (Verdict, value.Value) {
	result := Yes
	for _, level := range [...]Truth{True, Unknown} {
		q := a.ask()
		switch found, witness := q.difference(q.within(q.boxes(x, level)), q.boxes(y, level)); found {
		case Yes:
			return No, witness
		case Undecided:
			result = Undecided
		}
	}

	return result, value.Value{}
}

// Covers reports whether y asks whenever x asks, that is, is True or Unknown. With No it
// returns arguments for which x asks and y does not. Unlike Implies it does not distinguish
// True from Unknown; it is meant for comparing gates.
func (a *Analyzer) Covers(x, y *Expr) (Verdict, value.Value) {
	q := a.ask()
	gap, witness := q.difference(q.within(q.boxes(x, Unknown)), q.boxes(y, Unknown))
	return gap.not(), witness
}

// ask begins a question.
func (a *Analyzer) ask() *question {
	size := 0
	for _, p := range a.patterns {
		if p.machine != nil {
			size += p.machine.Size()
		}
	}
	if len(a.patterns) > keepPatterns || size > keepStates {
		clear(a.patterns)
	}
	q := &question{
		a:       a,
		reading: a.reading,
		index:   map[string]int{},
		work:    maxWork,
		effort:  effort{states: a.states, steps: maxSteps},
	}
	for _, b := range a.bounds {
		q.bounds.narrow(q.place(b.Place), b.Values.set) // an empty side makes the box empty
	}
	return q
}

// within removes what is outside of the bounds from boxes, which it may modify. Bounds are
// never subtracted, see numbers.whole.
func (q *question) within(list []box) []box {
	if len(q.bounds) == 0 {
		return list
	}
	return spread(list, []box{q.bounds})
}

// patternsOf parses each pattern once. Regular expressions and automata are built only if they
// are needed.
func (a *Analyzer) patternsOf(sem Semantics) patterns {
	return func(text string) (*pattern, error) {
		key := patternKey{text, sem.Anchor, sem.Trim}
		if p, ok := a.patterns[key]; ok {
			return p, nil
		}
		p, err := newPattern(text, sem)
		if err == nil {
			a.patterns[key] = p
		}
		return p, err
	}
}

// question is the state of one answer: the places that its conditions read, and the remaining
// effort.
type question struct {
	a       *Analyzer
	reading reading // of the current condition
	places  [][]string
	index   map[string]int // of places, by their segments
	tree    *tree          // of places, once all are known
	bounds  box            // of the arguments that are considered
	work    int
	effort  effort
	// excluded are arguments that are not part of any question.
	excluded []box
	vague    bool             // some condition could not be converted to boxes
	pasts    map[int]*History // tests of the past calls, by their places
	// elements is the question about the elements of lists. Its first place is the element.
	elements *question
}

// place returns the number of a place.
func (q *question) place(segments []string) int {
	var key []byte
	for _, s := range segments {
		key = append(binary.AppendUvarint(key, uint64(len(s))), s...)
	}
	i, ok := q.index[string(key)]
	if !ok {
		i = len(q.places)
		q.index[string(key)] = i
		q.places = append(q.places, segments)
		q.vague = q.vague || i == maxPlaces
	}

	return i
}

// boxes returns the arguments for which a condition reaches a level, with one or more boxes per
// group.
func (q *question) boxes(e *Expr, level Truth) []box {
	if e == nil || len(e.Groups) == 0 {
		return []box{nil}
	}
	var list []box
	for i := range e.Groups {
		list = append(list, q.group(&e.Groups[i], level)...)
	}
	return list
}

// group converts a group to boxes. A matcher with one place narrows all of them. One with two
// places is satisfied if either is, so it splits them.
func (q *question) group(g *Group, level Truth) []box {
	list := []box{nil}
	for i := range g.Matchers {
		if t := g.Matchers[i].Time; t != nil {
			list = spread(list, []box{q.timeBox(t, level)})
			continue
		}
		if h := g.Matchers[i].History; h != nil {
			list = spread(list, []box{q.historyBox(h, level)})
			continue
		}
		if g.Matchers[i].Takes {
			q.vague = q.vague || strings.HasPrefix(g.Matchers[i].Key, "parent.") // as of the caller's input
			given := everything().without(atomAbsent | atomNull)
			list = spread(list, []box{{{q.place([]string{g.Matchers[i].Key}), given}}})
			continue
		}
		places, fault := q.reading.places(g.Matchers[i].Key)
		if fault != "" && level == True {
			return nil // never more than Unknown
		}
		if list = spread(list, q.choices(places, &g.Matchers[i], level)); len(list) > maxBoxes {
			q.vague = true
			return nil
		}
	}

	return list
}

// spread intersects every box with every choice. It may modify the boxes.
func spread(list, choices []box) []box {
	split := make([]box, 0, len(list)*len(choices))
	for i, choice := range choices {
		for _, b := range list {
			if i < len(choices)-1 {
				b = slices.Clone(b)
			}
			if b.narrowTo(choice) {
				split = append(split, b)
			}
		}
	}

	return split
}

// choices returns the boxes of one matcher.
func (q *question) choices(places [][]string, m *Matcher, level Truth) []box {
	if len(places) == 0 {
		return []box{nil}
	}
	tests := newTests(m, q.reading.sem, q.a.patternsOf(q.reading.sem))
	isMoney := func(t test) bool { return t.money != nil }
	if money := slices.IndexFunc(tests, isMoney); money >= 0 {
		// A file can't have a second one. Both would have to be about the same of two places.
		q.vague = q.vague || slices.ContainsFunc(tests[money+1:], isMoney)
		return q.byCurrency(places, tests, tests[money].money, level)
	}
	return q.at(places, q.domainOf(tests, level))
}

// at returns the boxes of the calls in which an argument with one or two places is in a domain.
func (q *question) at(places [][]string, d domain) []box {
	if d.full() {
		return []box{nil}
	}
	if len(places[len(places)-1]) > maxPathDepth {
		q.vague = true
	}
	first := q.place(places[0])
	if len(places) == 1 {
		return []box{{{first, d}}}
	}
	nested, present := q.place(places[1]), d.without(atomAbsent)
	list := []box{{{first, present}}, {{nested, present}}}
	if d.atoms&atomAbsent != 0 {
		neither := box{{first, only(atomAbsent)}}
		neither.set(nested, only(atomAbsent))
		list = append(list, neither)
	}
	return list
}
