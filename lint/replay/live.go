package replay

import (
	"time"

	"github.com/assent-dev/assent/resolve"
)

// Traffic is the form of calls that are compared as they are made. No
// input is read in it.
const Traffic Form = "live"

// Bounds of what Live keeps: callers choose names and arguments.
const (
	liveTargets = 1000    // what is beyond is counted together
	liveList    = 100     // calls that are listed
	liveBytes   = 1 << 20 // of them together
)

// Live compares two plans by calls as they are made, in bounded memory.
// Weigh may run beside everything else; the others one at a time.
type Live struct {
	old, new *resolve.Plan
	tally    *tally
	kept     kept
	heard    int
}

// NewLive begins a comparison. name is what lists call it.
func NewLive(name string, live, candidate *resolve.Plan) *Live {
	l := &Live{old: live, new: candidate}
	l.tally = newTally(Options{New: candidate, Old: live, List: liveList}, &l.kept)
	l.tally.mostTargets = liveTargets
	l.tally.begin(name, Traffic)
	return l
}

// Weighed is what both plans make of a call.
type Weighed struct{ entry entry }

// Old is the outcome under the live plan.
func (w *Weighed) Old() resolve.Outcome { return w.entry.old }

// New is the outcome under the candidate.
func (w *Weighed) New() resolve.Outcome { return w.entry.new }

// Weigh decides a call on both sides. Nobody changes the call any more.
func (l *Live) Weigh(c *resolve.Call, when time.Time) Weighed {
	var b batch
	w := Weighed{entry{call: c, when: when, known: true}}
	w.entry.old, w.entry.spokeOld = spoken(&b, l.old, c)
	w.entry.new, w.entry.spokeNew = spoken(&b, l.new, c)
	return w
}

// Add counts a call.
func (l *Live) Add(w Weighed) error {
	l.heard++
	w.entry.line = l.heard
	return l.tally.call(&w.entry)
}

// Deny counts a call that a person denied in a request. It was counted
// when it was made.
func (l *Live) Deny(w Weighed, request string) error {
	l.tally.figures.Denials++
	if w.entry.new != resolve.Allow {
		return nil
	}
	l.tally.figures.DenialsUnasked++
	w.entry.line = l.heard
	f := l.tally.found(&w.entry, Denied, l.tally.target(w.entry.call))
	f.Request = request
	return l.tally.list(f)
}

// Report sums up, with the calls that are listed: the first ones, as
// far as there is room.
func (l *Live) Report() (*Report, []Found) {
	r := l.tally.report()
	r.Inputs = append([]Input{}, r.Inputs...)
	r.Listed = len(l.kept.found)
	return r, append([]Found{}, l.kept.found...)
}

// kept is a Printer that keeps calls as far as there is room.
type kept struct {
	found []Found
	bytes int
}

func (k *kept) Found(f Found) error {
	size := len(f.Call) + len(f.Target)
	if k.bytes+size > liveBytes {
		return nil
	}
	k.bytes += size
	k.found = append(k.found, f)
	return nil
}

func (k *kept) Close(*Report) error { return nil }

// UnmarshalJSON keeps the text as it is.
func (j *JSON) UnmarshalJSON(text []byte) error {
	*j = JSON(text)
	return nil
}

// Print writes what a comparison found.
func Print(p Printer, found []Found, r *Report) error {
	for _, f := range found {
		if err := p.Found(f); err != nil {
			return err
		}
	}
	return p.Close(r)
}
