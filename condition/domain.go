package condition

import "github.com/assent-dev/assent/value"

// atoms is a set of kinds of arguments that have only one value. Objects and arrays are one
// atom, because tests don't distinguish them.
type atoms uint8

const (
	atomAbsent atoms = 1 << iota
	atomNull
	atomFalse
	atomTrue
	atomCompound
	allAtoms = atomCompound<<1 - 1
)

// domain is a set of arguments at one place, including Absent.
type domain struct {
	atoms   atoms
	numbers numbers
	texts   texts
	// compounds restricts atomCompound to some objects and arrays. It is nil if there is no
	// restriction, or no atomCompound.
	compounds *compounds
}

func everything() domain {
	return domain{atoms: allAtoms, numbers: allNumbers(true), texts: allTexts(true)}
}

// only returns the set of the given atoms.
func only(a atoms) domain { return domain{atoms: a} }

// domainOf returns the arguments for which all tests reach a level of truth.
func (q *question) domainOf(tests []test, level Truth) domain {
	if len(tests) == 0 {
		return everything()
	}
	d := q.levelSet(&tests[0], level)
	for i := range tests[1:] {
		d = d.and(q.levelSet(&tests[i+1], level))
	}
	return d
}

// levelSet returns the arguments for which one test reaches a level. For booleans the result is
// True or False, so both levels have the same set. Numbers that are compared by
// currency are not restricted; see byCurrency.
func (q *question) levelSet(t *test, level Truth) domain {
	d := domain{
		numbers: allNumbers(t.fixed[value.Number] >= level),
		texts:   allTexts(t.fixed[value.String] >= level),
	}
	if t.numbers != nil {
		d.numbers = t.numbers.set(level)
	}
	if t.texts != nil {
		d.texts = t.texts.set(level)
	}
	if t.money != nil {
		d.numbers = allNumbers(true)
	}
	reached := [...]struct {
		atom  atoms
		truth Truth
	}{
		{atomAbsent, t.fixed[value.Absent]},
		{atomNull, t.fixed[value.Null]},
		{atomFalse, t.bools[index(false)]},
		{atomTrue, t.bools[index(true)]},
		{atomCompound, t.fixed[value.Object]},
	}
	for _, r := range reached {
		if r.truth >= level {
			d.atoms |= r.atom
		}
	}
	if t.compounds != nil {
		return d.onlyCompounds(t.compounds.set(level, q))
	}
	return d
}

// onlyCompounds returns the domain with a set of arrays and objects instead of its own.
func (d domain) onlyCompounds(c *compounds) domain {
	d.atoms &^= atomCompound
	d.compounds = nil
	if !c.empty() {
		d.atoms |= atomCompound
		d.compounds = c
	}
	return d
}

func (d domain) and(e domain) domain {
	f := domain{atoms: d.atoms & e.atoms, numbers: d.numbers.and(e.numbers), texts: d.texts.and(e.texts)}
	switch {
	case f.atoms&atomCompound == 0:
	case d.compounds == nil:
		f.compounds = e.compounds
	case e.compounds == nil:
		f.compounds = d.compounds
	default:
		return f.onlyCompounds(d.compounds.and(e.compounds))
	}
	return f
}

// minus removes e, kind by kind.
func (d domain) minus(e domain) domain {
	f := domain{atoms: d.atoms &^ e.atoms, numbers: d.numbers.and(e.numbers.not()), texts: d.texts.minus(e.texts)}
	switch {
	case d.atoms&atomCompound == 0:
	case e.atoms&atomCompound == 0:
		f.compounds = d.compounds
	case e.compounds != nil:
		left := e.compounds.not()
		if d.compounds != nil {
			left = d.compounds.and(left)
		}
		return f.onlyCompounds(left)
	}
	return f
}

// without removes atoms.
func (d domain) without(a atoms) domain {
	if d.atoms &^= a; d.atoms&atomCompound == 0 {
		d.compounds = nil
	}
	return d
}

// empty reports whether the domain is certainly empty. A domain with patterns may be empty even
// if it returns false.
func (d *domain) empty() bool { return d.atoms == 0 && d.numbers.empty() && d.texts.empty() }

func (d *domain) full() bool {
	return d.atoms == allAtoms && d.compounds == nil && d.numbers.full() && d.texts.full()
}

// pick returns an argument of the domain. It prefers a value that is typical for the tests,
// then an absent one.
func (d *domain) pick(e *effort) (value.Value, Verdict) {
	if d.full() {
		return value.Value{}, Yes
	}
	if !d.texts.full() {
		if s, ok := d.texts.guess(); ok {
			return value.Value{Kind: value.String, Text: s}, Yes
		}
	}
	if n, ok := d.numbers.pick(); ok && !d.numbers.full() {
		return value.Value{Kind: value.Number, Num: n}, Yes
	}
	for _, easy := range [...]struct {
		atom  atoms
		value value.Value
	}{
		{atomAbsent, value.Value{}},
		{atomTrue, value.Value{Kind: value.Bool, Bool: true}},
		{atomFalse, value.Value{Kind: value.Bool}},
		{atomNull, value.Value{Kind: value.Null}},
		{atomCompound, value.Value{Kind: value.Object}},
	} {
		if d.atoms&easy.atom != 0 && (easy.atom != atomCompound || d.compounds == nil) {
			return easy.value, Yes
		}
	}
	if d.compounds == nil {
		return d.pickHard(e)
	}
	v, found := d.compounds.pick(e)
	if found == Yes {
		return v, Yes
	}
	other, verdict := d.pickHard(e)
	if verdict == No {
		verdict = found
	}
	return other, verdict
}

// pickHard picks numbers and strings for which no guess succeeded.
func (d *domain) pickHard(e *effort) (value.Value, Verdict) {
	if n, ok := d.numbers.pick(); ok {
		return value.Value{Kind: value.Number, Num: n}, Yes
	}
	s, verdict := d.texts.pick(e)
	if verdict == No && !d.numbers.empty() {
		verdict = Undecided // numbers that no double is near
	}
	return value.Value{Kind: value.String, Text: s}, verdict
}
