package approval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/approval/quorum"
	"github.com/assent-dev/assent/resolve"
)

// Config are the choices of whoever runs the service. Zero fields take
// the defaults named.
type Config struct {
	Within      time.Duration // deadline of requests whose policies set none; 24h
	PermitAge   time.Duration // how long an approval waits to be used; 15m
	CoolDown    time.Duration // how long a denied call is denied again without asking; 5m
	GrantAge    time.Duration // of grants whose offer names none; 1h
	MaxGrantAge time.Duration // of any grant; 30 days
	GrantUses   int           // of grants whose offer names neither uses nor an age; 1
	MaxUses     int           // of any grant; 10,000
	Remember    time.Duration // how long idempotency keys are known; 24h
	// AcceptUnknown names the tenants that take calls for principals
	// whom the directory doesn't know as they are. Elsewhere such a
	// call takes one more approver, since the principal could be one of
	// them under another name. Nil: nowhere.
	AcceptUnknown func(tenant string) bool
	// Admins names the group of a tenant whose people read everything,
	// beside those whom the directory lets; nil: no group.
	Admins func(tenant string) string
	// PermitAges are the permit ages of tenants that have one of their
	// own, which those who wait are told; 0 is PermitAge. Nil: none has.
	PermitAges func(tenant string) time.Duration
	KeepArgs   int   // bytes of arguments that the ledger keeps as text of a call that nobody is asked about; 16 KiB
	Quota      Quota // of what callers may have kept; none
	// Route names what else hears of an event, r being nil for events
	// that are not about a request; a nil Route means nothing does.
	Route func(event string, r *Request) []Delivery
	// Watcher hears of decisions beside them; nil: nobody does.
	Watcher Watcher
	// Permits sign what tools check for themselves; nil: no tool does.
	Permits Permits
}

// Watcher hears of what plans decide while the caller waits for it. It
// returns at once, and changes nothing of what it is told.
type Watcher interface {
	// Decided tells that a plan of a tenant decided a call. Nobody
	// changes the call any more.
	Decided(tenant string, by *Compiled, call *resolve.Call, outcome resolve.Outcome)
	// Denied tells that people have denied the call of a request.
	Denied(r *Request)
}

func (c Config) withDefaults() Config {
	pick(&c.Within, 24*time.Hour)
	pick(&c.PermitAge, 15*time.Minute)
	pick(&c.CoolDown, 5*time.Minute)
	pick(&c.GrantAge, time.Hour)
	pick(&c.MaxGrantAge, 30*24*time.Hour)
	pick(&c.GrantUses, 1)
	pick(&c.MaxUses, MostUses)
	pick(&c.Remember, 24*time.Hour)
	pick(&c.KeepArgs, 16<<10)
	c.GrantAge, c.GrantUses = min(c.GrantAge, c.MaxGrantAge), min(c.GrantUses, c.MaxUses)
	return c
}

// ownPermitAge is that of a tenant which has one of its own, else 0.
func (c *Config) ownPermitAge(tenant string) time.Duration {
	if c.PermitAges == nil {
		return 0
	}

	return max(c.PermitAges(tenant), 0)
}

func pick[T time.Duration | int](field *T, standard T) {
	if *field <= 0 {
		*field = standard
	}
}

// Service asks people. It is safe for concurrent use; any number of
// services may work on one store.
type Service struct {
	store  Store
	plans  Planner
	people Directory
	clock  *clock
	random io.Reader
	cfg    Config
	hub    hub
	loads  loads
}

// New returns a service. now is the clock, random the source of ids and
// salts (crypto/rand.Reader).
func New(
	store Store,
	plans Planner,
	people Directory,
	now func() time.Time,
	random io.Reader,
	cfg Config,
) *Service {
	return &Service{
		store:  store,
		plans:  plans,
		people: people,
		clock:  &clock{now: now},
		random: random,
		cfg:    cfg.withDefaults(),
		loads:  loads{quota: cfg.Quota},
	}
}

