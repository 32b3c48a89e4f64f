package condition

import (
	"maps"
	"slices"
	"strings"
	"time"

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

// Histories returns calls of the region that differ in what their past calls are, at most so many. It
// returns none if the region does not depend on past calls.
func (r *Region) Histories(most int) []value.Value {
	var out []value.Value
	if len(r.q.pasts) == 0 {
		return nil
	}
	var vary func(b box, places []int)
	vary = func(b box, places []int) {
		if len(out) == most {
			return
		}
		if len(places) == 0 {
			if found, doc := r.q.witness(b); found == Yes {
				out = append(out, doc)
			}
			return
		}
		for _, one := range [...]atoms{atomTrue, atomFalse, atomAbsent} {
			next := slices.Clone(b)
			if next.narrow(places[0], only(one)) {
				vary(next, places[1:])
			}
		}
	}
	places := slices.Sorted(maps.Keys(r.q.pasts))
	for _, b := range r.boxes {
		vary(b, places)
	}
	return out
}

// certain reports whether the test is never unknown if the past calls are known.
func (h *History) certain() bool {
	return h.plain() && !slices.ContainsFunc(h.By, func(key string) bool { return key != "agent" && key != "target" })
}

// plain reports whether the test is unknown only if the call that is decided lacks a group value.
func (h *History) plain() bool {
	return (h.Measure == Count || h.Measure == Existing) && h.filtered == "" &&
		!slices.ContainsFunc(h.By, func(key string) bool { return strings.HasPrefix(key, "args.") })
}

// least returns the smallest count: this call counts if its own target is selected.
func (h *History) least() value.Num {
	if h.Self == True && h.filtered == "" && h.Included() && h.Measure != Sum {
		return value.IntNum(1)
	}
	return value.IntNum(0)
}

// asCount returns a test of existence as one that counts, so that both can be compared. It returns the
// test itself if it is none, or if it is not certain whether a count includes the call itself.
func (h *History) asCount() *History {
	if h.Measure != Existing {
		return h
	}
	out := *h
	out.Measure, out.Exists = Count, false
	bound := value.IntNum(1)
	switch {
	case !out.Included() || h.Self == False:
	case h.Self == Unknown || h.filtered != "":
		return h
	default:
		bound = value.IntNum(2)
	}
	out.Bounds = []Test{{Op: Gte, Operand: Scalar{Kind: value.Number, Num: bound}}}
	out.canon = strings.Replace(h.canon, string(Existing), string(Count), 1)
	return &out
}

// impossiblePasts returns the documents that no past calls have. Not all of them are known: for the
// others, no past calls are found.
func (q *question) impossiblePasts(none bool) []box {
	var out []box
	truths := [...]atoms{False: atomFalse, Unknown: atomAbsent, True: atomTrue}
	var at []int
	for i, place := range q.places {
		if place[0] == pastInput {
			at = append(at, i)
			out = append(out, box{{i, everything().without(atomAbsent | atomTrue | atomFalse)}})
			if none && q.pasts[i] != nil {
				out = append(out, q.pasts[i].notOfNone(i)...)
			}
		}
	}
	for _, i := range at {
		for j, place := range q.places {
			if place[0] == timeInput { // without a moment nothing is known of the past
				out = append(out, box{{min(i, j), only(pick(i < j, atomTrue|atomFalse, atomAbsent))},
					{max(i, j), only(pick(i < j, atomAbsent, atomTrue|atomFalse))}})
			}
		}
		if h := q.pasts[i]; h != nil && h.certain() {
			for _, j := range at {
				if i != j {
					out = append(out, box{{min(i, j), only(pick(i < j, atomAbsent, atomTrue|atomFalse))},
						{max(i, j), only(pick(i < j, atomTrue|atomFalse, atomAbsent))}})
				}
			}
		}
		if h := q.pasts[i]; h != nil && h.Measure != Existing {
			passes := h.passing(h.points(), h.least())
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
					if excluded(q.pasts[i], q.pasts[j], Truth(a), Truth(b)) ||
						excluded(q.pasts[j], q.pasts[i], Truth(b), Truth(a)) {
						out = append(out, box{{i, only(first)}, {j, only(second)}})
					}
				}
			}
		}
	}
	return out
}

