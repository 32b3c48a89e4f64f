package approval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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
	o, err := s.opening(ctx, in)
	if err != nil {
		return nil, err
	}
	if o.binding = o.d.Binding; o.binding == "" {
		o.binding, _ = o.c.Plan.Bind(in.Call) // an unreadable call has none, and is denied
	}
	if o.d.Outcome == resolve.Ask {
		if o.owners, err = s.owners(ctx, in.Tenant, o.c); err != nil {
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
	o.watched(out, err)
	if err != nil || out.Outcome != resolve.Ask || out.Shared {
		return out, err
	}
	// The request stands whatever the directory says now: who looks at
	// it later is told again.
	out.Unfillable, _ = s.Shortages(ctx, out.Request)

	return out, nil
}

// watched tells the watcher what the plan made of the call, unless a
// freeze answered it.
func (o *opening) watched(out *Opened, err error) {
	if o.s.cfg.Watcher == nil || err != nil {
		return
	}
	if len(out.Decision.Reasons) > 0 && out.Decision.Reasons[0].Source == FromFreeze {
		return
	}
	call := o.call
	o.s.cfg.Watcher.Decided(o.in.Tenant, o.c, &call, o.d.Outcome)
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
	last    *Request // the newest for this very call, whoever asked
	own     *Request // the open one that this asker's identical call made, if another than last
	old     *Request // that this one replaces
	touched []*Request
	made    *Request

	recorded bool // something of it is kept

	question *Question // of Ask
}

// opening decides a call that was checked.
func (s *Service) opening(ctx context.Context, in OpenInput) (*opening, error) {
	c, err := s.plans.Plan(ctx, in.Tenant, in.Agent)
	if err != nil {
		return nil, err
	}
	o := &opening{
		s:    s,
		in:   in,
		c:    c,
		call: in.Call.Recorded(),
		d:    c.Plan.Decide(in.Call),
	}
	if in.Ask != "" {
		o.d = asked(c.Plan, in.Call, o.d, in.Ask)
	}
	return o, nil
}

// FromAsker and CodeAsked are the reason of a call that the rules allow
// and its asker wants people to see.
const (
	FromAsker resolve.Source = "asker"
	CodeAsked resolve.Code   = "asked"
)

// asked is a decision where people are asked also when the rules allow
// the call.
func asked(plan *resolve.Plan, call *resolve.Call, d resolve.Decision, why string) resolve.Decision {
	if d.Outcome != resolve.Allow {
		return d
	}
	d.Outcome, d.Message = resolve.Ask, why
	var err error
	if d.Binding, err = plan.Bind(call); err != nil {
		d.Outcome = resolve.Deny // nobody can say what would be approved
	}
	d.Reasons = []resolve.Reason{{Source: FromAsker, Code: CodeAsked, Detail: why}}
	return d
}

// asks is why the request's asker wanted people to be asked where the
// rules allow the call; "" where the rules asked.
func (r *Request) asks() string {
	for _, reason := range r.Revisions[0].Decision.Reasons {
		if reason.Source == FromAsker {
			return reason.Detail
		}
	}
	return ""
}

// commit does it in one transaction, which may begin more than once.
func (o *opening) commit(ctx context.Context, do func(Tx) error) (*Opened, error) {
	if err := o.room(ctx); err != nil {
		return nil, err
	}
	err := o.s.store.Update(ctx, o.in.Tenant, func(tx Tx) error {
		o.out = &Opened{
			Decision:           o.d,
			Binding:            o.binding,
			ReplacePermissions: o.d.Outcome == resolve.Allow && o.c.Plan.Options().ReplacePermissions,
		}
		o.now = o.s.clock.Now()
		o.last = nil
		o.own = nil
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
		// after the ones in whose place it stands: a store holds one
		// pending request for each call
		tx.Insert(o.made)
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
	return distinctTexts(slices.Concat(c.Owners, more)), nil
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

	return out, s.knownAsker(ctx, in)
}

// knownAsker refuses to ask people for a token whose person nobody knows:
// that person would be barred by no name, and could approve under one
// that the directory has.
func (s *Service) knownAsker(ctx context.Context, in OpenInput) error {
	if in.Asker.Person == "" {
		return nil
	}
	_, known, err := s.known(ctx, in.Tenant, in.Asker.Person)
	if err == nil && !known {
		err = fmt.Errorf("the token that asks is of %q: %w", in.Asker.Person, ErrUnknownName)
	}

	return err
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
	o.out.Decision = frozenDecision(*f, o.c.Plan)
	return true, o.deny(tx, "frozen")
}

func (o *opening) deny(tx Tx, why string) error {
	o.out.Outcome = resolve.Deny
	o.out.Denied = why
	return o.record(tx, nil, o.event(EventDenied, map[string]any{"why": why}))
}

// latest finds the newest request for this very call and the one that
// this asker made by it, and lets time act on them.
func (o *opening) latest(tx Tx) (err error) {
	if o.d.Outcome != resolve.Ask {
		return nil
	}
	if o.last, err = tx.Latest(o.binding); err != nil {
		return err
	}
	if o.last != nil {
		if err := o.tick(tx, o.last); err != nil {
			return err
		}
	}
	return o.findOwn(tx)
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
	if digest := o.c.Plan.Configuration(); digest != "" {
		all["configuration"] = digest
	}
	if o.question != nil {
		all["question"] = true
	}
	maps.Copy(all, facts)
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
