package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// Open decides a call and, when people must be asked, makes the request. Identical open requests are one (threat 26), a call that was
// denied a moment ago is denied again, and a standing approval that covers the call lets it run.
func (s *Service) Open(ctx context.Context, in OpenInput) (*Opened, error) {
	c, err := s.plans.Plan(ctx, in.Tenant, in.Agent)
	if err != nil {
		return nil, err
	}
	o := opening{s: s, in: in, c: c, call: NewCall(in.Call), d: c.Plan.Decide(in.Call)}
	if o.binding = o.d.Binding; o.binding == "" {
		o.binding, _ = c.Plan.Bind(in.Call) // an unreadable call has none, and is denied
	}
	if o.d.Outcome == resolve.Ask {
		if o.owners, err = s.owners(ctx, in.Tenant, c); err != nil {
			return nil, err
		}
	}
	err = s.store.Update(ctx, in.Tenant, func(tx Tx) error {
		o.out = &Opened{Decision: o.d, Binding: o.binding}
		o.now = s.clock.Now()
		return o.run(tx)
	})
	if err != nil {
		return nil, err
	}
	if in.Replaces != "" {
		s.hub.wake(in.Replaces)
	}
	return o.out, nil
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

// opening is one call of Open.
type opening struct {
	s       *Service
	in      OpenInput
	c       *Compiled
	call    Call
	d       resolve.Decision
	binding string
	owners  []string
	now     time.Time
	out     *Opened
	old     *Request // that this one replaces
}

func (o *opening) run(tx Tx) error {
	if done, err := o.remembered(tx); done || err != nil {
		return err
	}
	f, err := frozen(tx, stops(o.c.Agent.ID))
	if err != nil {
		return err
	}
	switch {
	case f != nil:
		o.out.Decision = frozenDecision(*f)
		return o.deny(tx, "frozen")
	case o.d.Outcome == resolve.Allow:
		o.out.Outcome = OpenAllow
		return o.record(tx, nil, o.event(EventAllowed, nil))
	case o.d.Outcome != resolve.Ask:
		return o.deny(tx, "policy")
	}
	return o.ask(tx)
}

// remembered answers a repetition of an idempotency key with what became of the first call.
func (o *opening) remembered(tx Tx) (bool, error) {
	if o.in.Key == "" {
		return false, nil
	}
	m, err := tx.Remembered(o.in.Key)
	if err != nil || m == nil || !o.now.Before(m.Expires) {
		return false, err
	}
	if m.Digest != o.digest() {
		return false, ErrKeyReuse
	}
	if m.Grant != "" {
		o.out.Outcome = OpenGranted
		o.out.Grant, err = tx.Grant(m.Grant)
		return true, err
	}
	o.out.Outcome, o.out.Shared = OpenPending, true
	o.out.Request, err = tx.Request(m.Request)
	return true, err
}

// digest says whether two calls under one key are the same. The plan may have changed in between; the call may not.
func (o *opening) digest() string {
	return digestOf(o.in.Agent, o.in.Replaces, string(o.call.Kind), o.call.Target(), o.call.Args, o.call.ParentInput, o.call.Principal, o.call.Session, o.call.ToolDefinition)
}

func (o *opening) remember(tx Tx, m Memory) {
	if o.in.Key != "" {
		m.Digest, m.Expires = o.digest(), o.now.Add(o.s.cfg.Remember)
		tx.Remember(o.in.Key, m)
	}
}

func (o *opening) event(kind string, facts map[string]any) Event {
	all := map[string]any{"agent": o.c.Agent.ID, "target": o.call.Target(), "binding": o.binding, "plan": o.c.Plan.Version(),
		"principal": o.call.Principal, "session": o.call.Session, "rules": ruleFacts(&Revision{Decision: o.out.Decision})}
	for k, v := range facts {
		all[k] = v
	}
	return Event{Type: kind, Actor: o.in.Runtime, Facts: all}.sealing("args", safeText(o.call.Args))
}

func (o *opening) record(tx Tx, r *Request, events ...Event) error {
	return o.s.append(tx, o.in.Tenant, o.now, r, events...)
}

func (o *opening) deny(tx Tx, why string) error {
	o.out.Outcome, o.out.Denied = OpenDeny, why
	return o.record(tx, nil, o.event(EventDenied, map[string]any{"why": why}))
}

// ask looks for an answer that stands already, the strictest first, before it asks anew.
func (o *opening) ask(tx Tx) error {
	latest, err := tx.Latest(o.binding)
	if err != nil {
		return err
	}
	var events []Event
	if latest != nil {
		ticked, changed := o.s.due(latest, o.now)
		if events = ticked; changed {
			tx.Save(latest)
		}
		if err := o.record(tx, latest, events...); err != nil {
			return err
		}
		if latest.State == Denied && o.now.Before(latest.Closed.Add(o.s.cfg.CoolDown)) {
			o.out.Request = latest
			return o.deny(tx, "cooling_down")
		}
	}
	if err := o.supersede(tx, latest); err != nil {
		return err
	}
	if done, err := o.granted(tx); done || err != nil {
		return err
	}
	if latest != nil && latest.State.Open() {
		o.out.Outcome, o.out.Request, o.out.Shared = OpenPending, latest, true
		o.remember(tx, Memory{Request: latest.ID})
		return o.record(tx, nil, latest.event(EventShared, o.in.Runtime, nil))
	}
	return o.create(tx)
}

// granted uses a standing approval that covers the call, if there is one.
func (o *opening) granted(tx Tx) (bool, error) {
	live, err := tx.Live(o.c.Agent.ID, o.call.Target(), o.now)
	if err != nil {
		return false, err
	}
	for _, g := range live {
		if !g.Covers(&o.call, o.c.Plan.Version(), require(&o.d).Grants, o.now) {
			continue
		}
		g.Uses++
		tx.SaveGrant(g)
		o.out.Outcome, o.out.Grant = OpenGranted, g
		o.remember(tx, Memory{Grant: g.ID})
		return true, o.record(tx, nil, g.event(EventGrantUsed, o.in.Runtime, map[string]any{"binding": o.binding}).sealing("args", o.call.Args))
	}
	return false, nil
}

func (o *opening) create(tx Tx) error {
	id, err := newID("apr_", o.now, o.s.random)
	if err != nil {
		return fmt.Errorf("make an id: %w", err)
	}
	r := &Request{
		ID: id, Tenant: o.in.Tenant, Version: 1, Agent: o.c.Agent, Replaces: o.in.Replaces,
		Requester: Requester{Runtime: o.in.Runtime, Principal: o.call.Principal, Session: o.call.Session, Owners: o.owners},
		Revisions: []Revision{{Call: o.call, Binding: o.binding, Plan: o.c.Plan.Version(), Decision: o.d, At: o.now}},
	}
	if o.old != nil {
		o.old.Replaced = id
		tx.Save(o.old)
	}
	events := r.open(o.now, require(&o.d), o.s.cfg)
	tx.Insert(r)
	o.remember(tx, Memory{Request: id})
	o.out.Outcome, o.out.Request = OpenPending, r
	return o.record(tx, r, events...)
}

// supersede ends the request that this call stands for, whatever becomes of the call.
func (o *opening) supersede(tx Tx, latest *Request) error {
	o.old = nil
	if o.in.Replaces == "" {
		return nil
	}
	old, err := latest, error(nil)
	if latest == nil || latest.ID != o.in.Replaces {
		old, err = tx.Request(o.in.Replaces)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return &InputError{"replaces", "the id of an earlier request"}
	case err != nil:
		return err
	case old.Agent.ID != o.c.Agent.ID || old.Requester.Principal != o.call.Principal || old.Requester.Session != o.call.Session:
		return &InputError{"replaces", "a request of the same agent, principal and session"}
	case !old.State.Open():
		return nil
	}
	e := old.withdraw(BySupersede, o.in.Runtime, "", o.now)
	tx.Save(old)
	o.old = old
	return o.record(tx, old, e)
}