// notOfNone returns the documents in which a test has another result than without past calls.
func (h *History) notOfNone(place int) []box {
	var out []box
	if h.certain() {
		out = append(out, box{{place, only(atomAbsent)}})
	}
	switch {
	case h.Measure == Existing:
		out = append(out, box{{place, only(atomTrue)}})
	case h.plain() && (h.Self != Unknown || !h.Included()):
		count := value.IntNum(0)
		if h.Included() && h.Self == True {
			count = value.IntNum(1)
		}
		other := atomTrue
		if passes(h.Bounds, count) {
			other = atomFalse
		}
		out = append(out, box{{place, only(other)}})
	}
	return out
}

// passes reports whether a number passes all bounds.
func passes(bounds []Test, n value.Num) bool {
	return !slices.ContainsFunc(bounds, func(t Test) bool {
		order := n.Cmp(t.Operand.Num)
		switch t.Op {
		case Gt:
			return order <= 0
		case Gte:
			return order < 0
		case Lt:
			return order >= 0
		}
		return order > 0
	})
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
	// What the call lacks for a, it lacks for b.
	if a.plain() && x == Unknown && y != Unknown &&
		!slices.ContainsFunc(a.By, func(key string) bool { return !slices.Contains(b.By, key) }) {
		return true
	}
	if x, y := a.asCount(), b.asCount(); x.Measure == y.Measure {
		a, b = x, y
	}
	if a.canon == b.canon && a.Measure != Existing {
		points := append(a.points(), b.points()...)
		of, other := a.passing(points, a.least()), b.passing(points, a.least())
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
	of, other := a.passing(points, value.IntNum(0)), b.passing(points, value.IntNum(0))
	for i := range of {
		if of[i] && !other[i] && a.Measure != Existing {
			return false
		}
	}
	sameCalls := a.selected == b.selected || b.Of != nil && len(b.Of.Kinds)+len(b.Of.Targets)+len(b.Of.Servers)+
		len(b.Of.ServerRefs) == 0
	sameWhere := a.filtered == b.filtered || b.filtered == ""
	fewer := !slices.ContainsFunc(b.By, func(key string) bool { return !slices.Contains(a.By, key) })
	return a.shorter(b) && sameCalls && sameWhere && fewer
}

// shorter reports whether the interval of a is always inside of that of b.
func (a *History) shorter(b *History) bool {
	rank := func(p Period) int { return slices.Index([]Period{Hour, Day, Month}, p) }
	switch {
	case a.Since == "" && b.Since == "":
		return a.Within <= b.Within
	case a.Since == "":
		return false
	case b.Since == "":
		longest := map[Period]time.Duration{
			Hour: time.Hour, Day: 24 * time.Hour, Week: 7 * 24 * time.Hour, Month: 31 * 24 * time.Hour,
		}[a.Since]
		if a.Zone != "UTC" {
			longest += 24 * time.Hour // clocks change by less
		}
		return longest <= b.Within
	}
	inWeek := b.Since == Week && (a.Since == Hour || a.Since == Day)
	return a.Zone == b.Zone && (a.Since == b.Since || inWeek || rank(a.Since) >= 0 && rank(a.Since) <= rank(b.Since))
}

// points returns numbers between which no bound of the test lies: each bound, and a number on each
// side of it. Counts are not negative.
func (h *History) points() []value.Num {
	out := []value.Num{value.IntNum(0), value.IntNum(1)}
	for i := range h.Bounds {
		out = append(out, h.Bounds[i].Operand.Num)
	}
	return out
}

// passing evaluates the bounds at and around numbers.
func (h *History) passing(points []value.Num, least value.Num) []bool {
	sorted := slices.SortedFunc(slices.Values(points), value.Num.Cmp)
	sorted = slices.CompactFunc(sorted, func(a, b value.Num) bool { return a.Cmp(b) == 0 })
	var out []bool
	// The places are: below the first number, at each number, and after each number. Between two
	// numbers every place has the same order to all bounds.
	for k := range 2*len(sorted) + 1 {
		if h.Measure != Sum && k/2 < len(sorted) &&
			(k%2 == 0 && sorted[k/2].Cmp(least) <= 0 || sorted[k/2].Cmp(least) < 0) {
			continue // no count is so small
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
