package condition

import (
	"fmt"
	"slices"
	"strings"
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

	if len(windows) > mostCombined {
		return out
	}
	both := []bool{true, false}
	for k := range windows {
		for j := range k {
			for i := range j {
				three := []*Window{windows[i], windows[j], windows[k]}
				for n := range 8 {
					in := []bool{both[n&1], both[n>>1&1], both[n>>2]}
					if reached(three[:2], in[:2]) && reached(three[1:], in[1:]) && !reached(three, in) {
						b := box{{at[i], only(atomOf(in[0]))}, {at[j], only(atomOf(in[1]))}}
						out = append(out, append(b, side{at[k], only(atomOf(in[2]))}))
					}
				}
			}
		}
	}

	return out
}

// mostCombined is the number of windows up to which combinations of three are looked at: each costs
// some milliseconds.
const mostCombined = 4

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

// momentOf finds a moment that is in some windows and outside of others. The answer for a window
// changes only where an interval or a day begins or ends, and where clocks change. So momentOf tries
// these moments on the days of one week, around each date that a window names, and after each kind of
// change of clocks.
func momentOf(windows []*Window, in []bool) (time.Time, bool) {
	s := momentSearch{
		windows: windows,
		in:      in,
		tried:   map[time.Time]bool{},
		changes: map[string]bool{},
	}
	last := 2040 // from then on, the clocks of all zones follow rules
	if s.week(2026, 1, 5, 0, 6) {
		return s.found.UTC(), true
	}
	for _, w := range windows {
		for _, r := range slices.Concat(w.Dates, w.NotDates) {
			for _, date := range []int{r.From, r.To} {
				year, month, day := date/10_000, date/100%100, date%100
				if s.week(year, month, day, -8, 8) {
					return s.found.UTC(), true
				}
				last = max(last, year+1)
			}
		}
	}
	if s.clocks(2026, last) || s.clocks(1970, 2026) || s.clocks(1800, 1970) || s.week(1800, 1, 1, 0, 8) {
		return s.found.UTC(), true
	}

	return time.Time{}, false
}

// momentSearch is a search for a moment that is in some windows and not in others.
type momentSearch struct {
	windows []*Window
	in      []bool
	tried   map[time.Time]bool // the days
	changes map[string]bool    // the changes of clocks, see change
	found   time.Time
}

// clocks tries the days after the changes of clocks in some years.
func (s *momentSearch) clocks(from, to int) bool {
	for i, w := range s.windows {
		if slices.ContainsFunc(s.windows[:i], func(o *Window) bool { return o.Zone == w.Zone }) {
			continue
		}
		at := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
		for at.Year() <= to {
			_, end := at.In(w.zone).ZoneBounds()
			if end.IsZero() {
				break
			}
			if end.Compare(at) <= 0 { // so it is in the last hours of leap years
				at = at.AddDate(0, 0, 1)
				continue
			}
			at = end
			change := s.change(at)
			if s.changes[change] {
				continue
			}
			s.changes[change] = true
			year, month, day := at.UTC().Date()
			if s.try(at) || s.week(year, int(month), day, -1, 8) {
				return true
			}
		}
	}
	return false
}

// change describes a change of clocks by all that windows depend on: its time and day of the week,
// the offsets of all zones before and after it, and the windows whose dates it is on. The days after
// two changes with the same description are alike, up to the next change or date.
func (s *momentSearch) change(at time.Time) string {
	at = at.UTC()
	var b strings.Builder
	fmt.Fprint(&b, at.Weekday(), at.Hour(), at.Minute(), at.Second())
	for _, w := range s.windows {
		for _, t := range []time.Time{at.Add(-time.Second), at, at.AddDate(0, 0, 1)} {
			local := t.In(w.zone)
			_, offset := local.Zone()
			fmt.Fprint(&b, " ", offset, w.onDate(local))
		}
	}
	return b.String()
}

// week tries the days from one number of days after a date to another.
func (s *momentSearch) week(year, month, day, from, to int) bool {
	for d := from; d <= to; d++ {
		date := time.Date(year, time.Month(month), day+d, 0, 0, 0, 0, time.UTC)
		if !s.tried[date] && s.day(date.Date()) {
			return true
		}
		s.tried[date] = true
	}
	return false
}

// day tries the beginnings and ends of all intervals of a day. A local time of a repeated hour is
// tried at both of its moments.
func (s *momentSearch) day(year int, month time.Month, day int) bool {
	for _, w := range s.windows {
		_, before := time.Date(year, month, day-1, 0, 0, 0, 0, w.zone).Zone()
		_, after := time.Date(year, month, day+2, 0, 0, 0, 0, w.zone).Zone()
		change := time.Duration(after-before) * time.Second
		minutes := []int{0, 12 * 60}
		for _, i := range w.Hours {
			minutes = append(minutes, i.From, i.To)
		}
		for _, minute := range minutes {
			at := time.Date(year, month, day, 0, minute, 0, 0, w.zone)
			if s.try(at) || change != 0 && (s.try(at.Add(change)) || s.try(at.Add(-change))) {
				return true
			}
		}
	}
	return false
}

// try tries a moment and the second before it.
func (s *momentSearch) try(at time.Time) bool {
	for _, at := range []time.Time{at, at.Add(-time.Second)} {
		if s.fits(at) {
			s.found = at
			return true
		}
	}
	return false
}

func (s *momentSearch) fits(at time.Time) bool {
	for i, w := range s.windows {
		if w.Has(at) != s.in[i] {
			return false
		}
	}
	return true
}
