package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
)

// ByHistory is the cause for ending an approval that was not used: calls that ran in the meantime count for a
// rule, which denies the call now or asks although it did not ask before.
const ByHistory Cause = "history"

// runPrefix is the prefix of the ids of calls that ran without a request.
const runPrefix = "run_"

// pastCalls are the past calls that the rules read for one call.
type pastCalls struct {
	all   []Past
	known bool // false if there are too many, or a restore lost some
}

// without returns the calls except those with some ids.
func (p pastCalls) without(ids ...string) pastCalls {
	p.all = slices.DeleteFunc(slices.Clone(p.all), func(past Past) bool { return slices.Contains(ids, past.ID) })

	return p
}

// readsPast reports whether a rule that meets a call reads past calls.
func (c *Compiled) readsPast(call *resolve.Call, now time.Time) bool {
	one := *call
	one.At = now

	return len(c.Plan.Histories(&one)) > 0
}

// pastCalls reads the past calls for a call.
func (c *Compiled) pastCalls(
	call *resolve.Call, now time.Time, read func(PastQuery) ([]Past, error),
) (pastCalls, error) {
	one := *call
	one.At = now
	out := pastCalls{known: true}
	seen := map[[2]string]bool{}
	histories := c.Plan.Histories(&one)
	var reads []string
	for _, h := range histories {
		reads = append(reads, pathsOf(h.Test)...)
	}
	unknown := func(kept []string) func(path string) bool {
		return func(path string) bool { return !slices.Contains(kept, path) }
	}
	for _, h := range histories {
		found, err := read(c.pastQuery(&h, &one))
		if err != nil {
			return out, fmt.Errorf("read the past calls: %w", err)
		}
		marks := 0
		for _, p := range found {
			key := [2]string{p.ID, string(p.State)}
			if p.Call.Kind != resolve.Delegation && slices.ContainsFunc(reads, unknown(p.Kept)) {
				p.Call.Args = resolve.Raw(unreadablePast)
			}
			switch {
			case p.State == PastRestored: // calls from before it may be missing
				marks++
				out.known = out.known && !h.From.Before(p.At)
			case p.Ends != nil && !p.Ends.After(now), seen[key]: // columns of a store are not trusted
			case inGroup(&h, &p):
				seen[key] = true
				out.all = append(out.all, p)
			}
		}
		out.known = out.known && len(found)-marks <= resolve.MostPast
	}
	out.known = out.known && len(out.all) <= resolve.MostPast
	if !out.known {
		out.all = nil
	}

	return out, nil
}

// pastQuery returns the query for the calls that a test reads.
func (c *Compiled) pastQuery(h *resolve.HistoryQuery, call *resolve.Call) PastQuery {
	// One call more than a decision looks at shows that there are too many.
	q := PastQuery{State: h.State, From: h.From, Now: call.At, Limit: resolve.MostPast + 1}
	for _, k := range h.Keys {
		switch k.By {
		case "agent":
			q.Agent = k.Value
		case "principal":
			q.Principal = k.Value
		case "session":
			q.Session = k.Value
		case "target":
			target := c.Plan.Past(call)
			q.Target = &target
		}
	}
	if of := h.Test.Of; of != nil {
		q.Names = of.Targets
		for _, kind := range of.Kinds {
			q.Kinds = append(q.Kinds, resolve.Kind(kind))
			if resolve.Kind(kind) == resolve.Delegation {
				q.Kinds = append(q.Kinds, resolve.Skill) // a skill call is a delegation too
			}
		}
	}

	return q
}

// inGroup reports whether a past call may have the values that a test groups by.
func inGroup(h *resolve.HistoryQuery, p *Past) bool {
	return !slices.ContainsFunc(h.Keys, func(k resolve.HistoryKey) bool {
		if !strings.HasPrefix(k.By, "args.") {
			return false
		}
		text, found := p.Call.Key(k.By)

		return found == condition.False || found == condition.True && text != k.Value
	})
}

