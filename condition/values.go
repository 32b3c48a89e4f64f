package condition

import (
	"slices"

	"github.com/assent-dev/assent/value"
)

// Values is a set of values that an argument may have; it also says whether the argument may be
// missing. The zero value is the empty set. Arrays and objects are not distinguished, because
// tests don't distinguish them.
type Values struct{ set domain }

// AnyValue returns the set of all values, without a missing one.
func AnyValue() Values { return Values{everything().without(atomAbsent)} }

// Missing returns the set that has only a missing value.
func Missing() Values { return Values{only(atomAbsent)} }

// OfKind returns the set of all values of a kind.
func OfKind(k value.Kind) Values {
	switch k {
	case value.Null:
		return Values{only(atomNull)}
	case value.Bool:
		return Values{only(atomFalse | atomTrue)}
	case value.Number:
		return Values{domain{numbers: allNumbers(true)}}
	case value.String:
		return Values{domain{texts: allTexts(true)}}
	case value.Array, value.Object:
		return Values{only(atomCompound)}
	default:
		return Missing()
	}
}

// Integers returns the set of all numbers without a fraction.
func Integers() Values { return Values{domain{numbers: numbers{first: true, whole: true}}} }

// Exactly returns the set of one value. For an array or an object it is the set of all arrays
// and objects.
func Exactly(v value.Value) Values {
	switch v.Kind {
	case value.Bool:
		return Values{only([...]atoms{atomFalse, atomTrue}[index(v.Bool)])}
	case value.Number:
		return AtLeast(v.Num, false).And(AtMost(v.Num, false))
	case value.String:
		return Values{domain{texts: texts{list: []string{v.Text}}}}
	default:
		return OfKind(v.Kind)
	}
}

// AtLeast returns the set of all numbers from n on, without n itself if open is true.
func AtLeast(n value.Num, open bool) Values {
	return Values{domain{numbers: numbers{cuts: []cut{{n, open}}}}}
}

// AtMost returns the set of all numbers up to n, without n itself if open is true.
func AtMost(n value.Num, open bool) Values {
	return Values{domain{numbers: numbers{first: true, cuts: []cut{{n, !open}}}}}
}

// And returns the intersection of two sets.
func (v Values) And(w Values) Values { return Values{v.set.and(w.set)} }

// Or returns the union of two sets.
func (v Values) Or(w Values) Values {
	not := func(t texts) texts { return texts{but: !t.but, list: t.list} } // such sets have no patterns
	// Such sets don't restrict arrays and objects.
	return Values{domain{
		atoms:   v.set.atoms | w.set.atoms,
		numbers: v.set.numbers.or(w.set.numbers),
		texts:   not(not(v.set.texts).and(not(w.set.texts))),
	}}
}

// Empty reports whether the set is empty.
func (v Values) Empty() bool { return v.set.empty() }

// Has reports whether the set has a value of a kind.
func (v Values) Has(k value.Kind) bool { return !v.And(OfKind(k)).Empty() }

// Whole reports whether the numbers of the set have no fractions.
func (v Values) Whole() bool { return v.set.numbers.whole }

// Holds reports whether the set contains the value of an operand.
func (v Values) Holds(s Scalar) bool {
	one := Exactly(value.Value{Kind: s.Kind, Bool: s.Bool, Text: s.Text, Num: s.Num})
	return !one.And(v).Empty() // in this order long lists cost little
}

// Bound restricts the values at a place of the use's document.
type Bound struct {
	Place  []string // see Places
	Values Values
}

// Within returns an analyzer that considers only arguments within bounds. Places without a
// bound are unrestricted. It shares the cache of patterns with a.
func (a *Analyzer) Within(bounds []Bound) *Analyzer {
	b := *a
	b.bounds = bounds
	return &b
}

// Dodged reports whether there are arguments without a key for which the condition is False,
// although some value of the key would make it True or Unknown, and returns them as the
// witness. With the fail-safe semantics there are none.
func (a *Analyzer) Dodged(e *Expr, key string) (Verdict, value.Value) {
	q := a.ask()
	keys, _ := a.reading.places(key)
	asks := q.boxes(e, Unknown)
	var places []int
	for _, segments := range keys {
		q.place(segments)
		for i, place := range q.places { // what is below the key is left out with it
			if len(place) >= len(segments) && slices.Equal(place[:len(segments)], segments) {
				places = append(places, i)
			}
		}
	}
	var without []box
	for _, b := range asks {
		given := spread([]box{slices.Clone(b)}, []box{q.bounds})
		if len(given) == 0 || !q.present(given[0], places) {
			continue
		}
		for _, p := range places {
			given[0].set(p, only(q.bounds.at(p).atoms&atomAbsent))
		}
		without = append(without, given[0])
	}

	return q.difference(without, asks)
}

// present reports whether arguments of the box may have a value at one of the places.
func (q *question) present(b box, places []int) bool {
	return slices.ContainsFunc(places, func(p int) bool {
		d := b.at(p).without(atomAbsent)
		_, found := d.pick(&q.effort)
		return found != No
	})
}
