package approval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// Open decides a call and creates a request if people must be asked. Identical open requests share
// one request (threat 26). A call that was denied a moment ago is denied again. A call that a
// standing approval covers may run.
func (s *Service) Open(ctx context.Context, in OpenInput) (*Opened, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	o, err := s.opening(ctx, in)
	if err != nil {
		return nil, err
	}
	if o.binding = o.d.Binding; o.binding == "" {
		o.binding, _ = o.c.Plan.Bind(in.Call) // an unreadable call has no binding, and is denied
	}
	if o.past || o.d.Outcome == resolve.Ask {
		if o.cantAsk = o.lookUp(ctx); o.cantAsk != nil && !o.past {
			return nil, o.cantAsk
		}
	}

	out, err := o.commit(ctx, o.run)
	o.watched(out, err)
	if err != nil || out.Outcome != resolve.Ask || out.Shared {
		return out, err
	}
	// The request is already committed, so an error of the directory is ignored here. Readers of
	// the request get the shortages again later.
	out.Unfillable, _ = s.Shortages(ctx, out.Request)

	return out, nil
}

// lookUp asks the directory about the people who ask.
func (o *opening) lookUp(ctx context.Context) (err error) {
	if o.owners, err = o.s.owners(ctx, o.in.Tenant, o.c); err != nil {
		return err
	}
	if o.askers, err = o.s.askers(ctx, o.in); err != nil {
		return err
	}
	o.unknown, err = o.s.unknown(ctx, o.in.Tenant, o.in.Call.Principal)

	return err
}

// watched notifies the watcher of the plan's decision about the call, unless a freeze denied the
// call.
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

// opening is the state of one call of Open or Ask.
type opening struct {
	s       *Service
	in      OpenInput
	c       *Compiled
	call    resolve.Call
	d       resolve.Decision
	binding string
	owners  []string
	askers  []string
	unknown bool // the directory does not contain the principal
	now     time.Time
	out     *Opened
	last    *Request // the newest request with the same binding, of any asker
	own     *Request // the open request that this asker's identical call led to, if it is not last
	old     *Request // the request that this one replaces
	touched []*Request
	made    *Request

	// past is set if the rules read past calls, so that the call is decided in the transaction.
	past     bool
	found    bool   // last and own are loaded
	cantAsk  error  // the directory failed; set only with past
	ran      string // the id of the run that the call repeats
	granting bool   // a standing approval let that run through
	recorded bool   // set if the transaction recorded an event

	question *Question // only for Ask
}

// opening decides a call that has already been checked.
func (s *Service) opening(ctx context.Context, in OpenInput) (*opening, error) {
	c, err := s.plans.Plan(ctx, in.Tenant, in.Agent)
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	o := &opening{s: s, in: in, c: c, call: in.Call.Recorded(), past: c.readsPast(in.Call, now)}
	if o.past {
		return o, nil
	}
	o.d = c.decide(in.Call, now, pastCalls{known: true})
	if in.Ask != "" {
		o.d = asked(c.Plan, in.Call, o.d, in.Ask)
	}
	return o, nil
}

// FromAsker and CodeAsked are the reason for asking people about a call that the rules allow,
// because the asker requested it.
const (
	FromAsker resolve.Source = "asker"
	CodeAsked resolve.Code   = "asked"
)

// asked returns the decision for a caller that wants people to be asked even if the rules allow the
// call.
func asked(plan *resolve.Plan, call *resolve.Call, d resolve.Decision, why string) resolve.Decision {
	if d.Outcome != resolve.Allow {
		return d
	}
	d.Outcome, d.Message = resolve.Ask, why
	var err error
	if d.Binding, err = plan.Bind(call); err != nil {
		d.Outcome = resolve.Deny // without a binding, an approval would not be bound to a call
	}
	d.Reasons = []resolve.Reason{{Source: FromAsker, Code: CodeAsked, Detail: why}}
	return d
}

