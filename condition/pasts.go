package condition

import (
	"cmp"
	"maps"
	"math"
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
	atomOf := [...]atoms{False: atomFalse, Unknown: atomAbsent, True: atomTrue}
	known, unknown := only(atomTrue|atomFalse), only(atomAbsent)
	places := slices.Sorted(maps.Keys(q.pasts))
	for _, i := range places {
		h := q.pasts[i]
		out = append(out, box{{i, everything().without(atomAbsent | atomTrue | atomFalse)}})
		if none {
			out = append(out, h.notOfNone(i)...)
		}
		for j, place := range q.places {
			if place[0] == timeInput { // without a moment nothing is known of the past
				out = append(out, both(i, known, j, unknown))
			}
		}
		if h.Measure != Existing {
			results := together(h, h)
			for _, truth := range [...]Truth{True, False} {
				if !results[truth][truth] {
					out = append(out, box{{i, only(atomOf[truth])}})
				}
			}
		}
		for _, j := range places {
			if i == j {
				continue
			}
			if h.certain() {
				out = append(out, both(i, unknown, j, known))
			}
			for x, row := range excluded(h, q.pasts[j]) {
				for y, never := range row {
					if never {
						out = append(out, both(i, only(atomOf[x]), j, only(atomOf[y])))
					}
				}
			}
		}
	}
	return out
}

// both returns a box with two sides.
func both(i int, d domain, j int, e domain) box {
	b := box{{i, d}}
	b.set(j, e)
	return b
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
		other := [...]atoms{False: atomTrue, True: atomFalse}[h.Compare(count.Cmp, count.Cmp)]
		out = append(out, box{{place, only(other)}})
	}
	return out
}

// excluded returns which truths of two tests no past calls give them. The truths are those of the
// documents: for tests of existence, whether there is a call.
func excluded(a, b *History) (never [3][3]bool) {
	if a.Context != b.Context && a.Context != "" && b.Context != "" {
		return never
	}
	lacks := a.plain() && !slices.ContainsFunc(a.By, func(key string) bool { return !slices.Contains(b.By, key) })
	if x, y := a.asCount(), b.asCount(); a.Measure != b.Measure && x.Measure == y.Measure {
		a, b = x, y
	}
	same, narrower := a.canon == b.canon && a.Measure != Existing, a.narrower(b)
	results := together(a, b)
	for x := range results {
		for y, possible := range results[x] {
			x, y := Truth(x), Truth(y)
			switch {
			case lacks && x == Unknown && y != Unknown: // what the call lacks for a, it lacks for b
				never[x][y] = true
			case same:
				never[x][y] = !possible
			case narrower && y == False: // more calls make b at least as true
				never[x][y] = x == True || x == Unknown && slices.Equal(a.By, b.By)
			}
		}
	}
	return never
}

// together returns which truths two tests can have that differ only in their bounds.
func together(a, b *History) (results [3][3]bool) {
	results[Unknown][Unknown] = true // if a value is missing
	spots := a.spots(b)
	for i, low := range spots {
		for j, high := range spots[i:] {
			if j == 0 || !a.plain() { // if the test is plain, no past call is in doubt
				results[a.Compare(low.order, high.order)][b.Compare(low.order, high.order)] = true
			}
		}
	}
	return results
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
	for _, s := range a.spots(b) {
		if a.Compare(s.order, s.order) > b.Compare(s.order, s.order) {
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

// spot is a number (side 0), or what lies right below (-1) or above (1) it.
type spot struct {
	number value.Num
	side   int
}

func (s spot) order(bound value.Num) int { return cmp.Or(s.number.Cmp(bound), s.side) }

// spots returns numbers, in order, that show how all numbers of both tests compare with their bounds.
func (a *History) spots(b *History) []spot {
	out := []spot{{a.least(), 0}}
	for _, t := range slices.Concat(a.Bounds, b.Bounds) {
		bound := t.Operand.Num
		if a.Measure == Sum {
			out = append(out, spot{bound, -1}, spot{bound, 0}, spot{bound, 1})
			continue
		}
		// Counts are integers, and there are fewer past calls than 1e15.
		whole := int64(math.Floor(min(max(bound.Float(), 0), 1e15)))
		for n := whole - 1; n <= whole+1; n++ {
			if number := value.IntNum(n); number.Cmp(a.least()) > 0 {
				out = append(out, spot{number, 0})
			}
		}
	}
	slices.SortFunc(out, func(s, t spot) int { return cmp.Or(s.number.Cmp(t.number), s.side-t.side) })
	return out
}

// pastWords describes the past calls of a domain of historyBox.
func (d domain) pastWords(h *History) string {
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
