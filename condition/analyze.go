package condition

import (
	"encoding/binary"
	"slices"

	"github.com/assent-dev/assent/value"
)

// Verdict answers a question about all possible arguments.
type Verdict uint8

// No and Yes are certain. Undecided means that the question was too
// large: it must be read as the unsafe answer.
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

// Bounds of one question and of what is remembered for the next.
const (
	defaultStates = 10_000
	maxWork       = 20_000    // boxes looked at
	maxCompared   = 1_000_000 // the same, of a Comparison
	maxSteps      = 4_000_000 // of automata, of one question
	stepsPerBox   = 250_000   // more for each box of the gates that are compared
	maxWordSteps  = 1_000_000 // the same, to say in words what a region is
	maxAbsorbed   = 128       // boxes among which repetitions are looked for
	maxPlaces     = 2_000
	maxBoxes      = 1_024 // that dotted keys may split a group into
	maxPathDepth  = 64    // deeper paths are not analysed, as limits may keep them out of arguments
	keepPatterns  = 512
	keepStates    = 4 << 20 // words of automata
)

// Analyzer answers questions about conditions for all possible
// arguments, exactly, or says Undecided. The arguments of the answers
// are objects of the use's document (see Places), which Program
// evaluates as promised. An Analyzer remembers what it learnt of
// patterns, up to a bound; it is not for concurrent use.
type Analyzer struct {
	reading  reading
	states   int
	patterns map[patternKey]*pattern
	bounds   []Bound // of all arguments that are looked at
}

// reading is where a condition stands and how its silent points are
// read.
type reading struct {
	use Use
	sem Semantics
	// whole says that the document is that of Governance, whatever the
	// use.
	whole bool
	// noParent says that there is no parent's input.
	noParent bool
}

// places are those of a key in the document of the reading.
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

// patternKey is what a pattern is made of: its text and the points that
// change what it matches.
type patternKey struct {
	text   string
	anchor Anchor
	trim   Trim
}

// NewAnalyzer makes an analyzer for conditions of one use. states
// bounds the automata that one question may need, 0 means 10,000.
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

// Satisfiable: are there arguments for which the condition is True?
// They are the witness.
func (a *Analyzer) Satisfiable(e *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within(q.boxes(e, True)), nil)
}

// CanBeFalse: are there arguments for which the condition is False, so
// that some call is let through? They are the witness.
func (a *Analyzer) CanBeFalse(e *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within([]box{nil}), q.boxes(e, Unknown))
}

// CanBeUnknown: are there arguments for which the condition is neither
// True nor False? They are the witness.
func (a *Analyzer) CanBeUnknown(e *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within(q.boxes(e, Unknown)), q.boxes(e, True))
}

// TrueWithout: are there arguments for which x is True and y is False?
// They are the witness.
func (a *Analyzer) TrueWithout(x, y *Expr) (Verdict, value.Value) {
	q := a.ask()
	return q.difference(q.within(q.boxes(x, True)), q.boxes(y, Unknown))
}

// Implies: is y at least as true as x for all arguments? The witness of
// No are arguments for which it is less true.
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

// Covers: does y ask whenever x asks, be it True or Unknown? The
// witness of No are arguments that x asks about and y lets through.
// Unlike Implies it does not tell True from Unknown: gates are compared
// with it.
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
		q.bounds.narrow(q.place(b.Place), b.Values.set) // an empty side makes an empty box
	}
	return q
}

// within cuts what is outside of the bounds off boxes, which it may
// change. Bounds are never subtracted, see numbers.whole.
func (q *question) within(list []box) []box {
	if len(q.bounds) == 0 {
		return list
	}
	return spread(list, []box{q.bounds})
}

// patternsOf reads each pattern once. Neither regular expression nor
// automaton is built before it is needed.
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

// question is what one answer needs to know: the places that its
// conditions read, and what it may still spend.
type question struct {
	a       *Analyzer
	reading reading // of the condition at hand
	places  [][]string
	index   map[string]int // of places, by their segments
	tree    *tree          // of places, once they are all known
	bounds  box            // of the arguments that are looked at
	work    int
	effort  effort
	// excluded are arguments that no question is about.
	excluded []box
	vague    bool // some condition could not be turned into boxes
}

// place numbers a place.
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

// boxes are those arguments for which a condition reaches a level: a
// box for a group, or several.
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

// group turns a group into boxes. A matcher with one place narrows all
// of them; one with two places holds when either does, so it splits
// them.
func (q *question) group(g *Group, level Truth) []box {
	list := []box{nil}
	for i := range g.Matchers {
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

// spread intersects every box with every choice. It may change the boxes.
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

// choices are the boxes of one matcher.
func (q *question) choices(places [][]string, m *Matcher, level Truth) []box {
	if len(places) == 0 {
		return []box{nil}
	}
	d := domainOf(newTests(m, q.reading.sem, q.a.patternsOf(q.reading.sem)), level)
	if d.full() {
		return []box{nil}
	}
	if len(places[len(places)-1]) > maxPathDepth {
		q.vague = true
	}
	at := q.place(places[0])
	if len(places) == 1 {
		return []box{{{at, d}}}
	}
	nested, present := q.place(places[1]), d.without(atomAbsent)
	list := []box{{{at, present}}, {{nested, present}}}
	if d.atoms&atomAbsent != 0 {
		neither := box{{at, only(atomAbsent)}}
		neither.set(nested, only(atomAbsent))
		list = append(list, neither)
	}
	return list
}