// decide decides a call with the past calls that were read for it, whatever history the call itself
// carries. A past call with a later time, which the clock of another replica gave it, counts as one of
// this moment.
func (c *Compiled) decide(call *resolve.Call, now time.Time, past pastCalls) resolve.Decision {
	one := *call
	one.At, one.History, one.HistoryKnown = now, nil, past.known
	for i := range past.all {
		p := past.all[i].Call
		p.At, p.States = past.all[i].At, []condition.PastState{past.all[i].State}
		if p.At.After(now) {
			p.At = now
		}
		one.History = append(one.History, p)
	}

	return c.Plan.Decide(&one)
}

// decideNow decides a call outside of a transaction. The past calls of the request with the given id are
// left out.
func (s *Service) decideNow(
	ctx context.Context, tenant string, c *Compiled, call *resolve.Call, request string,
) (resolve.Decision, error) {
	now := s.clock.Now()
	past, err := c.pastCalls(call, now, func(q PastQuery) ([]Past, error) {
		return s.store.Pasts(ctx, tenant, q)
	})
	if err != nil {
		return resolve.Decision{}, err
	}

	return c.decide(call, now, past.without(request)), nil
}

// decide decides the call in the transaction, with the past calls that the store has now. It leaves out
// what is recorded of this call itself: an open request that it joins, and the run that it repeats.
func (o *opening) decide(tx Tx) error {
	past, err := o.c.pastCalls(o.in.Call, o.now, tx.Pasts)
	if err != nil {
		return err
	}
	if err := o.findRun(tx); err != nil {
		return err
	}
	if o.question == nil {
		if err := o.findLatest(tx); err != nil {
			return err
		}
	}
	own := []string{o.ran}
	for _, r := range []*Request{o.last, o.own} {
		if r != nil && r.State.Open() && r.sharedWith(o.in.Asker) {
			own = append(own, r.ID)
		}
	}
	past = past.without(own...)
	if o.question != nil {
		past = past.withoutLast(o.c, o.in.Call)
	}
	o.d = o.c.decide(o.in.Call, o.now, past)
	// The run that is presented again was counted when it was let through. Calls that ran since then were
	// let through with this one counted, and don't take that back.
	if o.ran != "" && !o.granting && o.d.Outcome != resolve.Allow && !slices.ContainsFunc(o.d.Reasons, withoutHistory) {
		o.d = resolve.Decision{Outcome: resolve.Allow, Configuration: o.c.Plan.Configuration()}
	}
	if o.in.Ask != "" {
		o.d = asked(o.c.Plan, o.in.Call, o.d, o.in.Ask)
	}

	return nil
}

// withoutHistory reports whether a rule asked or denied without a test of past calls.
func withoutHistory(r resolve.Reason) bool {
	return !slices.ContainsFunc(r.Matchers, func(m resolve.Matcher) bool { return m.History != nil })
}

// withoutLast leaves out the last run of a call that asks a question while it runs.
func (p pastCalls) withoutLast(c *Compiled, call *resolve.Call) pastCalls {
	this, last := c.Plan.Past(call), -1
	for i := range p.all {
		same := p.all[i].State == condition.PastRan && p.all[i].Ends == nil
		for _, by := range []string{"agent", "principal", "session", "target"} {
			a, _ := p.all[i].Call.Key(by)
			b, _ := this.Key(by)
			same = same && a == b
		}
		if same && (last < 0 || p.all[i].At.After(p.all[last].At)) {
			last = i
		}
	}
	if last >= 0 {
		p.all = slices.Delete(slices.Clone(p.all), last, last+1)
	}

	return p
}

// runAge returns how long an allowed call under the same key is the same run. It is the permit age.
func (o *opening) runAge() time.Duration {
	if age := o.s.cfg.ownPermitAge(o.in.Tenant); age > 0 {
		return age
	}

	return o.s.cfg.PermitAge
}

