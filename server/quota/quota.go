// Package quota shares scarce resources of a server between its callers: memory, turns on
// the processors, and places for waiting requests. No caller gets more than its part, and
// the one that holds the least is served first, so that one caller's load delays only that
// caller.
package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Parts limits what is handed out, in units: bytes, places or turns. Every limit must be
// positive.
type Parts struct {
	Total  int64 // for all callers together
	Tenant int64 // for one tenant
	Caller int64 // for one caller of a tenant
	// Waiting is the maximal number of waiting wishes of one caller. 0 means 64. Further
	// ones are refused at once.
	Waiting int
}

// Who identifies a caller. Callers of different tenants are different even if they have the
// same name.
type Who struct {
	Tenant string
	Caller string // the id of a token, a person's session, an address
}

// FullError means that a caller may take no more units for now.
type FullError struct {
	Whose string // whose part is used up: "caller", "tenant" or "server"
	Most  int64  // units of that part
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the part of the %s is used up: %d", e.Whose, e.Most)
}

// usualWaiting is the default of Parts.Waiting.
const usualWaiting = 64

// Pool hands out units with max-min fairness. The next wish is one of the tenant that would
// hold the least, and within it of the caller that would hold the least. If several are
// equal, the one served longest ago goes first, then the one that came first. A wish never
// overtakes one of a caller that would hold less. A wish that is larger than a part is met
// when nothing else of that part is held, so that it gets its turn at some time. Pools are
// safe for concurrent use.
type Pool struct {
	parts Parts

	mu      sync.Mutex
	held    int64
	tenants map[string]*tenant // that hold or want something
	served  int64              // wishes that were met so far
	arrived int64              // wishes so far
}

type tenant struct {
	held    int64
	served  int64 // number of the wish that was met last
	callers map[string]*caller
}

type caller struct {
	held    int64
	served  int64
	waiting []*wish // in order of arrival
}

// wish is a call of Take that waits.
type wish struct {
	who    Who
	units  int64
	number int64         // in order of arrival
	met    chan struct{} // closed when it is met
}

// NewPool returns a pool in which all units are free.
func NewPool(p Parts) *Pool {
	if p.Waiting == 0 {
		p.Waiting = usualWaiting
	}
	return &Pool{parts: p, tenants: map[string]*tenant{}}
}

// Hold is a number of units that a caller holds. It must be returned.
type Hold struct {
	pool  *Pool
	who   Who
	units int64 // guarded by pool.mu
}

// Take takes units, and waits for them up to the given time. It returns a *FullError if
// they were not free in time, and the context's error if the context ends.
func (p *Pool) Take(ctx context.Context, who Who, units int64, wait time.Duration) (*Hold, error) {
	w, err := p.want(who, units, wait > 0)
	if err != nil {
		return nil, err
	}
	if w != nil {
		if err := p.await(ctx, w, wait); err != nil {
			return nil, err
		}
	}
	return &Hold{pool: p, who: who, units: units}, nil
}

// want meets a wish at once, or returns it so that the caller waits for it.
func (p *Pool) want(who Who, units int64, waits bool) (*wish, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.caller(who)
	if len(c.waiting) >= p.parts.Waiting {
		return nil, &FullError{Whose: "caller", Most: p.parts.Caller}
	}
	p.arrived++
	w := &wish{who: who, units: units, number: p.arrived, met: make(chan struct{})}
	c.waiting = append(c.waiting, w)
	p.serve()
	select {
	case <-w.met:
		return nil, nil
	default:
	}
	if waits {
		return w, nil
	}
	err := p.refusal(w)
	p.withdraw(w)
	return nil, err
}

func (p *Pool) await(ctx context.Context, w *wish, wait time.Duration) error {
	var err error
	select {
	case <-w.met:
		return nil
	case <-time.After(wait):
	case <-ctx.Done():
		err = ctx.Err()
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.met: // met at the same moment
		if err != nil {
			p.give(w.who, -w.units)
		}
		return err
	default:
	}

	if err == nil {
		err = p.refusal(w)
	}
	p.withdraw(w)
	return err
}

// Return gives all units back. Further calls do nothing, nor does a call on nil.
func (h *Hold) Return() {
	if h != nil {
		_ = h.Resize(0) // a smaller hold can't fail
	}
}

// Resize changes the number of units without waiting. If it returns a *FullError, nothing
// has changed.
func (h *Hold) Resize(units int64) error {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if units > h.units {
		if full := p.mayGrow(h, units); full != nil {
			return full
		}
	}
	more := units - h.units
	h.units = units
	p.give(h.who, more)
	return nil
}

