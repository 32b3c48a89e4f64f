package approval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/quorum"
)

// open makes a new request pending. Revision 0 must already be set.
func (r *Request) open(now time.Time, require policy.Require, cfg Config) []Event {
	r.State, r.Created = Pending, now
	r.demand(require)
	if r.Requester.Unknown {
		r.Stages = quorum.Stages(r.Stages, r.AnyOf, true)
	}
	if r.Within == 0 {
		r.Within = cfg.Within
	}
	r.Deadline = now.Add(r.Within)
	r.Scheduled = scheduled(now, r.Deadline, require.Escalate)
	r.schedule()
	return []Event{r.opened(nil)}
}

// opened returns the event for the new request, with all facts that an audit needs.
func (r *Request) opened(more map[string]any) Event {
	call := r.Current().Call
	facts := map[string]any{
		"principal":         call.Principal,
		"unknown_principal": r.Requester.Unknown,
		"forbid_hidden":     r.ForbidHidden,
		"session":           call.Session,
		"plan":              r.Current().Plan,
		"deadline":          stamp(r.Deadline),
		"on_timeout":        string(r.OnTimeout),
		"stages":            stageFacts(r.Stages),
		"rules":             ruleFacts(r.Current()),
		"tool_definition":   call.ToolDefinition,
		"owners":            list(r.Requester.Owners),
		"replaces":          r.Replaces,
		"person":            r.Requester.Person,
	}
	r.alternatives(facts)
	maps.Copy(facts, more)
	if digest := r.Current().Decision.Configuration; digest != "" {
		facts["configuration"] = digest
	}
	if len(r.Context) > 0 {
		facts["context"] = len(r.Context)
	}
	return r.event(EventOpened, r.Requester.Runtime, facts).
		sealing("args", string(call.Args)).
		sealing("message", r.Current().Decision.Message).
		sealing("context", info.Text(r.Context)).
		sealing("history", figuresText(&r.Current().Decision))
}

// demand joins a requirement with the one that the request already has. The result is never weaker
// than either.
func (r *Request) demand(q policy.Require) {
	have := policy.Require{}
	for _, k := range keptParts() {
		k.read(r, &have)
	}
	if len(r.Revisions) > 1 && have.Grants.Bounds == nil && !have.Grants.Forbid {
		have.Grants.Bounds = []policy.Bound{} // the earlier rules allowed no bounds, so nothing may add some
	}

	all := have.Join(q)
	for _, k := range keptParts() {
		k.write(r, &all)
	}
}

// scheduled returns reminders at 50 % and 90 % of the time, and the escalations at the times that
// the policies set, ordered by time.
func scheduled(from, deadline time.Time, escalate []policy.Escalation) []Scheduled {
	whole := deadline.Sub(from)
	out := []Scheduled{
		{At: from.Add(whole / 2), Kind: Remind},
		{At: from.Add(whole / 10 * 9), Kind: Remind},
	}
	for _, e := range escalate {
		out = append(out, Scheduled{At: from.Add(e.After), Kind: Escalate, To: e.To})
	}

	slices.SortStableFunc(out, func(a, b Scheduled) int { return a.At.Compare(b.At) })
	return out
}

// schedule sets Due to the time of the next effect of time on the request.
func (r *Request) schedule() {
	r.Due = nil
	switch {
	case r.State == Approved:
		r.Due = &r.Permit.Expires
	case r.State == Pending && len(r.Scheduled) > 0 && r.Scheduled[0].At.Before(r.Deadline):
		r.Due = &r.Scheduled[0].At
	case r.State == Pending:
		r.Due = &r.Deadline
	}

	if r.Due != nil { // copy it, so that Due is not an alias of a field that may change
		at := *r.Due
		r.Due = &at
	}
}