// findRun loads the run that an earlier call with the same key and input led to.
func (o *opening) findRun(tx Tx) error {
	if o.ran = ""; o.in.Key == "" {
		return nil
	}
	m, err := tx.Remembered(o.key())
	if err != nil || m == nil || !o.now.Before(m.Expires) || !isRun(m.Request) || m.Digest != o.digest() {
		return err
	}
	states, err := tx.PastOf(m.Request)
	if err != nil {
		return err
	}
	for _, p := range states {
		if p.State == condition.PastRan && o.now.Before(p.At.Add(o.runAge())) {
			o.ran, o.granting = m.Request, m.Grant != ""
		}
	}

	return nil
}

// isRun reports whether an id is that of a run without a request.
func isRun(id string) bool { return strings.HasPrefix(id, runPrefix) }

// pastRun returns the record of a run of the call, and false if no rule may count it.
func (o *opening) pastRun() (Past, bool) {
	rules := o.s.plans.Past(o.in.Tenant)
	call := rules.call(o.c.Agent.ID, &o.call)
	p, counts := rules.ran("", &call, o.now)

	return p, counts && o.c.Agent.ID != AdministrationAgent
}

// saveRun records that the call may run, if a rule may count it. m is what is remembered for the key.
func (o *opening) saveRun(tx Tx, m Memory) error {
	p, counts := o.pastRun()
	if counts {
		if err := o.findRun(tx); err != nil {
			return err
		}
		m.Request = o.ran
		if o.ran == "" {
			id, err := newID(runPrefix, o.now, o.s.random)
			if err != nil {
				return fmt.Errorf("make an id: %w", err)
			}
			p.ID, m.Request = id, id
			tx.SavePast(p)
		}
	}
	if counts || m.Grant != "" {
		o.remember(tx, m)
	}

	return nil
}

// savePasts records the states that a request went through with an event.
func (s *Service) savePasts(tx Tx, r *Request, e Event, now time.Time) error {
	if s.plans == nil { // upkeep has no plans, and only ends permits
		if e.Type == EventPermitExpired || e.Type == EventExpired {
			tx.DropPast(r.ID, condition.PastRan)
		}
		return nil
	}
	rules := s.plans.Past(r.Tenant)
	if rules == nil || r.Question != nil || r.Agent.ID == AdministrationAgent {
		return nil
	}
	call := rules.call(r.Agent.ID, &r.Current().Call)
	save := func(state condition.PastState) {
		if p, counts := rules.past(r.ID, state, &call, now); counts {
			tx.SavePast(p)
		}
	}
	run := func(ends *time.Time) (counts bool) {
		p, counts := rules.ran(r.ID, &call, now)
		if counts {
			p.Ends = ends
			tx.SavePast(p)
		}
		return counts
	}
	switch e.Type {
	case EventOpened:
		save(condition.PastAsked)
	case EventApproved:
		save(condition.PastApproved)
		run(&r.Permit.Expires) // a reservation
	case EventConsumed:
		if !run(nil) {
			return keepRun(tx, r.ID)
		}
	case EventRequestDenied:
		save(condition.PastDenied)
	case EventPermitExpired:
		tx.DropPast(r.ID, condition.PastRan)
	case EventExpired:
		tx.DropPast(r.ID, condition.PastRan)
		switch r.Cause {
		case ByLateDeny:
			save(condition.PastDenied)
		case ByDeadline:
			save(condition.PastExpired)
		}
	}

	return nil
}

// keepRun makes the reservation of a call that has run a run, although no rule counts it at the moment.
func keepRun(tx Tx, id string) error {
	states, err := tx.PastOf(id)
	for _, p := range states {
		if p.State == condition.PastRan && p.Ends != nil {
			p.Ends = nil
			tx.SavePast(p)
		}
	}

	return err
}

