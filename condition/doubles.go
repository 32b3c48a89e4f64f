package condition

import (
	"math"
	"math/big"
	"slices"

	"github.com/assent-dev/assent/value"
)

// Conditions compare exact decimals. Many tools read doubles, and to them 9999.9999999999999999
// is 10000. A test is Unknown if the two comparisons disagree. This file computes the sets of
// such numbers.

// pointsAt returns the set of the given numbers, which must be sorted.
func pointsAt(nums []value.Num) numbers {
	var set numbers
	for i, n := range nums {
		if i == 0 || n.Cmp(nums[i-1]) != 0 {
			set.cuts = append(set.cuts, cut{n, false}, cut{n, true})
		}
	}
	return set
}

// span is the set of numbers with the same nearest double. An end is nil at the largest
// doubles, because arguments can't have numbers beyond them.
type span struct{ low, high *cut }

// alike returns the span of a double.
func alike(f float64) span {
	return span{boundary(f, -1), boundary(f, 1)}
}

// boundary returns the cut halfway to the next double in a direction. The number halfway rounds
// to the even double.
func boundary(f float64, direction int) *cut {
	next := math.Nextafter(f, math.Inf(direction))
	switch {
	case math.IsInf(next, 0):
		return nil
	case f == 0:
		// Non-zero numbers that round to zero are refused in arguments.
		return &cut{value.IntNum(0), direction > 0}
	case next == 0:
		return &cut{value.IntNum(0), direction < 0}
	}

	sum := new(big.Rat).SetFloat64(f)
	sum.Add(sum, new(big.Rat).SetFloat64(next))
	sum.Quo(sum, big.NewRat(2, 1))
	decimals, _ := sum.FloatPrec()
	half, _ := numOf(sum, decimals) // between two non-zero doubles
	even := math.Float64bits(f)&1 == 0
	return &cut{half, even == (direction > 0)}
}

// from returns the span and every number above.
func (s span) from() numbers {
	if s.low == nil {
		return allNumbers(true)
	}
	return numbers{cuts: []cut{*s.low}}
}

// upTo returns the span and every number below.
func (s span) upTo() numbers {
	if s.high == nil {
		return allNumbers(true)
	}
	return numbers{first: true, cuts: []cut{*s.high}}
}

// roundedTo returns the numbers whose nearest double is one of the given ones, which must be
// sorted.
func roundedTo(floats []float64) numbers {
	var set numbers
	for i, f := range floats {
		if i > 0 && f == floats[i-1] {
			continue
		}
		s := alike(f)
		last := len(set.cuts) - 1
		switch {
		case s.low == nil:
			set.first = true
		case last >= 0 && s.low.cmp(set.cuts[last]) == 0: // the spans of neighbours are adjacent
			set.cuts = slices.Delete(set.cuts, last, last+1)
		default:
			set.cuts = append(set.cuts, *s.low)
		}
		if s.high != nil {
			set.cuts = append(set.cuts, *s.high)
		}
	}

	return set
}

// shown returns the cut for people. A number halfway between two doubles has up to 767 digits,
// so the shorter of the two doubles is shown instead.
func (c *cut) shown() cut {
	f := c.num.Float()
	if c.num.Plain() {
		return *c
	}
	for _, direction := range [...]int{-1, 1} {
		half := boundary(f, direction)
		if half == nil || half.num.Cmp(c.num) != 0 {
			continue
		}
		near, next := shortest(f), shortest(math.Nextafter(f, math.Inf(direction)))
		if len(next.String()) < len(near.String()) {
			return cut{next, direction < 0}
		}
		return cut{near, direction > 0}
	}

	return *c
}

// shortest returns the shortest decimal of a finite double, with an exponent if it is very
// large or small.
func shortest(f float64) value.Num {
	n, _ := value.FloatNum(f)
	n, _ = value.ParseNum(n.Canonical())
	return n
}

// shown returns two neighbouring cuts for people.
func shown(low, high *cut) (cut, cut) {
	a, b := low.shown(), high.shown()
	if a.num.Cmp(b.num) > 0 {
		return *low, *high
	}
	return a, b
}
