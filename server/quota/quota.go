// Package quota shares out what a server has too little of when
// everybody wants it at once: memory, turns on the processors, places
// for those who wait. Nobody gets more than a part of it, and who has
// the least is served first, so that one caller's load is felt by that
// caller and by nobody else.
package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Parts bounds what is handed out, in units: bytes, places or turns.
// Every field is above zero.
type Parts struct {
	Total  int64 // to everybody together
	Tenant int64 // to one tenant
	Caller int64 // to one caller of a tenant
	// Waiting is how many wishes of one caller wait at a time; 0 means 64.
	// More are refused at once.
	Waiting int
}

// Who wants something. Callers of different tenants are different
// callers, whatever their names.
type Who struct {
	Tenant string
	Caller string // the id of a token, a person's session, an address
}

// FullError says that somebody may have no more for now.
type FullError struct {
	Whose string // whose part is used up: "caller", "tenant" or "server"
	Most  int64  // units of that part
}

// Error names the part.
func (e *FullError) Error() string {
	return fmt.Sprintf("the part of the %s is used up: %d", e.Whose, e.Most)
}

// usualWaiting is how many of one caller's wishes wait at a time,
// unless Parts say otherwise.
const usualWaiting = 64

// Pool hands out units, max-min fairly: of all who wait, the tenant
// goes first that would hold the least, and within it the caller that
// would; of equals the one that was served longest ago, then the one
// that came first. Nobody overtakes who would hold less. A wish that is
// larger than a part is met when nothing else of that part is held, so
// that what is allowed at all gets its turn. Pools are safe for
// concurrent use.
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

// wish is somebody who waits.
type wish struct {
	who    Who
	units  int64
	number int64         // in order of arrival
	met    chan struct{} // closed when it is met
}

// NewPool returns a pool of which nothing is held.
func NewPool(p Parts) *Pool {
	if p.Waiting == 0 {
		p.Waiting = usualWaiting
	}
	return &Pool{parts: p, tenants: map[string]*tenant{}}
}

// Hold is what somebody got. It must be returned.
type Hold struct {
	pool  *Pool
	who   Who
	units int64 // guarded by pool.mu
}

// Take gets units, and waits for them as long as that. A *FullError
// says that there were none; the context's end is an error too.
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

// want meets a wish at once, or returns it to be waited for.
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
	case <-w.met: // in the very moment
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

// Return gives everything back. Once is enough: further calls do
// nothing, nor does one on nil.
func (h *Hold) Return() {
	if h != nil {
		_ = h.Resize(0) // it becomes less
	}
}

// Resize changes how much is held, without waiting; a *FullError leaves
// it as it was.
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

// mayGrow refuses where there is no room, or where somebody waits for
// it who would hold less.
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

// caller finds a caller, or adds one that holds nothing.
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

// give changes what somebody holds, and serves those who wait when that
// became less.
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

// forget drops who neither holds nor wants anything.
func (p *Pool) forget(who Who) {
	t := p.tenants[who.Tenant]
	if c := t.callers[who.Caller]; c.held == 0 && len(c.waiting) == 0 {
		delete(t.callers, who.Caller)
	}
	if t.held == 0 && len(t.callers) == 0 {
		delete(p.tenants, who.Tenant)
	}
}

// withdraw takes a wish back that was not met. Others may have stood
// behind it.
func (p *Pool) withdraw(w *wish) {
	p.remove(w)
	p.forget(w.who)
	p.serve()
}

func (p *Pool) remove(w *wish) {
	c := p.caller(w.who)
	c.waiting = slices.DeleteFunc(c.waiting, func(other *wish) bool { return other == w })
}

// full says whose part is used up when somebody wants units instead of
// those that they had; nil when nobody's is.
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

// refusal says why a wish was not met: where there is room, others wait
// for it who come first.
func (p *Pool) refusal(w *wish) error {
	return cmp.Or(p.full(w.who, 0, w.units), error(&FullError{Whose: "server", Most: p.parts.Total}))
}

// over reports whether units would be too many beside those that are
// held. Alone nothing is.
func over(held, units, most int64) bool { return held > 0 && held+units > most }

// serve meets wishes until the next in turn must wait.
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

// next returns the wish whose turn it is.
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

// next returns the wish of the caller whose turn it is. Callers whose
// part is used up have none.
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

// turn is what decides who goes first: what they would hold, how long
// ago they were served, when they came.
type turn [3]int64