// clock never goes back: a wall clock that is set back must not revive
// what has expired. Nor does it stand still then, which would keep
// permits and grants alive: it goes on at half speed until the wall
// clock has caught up.
type clock struct {
	mu   sync.Mutex
	now  func() time.Time
	seen time.Time // what the wall clock said last
	last time.Time // what this one said last
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.now().UTC().Truncate(time.Microsecond)
	switch {
	case t.After(c.last):
		c.last = t
	case t.After(c.seen):
		c.last = c.last.Add((t.Sub(c.seen) + 1) / 2).Truncate(time.Microsecond)
	}

	c.seen = t
	return c.last
}

// Request returns one request; ErrNotFound.
func (s *Service) Request(ctx context.Context, tenant, id string) (*Request, error) {
	if checkName("id", id) != nil {
		return nil, ErrNotFound
	}
	return s.store.Request(ctx, tenant, id)
}

// Own returns a request that this asker asked for, be it first or
// later. Others are as if they were not there: ErrNotFound.
func (s *Service) Own(ctx context.Context, tenant, id string, who Asker) (*Request, error) {
	r, err := s.Request(ctx, tenant, id)
	if err == nil && !r.AskedBy(who) {
		return nil, ErrNotFound
	}

	return r, err
}

// append records events, and what else is to hear of them.
func (s *Service) append(tx Tx, tenant string, now time.Time, r *Request, events ...Event) error {
	for _, e := range events {
		if e.takesAway() {
			tx.SealFirst()
		}
		record, err := s.seal(tenant, now, e)
		if err != nil {
			return err
		}
		var deliveries []Delivery
		if s.cfg.Route != nil {
			deliveries = s.cfg.Route(e.Type, r)
		}
		tx.Append(record, deliveries...)
	}

	return nil
}

// seal makes the ledger entry of an event.
func (s *Service) seal(tenant string, now time.Time, e Event) (ledger.Record, error) {
	record, err := ledger.Entry{
		Time:    now,
		Tenant:  tenant,
		Type:    e.Type,
		Subject: e.Subject,
		Actor:   e.Actor,
		Facts:   e.Facts,
		Sealed:  e.Sealed,
	}.Seal(s.random)
	if err != nil {
		return ledger.Record{}, fmt.Errorf("record %s: %w", e.Type, err)
	}

	return record, nil
}

// step is what an input did to a request.
type step struct {
	events  []Event
	changed bool // the request, so that it must be saved
	// what the caller is told although the step stands: a permit that
	// turned out to be void, a request that has ended
	refused error
}

// change runs fn on a locked request and keeps what it did to it. An
// error of fn undoes everything; a refusal does not.
func (s *Service) change(
	ctx context.Context, tenant, id string, fn func(tx Tx, r *Request, now time.Time) (step, error),
) (*Request, error) {
	if checkName("id", id) != nil {
		return nil, ErrNotFound
	}
	var done *Request
	var refused error
	err := s.store.Update(ctx, tenant, func(tx Tx) error {
		r, err := tx.Request(id)
		if err != nil {
			return err
		}
		now := s.clock.Now()
		// Time acts first, so that nothing slips in between a deadline
		// and the worker that notices it.
		events, ticked := s.due(r, now)
		did, err := fn(tx, r, now)
		if err != nil {
			return err
		}
		if ticked || did.changed {
			tx.Save(r)
		}
		done, refused = r, did.refused
		return s.append(tx, tenant, now, r, append(events, did.events...)...)
	})
	if err != nil {
		return nil, err
	}
	s.hub.wake(tenant, id)
	return done, refused
}

// due lets time act on a request if its time has come.
func (s *Service) due(r *Request, now time.Time) ([]Event, bool) {
	if r.Due == nil || now.Before(*r.Due) {
		return nil, false
	}
	return r.tick(now, s.cfg), true
}

// Tick lets time act on what is due: reminders, escalations, deadlines,
// permits nobody used. It returns how many requests it acted on. Any
// number of replicas may call it; each request is acted on once.
func (s *Service) Tick(ctx context.Context) (int, error) {
	now := s.clock.Now()
	var acted [][2]string // tenants and ids
	n, err := s.store.Due(ctx, now, 64, func(tx Tx, tenant string, r *Request) error {
		events, changed := s.due(r, now)
		if !changed {
			return nil
		}
		acted = append(acted, [2]string{tenant, r.ID})
		tx.Save(r)
		return s.append(tx, tenant, now, r, events...)
	})
	for _, r := range acted {
		s.hub.wake(r[0], r[1])
	}
	return n, err
}

