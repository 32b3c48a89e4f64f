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
	"github.com/assent-dev/assent/policy/quorum"
	"github.com/assent-dev/assent/resolve"
)

// Config configures a Service. Zero fields take the defaults named in their comments.
type Config struct {
	Within      time.Duration // deadline of requests whose policies set none; default 24h
	PermitAge   time.Duration // how long an approval can be used; default 15m
	CoolDown    time.Duration // how long a denied call is denied again without asking people; default 5m
	GrantAge    time.Duration // lifetime of grants whose offer sets none; default 1h
	MaxGrantAge time.Duration // longest lifetime of any grant; default 30 days
	GrantUses   int           // uses of grants whose offer sets neither uses nor a lifetime; default 1
	MaxUses     int           // most uses of any grant; default 10,000
	Remember    time.Duration // how long idempotency keys are remembered; default 24h
	// AcceptUnknown reports whether a tenant accepts principals that the directory does not
	// contain. For other tenants, a call with an unknown principal needs one more approver, because
	// the principal could be one of the approvers under another name. If it is nil, no tenant
	// accepts unknown principals.
	AcceptUnknown func(tenant string) bool
	// Admins returns the group of a tenant whose members may read everything, in addition to the
	// people that the directory allows to. If it is nil, there is no such group.
	Admins func(tenant string) string
	// PermitAges returns the permit age of a tenant, or 0 if PermitAge applies. Answers to waiting
	// callers contain the tenant's own permit age. If it is nil, PermitAge applies to every tenant.
	PermitAges func(tenant string) time.Duration
	KeepArgs   int   // most bytes of arguments that the ledger keeps as text if a call needs no approval; 16 KiB
	Quota      Quota // limits what callers may have stored; by default there is no limit
	// Route returns the deliveries that an event causes. r is nil for events that are not about a
	// request. If Route is nil, events cause no deliveries.
	Route func(event string, r *Request) []Delivery
	// Watcher is notified of decisions. It may be nil.
	Watcher Watcher
	// Permits signs the permits that tools verify themselves. If it is nil, no permit is signed.
	Permits Permits
}