// vote records one person's answer. response is the answer for the agent if the verdict is Respond.
// The caller has checked the version and the binding that the person saw.
func (r *Request) vote(
	v Vote,
	response string,
	w quorum.Standing,
	now time.Time,
	cfg Config,
) (VoteOutcome, []Event, error) {
	a := r.answering()
	e := eligibility(w, &a, v.Person)
	if e.May(v.Verdict) != nil {
		return VoteNotEligible, []Event{
			r.voteEvent(EventVoteRefused, v, map[string]any{"why": e.Why}),
		}, nil
	}
	if r.State != Pending {
		return r.voteLate(v, response, now)
	}
	if r.said(v) {
		return VoteDuplicate, nil, nil
	}
	switch {
	case v.Verdict.agrees() && !v.Full:
		return "", nil, ErrNotShown
	case v.Verdict == Approve && v.Also != len(r.Requester.Also):
		return "", nil, ErrVersion
	case v.Verdict == Approve && !r.NeedsReason.Accepts(v.Reason):
		return "", nil, &InputError{"reason", r.NeedsReason.String() + ", which the policy requires for approving"}
	case v.Verdict == Approve && r.ForbidHidden && len(v.Hidden) > 0:
		return "", nil, fmt.Errorf("%w: %s", ErrHidden, strings.Join(v.Hidden, ", "))
	}

	r.Votes = append(r.Votes, v)
	events := []Event{r.voteEvent(EventVote, v, nil)}
	switch {
	case v.Verdict == Approve:
		return r.count(v, w, now, cfg, events)
	case v.Verdict.picks():
		return VoteAnswered, append(events, r.pick(v, now)), nil
	}

	cause := ByVotes
	if v.Verdict == Respond {
		cause, r.Answer = ByResponse, response
	}
	r.close(Denied, cause, v.Person, v.Reason, now)
	events = append(
		events,
		r.event(EventRequestDenied, v.Person, nil).sealing("reason", v.Reason).sealing("response", r.Answer),
	)
	return VoteDenied, events, nil
}

// said reports whether this person has already given the same answer to this revision.
func (r *Request) said(v Vote) bool {
	return slices.ContainsFunc(r.Votes, func(o Vote) bool {
		chosen := o.Chosen == nil && v.Chosen == nil || o.Chosen != nil && v.Chosen != nil && *o.Chosen == *v.Chosen
		same := chosen && sameData(o.Data, v.Data)
		sameState := o.Revision == v.Revision && (v.Late || o.Also == v.Also)
		return o.Person == v.Person && sameState && o.Verdict == v.Verdict && same
	})
}

// count approves the request if different people who are in the groups now fill every seat.
func (r *Request) count(
	v Vote,
	w quorum.Standing,
	now time.Time,
	cfg Config,
	events []Event,
) (VoteOutcome, []Event, error) {
	a := r.answering()
	if _, met := w.Met(&a); !met {
		return VoteCounted, events, nil
	}
	e := r.approve(ByVotes, v.Person, v.Reason, now, cfg)
	e.Facts["by"] = r.countedFacts(w.Counted(&a), now)
	return VoteApproved, append(events, e), nil
}

// approvers returns the people whose approval of the current revision counts now, in the order of
// their votes.
func (r *Request) approvers(w quorum.Standing) []Person {
	a := r.answering()

	return w.Counted(&a)
}

func (r *Request) approve(cause Cause, by, reason string, now time.Time, cfg Config) Event {
	r.State = Approved
	r.Cause = cause
	r.By = by
	r.Reason = reason
	r.Decided = &now
	r.Scheduled, r.Permit = nil, &Permit{Expires: now.Add(cmp.Or(cfg.ownPermitAge(r.Tenant), cfg.PermitAge))}
	r.schedule()
	return r.event(EventApproved, by, map[string]any{"expires": stamp(r.Permit.Expires)}).
		sealing("reason", reason)
}

// ApprovedBy lists the people who approved the current revision, in the order of their votes.
func (r *Request) ApprovedBy() []string { return r.voters(Approve) }

// Counts reports whether a vote was given in time, for the current revision, by a person who was
// shown all current askers of the call.
func (r *Request) Counts(v *Vote) bool {
	return !v.Late && v.Revision == r.Current().Number && v.Also == len(r.Requester.Also)
}

// voters lists the people with a counting vote that has one of the verdicts, in the order of their
// votes.
func (r *Request) voters(verdicts ...Verdict) []string {
	var out []string
	for _, v := range r.Votes {
		if slices.Contains(verdicts, v.Verdict) && r.Counts(&v) && !slices.Contains(out, v.Person) {
			out = append(out, v.Person)
		}
	}

	return out
}

