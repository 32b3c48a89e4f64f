package condition

import (
	"slices"

	"github.com/assent-dev/assent/value"
)

// Pasts returns the tests of past calls that a document of an analyzer has, by their keys, and whether
// each holds. given is false if the document has none, so that the past calls are not known.
func Pasts(doc value.Value) (holds map[string]bool, given bool) {
	v, given := doc.Get(pastInput)
	if !given {
		return nil, false
	}
	holds = map[string]bool{}
	for _, m := range v.Members {
		holds[m.Key] = m.Value.Kind == value.Bool && m.Value.Bool
	}
	return holds, true
}

// impossiblePasts returns the documents that no past calls have. Not all of them are known: for the
// others, no past calls are found.
func (q *question) impossiblePasts() []box {
	var out []box
	truths := [...]atoms{False: atomFalse, Unknown: atomAbsent, True: atomTrue}
	var at []int
	for i, place := range q.places {
		if place[0] == pastInput {
			at = append(at, i)
			out = append(out, box{{i, everything().without(atomAbsent | atomTrue | atomFalse)}})
		}
	}
	for _, i := range at {
		for j, place := range q.places {
			if place[0] == timeInput { // without a moment nothing is known of the past
				out = append(out, box{{min(i, j), only(pick(i < j, atomTrue|atomFalse, atomAbsent))},
					{max(i, j), only(pick(i < j, atomAbsent, atomTrue|atomFalse))}})
			}
		}
		if h := q.pasts[i]; h != nil && h.Measure != Existing {
			passes := h.passing(h.points())
			if !slices.Contains(passes, true) {
				out = append(out, box{{i, only(atomTrue)}})
			}
			if !slices.Contains(passes, false) {
				out = append(out, box{{i, only(atomFalse)}})
			}
		}
		for _, j := range at {
			if i >= j || q.pasts[i] == nil || q.pasts[j] == nil {
				continue
			}
			for a, first := range truths {
				for b, second := range truths {
					if excluded(q.pasts[i], q.pasts[j], Truth(a), Truth(b)) || excluded(q.pasts[j], q.pasts[i], Truth(b), Truth(a)) {
						out = append(out, box{{i, only(first)}, {j, only(second)}})
					}
				}
			}
		}
	}
	return out
}

func pick(first bool, a, b atoms) atoms {
	if first {
		return a
	}
	return b
}

// excluded reports whether it is certain that no past calls give two tests these truths. The truths
// are those of the documents: for tests of existence, whether there is a call.
func excluded(a, b *History, x, y Truth) bool {
	if a.Context != b.Context {
		return false
	}
	if a.canon == b.canon && a.Measure != Existing {
		points := append(a.points(), b.points()...)
		of, other := a.passing(points), b.passing(points)
		inside, apart, all := true, true, true
		for i := range of {
			inside = inside && (!of[i] || other[i])
			apart = apart && !(of[i] && other[i])
			all = all && (of[i] || other[i])
		}
		return inside && x > y || apart && (x == True && y >= Unknown || y == True && x >= Unknown) ||
			all && (x == False && y <= Unknown || y == False && x <= Unknown)
	}
	if !a.narrower(b) {
		return false
	}
	// What a selects, b selects too. So b is at least as true if more calls make it so.
	return x == True && y == False || x == Unknown && y == False && slices.Equal(a.By, b.By)
}

// narrower reports whether a selects only calls that b selects too, and b is true of more calls if a is
// true of them: both count, or look for a call.
func (a *History) narrower(b *History) bool {
	upward := func(h *History) bool {
		return h.Measure == Existing || (h.Measure == Count || h.Measure == Distinct) &&
			!slices.ContainsFunc(h.Bounds, func(t Test) bool { return t.Op != Gt && t.Op != Gte })
	}
	if a.Measure != b.Measure || a.Path != b.Path || a.State != b.State || !upward(a) || !upward(b) {
		return false
	}
	points := append(a.points(), b.points()...)
	of, other := a.passing(points), b.passing(points)
	for i := range of {
		if of[i] && !other[i] && a.Measure != Existing {
			return false
		}
	}
	sameWindow := a.Since == b.Since && a.Zone == b.Zone && a.Within <= b.Within
	sameCalls := a.selected == b.selected || b.Of != nil && len(b.Of.Kinds)+len(b.Of.Targets)+len(b.Of.Servers)+
		len(b.Of.ServerRefs) == 0
	sameWhere := a.filtered == b.filtered || b.filtered == ""
	fewer := !slices.ContainsFunc(b.By, func(key string) bool { return !slices.Contains(a.By, key) })
	return sameWindow && sameCalls && sameWhere && fewer
}

// points returns numbers between which no bound of the test lies: each bound, and a number on each
// side of it. Counts are not negative.
func (h *History) points() []value.Num {
	out := []value.Num{value.IntNum(0)}
	for i := range h.Bounds {
		out = append(out, h.Bounds[i].Operand.Num)
	}
	return out
}

// passing evaluates the bounds at and around numbers.
func (h *History) passing(points []value.Num) []bool {
	sorted := slices.SortedFunc(slices.Values(points), value.Num.Cmp)
	sorted = slices.CompactFunc(sorted, func(a, b value.Num) bool { return a.Cmp(b) == 0 })
	var out []bool
	// The places are: below the first number, at each number, and after each number. Between two
	// numbers every place has the same order to all bounds.
	for k := range 2*len(sorted) + 1 {
		if h.Measure != Sum && k/2 < len(sorted) && sorted[k/2].Cmp(value.IntNum(0)) <= 0 && k%2 == 0 {
			continue // below zero
		}
		pass := true
		for i := range h.Bounds {
			at, _ := slices.BinarySearchFunc(sorted, h.Bounds[i].Operand.Num, value.Num.Cmp)
			order := k - (2*at + 1)
			switch h.Bounds[i].Op {
			case Gt:
				pass = pass && order > 0
			case Gte:
				pass = pass && order >= 0
			case Lt:
				pass = pass && order < 0
			default:
				pass = pass && order <= 0
			}
		}
		out = append(out, pass)
	}
	return out
}

// pastWords describes the past calls of a domain of historyBox.
func (d domain) pastWords(h *History) string {
	if h == nil {
		return "the past calls"
	}
	yes := *h
	yes.Exists = true
	not := "not (" + yes.String() + ")"
	if h.Measure == Existing {
		no := yes
		no.Exists = false
		not = no.String()
	}
	var out string
	for _, known := range [...]struct {
		atom atoms
		word string
	}{{atomTrue, yes.String()}, {atomFalse, not}, {atomAbsent, "an unknown " + yes.measured()}} {
		if d.atoms&known.atom != 0 {
			if out != "" {
				out += " or "
			}
			out += known.word
		}
	}
	return out
}
