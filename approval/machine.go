package approval

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
)

// standing is what the directory says as of now: who the people around a request are, and who of them may not vote on it.
type standing struct {
	people   map[string]Person // by canonical id
	excluded map[string]string // canonical id → why
	user     string            // canonical id of the person whom the agent acts for; "" when the directory knows nobody by that name
}

// may says whether a person has a say on a request, and whether a seat: escalation calls people in, who may deny or answer, but gives
// nobody a seat of a group they don't hold.
func (w standing) may(r *Request, id string) (say, seat bool, why string) {
	p, known := w.people[id]
	if !known {
		return false, false, "not in the directory"
	}
	if why, out := w.excluded[id]; out {
		return false, false, why
	}
	if r.asksUser() && r.Requester.Principal != "" {
		if id != w.user {
			return false, false, "the question is for the person whom the agent acts for"
		}
		return true, true, ""
	}
	seat = slices.ContainsFunc(r.Stages, func(s policy.Stage) bool { return p.Holds(s.Group) })
	say = seat || slices.ContainsFunc(r.Called, p.Holds)
	if !say {
		why = "in none of the groups that are asked"
	}
	return say, seat, why
}

// open makes a request pending. Its revision 0 is set.
func (r *Request) open(now time.Time, require policy.Require, cfg Config) []Event {
	r.State, r.Created = Pending, now
	r.demand(require)
	if r.Within == 0 {
		r.Within = cfg.Within
	}
	r.Deadline = now.Add(r.Within)
	r.Ladder = ladder(now, r.Deadline, require.Escalate)
	r.schedule()
	return []Event{r.opened(nil)}
}

// opened tells that the request was made, with all that its audit needs.
func (r *Request) opened(more map[string]any) Event {
	call := r.Current().Call
	facts := map[string]any{
		"principal": call.Principal, "session": call.Session, "plan": r.Current().Plan, "deadline": stamp(r.Deadline),
		"on_timeout": string(r.OnTimeout), "stages": stageFacts(r.Stages), "rules": ruleFacts(r.Current()),
		"tool_definition": call.ToolDefinition, "owners": list(r.Requester.Owners), "replaces": r.Replaces, "person": r.Requester.Person,
	}
	maps.Copy(facts, more)
	return r.event(EventOpened, r.Requester.Runtime, facts).sealing("args", call.Args).sealing("message", r.Current().Decision.Message)
}

// demand joins a requirement into what the request already demands. It only tightens.
func (r *Request) demand(q policy.Require) {
	have := policy.Require{Stages: r.Stages, Within: r.Within, OnTimeout: r.OnTimeout, Grants: r.Grants, Arguments: policy.Arguments{Redact: r.Redact}}
	if len(r.Stages) == 1 && r.Stages[0] == anyone {
		have.Stages = nil
	}
	all := have.Join(q)
	r.Stages, r.Within, r.OnTimeout, r.Grants, r.Redact = all.Stages, all.Within, all.Fallback(), all.Grants, all.Arguments.Redact
	if len(r.Stages) == 0 {
		r.Stages = []policy.Stage{anyone}
	}
}

// anyone is the stage of a request whose rules name no group: one approver of the tenant.
var anyone = policy.Stage{Group: "", People: 1}

// ladder puts a reminder at half of the time and at nine tenths, and the escalations where the policies want them.
func ladder(from, deadline time.Time, escalate []policy.Escalation) []Rung {
	whole := deadline.Sub(from)
	out := []Rung{{At: from.Add(whole / 2), Kind: Remind}, {At: from.Add(whole / 10 * 9), Kind: Remind}}
	for _, e := range escalate {
		out = append(out, Rung{At: from.Add(e.After), Kind: Escalate, To: e.To})
	}
	slices.SortStableFunc(out, func(a, b Rung) int { return a.At.Compare(b.At) })
	return out
}

// schedule says when time next acts on the request.
func (r *Request) schedule() {
	r.Due = nil
	switch {
	case r.State == Approved:
		r.Due = &r.Permit.Expires
	case r.State == Pending && len(r.Ladder) > 0 && r.Ladder[0].At.Before(r.Deadline):
		r.Due = &r.Ladder[0].At
	case r.State == Pending:
		r.Due = &r.Deadline
	}
	if r.Due != nil { // not an alias of a field that may change
		at := *r.Due
		r.Due = &at
	}
}