// mayGrow returns an error if there are not enough free units, or if a wish waits with
// which its tenant would hold no more than the hold's tenant after growing.
func (p *Pool) mayGrow(h *Hold, units int64) error {
	if full := p.full(h.who, h.units, units); full != nil {
		p.forget(h.who)
		return full
	}
	t, first := p.next(nil)
	if first != nil && t.held+first.units <= p.tenants[h.who.Tenant].held-h.units+units {
		return &FullError{Whose: "server", Most: p.parts.Total}
	}
	return nil
}

// caller returns a caller. It adds one that holds nothing if there is none.
func (p *Pool) caller(who Who) *caller {
	t := p.tenants[who.Tenant]
	if t == nil {
		t = &tenant{callers: map[string]*caller{}}
		p.tenants[who.Tenant] = t
	}
	c := t.callers[who.Caller]
	if c == nil {
		c = &caller{}
		t.callers[who.Caller] = c
	}
	return c
}

// give changes the number of units that a caller holds, and serves waiting wishes if there
// are free units now.
func (p *Pool) give(who Who, units int64) {
	c := p.caller(who)
	p.held += units
	p.tenants[who.Tenant].held += units
	c.held += units
	p.forget(who)
	if units < 0 {
		p.serve()
	}
}

// forget removes a caller that neither holds nor waits for anything.
func (p *Pool) forget(who Who) {
	t := p.tenants[who.Tenant]
	if c := t.callers[who.Caller]; c.held == 0 && len(c.waiting) == 0 {
		delete(t.callers, who.Caller)
	}
	if t.held == 0 && len(t.callers) == 0 {
		delete(p.tenants, who.Tenant)
	}
}

// withdraw removes a wish that was not met. Wishes after it may be met now.
func (p *Pool) withdraw(w *wish) {
	p.remove(w)
	p.forget(w.who)
	p.serve()
}

func (p *Pool) remove(w *wish) {
	c := p.caller(w.who)
	c.waiting = slices.DeleteFunc(c.waiting, func(other *wish) bool { return other == w })
}

// full returns a *FullError with the part that is used up if a caller wants units instead
// of those that it had, or nil if all parts have enough.
func (p *Pool) full(who Who, had, units int64) error {
	c, t := p.caller(who), p.tenants[who.Tenant]
	switch {
	case over(c.held-had, units, p.parts.Caller):
		return &FullError{Whose: "caller", Most: p.parts.Caller}
	case over(t.held-had, units, p.parts.Tenant):
		return &FullError{Whose: "tenant", Most: p.parts.Tenant}
	case over(p.held-had, units, p.parts.Total):
		return &FullError{Whose: "server", Most: p.parts.Total}
	}

	return nil
}

// refusal returns the error for a wish that was not met. If there are enough free units,
// wishes of other callers go first.
func (p *Pool) refusal(w *wish) error {
	return cmp.Or(p.full(w.who, 0, w.units), error(&FullError{Whose: "server", Most: p.parts.Total}))
}

// over reports whether units exceed a part together with the units that are held. A single
// hold never does.
func over(held, units, most int64) bool { return held > 0 && held+units > most }

// serve meets wishes until the next one in turn must wait.
func (p *Pool) serve() {
	passed := map[*tenant]bool{} // tenants whose part is used up
	for {
		t, w := p.next(passed)
		switch {
		case w == nil:
			return
		case over(t.held, w.units, p.parts.Tenant):
			passed[t] = true
		case over(p.held, w.units, p.parts.Total):
			return
		default:
			p.meet(t, w)
		}
	}
}

func (p *Pool) meet(t *tenant, w *wish) {
	p.served++
	t.served, t.callers[w.who.Caller].served = p.served, p.served
	p.remove(w)
	p.give(w.who, w.units)
	close(w.met)
}

// next returns the wish to meet next, and its tenant. It skips the tenants in passed.
func (p *Pool) next(passed map[*tenant]bool) (of *tenant, first *wish) {
	var best turn
	for _, t := range p.tenants {
		if passed[t] {
			continue
		}
		w := t.next(p.parts.Caller)
		if w == nil {
			continue
		}
		if now := (turn{t.held + w.units, t.served, w.number}); first == nil || slices.Compare(now[:], best[:]) < 0 {
			of = t
			first = w
			best = now
		}
	}

	return of, first
}

// next returns the tenant's next wish. It skips callers whose part is used up.
func (t *tenant) next(most int64) (first *wish) {
	var best turn
	for _, c := range t.callers {
		if len(c.waiting) == 0 || over(c.held, c.waiting[0].units, most) {
			continue
		}
		w := c.waiting[0]
		if now := (turn{c.held + w.units, c.served, w.number}); first == nil || slices.Compare(now[:], best[:]) < 0 {
			first, best = w, now
		}
	}

	return first
}

// turn decides which wish goes first, by three values in order: the units its caller would
// hold, when it was served last, and when the wish came.
type turn [3]int64
