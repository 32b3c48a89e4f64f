package condition

import (
	"math/big"
	"strconv"

	"github.com/assent-dev/assent/value"
)

// numbers is a set of numbers, represented by the cuts on the number line at which membership
// changes.
type numbers struct {
	first bool // whether it extends to minus infinity
	cuts  []cut
	// whole excludes numbers with a fraction. Then each cut is next to an integer of the set.
	// The complement of such a set can't be represented.
	whole bool
}

// cut is a position just below or just above a number.
type cut struct {
	num   value.Num
	above bool
}

func (a cut) cmp(b cut) int {
	if c := a.num.Cmp(b.num); c != 0 {
		return c
	}
	return index(a.above) - index(b.above)
}

func allNumbers(yes bool) numbers { return numbers{first: yes} }

func (a numbers) not() numbers { return numbers{first: !a.first, cuts: a.cuts} }

func (a numbers) empty() bool { return !a.first && len(a.cuts) == 0 }

func (a numbers) full() bool { return a.first && len(a.cuts) == 0 && !a.whole }

// or returns the union. If only one of the sets has fractions, the result may be larger.
func (a numbers) or(b numbers) numbers {
	switch {
	case a.empty():
		return b
	case b.empty():
		return a
	}

	// If only one set has fractions, the other's integers can't be kept apart from the
	// fractions next to them.
	result := a.not().and(b.not()).not()
	result.whole = a.whole && b.whole
	return result
}

// tight moves each cut to the next integer inside, and removes ranges without integers.
func (a numbers) tight() numbers {
	result := numbers{first: a.first, whole: true}
	in := a.first
	for _, c := range a.cuts {
		next := above(ratOf(c.num)) // the lowest integer that is greater
		one, steps := big.NewRat(1, 1), 0
		switch {
		case !in && c.num.IsInt() && !c.above:
			steps = 1
		case in && c.num.IsInt() && !c.above:
			steps = 2
		case in:
			steps = 1
		}

		for range steps {
			next.Sub(next, one)
		}
		n, _ := numOf(next, 0) // at most one away from a readable number
		moved := cut{n, in}

		last := len(result.cuts) - 1
		if in && last >= 0 && moved.cmp(result.cuts[last]) < 0 {
			result.cuts = result.cuts[:last]
		} else {
			result.cuts = append(result.cuts, moved)
		}

		in = !in
	}

	return result
}

func (a numbers) and(b numbers) numbers {
	inA, inB := a.first, b.first
	result := numbers{first: inA && inB}
	in := result.first
	for i, j := 0, 0; i < len(a.cuts) || j < len(b.cuts); {
		var c cut
		order := 0
		switch {
		case j == len(b.cuts):
			order = -1
		case i == len(a.cuts):
			order = 1
		default:
			order = a.cuts[i].cmp(b.cuts[j])
		}

		if order <= 0 {
			c = a.cuts[i]
			inA = !inA
			i = i + 1
		}
		if order >= 0 {
			c = b.cuts[j]
			inB = !inB
			j = j + 1
		}
		if now := inA && inB; now != in {
			in = now
			result.cuts = append(result.cuts, c)
		}
	}

	if a.whole || b.whole {
		return result.tight()
	}
	return result
}

// pick returns a number of the set. Arguments can't have numbers that no double is near, so
// false may also mean that the set has only such numbers.
func (a numbers) pick() (value.Num, bool) {
	if a.first && len(a.cuts) == 0 {
		return value.IntNum(0), true
	}
	in := a.first
	for i := 0; i <= len(a.cuts); i++ {
		if in {
			var low, high *cut
			if i > 0 {
				low = &a.cuts[i-1]
			}
			if i < len(a.cuts) {
				high = &a.cuts[i]
			}
			if n, ok := inside(low, high); ok {
				return n, true
			}
		}

		in = !in
	}

	return value.Num{}, false
}

// inside returns a number between two cuts, of which at least one is not nil. It prefers an end
// that may be from a file, then a number with few digits.
func inside(low, high *cut) (value.Num, bool) {
	if low != nil {
		near := low.shown()
		if !near.above && near.num.Plain() && (high == nil || cut{near.num, true}.cmp(*high) <= 0) {
			return near.num, true
		}
	}
	if high != nil {
		near := high.shown()
		if near.above && near.num.Plain() && (low == nil || cut{near.num, false}.cmp(*low) >= 0) {
			return near.num, true
		}
	}

	var n value.Num
	ok := false
	switch {
	case low == nil:
		n, ok = beyond(high.num, -1)
	case high == nil:
		n, ok = beyond(low.num, 1)
	case low.num.Cmp(high.num) != 0:
		n, ok = between(ratOf(low.num), ratOf(high.num))
	}
	switch {
	case ok:
		return n, true
	case low != nil && !low.above:
		return low.num, true
	case high != nil && high.above:
		return high.num, true
	}
	return n, false
}

// beyond returns an integer next to a number, below it if step is -1 and above it if it is 1.
func beyond(n value.Num, step int64) (value.Num, bool) {
	const plenty = 15 // digits that are far from overflow
	if text := n.Canonical(); len(text) <= plenty {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return value.IntNum(i + step), true
		}
	}
	sign, r := big.NewRat(step, 1), ratOf(n)
	return numOf(r.Mul(above(r.Mul(r, sign)), sign), 0)
}

// ratOf converts exactly. The size is limited, because a Num is always near a double.
func ratOf(n value.Num) *big.Rat {
	r, _ := new(big.Rat).SetString(n.Canonical())
	return r
}

// above returns the next integer above r.
func above(r *big.Rat) *big.Rat {
	floor := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean division rounds down, because the denominator is positive
	return new(big.Rat).SetInt(floor.Add(floor, big.NewInt(1)))
}

// numOf converts r, which has at most the given number of decimals, to a number. It returns
// false if no double is near it.
func numOf(r *big.Rat, decimals int) (value.Num, bool) {
	n, err := value.ParseNum(r.FloatString(decimals))
	return n, err == nil
}

// maxDecimals is more than the smallest number of arguments needs.
const maxDecimals = 400

// between returns a number between two different ones, with few decimals if possible: the
// lowest or the highest with that many decimals, otherwise the middle.
func between(low, high *big.Rat) (value.Num, bool) {
	scale, ten := big.NewRat(1, 1), big.NewRat(10, 1)
	for decimals := 0; decimals <= maxDecimals; decimals++ {
		lowest := above(new(big.Rat).Mul(low, scale))
		highest := new(big.Rat).Mul(high, scale)
		highest.Neg(above(highest.Neg(highest)))
		for _, r := range []*big.Rat{lowest.Quo(lowest, scale), highest.Quo(highest, scale)} {
			if r.Cmp(low) > 0 && r.Cmp(high) < 0 {
				if n, ok := numOf(r, decimals); ok {
					return n, true
				}
			}
		}

		scale.Mul(scale, ten)
	}

	middle := low.Add(low, high)
	middle.Quo(middle, big.NewRat(2, 1))
	decimals, _ := middle.FloatPrec()
	return numOf(middle, decimals)
}
