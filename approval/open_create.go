package approval

import (
	"slices"

	"cmp"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

func (o *opening) create(tx Tx) error {
	r, err := o.request("apr_")
	if err != nil {
		return err
	}
	r.Revisions = []Revision{o.c.revision(o.call, o.binding, o.d)}
	r.Revisions[0].At = o.now
	if o.old != nil {
		o.old.Replaced = r.ID
		o.touch(o.old)
	}
	if o.last != nil && o.last.State.Open() {
		o.s.keepFound(tx, o.last, o.binding, o.now) // an approval of others, which this request hides from Latest
	}
	events := r.open(o.now, o.inTime(require(&o.d)), o.s.cfg)
	return o.asks(tx, r, Memory{}, events)
}

// request returns a new request for a call, or for a question about it.
func (o *opening) request(prefix string) (*Request, error) {
	id, err := newID(prefix, o.now, o.s.random)
	if err != nil {
		return nil, fmt.Errorf("make an id: %w", err)
	}
	return &Request{
		ID:       id,
		Tenant:   o.in.Tenant,
		Version:  1,
		Agent:    o.c.Agent,
		Replaces: o.in.Replaces,
		Context:  slices.Clone(o.in.Context),
		Requester: Requester{
			Runtime:   o.in.Asker.Token,
			Person:    o.in.Asker.Person,
			Unknown:   o.unknown,
			Principal: o.call.Principal,
			Session:   o.call.Session,
			Owners:    o.owners,
		},
	}, nil
}

// asks registers r for insertion and sets it as the result.
func (o *opening) asks(tx Tx, r *Request, m Memory, events []Event) error {
	m.Request = r.ID
	o.made = r
	o.remember(tx, m)
	o.out.Outcome = resolve.Ask
	o.out.Request = r
	o.tellPermitAge()
	return o.record(tx, r, events...)
}

// tellPermitAge sets the tenant's own permit age in the result. Questions have no permit.
func (o *opening) tellPermitAge() {
	if age := o.s.cfg.ownPermitAge(o.in.Tenant); age > 0 && o.question == nil {
		o.out.PermitAge = policy.FormatDuration(age)
	}
}

// inTime limits the deadline to the time that the asker waits. A shortened deadline must not
// approve by timeout, because the rules accept that only for the full time.
func (o *opening) inTime(q policy.Require) policy.Require {
	if o.in.Within == 0 || o.in.Within >= cmp.Or(q.Within, o.s.cfg.Within) {
		return q
	}

	q.Within = o.in.Within
	if q.OnTimeout == policy.TimeoutApprove {
		q.OnTimeout = policy.TimeoutDeny
	}

	return q
}

// supersede withdraws the request that this call replaces, whatever the decision on the new call
// is.
func (o *opening) supersede(tx Tx) error {
	if o.in.Replaces == "" {
		return nil
	}
	old, err := o.last, error(nil)
	if o.own != nil && o.own.ID == o.in.Replaces {
		old = o.own
	}
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
