package approval

import (
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/policy/quorum"
	"github.com/assent-dev/assent/value"
)

// auditedRequest is the state of a request according to the ledger.
type auditedRequest struct {
	state     State
	binding   string
	plan      string
	revision  int
	stages    []policy.Stage
	anyOf     []policy.AnyOf
	onTimeout policy.Timeout
	deadline  time.Time
	expires   time.Time // expiry of the permit
	called    []string
	asked     time.Time // when it was opened; the times of stand-ins start here
	shown     bool      // approvers must be shown all values
	rules     Rules     // the rules that asked about the current revision
	barred    []string  // names that may not vote, as recorded
	votes     []auditedVote
	joined    int // callers who joined, counted since entries record that joining voids approvals
	question  *auditedQuestion
	args      string // of the current revision; empty if they are not known, or no longer needed
}

type auditedVote struct {
	person   string
	verdict  Verdict
	revision int
	joined   int
	at       time.Time
	chosen   int // index of the choice, for questions
}

// requestCheck checks an entry about a request against the request's earlier entries.
type requestCheck struct {
	from  []State // allowed states before the entry; nil for any
	to    State   // state afterwards; empty if unchanged
	check func(a *Auditor, r *auditedRequest, e *auditEntry)
}

var aboutRequests = map[string]*requestCheck{
	EventShared:      {from: []State{Pending, Approved}, check: (*Auditor).shared},
	EventVote:        {from: []State{Pending}, check: (*Auditor).vote},
	EventVoteRefused: {},
	EventVoteLate:    {from: []State{Approved, Denied, Expired, Cancelled, Consumed, Answered}},
	EventAnswered: {
		from:  []State{Pending},
		to:    Answered,
		check: (*Auditor).answered,
	},
	EventEdited:      {from: []State{Pending}, check: (*Auditor).edited},
	EventEditRefused: {from: []State{Pending}},
	EventApproved: {
		from:  []State{Pending},
		to:    Approved,
		check: (*Auditor).approved,
	},
	EventRequestDenied: {
		from:  []State{Pending},
		to:    Denied,
		check: (*Auditor).denied,
	},
	EventExpired: {
		from:  []State{Pending, Approved},
		to:    Expired,
		check: (*Auditor).expired,
	},
	EventCancelled: {from: []State{Pending}, to: Cancelled},
	EventReminded:  {from: []State{Pending}},
	EventEscalated: {from: []State{Pending}, check: (*Auditor).escalated},
	EventConsumed: {
		from:  []State{Approved},
		to:    Consumed,
		check: (*Auditor).consumed,
	},
	EventPermitExpired: {
		from:  []State{Approved},
		to:    Expired,
		check: (*Auditor).permitExpired,
	},
	EventConsumeRefused: {from: []State{Approved, Consumed}},
}

func (a *Auditor) opened(e *auditEntry) {
	if a.requests[e.Subject] != nil {
		e.fail("it was opened before")
		return
	}
	r := &auditedRequest{
		state:     Pending,
		binding:   e.text("binding"),
		plan:      e.text("plan"),
		stages:    e.stages(),
		anyOf:     e.anyOf(),
		onTimeout: policy.Timeout(e.text("on_timeout")),
		deadline:  e.time("deadline"),
		barred:    append(e.texts("owners"), e.Actor, e.text("person"), e.text("principal")),
		question:  e.question(),
		asked:     e.Time,
		shown:     e.flag("forbid_hidden"),
		rules:     e.rules(),
		args:      e.sealed("args"),
	}
	if e.flag("unknown_principal") && !slices.ContainsFunc(r.stages, func(s policy.Stage) bool {
		return s.Group == ""
	}) {
		e.fail("nobody knows the principal, and nobody more is asked for that")
	}
	if r.asksUser() {
		r.barred = []string{e.Actor}
	}
	if e.text("state") != string(Pending) || e.number("revision") != 0 || r.binding == "" {
		e.fail("a request begins pending, with revision 0 of a call that has a binding")
	}
	a.requests[e.Subject] = r
}