// voteLate records an answer to a request that is no longer pending. A deny still voids an approval
// that has not been used.
func (r *Request) voteLate(v Vote, response string, now time.Time) (VoteOutcome, []Event, error) {
	if r.said(v) {
		return VoteDuplicate, nil, nil
	}
	v.Late = true
	outcome := VoteLate
	switch yes := v.Verdict == Approve; {
	case !yes && r.State == Approved:
		outcome = VoteRevoked
	case yes && r.State == Denied, !yes && r.State == Consumed:
		outcome = VoteConflicting
	}

	r.Votes = append(r.Votes, v)
	events := []Event{
		r.voteEvent(EventVoteLate, v, map[string]any{"outcome": string(outcome)}).sealing("response", response),
	}
	if outcome == VoteRevoked {
		r.close(Expired, ByLateDeny, v.Person, v.Reason, now)
		events = append(events, r.event(EventExpired, v.Person, nil).sealing("reason", v.Reason))
	}

	return outcome, events, nil
}

func (r *Request) voteEvent(kind string, v Vote, facts map[string]any) Event {
	all := map[string]any{
		"verdict":     string(v.Verdict),
		"channel":     v.Channel,
		"groups":      list(v.Groups),
		"shown_fully": v.Full,
		"hidden":      list(v.Hidden),
		"seen":        v.Binding,
	}
	if v.Token != "" {
		all["token"] = v.Token
	}
	if v.Chosen != nil {
		all["chosen"] = *v.Chosen
	}
	maps.Copy(all, facts)
	return r.event(kind, v.Person, all).sealing("reason", v.Reason).sealing("data", string(v.Data))
}

// close ends the request.
func (r *Request) close(s State, cause Cause, by, reason string, now time.Time) {
	if r.Decided == nil {
		r.Decided = &now
	}
	r.State = s
	r.Cause = cause
	r.By = by
	r.Reason = reason
	r.Closed = &now
	r.Scheduled = nil
	r.schedule()
}

// revise replaces the current call by an edited one. The call gets a new digest, the requirements
// of both calls apply, and votes for the earlier revision no longer count. The times that its own
// rules set start now, because it is a new call, but the deadline is never extended. It is not
// approved by a timeout, because the rules accepted that only for the original call (threat 24).
func (r *Request) revise(next Revision, require policy.Require) Event {
	next.Number = r.Current().Number + 1
	r.Revisions = append(r.Revisions, next)
	r.demand(delayed(require, next.At.Sub(r.Created)))
	if r.OnTimeout == policy.TimeoutApprove {
		r.OnTimeout = policy.TimeoutDeny
	}
	if tightest := next.At.Add(r.Within); tightest.Before(r.Deadline) {
		r.Deadline = tightest
	}
	r.escalations(require.Escalate, next.At)
	r.schedule()
	before := r.Revisions[len(r.Revisions)-2]
	e := r.event(EventEdited, next.Author, map[string]any{
		"from":          before.Binding,
		"plan":          next.Plan,
		"rules":         ruleFacts(&next),
		"stages":        stageFacts(r.Stages),
		"deadline":      stamp(r.Deadline),
		"on_timeout":    string(r.OnTimeout),
		"forbid_hidden": r.ForbidHidden,
	})
	r.alternatives(e.Facts)
	return e.sealing("args", string(next.Call.Args)).
		sealing("message", next.Decision.Message).
		sealing("note", next.Note)
}

// delayed returns the requirement with all stand-ins delayed by the duration.
func delayed(q policy.Require, later time.Duration) policy.Require {
	delay := func(stages []policy.Stage) []policy.Stage {
		stages = slices.Clone(stages)
		for i := range stages {
			stages[i].StandIns = slices.Clone(stages[i].StandIns)
			for j := range stages[i].StandIns {
				stages[i].StandIns[j].After += later
			}
		}
		return stages
	}
	q.Stages = delay(q.Stages)
	q.AnyOf = slices.Clone(q.AnyOf)
	for i := range q.AnyOf {
		q.AnyOf[i] = slices.Clone(q.AnyOf[i])
		for j := range q.AnyOf[i] {
			q.AnyOf[i][j] = delay(q.AnyOf[i][j])
		}
	}

	return q
}

// escalations schedules the escalations of an edited call that the request does not have yet. Each
// group is called in once, at its earliest time.
func (r *Request) escalations(more []policy.Escalation, from time.Time) {
	for _, e := range more {
		next := Scheduled{At: from.Add(e.After), Kind: Escalate, To: e.To}
		same := func(g Scheduled) bool { return g.Kind == Escalate && g.To == e.To }
		sooner := func(g Scheduled) bool { return same(g) && !g.At.After(next.At) }
		if !slices.Contains(r.Called, e.To) && !slices.ContainsFunc(r.Scheduled, sooner) {
			r.Scheduled = append(slices.DeleteFunc(r.Scheduled, same), next)
		}
	}

	slices.SortStableFunc(r.Scheduled, func(a, b Scheduled) int { return a.At.Compare(b.At) })
}