// vote lets one person answer; response is what the agent is told instead of letting it run. The caller has checked the version and what
// was shown.
func (r *Request) vote(v Vote, response string, w standing, now time.Time, cfg Config) (VoteOutcome, []Event, error) {
	say, seat, why := w.may(r, v.Person)
	if say && v.Verdict == Approve && !seat {
		say, why = false, "called in to look, without a seat in a group that must agree"
	}
	if !say {
		return VoteNotEligible, []Event{r.voteEvent(EventVoteRefused, v, map[string]any{"why": why})}, nil
	}
	if r.State != Pending {
		return r.voteLate(v, response, now)
	}
	if r.said(v) {
		return VoteDuplicate, nil, nil
	}
	if (v.Verdict == Approve || v.Verdict == Choose) && !v.Full {
		return "", nil, ErrNotShown
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
	events = append(events, r.event(EventRequestDenied, v.Person, nil).sealing("reason", v.Reason).sealing("response", r.Answer))
	return VoteDenied, events, nil
}

// said reports whether this person gave this very answer to this revision before.
func (r *Request) said(v Vote) bool {
	return slices.ContainsFunc(r.Votes, func(o Vote) bool {
		same := o.Chosen == nil && v.Chosen == nil || o.Chosen != nil && v.Chosen != nil && *o.Chosen == *v.Chosen
		return o.Person == v.Person && o.Revision == v.Revision && o.Verdict == v.Verdict && same
	})
}

// count approves when distinct people who hold the groups now fill every seat.
func (r *Request) count(v Vote, w standing, now time.Time, cfg Config, events []Event) (VoteOutcome, []Event, error) {
	people := r.approvers(w)
	if _, met := Seat(r.Stages, people); !met {
		return VoteCounted, events, nil
	}
	e := r.approve(ByVotes, v.Person, v.Reason, now, cfg)
	e.Facts["by"] = r.countedFacts(people)
	return VoteApproved, append(events, e), nil
}

func ids(people []Person) []string {
	out := make([]string, len(people))
	for i, p := range people {
		out[i] = p.ID
	}
	return out
}

// approvers are the people whose approval of the current revision counts as of now, in the order they gave it.
func (r *Request) approvers(w standing) []Person {
	var out []Person
	for _, v := range r.Votes {
		if v.Verdict != Approve || v.Late || v.Revision != r.Current().Number {
			continue
		}
		if _, seat, _ := w.may(r, v.Person); seat {
			out = append(out, w.people[v.Person])
		}
	}
	return out
}

func (r *Request) approve(cause Cause, by, reason string, now time.Time, cfg Config) Event {
	r.State, r.Cause, r.By, r.Reason, r.Decided = Approved, cause, by, reason, &now
	r.Ladder, r.Permit = nil, &Permit{Expires: now.Add(cfg.PermitAge)}
	r.schedule()
	return r.event(EventApproved, by, map[string]any{"expires": stamp(r.Permit.Expires)}).sealing("reason", reason)
}

// voters lists who gave a verdict on the current revision in time.
func (r *Request) voters(verdict Verdict) []string {
	var out []string
	for _, v := range r.Votes {
		if v.Verdict == verdict && !v.Late && v.Revision == r.Current().Number && !slices.Contains(out, v.Person) {
			out = append(out, v.Person)
		}
	}
	return out
}

// voteLate records an answer that came after the end. A deny still stops an approval that nobody has used.
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
	events := []Event{r.voteEvent(EventVoteLate, v, map[string]any{"outcome": string(outcome)}).sealing("response", response)}
	if outcome == VoteRevoked {
		r.close(Expired, ByLateDeny, v.Person, v.Reason, now)
		events = append(events, r.event(EventExpired, v.Person, nil).sealing("reason", v.Reason))
	}
	return outcome, events, nil
}

func (r *Request) voteEvent(kind string, v Vote, facts map[string]any) Event {
	all := map[string]any{"verdict": string(v.Verdict), "channel": v.Channel, "groups": list(v.Groups), "shown_fully": v.Full, "seen": v.Binding}
	if v.Chosen != nil {
		all["chosen"] = *v.Chosen
	}
	for k, f := range facts {
		all[k] = f
	}
	return r.event(kind, v.Person, all).sealing("reason", v.Reason)
}

// close ends the request.
func (r *Request) close(s State, cause Cause, by, reason string, now time.Time) {
	if r.Decided == nil {
		r.Decided = &now
	}
	r.State, r.Cause, r.By, r.Reason, r.Closed = s, cause, by, reason, &now
	r.Ladder = nil
	r.schedule()
}

// revise puts an edited call in the place of the current one: new digest, all requirements of both, and votes on what stood before no
// longer count. It is a new call, so what its own rules allow in time begins now, but the deadline never moves away; and nobody's silence
// about the call as asked is consent to the call as edited (threat 24).
func (r *Request) revise(next Revision, require policy.Require) Event {
	next.Number = r.Current().Number + 1
	r.Revisions = append(r.Revisions, next)
	r.demand(require)
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
		"from": before.Binding, "plan": next.Plan, "rules": ruleFacts(&next), "stages": stageFacts(r.Stages), "deadline": stamp(r.Deadline),
		"on_timeout": string(r.OnTimeout),
	})
	return e.sealing("args", next.Call.Args).sealing("message", next.Decision.Message).sealing("note", next.Note)
}

