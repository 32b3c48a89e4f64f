package condition

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// counts is a set of whole numbers from 0 on, represented by the sorted numbers at which
// membership changes.
type counts struct {
	first bool // whether 0 is in the set
	cuts  []int
}

func allCounts(yes bool) counts { return counts{first: yes} }

func (c counts) empty() bool { return !c.first && len(c.cuts) == 0 }

func (c counts) full() bool { return c.first && len(c.cuts) == 0 }

func (c counts) not() counts { return counts{!c.first, c.cuts} }

func (c counts) has(n int) bool {
	at, found := slices.BinarySearch(c.cuts, n)
	if found {
		at++
	}
	return c.first == (at%2 == 0)
}

func (c counts) and(d counts) counts {
	both := counts{first: c.first && d.first}
	in := both.first
	cuts := slices.Concat(c.cuts, d.cuts)
	slices.Sort(cuts)
	for _, cut := range slices.Compact(cuts) {
		if now := c.has(cut) && d.has(cut); now != in {
			in = now
			both.cuts = append(both.cuts, cut)
		}
	}
	return both
}

func (c counts) or(d counts) counts { return c.not().and(d.not()).not() }

// from returns the smallest number of the set that is at least n. It returns false if there is
// none.
func (c counts) from(n int) (int, bool) {
	if c.has(n) {
		return n, true
	}
	at, _ := slices.BinarySearch(c.cuts, n+1)
	if at == len(c.cuts) {
		return 0, false
	}
	return c.cuts[at], true
}

// countsOf returns the counts that pass a comparison with a number.
func countsOf(op Op, n value.Num) counts {
	low := countAbove(n, op == Gt || op == Lte) // the first count on the upper side
	upper := counts{first: low <= 0}
	if low > 0 && low < math.MaxInt {
		upper.cuts = []int{low}
	}
	if op == Lt || op == Lte {
		return upper.not()
	}
	return upper
}

// countAbove returns the first count that is greater than a number, or also equal to it.
func countAbove(n value.Num, strictly bool) int {
	r := ratOf(n)
	least := above(r)
	if r.IsInt() && !strictly {
		least.Set(r)
	}
	switch {
	case least.Sign() <= 0:
		return 0
	case !least.Num().IsInt64() || least.Num().Int64() >= math.MaxInt:
		return math.MaxInt // no list is so long
	}
	return int(least.Num().Int64())
}

// words describes the counts of something: "more than 3 characters".
func (c counts) words(one, many string) string {
	var parts []string
	in, low := c.first, 0
	for i := 0; i <= len(c.cuts); i++ {
		high := math.MaxInt
		if i < len(c.cuts) {
			high = c.cuts[i] - 1
		}
		if in {
			parts = append(parts, interval(low, high))
		}
		in, low = !in, high+1
	}

	noun := many
	if text := enumerate(parts, " or "); text == "1" {
		noun = one
	}
	return enumerate(parts, " or ") + " " + noun
}

func interval(low, high int) string {
	switch {
	case low == high:
		return strconv.Itoa(low)
	case high == math.MaxInt:
		return "at least " + strconv.Itoa(low)
	case low == 0:
		return "at most " + strconv.Itoa(high)
	}
	return strings.Join([]string{strconv.Itoa(low), strconv.Itoa(high)}, " to ")
}