// Watcher is notified of decisions while the caller waits. Its methods must return quickly and must
// not modify their arguments.
type Watcher interface {
	// Decided is called after a plan of a tenant decided a call. The call is not modified
	// afterwards.
	Decided(tenant string, by *Compiled, call *resolve.Call, outcome resolve.Outcome)
	// Denied is called after people denied the call of a request.
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

// ownPermitAge returns the permit age that is configured for a tenant, or 0 if there is none.
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

// Service asks people for approvals and answers. It is safe for concurrent use. Several services
// may share one store.
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

// New returns a service. now is the clock; random is the source of ids and salts (usually
// crypto/rand.Reader).
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

// clock never goes back: a wall clock that is set back must not revive what has expired. It must
// not stop either, because that would keep permits and grants alive. So it runs at half speed until
// the wall clock has caught up.
type clock struct {
	mu   sync.Mutex
	now  func() time.Time
	seen time.Time // last time that the wall clock returned
	last time.Time // last time that Now returned
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

// Request returns a request by its id, or ErrNotFound.
func (s *Service) Request(ctx context.Context, tenant, id string) (*Request, error) {
	if checkName("id", id) != nil {
		return nil, ErrNotFound
	}
	return s.store.Request(ctx, tenant, id)
}

// Own returns a request that this asker made or joined. For other requests it returns ErrNotFound,
// as if they didn't exist.
func (s *Service) Own(ctx context.Context, tenant, id string, who Asker) (*Request, error) {
	r, err := s.Request(ctx, tenant, id)
	if err == nil && !r.AskedBy(who) {
		return nil, ErrNotFound
	}

	return r, err
}

// append records events in the ledger, with the deliveries that Route returns for them, and the states
// that they bring a request to.
func (s *Service) append(tx Tx, tenant string, now time.Time, r *Request, events ...Event) error {
	for _, e := range events {
		if e.takesAway() {
			tx.SealFirst()
		}
		if r != nil {
			if err := s.savePasts(tx, r, e, now); err != nil {
				return err
			}
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

// seal builds the ledger record of an event.
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

// step is the effect of an input on a request.
type step struct {
	events  []Event
	changed bool // reports whether the request was modified and must be saved
	// refused is the error that the caller gets although the step is saved, for example if a permit
	// turned out to be void or the request has ended.
	refused error
}

// change runs fn on a locked request and saves its effect. If fn returns an error, everything is
// rolled back. If the step has a refused error, the step is saved and change returns that error.
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
		// Handle expired times first, so that no input takes effect between a deadline and the run
		// of the worker that notices it.
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

// due applies the effects of time to a request if its Due time has come.
func (s *Service) due(r *Request, now time.Time) ([]Event, bool) {
	if r.Due == nil || now.Before(*r.Due) {
		return nil, false
	}
	return r.tick(now, s.cfg), true
}

// Tick processes requests that are due: reminders, escalations, deadlines and unused permits. It
// returns the number of requests that it processed. Any number of replicas may call it; each
// request is processed once.
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

// Cancel withdraws a request. It returns ErrClosed if the request has already ended.
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

// Revoke ends a grant. It changes nothing if the grant has already ended.
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
		tx.SealFirst() // also if the grant was revoked before and that answer was lost
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

// Freeze denies all calls of an agent from now on, or all calls of the tenant if agent is empty.
// Thaw lifts the freeze. A reason that can't be stored must not prevent a freeze, so it is
// repaired first.
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
		// a typo would freeze nothing, but look as if it did
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

// aboutFreeze returns an event about a freeze of one agent, or of all agents.
func aboutFreeze(kind, by, agent, reason string) Event {
	return Event{
		Type:  kind,
		Actor: by,
		Facts: map[string]any{"agent": agent},
	}.sealing("reason", reason)
}

// Thaw lifts a freeze. It returns ErrNotFound if there is none.
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

// stops returns a function that reports whether a freeze applies to an agent. A freeze of all
// agents doesn't stop administration, because lifting a freeze is an act of administration.
func stops(agent string) func(Freeze) bool {
	return func(f Freeze) bool {
		return f.Agent == agent || f.Agent == "" && agent != AdministrationAgent
	}
}

// Record appends an event to the ledger that is not about a request, for example the creation of a
// token, a sign-in or an export.
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

// RecordAndSend is like Record, and also queues the deliveries that the event causes.
func (s *Service) RecordAndSend(ctx context.Context, tenant string, e Event, to ...Delivery) error {
	return s.store.Update(ctx, tenant, func(tx Tx) error {
		record, err := s.seal(tenant, s.clock.Now(), e)
		if err == nil {
			tx.Append(record, to...)
		}

		return err
	})
}

// Decide decides a call without asking people and without recording anything. It denies the call if
// a freeze applies, and returns an error if the freezes can't be read.
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
	d, err := s.decideNow(ctx, tenant, c, call, "")
	if err != nil {
		return resolve.Decision{}, err
	}
	if s.cfg.Watcher != nil {
		s.cfg.Watcher.Decided(tenant, c, call, d.Outcome)
	}
	return d, nil
}

// frozenDecision returns the denial of a call that a freeze stops.
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

// FromFreeze and CodeFrozen are the source and the code of the reason for a denial by a freeze.
const (
	FromFreeze resolve.Source = "freeze"
	CodeFrozen resolve.Code   = "frozen"
)

// known looks up a name in the directory. A failure of the directory is returned as an error, so
// that no person is counted or left out by accident.
func (s *Service) known(ctx context.Context, tenant, name string) (Person, bool, error) {
	return quorum.Known(ctx, s.people, tenant, name)
}

// somebody returns the person with this name in the directory, or ErrUnknownName.
func (s *Service) somebody(ctx context.Context, tenant, name string) (Person, error) {
	p, known, err := s.known(ctx, tenant, name)
	if err == nil && !known {
		err = ErrUnknownName
	}
	return p, err
}