// asks returns the asker's reason for asking people about a call that the rules allow. It returns
// an empty string if the rules themselves asked.
func (r *Request) asks() string {
	for _, reason := range r.Revisions[0].Decision.Reasons {
		if reason.Source == FromAsker {
			return reason.Detail
		}
	}
	return ""
}

// commit runs do in one transaction. The store may start the transaction more than once, so each
// attempt resets the state of o.
func (o *opening) commit(ctx context.Context, do func(Tx) error) (*Opened, error) {
	if err := o.room(ctx); err != nil {
		return nil, err
	}
	err := o.s.store.Update(ctx, o.in.Tenant, func(tx Tx) error {
		o.now = o.s.clock.Now()
		o.last = nil
		o.own = nil
		o.found = false
		o.ran = ""
		o.old = nil
		o.touched = nil
		o.made = nil
		o.recorded = false
		if o.past {
			if err := o.decide(tx); err != nil {
				return err
			}
		}
		o.out = &Opened{
			Decision:           o.d,
			Binding:            o.binding,
			ReplacePermissions: o.d.Outcome == resolve.Allow && o.c.Plan.Options().ReplacePermissions,
		}
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
		// Insert after saving the request that this one replaces: a store holds at most one pending
		// request per call.
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

// size returns the approximate number of bytes that are stored for the call.
func (o *opening) size() int64 {
	size := recordWeight + len(o.call.Args) + len(o.call.ParentInput)
	if o.question != nil {
		for _, text := range o.question.parts() {
			size += len(text)
		}
	}
	return int64(size)
}

// room returns an error if the quota is used up. The number of open requests only matters if people
// must be asked.
func (o *opening) room(ctx context.Context) error {
	if err := o.s.loads.room(o.in.Tenant, o.in.Asker.Token, o.size(), o.s.clock.Now()); err != nil {
		return err
	}
	if !o.past && o.d.Outcome != resolve.Ask && o.question == nil {
		return nil
	}
	return o.s.loads.look(ctx, o.s.store, o.in.Tenant, o.s.clock.Now())
}

// count adds the stored call to the quota's counters.
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

// unknown reports whether the directory does not contain the principal. It returns false if the
// call has no principal or if the tenant accepts unknown principals.
func (s *Service) unknown(ctx context.Context, tenant, principal string) (bool, error) {
	if principal == "" || s.cfg.AcceptUnknown != nil && s.cfg.AcceptUnknown(tenant) {
		return false, nil
	}
	_, known, err := s.known(ctx, tenant, principal)

	return !known, err
}

// askers returns the ids of the people that the token, its owner and the principal resolve to in
// the directory.
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

// knownAsker returns an error if the directory does not contain the owner of the token. Such an
// owner would not be excluded under any name, and could approve under the name that the directory
// has.
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
		if err := o.saveRun(tx, Memory{}); err != nil {
			return err
		}
		return o.record(tx, nil, o.event(EventAllowed, nil))
	case resolve.Ask:
		if o.cantAsk != nil {
			return o.cantAsk
		}
		return o.ask(tx)
	}

	return o.deny(tx, "policy")
}

// stopped denies a call that a freeze stops. It runs first, because not even the answer to an
// earlier call may let anything run during a freeze.
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

// latest loads the newest request for the same call and the one that this asker's call led to, and
// applies the effects of time to them.
func (o *opening) latest(tx Tx) error {
	if o.d.Outcome != resolve.Ask {
		return nil
	}
	return o.findLatest(tx)
}

func (o *opening) findLatest(tx Tx) (err error) {
	if o.found {
		return nil
	}
	o.found = true
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

// touch marks a request to be saved once, at the end of the transaction.
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
	e := Event{Type: kind, Actor: o.in.Asker.Token, Facts: all}.sealing("history", figuresText(&o.out.Decision))
	return o.s.cfg.sealArgs(e, string(o.call.Args))
}

func (o *opening) record(tx Tx, r *Request, events ...Event) error {
	o.recorded = true
	return o.s.append(tx, o.in.Tenant, o.now, r, events...)
}