// recount decides an approved call again with the calls that ran in the meantime. It returns a step that
// ends the approval if the rules deny the call, or if one asks that did not ask when people approved.
func (s *Service) recount(
	tx Tx, r *Request, c *Compiled, by string, now time.Time,
) (ended bool, out step, err error) {
	call := &r.Current().Call
	if !c.readsPast(call, now) {
		return false, step{}, nil
	}
	past, err := c.pastCalls(call, now, tx.Pasts)
	if err != nil {
		return false, step{}, err
	}
	d := c.decide(call, now, past.without(r.ID))
	var before Rules
	for i := range r.Revisions {
		before = append(before, rulesOf(&r.Revisions[i].Decision)...)
	}
	if d.Outcome == resolve.Allow || d.Outcome == resolve.Ask && before.include(rulesOf(&d)) {
		return false, step{}, nil
	}
	e := r.withdraw(ByHistory, by, "", now)
	e.Facts["rules"] = ruleFacts(&Revision{Decision: d})
	e = e.sealing("history", figuresText(&d))

	return true, step{events: []Event{e}, changed: true, refused: &CountedError{Decision: d}}, nil
}

// CountedError is returned if an approval can't be used, because the rules count calls that ran in the
// meantime. It is an ErrStale: the caller must ask again.
type CountedError struct{ Decision resolve.Decision }

// Error names the outcome and the rules.
func (e *CountedError) Error() string {
	does := "require a new approval"
	if e.Decision.Outcome == resolve.Deny {
		does = "deny the call now"
	}
	text := "calls that ran since it was approved count, and the rules " + does
	for _, r := range e.Decision.Reasons {
		text += ": " + ruleWords(r) + ": " + r.Detail
		break
	}

	return text
}

// Is reports whether target is ErrStale.
func (e *CountedError) Is(target error) bool { return target == ErrStale }

// figuresText returns the numbers that tests of past calls compared, one line for each.
func figuresText(d *resolve.Decision) string {
	var lines []string
	for _, r := range d.Reasons {
		for _, m := range r.Matchers {
			if m.History != nil {
				lines = append(lines, r.Policy+"/"+r.Rule+": "+m.Test+": "+m.History.String())
			}
		}
	}

	return strings.Join(lines, "\n")
}

// saveOutcome records how a run ended, as its runtime reports it. The first report counts. A report about
// a call that is not known to have run records nothing. After a report, using the key of an allowed call
// again counts as a new run.
func (r *reporting) saveOutcome(tx Tx, of *Request, now time.Time) error {
	rules := r.s.plans.Past(r.in.Tenant)
	if rules == nil || r.in.Report == Observed {
		return nil
	}
	id := ""
	if of != nil {
		id = of.ID
	}
	if r.in.Opened != "" {
		key := r.in.Asker.Own(r.in.Opened)
		m, err := tx.Remembered(key)
		if err != nil {
			return err
		}
		if m != nil && isRun(m.Request) {
			id = m.Request
			tx.Remember(key, Memory{Digest: m.Digest, Request: m.Request, Grant: m.Grant, Expires: now})
		}
	}
	states := map[Report]condition.PastState{Returned: condition.PastSucceeded, Failed: condition.PastFailed}
	state := states[r.in.Report]
	if id == "" || state == "" {
		return nil
	}
	known, err := tx.PastOf(id)
	if err != nil {
		return err
	}
	var ran *Past
	for i := range known {
		switch p := &known[i]; {
		case p.State == condition.PastSucceeded, p.State == condition.PastFailed:
			return nil
		case p.State == condition.PastRan && p.Ends == nil:
			ran = p
		}
	}
	until, tested := rules.until(now, state)
	if ran == nil || !tested || ran.Call.AgentID != r.in.Agent || ran.Call.Kind != r.call.Kind {
		return nil
	}
	ran.State, ran.At, ran.Until = state, now, until
	tx.SavePast(*ran)

	return nil
}