// Cancel takes a request back. What has ended stays as it ended (ErrClosed).
func (s *Service) Cancel(ctx context.Context, tenant, id, by, reason string) (*Request, error) {
	if err := checkWords("reason", reason); err != nil {
		return nil, err
	}
	return s.change(ctx, tenant, id, func(_ Tx, r *Request, now time.Time) (step, error) {
		if !r.State.Open() {
			return step{refused: ErrClosed}, nil
		}
		return step{events: []Event{r.withdraw(ByRequester, by, reason, now)}, changed: true}, nil
	})
}

// Revoke ends a grant. Revoking a dead one changes nothing.
func (s *Service) Revoke(ctx context.Context, tenant, id, by, reason string) (*Grant, error) {
	if err := checkWords("reason", reason); err != nil {
		return nil, err
	}
	if checkName("id", id) != nil {
		return nil, ErrNotFound
	}
	var done *Grant
	err := s.store.Update(ctx, tenant, func(tx Tx) error {
		now := s.clock.Now()
		g, events, err := revoke(tx, id, by, reason, now)
		if err != nil {
			return err
		}
		done = g
		tx.SealFirst() // also if it was revoked before, and the answer to that was lost
		return s.append(tx, tenant, now, nil, events...)
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

func revoke(tx Tx, id, by, reason string, now time.Time) (*Grant, []Event, error) {
	g, err := tx.Grant(id)
	if err != nil || !g.Live(now) {
		return g, nil, err
	}
	g.Revoked = &now
	g.RevokedBy = by
	g.RevokedWhy = reason
	tx.SaveGrant(g)
	return g, []Event{g.event(EventGrantRevoked, by, nil).sealing("reason", reason)}, nil
}

func (g *Grant) event(kind, actor string, facts map[string]any) Event {
	all := map[string]any{
		"agent":    g.Agent,
		"target":   g.Target,
		"plan":     g.Plan,
		"request":  g.Request,
		"session":  g.Session,
		"expires":  stamp(g.Expires),
		"uses":     g.Uses,
		"max_uses": g.MaxUses,
	}
	maps.Copy(all, facts)
	return Event{Type: kind, Subject: g.ID, Actor: actor, Facts: all}
}

// Freeze denies everything of an agent ("" means of the tenant) from
// now on; Thaw lifts it. A reason that can't be kept as it is does not
// stand in its way.
func (s *Service) Freeze(ctx context.Context, tenant, agent, by, reason string) error {
	if err := errors.Join(checkName("agent", agent), checkName("by", by)); err != nil { // every call reads the freezes
		return err
	}
	if agent == AdministrationAgent {
		return &InputError{
			"agent",
			"another agent: administration can't be frozen, since lifting a freeze is a part of it",
		}
	}

	if agent != "" {
		// a typo would freeze nothing, and look as if
		if _, err := s.plans.Plan(ctx, tenant, agent); errors.Is(err, ErrUnknownAgent) {
			return &InputError{"agent", "the id of an agent that is loaded, or none to freeze all"}
		}
	}

	reason = mended(reason)
	return s.store.Update(ctx, tenant, func(tx Tx) error {
		now := s.clock.Now()
		tx.SaveFreeze(Freeze{Agent: agent, By: by, Reason: reason, At: now})
		return s.append(tx, tenant, now, nil, aboutFreeze(EventFrozen, by, agent, reason))
	})
}

// aboutFreeze is an event about a freeze of an agent, or of all.
func aboutFreeze(kind, by, agent, reason string) Event {
	return Event{
		Type:  kind,
		Actor: by,
		Facts: map[string]any{"agent": agent},
	}.sealing("reason", reason)
}

// Thaw lifts a freeze; ErrNotFound when there is none.
func (s *Service) Thaw(ctx context.Context, tenant, agent, by, reason string) error {
	if err := errors.Join(checkName("agent", agent), checkWords("reason", reason)); err != nil {
		return err
	}
	return s.store.Update(ctx, tenant, func(tx Tx) error {
		f, err := frozen(tx, func(f Freeze) bool { return f.Agent == agent })
		if err != nil {
			return err
		}
		if f == nil {
			return fmt.Errorf("freeze: %w", ErrNotFound)
		}
		now := s.clock.Now()
		f.Lifted = &now
		tx.SaveFreeze(*f)
		return s.append(tx, tenant, now, nil, aboutFreeze(EventThawed, by, agent, reason))
	})
}

func frozen(tx interface{ Freezes() ([]Freeze, error) }, match func(Freeze) bool) (*Freeze, error) {
	all, err := tx.Freezes()
	if err != nil {
		return nil, fmt.Errorf("read the freezes: %w", err)
	}
	for _, f := range all {
		if match(f) {
			return &f, nil
		}
	}
	return nil, nil
}

// stops matches freezes that stop an agent. A freeze of everything
// doesn't stop administration, since lifting it is one of its acts.
func stops(agent string) func(Freeze) bool {
	return func(f Freeze) bool {
		return f.Agent == agent || f.Agent == "" && agent != AdministrationAgent
	}
}

// Record appends an event that is about no request to the ledger: a
// token made, a sign-in, an export.
func (s *Service) Record(
	ctx context.Context,
	tenant, event, subject, actor string,
	facts map[string]any,
) error {
	return s.RecordAndSend(ctx, tenant, Event{
		Type:    event,
		Subject: subject,
		Actor:   actor,
		Facts:   facts,
	})
}

// RecordAndSend is Record with what is to be sent because of it.
func (s *Service) RecordAndSend(ctx context.Context, tenant string, e Event, to ...Delivery) error {
	return s.store.Update(ctx, tenant, func(tx Tx) error {
		record, err := s.seal(tenant, s.clock.Now(), e)
		if err == nil {
			tx.Append(record, to...)
		}

		return err
	})
}

// Decide decides a call without asking anybody or recording anything. A
// freeze denies, and so does a store that can't say whether there is
// one.
func (s *Service) Decide(
	ctx context.Context,
	tenant, agent string,
	call *resolve.Call,
) (resolve.Decision, error) {
	if agent == AdministrationAgent {
		return resolve.Decision{}, ErrUnknownAgent
	}
	if err := checkCall(call); err != nil {
		return resolve.Decision{}, err
	}
	c, err := s.plans.Plan(ctx, tenant, agent)
	if err != nil {
		return resolve.Decision{}, err
	}
	freezes, err := s.store.Freezes(ctx, tenant)
	if err != nil {
		return resolve.Decision{}, fmt.Errorf("read the freezes: %w", err)
	}
	for _, f := range freezes {
		if stops(agent)(f) {
			return frozenDecision(f, c.Plan), nil
		}
	}
	d := c.Plan.Decide(call)
	if s.cfg.Watcher != nil {
		s.cfg.Watcher.Decided(tenant, c, call, d.Outcome)
	}
	return d, nil
}

// frozenDecision is the denial by the kill switch.
func frozenDecision(f Freeze, plan *resolve.Plan) resolve.Decision {
	what := "all agents are frozen"
	if f.Agent != "" {
		what = "agent " + f.Agent + " is frozen"
	}
	return resolve.Decision{
		Outcome: resolve.Deny,
		Reasons: []resolve.Reason{{
			Source: FromFreeze,
			Code:   CodeFrozen,
			Detail: what + " by " + f.By,
		}},
		Configuration: plan.Configuration(),
	}
}

// FromFreeze and CodeFrozen are the reason that the kill switch gives.
const (
	FromFreeze resolve.Source = "freeze"
	CodeFrozen resolve.Code   = "frozen"
)

// known resolves names through the directory; its failure is an error,
// so that nobody is counted or left out by accident.
func (s *Service) known(ctx context.Context, tenant, name string) (Person, bool, error) {
	return quorum.Known(ctx, s.people, tenant, name)
}

// somebody is a person whom the directory knows; ErrUnknownName.
func (s *Service) somebody(ctx context.Context, tenant, name string) (Person, error) {
	p, known, err := s.known(ctx, tenant, name)
	if err == nil && !known {
		err = ErrUnknownName
	}
	return p, err
}
