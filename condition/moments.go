package condition

import (
	"slices"
	"time"

	"github.com/assent-dev/assent/value"
)

// timeInput is the first segment of the places that hold time in the documents of an analyzer. Each
// window has a place below it: true if the call's moment is in the window, false if not, and absent
// if the moment is unknown. Like parentInput, no key of an argument is read from it.
const timeInput = "parent.time"

// TimePlace returns the place of a test of the moment in the documents of an analyzer. The value
// there is true if the moment is in the window.
func TimePlace(t *TimeTest) []string { return []string{timeInput, t.Window.key()} }

// Truth evaluates the test at a moment, which is zero if it is not known.
func (t *TimeTest) Truth(at time.Time) Truth { return t.truth(at) }

// timeBox returns the calls for which a test of the moment reaches a level.
func (q *question) timeBox(t *TimeTest, level Truth) box {
	d := only(atomTrue)
	if t.Outside {
		d = only(atomFalse)
	}
	if level == Unknown {
		d.atoms |= atomAbsent
	}
	return box{{q.place([]string{timeInput, t.Window.key()}), d}}
}

// impossibleTimes returns the documents that no moment has: a window with another value, two
// windows of which one is known and the other is not, and two windows that no moment has like that.
// Combinations of three are not excluded; Moment finds no moment for them.
func (q *question) impossibleTimes() []box {
	var out []box
	var at []int
	var windows []*Window
	for i, place := range q.places {
		if place[0] != timeInput {
			continue
		}
		w, _ := windowOf(place[1])
		at, windows = append(at, i), append(windows, w)
		out = append(out, box{{i, everything().without(atomAbsent | atomTrue | atomFalse)}})
	}
	pair := func(i, j int, a, b atoms) {
		out = append(out, box{{at[i], only(a)}, {at[j], only(b)}})
	}
	for j := range windows {
		for _, one := range []bool{true, false} {
			if !reached(windows[j:j+1], []bool{one}) {
				out = append(out, box{{at[j], only(atomOf(one))}})
			}
		}
		for i := range j {
			pair(i, j, atomAbsent, atomTrue|atomFalse)
			pair(i, j, atomTrue|atomFalse, atomAbsent)
			for _, both := range [][]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
				if !reached([]*Window{windows[i], windows[j]}, both) {
					pair(i, j, atomOf(both[0]), atomOf(both[1]))
				}
			}
		}
	}

	return out
}

func atomOf(in bool) atoms { return [...]atoms{atomFalse, atomTrue}[index(in)] }

func reached(windows []*Window, in []bool) bool {
	_, ok := momentOf(windows, in)
	return ok
}

// Moment returns a moment at which the windows of a document are as it says. given is false if the
// document has none, so that the call has no moment. ok is false if no moment was found.
func Moment(doc value.Value) (at time.Time, given, ok bool) {
	v, given := doc.Get(timeInput)
	if !given {
		return time.Time{}, false, true
	}
	var windows []*Window
	var in []bool
	for _, m := range v.Members {
		w, known := windowOf(m.Key)
		if !known || m.Value.Kind != value.Bool {
			return time.Time{}, true, false
		}
		windows, in = append(windows, w), append(in, m.Value.Bool)
	}
	at, ok = momentOf(windows, in)

	return at, true, ok
}

// momentOf looks for a moment that is in some windows and not in others. It tries the beginnings and
// ends of all intervals on the days of more than a year, with every change of clocks, and around
// every date that a window names.
func momentOf(windows []*Window, in []bool) (time.Time, bool) {
	fits := func(at time.Time) bool {
		for i, w := range windows {
			if w.Has(at) != in[i] {
				return false
			}
		}
		return true
	}
	days := []time.Time{}
	around := func(year, month, day, from, to int) {
		for d := from; d <= to; d++ {
			days = append(days, time.Date(year, time.Month(month), day+d, 0, 0, 0, 0, time.UTC))
		}
	}
	around(2026, 1, 5, 0, 6) // a week first, so that examples are of a usual one
	for _, w := range windows {
		for _, r := range slices.Concat(w.Dates, w.NotDates) {
			for _, date := range []int{r.From, r.To} {
				around(date/10_000, date/100%100, date%100, -8, 8)
			}
		}
	}
	around(2026, 1, 12, 0, 372)
	for _, day := range days {
		year, month, date := day.Date()
		for _, w := range windows {
			minutes := []int{0, 12 * 60}
			for _, i := range w.Hours {
				minutes = append(minutes, i.From, i.To)
			}
			for _, minute := range minutes {
				at := time.Date(year, month, date, 0, minute, 0, 0, w.zone)
				for _, try := range []time.Time{at, at.Add(-time.Second)} {
					if fits(try) {
						return try.UTC(), true
					}
				}
			}
		}
	}

	return time.Time{}, false
}
