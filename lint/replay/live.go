package replay

import (
	"time"

	"github.com/assent-dev/assent/resolve"
)

// Traffic is the form of calls that are compared while they are made. No input can have it.
const Traffic Form = "live"

// Limits of the data that Live keeps, because callers choose names and arguments.
const (
	liveTargets = 1000    // further targets are counted together
	liveList    = 100     // calls that are listed
	liveBytes   = 1 << 20 // total bytes of listed calls
)

// Live compares two plans using calls while they are made, with limited memory. Weigh may be
// called concurrently with everything. The other methods must not run concurrently with each
// other.
type Live struct {
	old, new *resolve.Plan
	tally    *tally
	kept     kept
	heard    int
}

// NewLive begins a comparison. name is its name in lists.
func NewLive(name string, live, candidate *resolve.Plan) *Live {
	l := &Live{old: live, new: candidate}
	l.tally = newTally(Options{New: candidate, Old: live, List: liveList}, &l.kept)
	l.tally.mostTargets = liveTargets
	l.tally.begin(name, Traffic)
	return l
}

// Weighed is the decision of both plans about a call.
type Weighed struct{ entry entry }

// Old returns the outcome under the live plan.
func (w *Weighed) Old() resolve.Outcome { return w.entry.old }

// New returns the outcome under the candidate.
func (w *Weighed) New() resolve.Outcome { return w.entry.new }

// Weigh decides a call with both plans. The call must not be changed afterwards.
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

// Deny counts a call that a person denied in a request. The call itself was counted by Add.
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

// Report returns the figures and the listed calls: the first ones, up to the limits.
func (l *Live) Report() (*Report, []Found) {
	r := l.tally.report()
	r.Inputs = append([]Input{}, r.Inputs...)
	r.Listed = len(l.kept.found)
	return r, append([]Found{}, l.kept.found...)
}

// kept is a Printer that keeps calls up to the limit.
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

// UnmarshalJSON keeps the text unchanged.
func (j *JSON) UnmarshalJSON(text []byte) error {
	*j = JSON(text)
	return nil
}

// Print writes the results of a comparison.
func Print(p Printer, found []Found, r *Report) error {
	for _, f := range found {
		if err := p.Found(f); err != nil {
			return err
		}
	}
	return p.Close(r)
}
