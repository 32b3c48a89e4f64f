package approval

import (
	"context"
	"errors"
	"maps"

	"github.com/assent-dev/assent/resolve"
)

// Report is the result of a call, as a runtime reports it.
type Report string

// The results of a call.
const (
	Observed Report = "observed" // it is about to run without waiting: the runtime only observes
	Returned Report = "returned" // it ran and succeeded
	Failed   Report = "failed"   // it ran and failed
	NotRun   Report = "not_run"  // it was let through, and then the runtime did not run it
)

// The event types of reports. They record what a runtime claims, and decide nothing.
const (
	EventCallObserved = "call_observed"
	EventCallReturned = "call_returned"
	EventCallFailed   = "call_failed"
	EventCallNotRun   = "call_not_run"
)

// ReportInput is the input of Report.
type ReportInput struct {
	Tenant string
	Asker  Asker // who reports; only about calls of its own
	Agent  string
	Call   *resolve.Call
	Report Report
	Opened string // idempotency key with which the asker opened the call, if known
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
		return &InputError{"report", "observed, returned, failed or not_run"}
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

// event returns the event type of a report, or an empty string if the report is invalid.
func (r Report) event() string {
	switch r {
	case Observed:
		return EventCallObserved
	case Returned:
		return EventCallReturned
	case Failed:
		return EventCallFailed
	case NotRun:
		return EventCallNotRun
	}

	return ""
}

// Report records in the ledger what a runtime reports about a call, and how its run ended for rules that
// count past calls. For an observed call it also records what the rules decide. It changes no request,
// and a repeated report writes nothing. It returns ErrKeyReuse if the key was used for another report or
// if Opened belongs to another call, and ErrNotFound if Opened belongs to another agent's call.
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

// reporting is the state of one call of Report.
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

// run writes the report in one transaction, which the store may start more than once.
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
	if err := r.saveOutcome(tx, of, now); err != nil {
		return err
	}

	return r.s.append(tx, r.in.Tenant, now, nil, r.event(of))
}

// request returns the request for the reported call: the one that was opened with the key Opened, or
// the latest one with the binding, which is another one if an identical call was opened since. It
// returns nil if no request is known.
func (r *reporting) request(tx Tx) (*Request, error) {
	of, err := tx.Latest(r.binding)
	if err != nil {
		return nil, err
	}
	if of != nil && !of.AskedBy(r.in.Asker) {
		of = nil
	}
	if r.in.Opened == "" {
		return of, nil
	}
	named, err := r.opened(tx)
	if named == nil && of != nil && (err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrKeyReuse)) {
		return of, nil
	}

	return named, err
}

func (r *reporting) opened(tx Tx) (*Request, error) {
	m, err := tx.Remembered(r.in.Asker.Own(r.in.Opened))
	if m == nil || m.Request == "" || isRun(m.Request) || err != nil {
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

// event returns the ledger event. The facts state and approved hold the state and the binding of
// the request when the call was reported, so that a call without a permit can be detected.
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
