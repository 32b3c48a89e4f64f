package condition

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Gate is a condition with its use, which determines what its keys mean, and its semantics.
// Without a condition it asks about every call.
type Gate struct {
	Use  Use // ToolArgs, SkillArgs, Delegation or Governance
	Sem  Semantics
	When *Expr
	// Certain means that it asks only if the condition is True.
	Certain bool
}

// Calls describes the calls that are compared. Their arguments are objects.
type Calls struct {
	// NoParent means that they have no parent's input, so that matchers that read it are
	// Unknown. Otherwise the parent's input is an object.
	NoParent bool
	// CaseSensitive means that keys of the arguments may differ only in case. Otherwise such
	// arguments are refused, and not among the calls. Keys of the parent's input may never
	// differ only in case.
	CaseSensitive bool
	// NoPast means that there are no past calls. Otherwise their number and content are not known.
	NoPast bool
}

// Comparison answers questions about the gates of several files. A gate asks if its condition
// is True or Unknown, as evaluated by a Program. It must not be used concurrently.
type Comparison struct{ a *Analyzer }

// NewComparison returns a comparison. states limits the states of the automata for one
// question; 0 means 10,000.
func NewComparison(states int) *Comparison {
	return &Comparison{NewAnalyzer(Governance, Semantics{}, states)}
}

// Cell is a set of calls about which the same sets of gates ask.
type Cell struct {
	// Asks has one entry for each set of gates: whether one of them asks.
	Asks []bool
	// Found is Yes if Witness is one of the calls, and Undecided if it is not known whether
	// there are any (WhyTooHard).
	Found Verdict
	// Witness is a document of Governance, see Places and SplitDocument.
	Witness value.Value
	Region  *Region
}

// Reasons why Cells has no answer, and why a cell is Undecided.
const (
	WhyTooLarge = "the conditions are too large to compare: too many arguments, alternatives or names in a path"
	WhyTooHard  = "a pattern needs more states than are looked at, or a number lies where no call can hold one"
)

// Cells partitions calls by the sets of gates that ask about them, and returns the non-empty
// cells. If within is not nil, only calls about which one of its gates asks are considered.
// Cells returns false if the question is too large (WhyTooLarge).
func (c *Comparison) Cells(calls Calls, within []Gate, sets ...[]Gate) ([]Cell, bool) {
	q := c.question()
	p := parting{q: q}
	for _, set := range sets {
		p.lists = append(p.lists, q.asked(calls, set))
	}
	from := []box{nil}
	if within != nil {
		from = q.asked(calls, within)
	}
	p.part(q.readable(calls, from), nil)
	return p.cells, !q.unclear()
}

// Gap returns the calls about which one of the gates of asking asks and none of silent, or nil
// if there are none. It returns false if the question is too large. Asks of the cell is nil.
func (c *Comparison) Gap(calls Calls, asking, silent []Gate) (*Cell, bool) {
	q := c.question()
	from, others := q.asked(calls, asking), q.asked(calls, silent)
	p := parting{q: q}
	var pieces []box
	for _, b := range q.readable(calls, from) {
		pieces = q.carve(b, others, pieces)
	}

	p.part(pieces, nil)
	if q.unclear() || len(p.cells) == 0 {
		return nil, !q.unclear()
	}
	return &p.cells[0], true
}

// question begins a question with a higher limit than lint's questions about single conditions.
func (c *Comparison) question() *question {
	q := c.a.ask()
	q.work = maxCompared
	return q
}

// asked returns the boxes of a set of gates.
func (q *question) asked(calls Calls, set []Gate) []box {
	var list []box
	for i := range set {
		q.reading = reading{
			use:      set[i].Use,
			sem:      set[i].Sem,
			whole:    true,
			noParent: calls.NoParent,
		}
		level := Unknown
		if set[i].Certain {
			level = True
		}
		list = append(list, q.boxes(set[i].When, level)...)
	}

	// The effort grows with the number of gates, otherwise large fleets would be undecided.
	q.effort.steps += stepsPerBox * len(list)
	return absorb(list)
}

