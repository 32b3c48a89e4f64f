package approval

import (
	"context"
	"errors"
	"maps"

	"github.com/assent-dev/assent/resolve"
)

// Report is what a runtime says became of a call.
type Report string

// What may have become of a call.
const (
	Observed Report = "observed" // it is about to run, and nothing holds it up: the runtime only observes
	Returned Report = "returned" // it ran, and ended well
	Failed   Report = "failed"   // it ran, and ended badly
)

// The entries of reports: the runtime's word, which decides nothing.
const (
	EventCallObserved = "call_observed"
	EventCallReturned = "call_returned"
	EventCallFailed   = "call_failed"
)

// ReportInput tells what became of a call.
type ReportInput struct {
	Tenant string
	Asker  Asker // who tells: only of calls of its own
	Agent  string
	Call   *resolve.Call
	Report Report
	Opened string // key by which the asker opened the call; "" where it doesn't know one
	Key    string // idempotency key of the report; required
}

func (in *ReportInput) check() error {
	if err := checkCall(in.Call); err != nil {
		return err
	}
	if err := in.Asker.speaksFor(in.Call.Principal); err != nil {
		return err
	}
	if in.Report.event() == "" {
		return &InputError{"report", "observed, returned or failed"}
	}
	if in.Key == "" {
		return &InputError{"key", "one: a report that is sent again must stay the same report"}
	}

	return errors.Join(
		in.Asker.Check(),
		in.Asker.mayAskFor(in.Agent),
		checkName("key", in.Key),
		checkName("opened", in.Opened),
	)
}

// event is the entry of a report; "" where there is no such report.
func (r Report) event() string {
	switch r {
	case Observed:
		return EventCallObserved
	case Returned:
		return EventCallReturned
	case Failed:
		return EventCallFailed
	}

	return ""
}

// Report writes into the ledger what a runtime says became of a call:
// of one that was only observed, also what the rules say of it. It
// changes no request. A repetition writes nothing. ErrKeyReuse: the key
// told another report, or opened another call. ErrNotFound: it opened
// one of another agent.
func (s *Service) Report(ctx context.Context, in ReportInput) error {
	if err := in.check(); err != nil {
		return err
	}
	c, err := s.plans.Plan(ctx, in.Tenant, in.Agent)
	if err != nil {
		return err
	}
	r := reporting{s: s, in: in, c: c, call: in.Call.Recorded()}
	if in.Report == Observed {
		if r.d, err = s.Decide(ctx, in.Tenant, in.Agent, in.Call); err != nil {
			return err
		}
	}
	if r.binding, err = c.Plan.Bind(in.Call); err != nil {
		return &InputError{"call", "one that ran, with arguments that all read alike: " + err.Error()}
	}

	return r.commit(ctx)
}

// reporting is one call of Report.
type reporting struct {
	s       *Service
	in      ReportInput
	c       *Compiled
	d       resolve.Decision
	call    resolve.Call
	binding string
	written bool
}

func (r *reporting) commit(ctx context.Context) error {
	size := int64(recordWeight + len(r.call.Args))
	if err := r.s.loads.room(r.in.Tenant, r.in.Asker.Token, size, r.s.clock.Now()); err != nil {
		return err
	}
	if err := r.s.store.Update(ctx, r.in.Tenant, r.run); err != nil {
		return err
	}
	if r.written {
		r.s.loads.recorded(r.in.Tenant, r.in.Asker.Token, size)
	}

	return nil
}

// run does it in one transaction, which may begin more than once.
func (r *reporting) run(tx Tx) error {
	r.written = false
	now := r.s.clock.Now()
	key := r.in.Asker.Own("report:" + digestOf(r.in.Key))
	digest := digestOf(r.in.Agent, r.binding, string(r.in.Report), r.in.Opened)
	m, err := tx.Remembered(key)
	switch {
	case err != nil:
		return err
	case m != nil && now.Before(m.Expires) && m.Digest != digest:
		return ErrKeyReuse
	case m != nil && now.Before(m.Expires):
		return nil
	}

	of, err := r.request(tx)
	if err != nil {
		return err
	}
	tx.Remember(key, Memory{Digest: digest, Expires: now.Add(r.s.cfg.Remember)})
	r.written = true

	return r.s.append(tx, r.in.Tenant, now, nil, r.event(of))
}

// request is the one that people were asked by about the call: that of
// this very call, or, where the files have changed since or people have
// edited it, that of its key; nil: there is none that anybody remembers.
func (r *reporting) request(tx Tx) (*Request, error) {
	of, err := tx.Latest(r.binding)
	if err != nil || of != nil && of.AskedBy(r.in.Asker) {
		return of, err
	}
	if r.in.Opened == "" {
		return nil, nil
	}

	return r.opened(tx)
}

func (r *reporting) opened(tx Tx) (*Request, error) {
	m, err := tx.Remembered(r.in.Asker.Own(r.in.Opened))
	if m == nil || m.Request == "" || err != nil {
		return nil, err
	}
	of, err := tx.Request(m.Request)
	if err != nil {
		return nil, err
	}
	was := &of.Current().Call
	switch {
	case of.Agent.ID != r.in.Agent:
		return nil, ErrNotFound
	case was.Kind != r.call.Kind || was.Target() != r.call.Target() || was.Container() != r.call.Container():
		return nil, ErrKeyReuse
	}

	return of, nil
}

// event is the entry. State and approved say what stood when it was
// told: a call that ran without its permit shows there.
func (r *reporting) event(of *Request) Event {
	all := map[string]any{
		"agent":     r.c.Agent.ID,
		"target":    r.call.Target(),
		"binding":   r.binding,
		"plan":      r.c.Plan.Version(),
		"principal": r.call.Principal,
		"session":   r.call.Session,
	}
	e := Event{Type: r.in.Report.event(), Actor: r.in.Asker.Token, Facts: all}
	if of != nil {
		e.Subject = of.ID
		maps.Copy(all, map[string]any{"state": string(of.State), "approved": of.Binding()})
	}
	if r.in.Report != Observed {
		return e
	}
	all["outcome"] = r.d.Outcome.String()
	all["rules"] = ruleFacts(&Revision{Decision: r.d})

	return r.s.cfg.sealArgs(e, string(r.call.Args))
}
