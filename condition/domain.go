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
}

func everything() domain { return domain{allAtoms, allNumbers(true), allTexts(true)} }

// only returns the set of the given atoms.
func only(a atoms) domain { return domain{atoms: a} }

// domainOf returns the arguments for which all tests reach a level of truth.
func domainOf(tests []test, level Truth) domain {
	if len(tests) == 0 {
		return everything()
	}
	d := levelSet(&tests[0], level)
	for i := range tests[1:] {
		d = d.and(levelSet(&tests[i+1], level))
	}
	return d
}

// levelSet returns the arguments for which one test reaches a level. For texts and booleans the
// result is True or False, so both levels have the same set.
func levelSet(t *test, level Truth) domain {
	d := domain{
		numbers: allNumbers(t.fixed[value.Number] >= level),
		texts:   allTexts(t.fixed[value.String] >= level),
	}
	if t.numbers != nil {
		d.numbers = t.numbers.set(level)
	}
	if t.texts != nil {
		d.texts = t.texts.set()
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
	return d
}

func (d domain) and(e domain) domain {
	return domain{d.atoms & e.atoms, d.numbers.and(e.numbers), d.texts.and(e.texts)}
}

// minus removes e, kind by kind.
func (d domain) minus(e domain) domain {
	return domain{d.atoms &^ e.atoms, d.numbers.and(e.numbers.not()), d.texts.minus(e.texts)}
}

// without removes atoms.
func (d domain) without(a atoms) domain {
	d.atoms &^= a
	return d
}

// empty reports whether the domain is certainly empty. A domain with patterns may be empty even
// if it returns false.
func (d *domain) empty() bool { return d.atoms == 0 && d.numbers.empty() && d.texts.empty() }

func (d *domain) full() bool { return d.atoms == allAtoms && d.numbers.full() && d.texts.full() }

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
		if d.atoms&easy.atom != 0 {
			return easy.value, Yes
		}
	}

	return d.pickHard(e)
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