func (a *Auditor) request(e *auditEntry, c *requestCheck) {
	r := a.requests[e.Subject]
	if r == nil {
		e.fail("there is no such request before this entry")
		return
	}
	if c.from != nil && !slices.Contains(c.from, r.state) {
		e.fail("the request is %s by then", r.state)
	}
	r.kind(e)
	if e.Type != EventEdited && (e.text("binding") != r.binding || e.number("revision") != r.revision) {
		e.fail("it tells of another call than the request's")
	}
	if c.check != nil {
		c.check(a, r, e)
	}
	if c.to != "" {
		r.state = c.to
	}
	if r.state != Pending && r.state != Approved {
		r.args = ""
	}
	if e.text("state") != string(r.state) {
		e.fail("it says that the request is %q, but it is %s", e.text("state"), r.state)
	}
}

// shared excludes the further askers from voting, and voids the approvals of people who were not
// shown them. Entries of earlier versions have no on_timeout fact; then a call could also be joined
// after it was approved.
func (a *Auditor) shared(r *auditedRequest, e *auditEntry) {
	if !e.flag("joined") {
		return
	}
	r.barred = append(r.barred, e.Actor, e.text("person"))
	if _, ok := e.Facts.Get("on_timeout"); !ok {
		return
	}
	onTimeout := policy.Timeout(e.text("on_timeout"))
	switch {
	case r.state != Pending:
		e.fail("nobody joins a request that is decided")
	case onTimeout != r.onTimeout && (r.onTimeout != policy.TimeoutApprove || onTimeout != policy.TimeoutDeny),
		onTimeout == policy.TimeoutApprove:
		e.fail("silence is no consent to another caller")
	}
	r.joined, r.onTimeout = r.joined+1, onTimeout
}

func (a *Auditor) vote(r *auditedRequest, e *auditEntry) {
	a.votes++
	v := auditedVote{
		person:   e.Actor,
		verdict:  Verdict(e.text("verdict")),
		revision: r.revision,
		joined:   r.joined,
		at:       e.Time,
	}
	voter := Person{ID: e.Actor, Groups: e.texts("groups")}
	seat := slices.ContainsFunc(slices.Concat(r.optionsAt(e.Time)...), voter.Fills)
	switch {
	case e.Actor == "" || slices.Contains(r.barred, e.Actor):
		e.fail("%q asks, or owns the agent, or is nobody: none of them has a vote", e.Actor)
	case v.verdict == Approve && !seat,
		v.verdict != Approve && !seat && !slices.ContainsFunc(r.called, voter.Holds):
		e.fail("%q is in no group that is asked", e.Actor)
	case v.verdict.agrees() && !e.fact("shown_fully", value.Bool).Bool:
		e.fail("%q agreed to what was not shown fully", e.Actor)
	case v.verdict == Approve && r.shown && len(e.texts("hidden")) > 0:
		e.fail("%q agreed while values were hidden, which a policy forbids", e.Actor)
	case !sees(e.text("seen"), r.binding):
		e.fail("%q saw another call", e.Actor)
	case v.verdict != Approve && v.verdict != Deny && v.verdict != Respond && !v.verdict.picks(),
		v.verdict.picks() != (r.question != nil):
		e.fail("%q is no answer", v.verdict)
	case e.Time.After(r.deadline):
		e.fail("the deadline was over")
	case r.voted(e.Actor, v.verdict):
		e.fail("%q said so before", e.Actor)
	}

	if r.question != nil && v.verdict.picks() {
		v.chosen = r.picked(e, v.verdict)
	}
	r.votes = append(r.votes, v)
}

// optionsAt returns the alternative lists of stages, without the stand-ins that may not fill seats
// yet.
func (r *auditedRequest) optionsAt(at time.Time) [][]policy.Stage {
	a := Answering{Asked: r.asked, Stages: r.stages, AnyOf: r.anyOf}

	return a.OptionsAt(at)
}

// filled reports whether people fill the stages, and one of the alternatives of each list, at the
// given time.
func (r *auditedRequest) filled(at time.Time, approvers []Person) bool {
	return slices.ContainsFunc(r.optionsAt(at), func(stages []policy.Stage) bool {
		_, met := people.Seat(stages, approvers)
		return met
	})
}

// voted reports whether a vote of the person on the current revision was counted.
func (r *auditedRequest) voted(person string, verdicts ...Verdict) bool {
	return slices.ContainsFunc(r.votes, func(v auditedVote) bool {
		return v.person == person && v.revision == r.revision && v.joined == r.joined &&
			slices.Contains(verdicts, v.verdict)
	})
}