// readable returns the readable part of boxes. It must be called when all places are known.
func (q *question) readable(calls Calls, list []box) []box {
	q.excluded = slices.Concat(q.unreadable(calls), q.impossibleTimes(), q.impossiblePasts(calls.NoPast))
	var pieces []box
	for _, b := range list {
		pieces = q.carve(b, q.excluded, pieces)
	}

	return pieces
}

// SplitDocument returns the arguments and the parent's input of a document of Governance. given
// is false if it has no parent's input.
func SplitDocument(doc value.Value) (args, parent value.Value, given bool) {
	parent, given = doc.Get(parentInput)
	args = value.Value{Kind: value.Object}
	for _, m := range doc.Members {
		if m.Key != parentInput && m.Key != timeInput && m.Key != pastInput {
			args.Members = append(args.Members, m)
		}
	}

	return args, parent, given
}

// unreadable returns the calls that are refused before any gate decides, because two keys of
// one object differ only in case.
func (q *question) unreadable(calls Calls) []box {
	var list []box
	for i, p := range q.places {
		for j, o := range q.places[:i] {
			if (p[0] == parentInput || !calls.CaseSensitive) && twins(p, o) {
				list = append(list, box{
					{j, everything().without(atomAbsent)},
					{i, everything().without(atomAbsent)},
				})
			}
		}
	}

	return list
}

// twins reports whether two places have keys of one object that differ only in case.
func twins(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.EqualFold(a[i], b[i])
		}
	}
	return false
}

// parting partitions calls by sets of boxes.
type parting struct {
	q     *question
	lists [][]box
	cells []Cell
}

// part partitions pieces further. asks has the result for the first sets.
func (p *parting) part(pieces []box, asks []bool) {
	if pieces = p.alive(pieces); len(pieces) == 0 || p.q.unclear() {
		return
	}
	if len(asks) == len(p.lists) {
		p.cell(pieces, asks)
		return
	}
	list := p.lists[len(asks)]
	var inside, outside []box
	for _, piece := range pieces {
		for _, o := range list {
			if common := slices.Clone(piece); common.narrowTo(o) {
				inside = append(inside, common)
			}
		}
		outside = p.q.carve(piece, list, outside)
	}

	p.part(absorb(inside), append(slices.Clip(asks), true))
	p.part(absorb(outside), append(slices.Clip(asks), false))
}

// alive removes pieces that contain no call.
func (p *parting) alive(pieces []box) []box {
	if p.q.work -= len(pieces); p.q.work < 0 || len(pieces) > maxBoxes {
		p.q.vague = true
	}
	return slices.DeleteFunc(pieces, func(b box) bool {
		if p.q.vague {
			return false
		}
		found, _ := p.q.witness(b)
		return found == No
	})
}

func (p *parting) cell(pieces []box, asks []bool) {
	c := Cell{Asks: asks, Found: Undecided, Region: &Region{q: p.q, boxes: pieces}}
	for _, b := range pieces {
		if c.Found == Undecided {
			c.Found, c.Witness = p.q.witness(b)
		}
	}
	p.cells = append(p.cells, c)
}

// carve appends the pieces of b that are in none of the others, cut like in subtract.
func (q *question) carve(b box, others, out []box) []box {
	// More pieces than maxBoxes are refused later, so don't cut them.
	if q.work -= 1 + len(others) + len(q.places)/16; q.work < 0 || q.vague || len(out) > maxBoxes {
		q.vague = true
		return out
	}
	var near []box
	for _, o := range others {
		if b.inside(o) {
			return out
		}
		if b.meets(o) {
			near = append(near, o)
		}
	}

	if len(near) == 0 {
		return append(out, b)
	}
	rest := slices.Clone(b)
	for _, s := range near[0] {
		piece, outside := slices.Clone(rest), rest.at(s.place).minus(s.domain)
		if !outside.empty() {
			piece.set(s.place, outside)
			out = q.carve(piece, near[1:], out)
		}
		rest.narrow(s.place, s.domain)
	}

	return out
}

