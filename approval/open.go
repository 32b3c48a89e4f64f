package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Open decides a call and, when people must be asked, makes the
// request. Identical open requests are one (threat 26), a call that was
// denied a moment ago is denied again, and a standing approval that
// covers the call lets it run.
func (s *Service) Open(ctx context.Context, in OpenInput) (*Opened, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	c, err := s.plans.Plan(ctx, in.Tenant, in.Agent)
	if err != nil {
		return nil, err
	}
	o := opening{
		s:      s,
		in:     in,
		c:      c,
		call:   in.Call.Recorded(),
		d:      c.Plan.Decide(in.Call),
		within: in.Within,
	}
	if o.binding = o.d.Binding; o.binding == "" {
		o.binding, _ = c.Plan.Bind(in.Call) // an unreadable call has none, and is denied
	}
	if o.d.Outcome == resolve.Ask {
		if o.owners, err = s.owners(ctx, in.Tenant, c); err != nil {
			return nil, err
		}
		if o.askers, err = s.askers(ctx, in); err != nil {
			return nil, err
		}
		if o.unknown, err = s.unknown(ctx, in.Tenant, in.Call.Principal); err != nil {
			return nil, err
		}
	}

	out, err := o.commit(ctx, o.run)
	if err != nil || out.Outcome != resolve.Ask || out.Shared {
		return out, err
	}
	// The request stands whatever the directory says now: who looks at
	// it later is told again.
	out.Unfillable, _ = s.Shortages(ctx, out.Request)

	return out, nil
}