// escalations adds rungs that an edited call demands and the request does not have. Each group is called once, at its earliest time.
func (r *Request) escalations(more []policy.Escalation, from time.Time) {
	for _, e := range more {
		rung := Rung{At: from.Add(e.After), Kind: Escalate, To: e.To}
		same := func(g Rung) bool { return g.Kind == Escalate && g.To == e.To }
		sooner := func(g Rung) bool { return same(g) && !g.At.After(rung.At) }
		if !slices.Contains(r.Called, e.To) && !slices.ContainsFunc(r.Ladder, sooner) {
			r.Ladder = append(slices.DeleteFunc(r.Ladder, same), rung)
		}
	}
	slices.SortStableFunc(r.Ladder, func(a, b Rung) int { return a.At.Compare(b.At) })
}

// tick lets time act: rungs that have come, then the deadline, or the end of a permit that nobody used.
func (r *Request) tick(now time.Time, cfg Config) []Event {
	var events []Event
	if r.State == Approved && !now.Before(r.Permit.Expires) {
		r.close(Expired, ByPermitAge, r.By, r.Reason, now)
		return []Event{r.event(EventPermitExpired, "", nil)}
	}
	for r.State == Pending && len(r.Ladder) > 0 && !now.Before(r.Ladder[0].At) {
		rung := r.Ladder[0]
		r.Ladder = r.Ladder[1:]
		if now.Before(r.Deadline) || rung.Kind == Escalate {
			events = append(events, r.climb(rung)...)
		}
	}
	if r.State == Pending && !now.Before(r.Deadline) {
		events = append(events, r.timeout(now, cfg)...)
	}
	r.schedule()
	return events
}

func (r *Request) climb(rung Rung) []Event {
	if rung.Kind == Remind {
		return []Event{r.event(EventReminded, "", map[string]any{"deadline": stamp(r.Deadline)})}
	}
	if slices.Contains(r.Called, rung.To) {
		return nil
	}
	r.Called = append(r.Called, rung.To)
	return []Event{r.event(EventEscalated, "", map[string]any{"to": rung.To, "deadline": stamp(r.Deadline)})}
}

// timeout is what happens when nobody decided: once more the same time for those who are called in, where the policies say escalate;
// else the end. Approving takes the word of both the policy and the runtime owner (resolve.Options.AllowTimeoutApprove).
func (r *Request) timeout(now time.Time, cfg Config) []Event {
	switch r.OnTimeout {
	case policy.TimeoutEscalate:
		if len(r.Called) > 0 {
			r.OnTimeout, r.Deadline = policy.TimeoutDeny, r.Deadline.Add(r.Within)
			if now.Before(r.Deadline) {
				return []Event{r.event(EventEscalated, "", map[string]any{"to": strings.Join(r.Called, ","), "deadline": stamp(r.Deadline)})}
			}
		}
	case policy.TimeoutApprove:
		return []Event{r.approve(ByTimeout, "", "", now, cfg)}
	}
	r.close(Expired, ByDeadline, "", "", now)
	return []Event{r.event(EventExpired, "", nil)}
}

// withdraw ends an open request because of what happened around it. An approval ends as expired, since people did decide.
func (r *Request) withdraw(cause Cause, by, reason string, now time.Time) Event {
	state, kind := Cancelled, EventCancelled
	if r.State == Approved {
		state, kind = Expired, EventExpired
	}
	r.close(state, cause, by, reason, now)
	return r.event(kind, by, nil).sealing("reason", reason)
}

// consume uses the permit. The caller has checked freezes and the plan.
func (r *Request) consume(binding, key, by string, now time.Time) (Event, error) {
	switch {
	case r.State == Consumed && r.Permit.Key == key && r.Permit.By == by && r.Binding() == binding:
		return Event{}, nil // the same attempt asks again: its answer was lost
	case r.State == Consumed:
		return r.refuse(by, "used", ErrConsumed)
	case r.State == Pending:
		return Event{}, ErrPending
	case r.State != Approved:
		return Event{}, ErrNotApproved
	case r.Binding() != binding:
		return r.refuse(by, "another call", ErrBinding)
	case !now.Before(r.Permit.Expires): // the caller lets time act first, so this is never reached
		return r.refuse(by, "too late", ErrNotApproved)
	}
	r.close(Consumed, ByConsume, r.By, r.Reason, now)
	r.Permit.Key, r.Permit.By, r.Permit.Consumed = key, by, &now
	return r.event(EventConsumed, by, map[string]any{"plan": r.Current().Plan}), nil
}

func (r *Request) refuse(by, why string, err error) (Event, error) {
	return r.event(EventConsumeRefused, by, map[string]any{"why": why}), err
}