// absorb removes boxes that are inside of another one, unless searching for them would cost
// more than it saves.
func absorb(list []box) []box {
	if len(list) > maxAbsorbed {
		return list
	}
	var kept []box
	for i, b := range list {
		within := func(o box) bool { return b.inside(o) }
		later := func(o box) bool { return b.inside(o) && !o.inside(b) }
		if !slices.ContainsFunc(kept, within) &&
			!slices.ContainsFunc(list[i+1:], later) {
			kept = append(kept, b)
		}
	}

	return kept
}

// Region is a set of calls.
type Region struct {
	q     *question
	boxes []box
}

// Has reports whether a call is in the region. doc is a document of Governance, and one of the
// Calls that were compared.
func (r *Region) Has(doc value.Value) bool {
	return slices.ContainsFunc(r.boxes, func(b box) bool {
		return r.q.contains(b, doc)
	})
}

// has reports whether a domain contains an argument. The zero Value is an absent one.
func (d *domain) has(v value.Value) bool {
	switch v.Kind {
	case value.Number:
		common := d.numbers.and(pointsAt([]value.Num{v.Num}))
		return !common.empty()
	case value.String:
		return d.texts.has(v.Text)
	case value.Bool:
		return d.atoms&[...]atoms{atomFalse, atomTrue}[index(v.Bool)] != 0
	case value.Absent:
		return d.atoms&atomAbsent != 0
	case value.Null:
		return d.atoms&atomNull != 0
	}

	return d.atoms&atomCompound != 0 && (d.compounds == nil || d.compounds.has(v))
}

// simple returns boxes of the region with as few sides as possible.
func (r *Region) simple() []box {
	r.q.work, r.q.effort.steps = maxWork, maxWordSteps
	if len(r.boxes) > maxShown*maxShown {
		return r.boxes
	}
	var out []box
	for _, b := range r.boxes {
		for i := len(b) - 1; i >= 0; i-- {
			wider := slices.Delete(slices.Clone(b), i, i+1)
			if beyond, _ := r.q.difference([]box{wider}, append(r.q.excluded, r.boxes...)); beyond == No {
				b = wider
			}
		}

		out = append(out, b)
	}

	return united(absorb(out))
}

// united joins boxes that differ in only one side, if the two sides have a simple union.
func united(list []box) []box {
	for i := 0; i < len(list); i++ {
		for j := i + 1; j < len(list); j++ {
			if b, ok := list[i].unite(list[j]); ok {
				list = slices.Delete(list, j, j+1)
				list[i] = b
				j = i // boxes that did not fit the old one may fit the new one
			}
		}
	}

	return list
}

// unite returns the union of two boxes. It returns false if that is not a box, or not easily
// found.
func (b box) unite(c box) (box, bool) {
	if len(b) != len(c) {
		return nil, false
	}
	out, differs := slices.Clone(b), -1
	for i := range b {
		same := b[i].place == c[i].place
		if inner, outer := b[i].minus(c[i].domain), c[i].minus(b[i].domain); same && inner.empty() &&
			outer.empty() {
			continue
		}
		d, ok := b[i].or(c[i].domain)
		if !same || !ok || differs >= 0 {
			return nil, false
		}
		differs = i
		out[i].domain = d
	}

	return out, true
}

// or returns the union of two domains. It returns false if their strings have no simple union.
func (d domain) or(e domain) (domain, bool) {
	all := domain{atoms: d.atoms | e.atoms, numbers: d.numbers.not().and(e.numbers.not()).not()}
	switch {
	case d.atoms&atomCompound == 0:
		all.compounds = e.compounds
	case e.atoms&atomCompound == 0:
		all.compounds = d.compounds
	case d.compounds != nil && e.compounds != nil:
		all.compounds = d.compounds.or(e.compounds)
	}
	switch {
	case e.texts.empty(), d.texts.full():
		all.texts = d.texts
	case d.texts.empty(), e.texts.full():
		all.texts = e.texts
	default:
		return domain{}, false
	}

	return all, true
}

// Or returns the union of two regions of the same question.
func (r *Region) Or(s *Region) *Region {
	return &Region{q: r.q, boxes: absorb(slices.Concat(r.boxes, s.boxes))}
}