// commit does it in one transaction, which may begin more than once.
func (o *opening) commit(ctx context.Context, do func(Tx) error) (*Opened, error) {
	if err := o.room(ctx); err != nil {
		return nil, err
	}
	err := o.s.store.Update(ctx, o.in.Tenant, func(tx Tx) error {
		o.out = &Opened{Decision: o.d, Binding: o.binding}
		o.now = o.s.clock.Now()
		o.last = nil
		o.old = nil
		o.touched = nil
		o.made = nil
		o.recorded = false
		if err := do(tx); err != nil {
			return err
		}
		for _, r := range o.touched {
			tx.Save(r)
		}
		if o.made == nil {
			return nil
		}
		if err := o.s.loads.admit(o.in.Tenant, o.in.Asker.Token, o.size()); err != nil {
			return err
		}
		tx.Insert(
			o.made,
		) // after the ones in whose place it stands: a store holds one pending request for each call
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.count()
	for _, r := range o.touched {
		o.s.hub.wake(o.in.Tenant, r.ID)
	}
	return o.out, nil
}

// size is about how many bytes are kept of the call.
func (o *opening) size() int64 {
	size := recordWeight + len(o.call.Args) + len(o.call.ParentInput)
	if o.question != nil {
		for _, text := range o.question.parts() {
			size += len(text)
		}
	}
	return int64(size)
}

// room refuses the call when too much is kept already. How much is open
// counts for calls that people are asked about.
func (o *opening) room(ctx context.Context) error {
	if err := o.s.loads.room(o.in.Tenant, o.in.Asker.Token, o.size(), o.s.clock.Now()); err != nil {
		return err
	}
	if o.d.Outcome != resolve.Ask && o.question == nil {
		return nil
	}
	return o.s.loads.look(ctx, o.s.store, o.in.Tenant, o.s.clock.Now())
}

// count adds what was kept of the call.
func (o *opening) count() {
	if o.recorded {
		o.s.loads.recorded(o.in.Tenant, o.in.Asker.Token, o.size())
	}
	if o.made != nil {
		o.s.loads.opened(o.in.Tenant, o.in.Asker.Token, o.size())
	}
}

func (s *Service) owners(ctx context.Context, tenant string, c *Compiled) ([]string, error) {
	more, err := s.people.Owners(ctx, tenant, c.Agent.ID)
	if err != nil {
		return nil, fmt.Errorf("ask the directory: %w", err)
	}
	all := slices.Concat(c.Owners, more)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// unknown reports whether nobody is known by the name of the principal,
// where that matters.
func (s *Service) unknown(ctx context.Context, tenant, principal string) (bool, error) {
	if principal == "" || s.cfg.AcceptUnknown != nil && s.cfg.AcceptUnknown(tenant) {
		return false, nil
	}
	_, known, err := s.known(ctx, tenant, principal)

	return !known, err
}

// askers are the people that the runtime, its owner and whom it acts
// for are known as.
func (s *Service) askers(ctx context.Context, in OpenInput) ([]string, error) {
	var out []string
	for _, name := range []string{in.Asker.Token, in.Asker.Person, in.Asker.Principal} {
		p, ok, err := s.known(ctx, in.Tenant, name)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, p.ID)
		}
	}

	return out, nil
}

// opening is one call of Open, or of Ask.
type opening struct {
	s       *Service
	in      OpenInput
	c       *Compiled
	call    resolve.Call
	d       resolve.Decision
	binding string
	owners  []string
	askers  []string
	unknown bool // nobody is known by the principal's name
	now     time.Time
	out     *Opened
	last    *Request // the newest for this very call
	old     *Request // that this one replaces
	touched []*Request
	made    *Request

	recorded bool // something of it is kept

	question *Question     // of Ask
	within   time.Duration // as the asker wants it
}

func (o *opening) run(tx Tx) error {
	if stopped, err := o.stopped(tx); stopped || err != nil {
		return err
	}
	if done, err := o.remembered(tx); done || err != nil {
		return err
	}
	if err := o.latest(tx); err != nil {
		return err
	}
	if err := o.supersede(tx); err != nil {
		return err
	}
	switch o.d.Outcome {
	case resolve.Allow:
		o.out.Outcome = resolve.Allow
		return o.record(tx, nil, o.event(EventAllowed, nil))
	case resolve.Ask:
		return o.ask(tx)
	}

	return o.deny(tx, "policy")
}

// stopped denies what a freeze stops, before all else: not even the
// answer to an earlier call lets anything run.
func (o *opening) stopped(tx Tx) (bool, error) {
	f, err := frozen(tx, stops(o.c.Agent.ID))
	if f == nil || err != nil {
		return false, err
	}
	o.out.Decision = frozenDecision(*f)
	return true, o.deny(tx, "frozen")
}

// remembered answers a repetition of an idempotency key with what
// became of the first call.
func (o *opening) remembered(tx Tx) (bool, error) {
	if o.in.Key == "" {
		return false, nil
	}
	m, err := tx.Remembered(o.key())
	if err != nil || m == nil || !o.now.Before(m.Expires) {
		return false, err
	}
	if m.Digest != o.digest() {
		return false, ErrKeyReuse
	}
	if m.Grant != "" {
		return o.grantedBefore(tx, m.Grant)
	}
	o.out.Outcome = resolve.Ask
	o.out.Shared = true
	o.out.Request, err = tx.Request(m.Request)
	return true, err
}

// grantedBefore repeats that a standing approval covers the call; its
// use was counted then. One that has ended since says nothing any more.
func (o *opening) grantedBefore(tx Tx, id string) (bool, error) {
	g, err := tx.Grant(id)
	if err != nil {
		return false, err
	}
	before := *g
	before.Uses-- // as it stood when this call came first
	if o.d.Outcome != resolve.Ask || !o.covered(&before) {
		return false, nil
	}
	o.out.Outcome = resolve.Allow
	o.out.Grant = g
	return true, nil
}

// key is the idempotency key, of this asker's own.
func (o *opening) key() string { return o.in.Asker.Own(o.in.Key) }

// digest says whether two calls under one key are the same. The plan
// may have changed in between; the call may not.
func (o *opening) digest() string {
	c := &o.call
	parts := []string{
		o.in.Agent,
		o.in.Replaces,
		string(c.Kind),
		c.Tool,
		c.Server,
		c.Agent,
		c.Skill,
		strconv.Itoa(int(c.Remote)),
		string(c.Args),
		string(c.ParentInput),
		c.Principal,
		c.Session,
		c.ToolDefinition,
	}
	for _, hint := range slices.Sorted(maps.Keys(c.Annotations)) {
		parts = append(parts, hint, strconv.FormatBool(c.Annotations[hint]))
	}
	if o.question != nil {
		parts = append(append(parts, "question"), o.question.parts()...)
	}
	return digestOf(parts...)
}

// remember keeps the key for as long as the service does, or longer
// where m says so.
func (o *opening) remember(tx Tx, m Memory) {
	if o.in.Key != "" {
		m.Digest = o.digest()
		if least := o.now.Add(o.s.cfg.Remember); m.Expires.Before(least) {
			m.Expires = least
		}
		tx.Remember(o.key(), m)
	}
}

func (o *opening) event(kind string, facts map[string]any) Event {
	all := map[string]any{
		"agent":     o.c.Agent.ID,
		"target":    o.call.Target(),
		"binding":   o.binding,
		"plan":      o.c.Plan.Version(),
		"principal": o.call.Principal,
		"session":   o.call.Session,
		"rules":     ruleFacts(&Revision{Decision: o.out.Decision}),
	}
	if o.question != nil {
		all["question"] = true
	}
	for k, v := range facts {
		all[k] = v
	}
	return o.s.cfg.sealArgs(Event{
		Type:  kind,
		Actor: o.in.Asker.Token,
		Facts: all,
	}, string(o.call.Args))
}

func (o *opening) record(tx Tx, r *Request, events ...Event) error {
	o.recorded = true
	return o.s.append(tx, o.in.Tenant, o.now, r, events...)
}

func (o *opening) deny(tx Tx, why string) error {
	o.out.Outcome = resolve.Deny
	o.out.Denied = why
	return o.record(tx, nil, o.event(EventDenied, map[string]any{"why": why}))
}

// latest finds the newest request for this very call, and lets time act
// on it.
func (o *opening) latest(tx Tx) (err error) {
	if o.d.Outcome != resolve.Ask {
		return nil
	}
	if o.last, err = tx.Latest(o.binding); o.last == nil || err != nil {
		return err
	}
	return o.tick(tx, o.last)
}

func (o *opening) tick(tx Tx, r *Request) error {
	events, changed := o.s.due(r, o.now)
	if !changed {
		return nil
	}
	o.touch(r)
	return o.record(tx, r, events...)
}

// touch has a request saved, once, when all is done with it.
func (o *opening) touch(r *Request) {
	if !slices.Contains(o.touched, r) {
		o.touched = append(o.touched, r)
	}
}

// ask looks for an answer that stands already, the strictest first,
// before it asks anew.
func (o *opening) ask(tx Tx) error {
	if o.coolsDown() {
		o.out.Request, o.out.Decision = o.last, o.s.coolingDecision(o.last)
		return o.deny(tx, "cooling_down")
	}
	if done, err := o.granted(tx); done || err != nil {
		return err
	}
	if o.last != nil && o.last.State.Open() {
		return o.share(tx)
	}
	return o.create(tx)
}

// share answers with the open request for this very call.
func (o *opening) share(tx Tx) error {
	r := o.last
	o.out.Outcome = resolve.Ask
	o.out.Request = r
	o.out.Shared = true
	o.remember(tx, Memory{Request: r.ID})
	var facts map[string]any
	if o.joins(r) {
		r.Requester.Also = append(r.Requester.Also, o.in.Asker.Token)
		r.Requester.AlsoOf = append(r.Requester.AlsoOf, o.in.Asker.Person)
		o.touch(r)
		facts = map[string]any{"joined": true, "person": o.in.Asker.Person}
	}

	return o.record(tx, r, r.event(EventShared, o.in.Asker.Token, facts))
}

// mostAlso is how many further runtimes may share one request.
const mostAlso = 50

// joins reports whether the runtime becomes one of those who ask. It
// does not when its own person approved what now may run: nobody
// approves what they ask for, in whichever order they do it.
func (o *opening) joins(r *Request) bool {
	if r.AskedBy(o.in.Asker) || len(r.Requester.Also) >= mostAlso {
		return false
	}
	return r.State == Pending || !slices.ContainsFunc(r.voters(Approve), func(id string) bool {
		return slices.Contains(o.askers, id)
	})
}

// coolsDown reports whether a person said no to this very call a moment
// ago, be it after others had approved.
func (o *opening) coolsDown() bool {
	r := o.last
	return r != nil && (r.State == Denied || r.Cause == ByLateDeny) &&
		o.now.Before(r.Closed.Add(o.s.cfg.CoolDown))
}

// FromAnswer and CodeCoolingDown are the reason why a call that was
// just denied is denied again.
const (
	FromAnswer      resolve.Source = "answer"
	CodeCoolingDown resolve.Code   = "cooling_down"
)

// coolingDecision repeats what a person said to this very call a moment ago.
func (s *Service) coolingDecision(r *Request) resolve.Decision {
	who, said := r.By, "denied this very call"
	if who == "" {
		who = "somebody"
	}
	words := r.Reason
	if r.Answer != "" {
		said, words = "answered this very call instead of letting it run", r.Answer
	}
	detail := who + " " + said
	if words != "" {
		detail += ": " + strings.TrimRight(words, ".")
	}
	detail += ". It is not asked again before " + clockWords(r.Closed.Add(s.cfg.CoolDown))

	return resolve.Decision{
		Outcome: resolve.Deny,
		Message: detail,
		Reasons: []resolve.Reason{{
			Source: FromAnswer,
			Code:   CodeCoolingDown,
			Detail: detail,
		}},
	}
}

// granted uses a standing approval that covers the call, if there is one.
func (o *opening) granted(tx Tx) (bool, error) {
	live, err := tx.Live(o.c.Agent.ID, o.call.Target(), o.now)
	if err != nil {
		return false, err
	}
	for _, g := range live {
		if !o.covered(g) {
			continue
		}
		g.Uses++
		tx.SaveGrant(g)
		o.out.Outcome = resolve.Allow
		o.out.Grant = g
		o.remember(tx, Memory{Grant: g.ID})
		e := g.event(EventGrantUsed, o.in.Asker.Token, map[string]any{
			"binding":   o.binding,
			"plan":      o.c.Plan.Version(),
			"principal": o.call.Principal,
			"session":   o.call.Session,
			"person":    o.in.Asker.Person,
			"owners":    list(o.owners),
			"rules":     rulesOf(&o.d).facts(),
			"stages":    stageFacts(o.stages()),
		})
		return true, o.record(tx, nil, o.s.cfg.sealArgs(e, string(o.call.Args)))
	}

	return false, nil
}

// covered reports whether a standing approval lets this call run: it is
// this asker's, its bounds hold the call, and what it fulfilled is all
// that the rules ask for now.
func (o *opening) covered(g *Grant) bool {
	barred := slices.Concat(o.askers, o.owners)

	return among(g.Runtimes, g.RuntimePeople, o.in.Asker) &&
		!slices.ContainsFunc(g.By, func(id string) bool { return slices.Contains(barred, id) }) &&
		g.fulfils(rulesOf(&o.d), o.stages()) &&
		g.Covers(&o.call, o.c.Plan.Version(), require(&o.d).Grants, o.now)
}

// stages are what the approval of this call takes.
func (o *opening) stages() []policy.Stage {
	stages := require(&o.d).Stages
	if len(stages) == 0 {
		stages = []policy.Stage{anyone()}
	}
	if o.unknown {
		stages = oneMore(stages)
	}

	return stages
}

func (o *opening) create(tx Tx) error {
	id, err := newID("apr_", o.now, o.s.random)
	if err != nil {
		return fmt.Errorf("make an id: %w", err)
	}
	r := &Request{
		ID:       id,
		Tenant:   o.in.Tenant,
		Version:  1,
		Agent:    o.c.Agent,
		Replaces: o.in.Replaces,
		Requester: Requester{
			Runtime:   o.in.Asker.Token,
			Person:    o.in.Asker.Person,
			Unknown:   o.unknown,
			Principal: o.call.Principal,
			Session:   o.call.Session,
			Owners:    o.owners,
		},
		Revisions: []Revision{o.c.revision(o.call, o.binding, o.d)},
	}
	r.Revisions[0].At = o.now
	if o.old != nil {
		o.old.Replaced = id
		o.touch(o.old)
	}
	events := r.open(o.now, o.inTime(require(&o.d)), o.s.cfg)
	o.made = r
	o.remember(tx, Memory{Request: id})
	o.out.Outcome = resolve.Ask
	o.out.Request = r
	return o.record(tx, r, events...)
}

// inTime gives people no longer than the asker waits. Nobody's silence
// is consent then: the time is not the one that the rules took for
// enough.
func (o *opening) inTime(q policy.Require) policy.Require {
	if o.within == 0 || o.within >= cmp.Or(q.Within, o.s.cfg.Within) {
		return q
	}

	q.Within = o.within
	if q.OnTimeout == policy.TimeoutApprove {
		q.OnTimeout = policy.TimeoutDeny
	}

	return q
}

// supersede ends the request that this call stands for, whatever
// becomes of the call.
func (o *opening) supersede(tx Tx) error {
	if o.in.Replaces == "" {
		return nil
	}
	old, err := o.last, error(nil)
	if old == nil || old.ID != o.in.Replaces {
		if old, err = tx.Request(o.in.Replaces); err == nil {
			err = o.tick(tx, old)
		}
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return &InputError{"replaces", "the id of an earlier request"}
	case err != nil:
		return err
	case old.Question != nil:
		return &InputError{
			"replaces",
			"a request for the approval of a call: a question is withdrawn, not replaced",
		}
	case old.Agent.ID != o.c.Agent.ID || old.Requester.Principal != o.call.Principal ||
		old.Requester.Session != o.call.Session:
		return &InputError{"replaces", "a request of the same agent, principal and session"}
	case !old.State.Open():
		return nil
	}

	e := old.withdraw(BySupersede, o.in.Asker.Token, "", o.now)
	o.touch(old)
	o.old = old
	return o.record(tx, old, e)
}