// tick applies the effects of time: the entries of Scheduled that are due, then the deadline, or
// the expiry of an unused permit.
func (r *Request) tick(now time.Time, cfg Config) []Event {
	var events []Event
	if r.State == Approved && !now.Before(r.Permit.Expires) {
		r.close(Expired, ByPermitAge, r.By, r.Reason, now)
		return []Event{r.event(EventPermitExpired, "", nil)}
	}
	for r.State == Pending && len(r.Scheduled) > 0 && !now.Before(r.Scheduled[0].At) {
		next := r.Scheduled[0]
		r.Scheduled = r.Scheduled[1:]
		if now.Before(r.Deadline) || next.Kind == Escalate {
			events = append(events, r.act(next)...)
		}
	}

	if r.State == Pending && !now.Before(r.Deadline) {
		events = append(events, r.timeout(now, cfg)...)
	}
	r.schedule()
	return events
}

func (r *Request) act(next Scheduled) []Event {
	if next.Kind == Remind {
		return []Event{r.event(EventReminded, "", map[string]any{"deadline": stamp(r.Deadline)})}
	}
	if slices.Contains(r.Called, next.To) {
		return nil
	}
	r.Called = append(r.Called, next.To)
	return []Event{
		r.event(EventEscalated, "", map[string]any{"to": next.To, "deadline": stamp(r.Deadline)}),
	}
}

// timeout handles a deadline that passed without a decision. If the policies say escalate, people
// get the same time once more; otherwise the request ends. Approval by timeout needs the consent of
// both the policy and the runtime owner (resolve.Options.AllowTimeoutApprove).
func (r *Request) timeout(now time.Time, cfg Config) []Event {
	d := quorum.Deadline{At: r.Deadline, Within: r.Within, OnTimeout: r.OnTimeout}
	switch d.Pass(r.Called) {
	case quorum.GoesOn:
		r.OnTimeout, r.Deadline = d.OnTimeout, d.At
		if now.Before(r.Deadline) {
			facts := map[string]any{
				"to":       strings.Join(r.Called, ","),
				"deadline": stamp(r.Deadline),
			}
			return []Event{r.event(EventEscalated, "", facts)}
		}
	case quorum.Approves:
		return []Event{r.approve(ByTimeout, "", "", now, cfg)}
	}

	r.close(Expired, ByDeadline, "", "", now)
	return []Event{r.event(EventExpired, "", nil)}
}

// withdraw ends an open request for a reason other than an answer. An approved request becomes
// expired rather than cancelled, because people did decide.
func (r *Request) withdraw(cause Cause, by, reason string, now time.Time) Event {
	state, kind := Cancelled, EventCancelled
	if r.State == Approved {
		state, kind = Expired, EventExpired
	}
	r.close(state, cause, by, reason, now)
	return r.event(kind, by, nil).sealing("reason", reason)
}

// consume uses the permit. The caller has already checked the freezes and the plan.
func (r *Request) consume(binding, key, by string, now time.Time) (Event, error) {
	switch {
	case r.State == Consumed && r.Permit.Key == key && r.Permit.By == by && r.Binding() == binding:
		return Event{}, nil // a repeated attempt, whose first answer was lost
	case r.State == Consumed:
		return r.refuse(by, "used", ErrConsumed)
	case r.State == Pending:
		return Event{}, ErrPending
	case r.State != Approved:
		return Event{}, ErrNotApproved
	case r.Binding() != binding:
		return r.refuse(by, "another call", ErrBinding)
	case !now.Before(r.Permit.Expires): // the caller has applied the effects of time, so this is never reached
		return r.refuse(by, "too late", ErrNotApproved)
	}

	r.close(Consumed, ByConsume, r.By, r.Reason, now)
	r.Permit.Key = key
	r.Permit.By = by
	r.Permit.Consumed = &now
	return r.event(EventConsumed, by, map[string]any{"plan": r.Current().Plan}), nil
}

func (r *Request) refuse(by, why string, err error) (Event, error) {
	return r.event(EventConsumeRefused, by, map[string]any{"why": why}), err
}