func (a *Auditor) edited(r *auditedRequest, e *auditEntry) {
	stages, anyOf := e.stages(), e.anyOf()
	deadline := e.time("deadline")
	onTimeout := policy.Timeout(e.text("on_timeout"))
	before := r.stages
	if quorum.IsAnyone(before) && len(r.anyOf) == 0 {
		before = nil
	}
	tighter := policy.Tighter(
		policy.Require{Stages: stages, AnyOf: anyOf, OnTimeout: onTimeout},
		policy.Require{Stages: before, AnyOf: r.anyOf, OnTimeout: r.onTimeout},
	)
	switch {
	case slices.Contains(r.barred, e.Actor):
		e.fail("%q asks, or owns the agent: none of them may edit", e.Actor)
	case e.text("from") != r.binding || e.number("revision") != r.revision+1 || e.text("binding") == r.binding:
		e.fail("it is not an edit of the revision before it")
	case !tighter || deadline.After(r.deadline):
		e.fail("an edit can only ask more people, sooner")
	}

	r.binding = e.text("binding")
	r.plan = e.text("plan")
	r.revision = r.revision + 1
	r.stages, r.anyOf = stages, anyOf
	r.deadline = deadline
	r.onTimeout = onTimeout
	r.rules, r.shown = e.rules(), r.shown || e.flag("forbid_hidden")
	r.args = e.sealed("args")
}

func (a *Auditor) approved(r *auditedRequest, e *auditEntry) {
	r.expires = e.time("expires")
	if e.text("cause") == string(ByTimeout) {
		if r.onTimeout != policy.TimeoutApprove || e.Time.Before(r.deadline) {
			e.fail("nobody's silence approves this")
		}
		return
	}

	var approvers []Person
	for _, v := range e.list("by") {
		person := member(v, "person").Text
		if !r.voted(person, Approve) || slices.Contains(r.barred, person) {
			e.fail("there is no counted approval of this revision by %q", person)
			continue
		}
		approvers = append(approvers, Person{ID: person, Groups: asTexts(member(v, "groups").Items)})
	}

	if !r.filled(e.Time, approvers) || e.text("cause") != string(ByVotes) {
		e.fail("not enough different people who hold the groups approved this revision")
	}
}

func (a *Auditor) denied(r *auditedRequest, e *auditEntry) {
	if !r.voted(e.Actor, Deny, Respond) {
		e.fail("there is no counted answer of %q that denies it", e.Actor)
	}
}

func (a *Auditor) expired(r *auditedRequest, e *auditEntry) {
	switch cause := Cause(e.text("cause")); {
	case r.state == Pending && (cause != ByDeadline || e.Time.Before(r.deadline)):
		e.fail("nobody had decided, and there was time left")
	case r.state == Approved && !slices.Contains(
		[]Cause{ByLateDeny, ByPlanChange, ByRequester, BySupersede, ByRestore, ByHistory},
		cause,
	):
		e.fail("%q does not end an approval", cause)
	}
}

func (a *Auditor) permitExpired(r *auditedRequest, e *auditEntry) {
	if e.Time.Before(r.expires) {
		e.fail("the permit held until %s", stamp(r.expires))
	}
}

func (a *Auditor) escalated(r *auditedRequest, e *auditEntry) {
	if deadline := e.time("deadline"); deadline.After(r.deadline) {
		if r.onTimeout != policy.TimeoutEscalate {
			e.fail("the deadline moved away")
		}
		r.deadline, r.onTimeout = deadline, policy.TimeoutDeny // only once
		return
	}

	if to := strings.TrimSpace(e.text("to")); !slices.Contains(r.called, to) {
		r.called = append(r.called, to)
	}
}

func (a *Auditor) consumed(r *auditedRequest, e *auditEntry) {
	switch {
	case r.state == Consumed:
		e.fail("it was consumed before")
	case r.state != Approved:
		e.fail("it was consumed without an approval")
	case e.Time.After(r.expires):
		e.fail("the permit ended at %s", stamp(r.expires))
	case e.text("plan") != r.plan:
		e.fail("it was approved under other rules")
	}
}
