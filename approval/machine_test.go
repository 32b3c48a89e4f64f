package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

// town is a directory that changes: people with names, their groups, and the owners of agents.
type town struct {
	names  map[string]string          // any name → canonical id
	holds  map[string]map[string]bool // id → groups
	owners []string
	broken error
}

func (d *town) Person(_ context.Context, _, name string) (Person, bool, error) {
	id, ok := d.names[name]
	if d.broken != nil || !ok {
		return Person{}, false, d.broken
	}
	return Person{ID: id, Groups: slices.Sorted(maps.Keys(d.holds[id]))}, true, nil
}

func (d *town) Members(context.Context, string, string) ([]Person, error) { return nil, d.broken }

func (d *town) Reading(context.Context, string, Person) (people.Reading, error) {
	return people.Reading{}, d.broken
}

func (d *town) Owners(context.Context, string, string) ([]string, error) { return d.owners, d.broken }

// trial runs the state machine and the model in parallel.
type trial struct {
	t       *rapid.T
	s       *Service
	town    *town
	r       *Request
	m       *model
	cfg     Config
	now     time.Time
	auditor Auditor
	entries int64
	before  Request
}

const (
	someGroups = 3
	somePeople = 6
)

func group(i int) string  { return "g" + strconv.Itoa(i) }
func person(i int) string { return "p" + strconv.Itoa(i) }

// barred are the people who may not answer: the owner of the runtime, the principal, an owner by
// the file and an owner by the directory. Each of them also has other names.
var barred = map[string]bool{"p0": true, "p1": true}

func newTrial(t *rapid.T) *trial {
	d := &town{
		names:  map[string]string{"boss@x": "p0", "token-of-p1": "p1", "owner@file": "p1"},
		holds:  map[string]map[string]bool{},
		owners: []string{"boss@x"},
	}
	for i := range somePeople {
		d.names[person(i)], d.names["alias-"+person(i)] = person(i), person(i)
		d.holds[person(i)] = map[string]bool{}
		for g := range someGroups {
			if rapid.Bool().Draw(t, "holds") {
				d.holds[person(i)][group(g)] = true
			}
		}
	}

	x := &trial{t: t, town: d, cfg: Config{}.withDefaults(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	x.s = &Service{people: d, cfg: x.cfg, random: seeded(1)}
	x.open(drawRequire(t))
	return x
}

// seededReader is a source of random bytes that are the same in every run.
type seededReader struct{ r *rand.Rand }

func seeded(n uint64) seededReader { return seededReader{rand.New(rand.NewPCG(n, 0))} }

func (s seededReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

func drawRequire(t *rapid.T) policy.Require {
	var q policy.Require
	for g := range someGroups {
		if n := rapid.IntRange(-2, 2).Draw(t, "seats"); n > 0 {
			q.Stages = append(q.Stages, policy.Stage{Group: group(g), People: n})
		}
	}
	q.Within = time.Duration(rapid.SampledFrom([]int{0, 1, 10, 60, 3000}).Draw(t, "within")) * time.Minute
	q.OnTimeout = rapid.SampledFrom([]policy.Timeout{
		"",
		policy.TimeoutDeny,
		policy.TimeoutEscalate,
		policy.TimeoutApprove,
	}).
		Draw(t, "fallback")
	for g := range someGroups {
		if rapid.IntRange(0, 3).Draw(t, "escalates") == 0 {
			e := policy.Escalation{
				After: time.Duration(rapid.IntRange(1, 100).Draw(t, "after")) * time.Minute,
				To:    group(g),
			}
			e.May = rapid.SampledFrom([]policy.May{policy.MayApprove, policy.MayApprove, policy.MayLook}).
				Draw(t, "may")
			q.Escalate = append(q.Escalate, e)
			for i := range q.Stages {
				q.Stages[i].StandIns = append(q.Stages[i].StandIns, policy.StandIn{Group: e.To, After: e.After})
			}
		}
	}

	q.Grants = rapid.SampledFrom(grantBounds()).Draw(t, "grants")
	q.Arguments.Redact = rapid.SampledFrom([][]string{nil, {"a"}, {"b"}}).Draw(t, "redact")
	return q.Join(policy.Require{})
}

// grantBounds returns bounds as in parsed rules, which always list the arguments that may vary,
// usually none.
func grantBounds() []policy.Grants {
	none := []policy.Bound{}
	amount := policy.Bound{Path: "n", Kind: policy.AtMost}

	return []policy.Grants{
		{Bounds: none}, {Forbid: true}, {Session: true, Bounds: none}, {MaxUses: 3, Bounds: []policy.Bound{amount}},
		{MaxAge: time.Hour, Bounds: []policy.Bound{amount, {Path: "loss", Kind: policy.AtLeast}}},
	}
}

func (x *trial) open(q policy.Require) {
	x.r = &Request{
		ID:        "apr_1",
		Tenant:    "t",
		Version:   1,
		Agent:     Agent{ID: "agent"},
		Requester: Requester{Runtime: "token-of-p1", Principal: "alias-p0", Owners: []string{"owner@file"}},
		Revisions: []Revision{{
			Call: resolve.Call{
				Kind:      resolve.Tool,
				Tool:      "trade",
				Args:      resolve.Raw(`{"n":0}`),
				Principal: "alias-p0",
			},
			Binding: binding(0),
			Plan:    "plan",
			At:      x.now,
		}},
	}
	x.m = &model{
		state:     Pending,
		approvals: map[string]bool{},
		answers:   map[string]bool{},
		stages:    map[string]int{},
		fallback:  policy.TimeoutDeny,
		standIns:  map[string]map[string]time.Time{},
		lookers:   map[string]bool{},
		created:   x.now,
		called:    map[string]bool{},
		scheduled: map[string]time.Time{},
		redact:    map[string]bool{},
	}
	if q.OnTimeout != "" {
		x.m.fallback = q.OnTimeout
	}
	x.m.join(q, x.now)
	if x.m.within == 0 {
		x.m.within = x.cfg.Within
	}
	x.m.deadline = x.now.Add(x.m.within)
	x.record(x.r.open(x.now, q, x.cfg))
	x.same()
}

func binding(n int) string { return "sha256:" + digestOf(strconv.Itoa(n)) }

func (x *trial) holds(id, g string) bool { return g == "" || x.town.holds[id][g] }

// fits reports whether a person may fill a seat of a stage, because they are in its group or in the
// group of one of its StandIns whose time has come.
func (x *trial) fits(id, stage string) bool {
	if x.holds(id, stage) {
		return true
	}
	for g, from := range x.m.standIns[stage] {
		if x.holds(id, g) && !x.m.lookers[g] && !x.now.Before(from) {
			return true
		}
	}

	return false
}

// says reports whether a person may answer, and whether they may approve.
func (x *trial) says(id string) (deny, approve bool) {
	if x.town.names[id] != id || barred[id] {
		return false, false
	}
	for g := range x.m.stages {
		approve = approve || x.fits(id, g)
	}
	deny = approve
	for g := range x.m.called {
		deny = deny || x.holds(id, g)
	}
	return deny, approve
}

// answer returns the outcome of an answer according to the model.
func (x *trial) answer(id string, v Verdict, full bool) (outcome VoteOutcome, shown bool) {
	m, said := x.m, fmt.Sprint(id, v, x.m.revision)
	deny, approve := x.says(id)
	switch {
	case v == Approve && !approve, v != Approve && !deny:
		return VoteNotEligible, true
	case m.answers[said]:
		return VoteDuplicate, true
	case m.state != Pending:
		m.answers[said] = true
		return m.late(v), true
	case v == Approve && !full:
		return "", false
	}

	m.answers[said] = true
	if v != Approve {
		m.state, m.cause = Denied, ByVotes
		if v == Respond {
			m.cause = ByResponse
		}
		return VoteDenied, true
	}

	m.approvals[id] = true
	var people []string
	for p := range m.approvals {
		if _, still := x.says(p); still {
			people = append(people, p)
		}
	}
	if !assigns(m.stages, people, x.fits) {
		return VoteCounted, true
	}
	m.state = Approved
	m.cause = ByVotes
	m.expires = x.now.Add(x.cfg.PermitAge)
	return VoteApproved, true
}

// tick applies the effects of time to both, as the service does before every input.
func (x *trial) tick() {
	events, _ := x.s.due(x.r, x.now)
	x.record(events)
	x.m.pass(x.now, x.cfg)
}

// record audits the events, which must be complete and correct.
func (x *trial) record(events []Event) {
	for _, e := range events {
		record, err := ledger.Entry{
			Time:    x.now,
			Tenant:  "t",
			Type:    e.Type,
			Subject: e.Subject,
			Actor:   e.Actor,
			Facts:   e.Facts,
			Sealed:  e.Sealed,
		}.Seal(x.s.random)
		if err != nil {
			x.t.Fatalf("seal %s: %v", e.Type, err)
		}
		leaf, err := ledger.ParseLeaf(record.Leaf)
		must.Do(x.t, err)
		if problems := x.auditor.Add(x.entries, leaf); len(problems) > 0 {
			x.t.Fatalf("the audit complains: %v\n%s", problems, record.Leaf)
		}
		x.entries++
	}
}

func (x *trial) Vote(t *rapid.T) {
	x.t = t
	x.tick()
	id := person(rapid.IntRange(0, somePeople+1).Draw(t, "person")) // may be unknown to the directory
	v := rapid.SampledFrom([]Verdict{Approve, Approve, Approve, Approve, Deny, Respond}).Draw(t, "verdict")
	full := rapid.IntRange(0, 9).Draw(t, "full") > 0
	got, events, err := x.give(id, v, full)
	if known, ok := x.town.names[id]; ok {
		id = known
	}
	want, shown := x.answer(id, v, full)
	if (err == nil) != shown || got != want || err != nil && !errors.Is(err, ErrNotShown) {
		t.Fatalf("%s %s: got %q, %v, want %q", id, v, got, err, want)
	}
	x.record(events)
}

func (x *trial) give(id string, v Verdict, full bool) (VoteOutcome, []Event, error) {
	voter, known, err := x.s.known(context.Background(), "t", id)
	must.Do(x.t, err)
	if !known {
		voter = Person{ID: id}
	}
	a := x.r.answering()
	w, err := x.s.standing(context.Background(), x.r.Tenant, &a, x.now, voter)
	must.Do(x.t, err)
	if !known {
		delete(w.People, id)
	}
	vote := Vote{
		Person:   voter.ID,
		Verdict:  v,
		Revision: x.r.Current().Number,
		Binding:  x.r.Binding(),
		Channel:  "test",
		Groups:   voter.Groups,
		Full:     full,
		At:       x.now,
	}
	return x.r.vote(vote, "because", w, x.now, x.cfg)
}

func (x *trial) Edit(t *rapid.T) {
	x.t = t
	x.tick()
	id := person(rapid.IntRange(0, somePeople-1).Draw(t, "person"))
	if _, approve := x.says(id); !approve || x.town.names[id] != id || x.m.state != Pending {
		return
	}
	q, n := drawRequire(t), x.m.revision+1
	next := Revision{Call: x.r.Current().Call, Binding: binding(n), Plan: "plan", Author: id, At: x.now}
	next.Call.Args = resolve.Raw(`{"n":` + strconv.Itoa(n) + `}`)
	events := []Event{x.r.revise(next, q)}
	m := x.m
	m.revision, m.approvals = n, map[string]bool{}
	if q.OnTimeout != "" && (q.OnTimeout == policy.TimeoutDeny || m.fallback != policy.TimeoutDeny) {
		m.fallback = map[bool]policy.Timeout{
			true:  policy.TimeoutEscalate,
			false: q.OnTimeout,
		}[m.fallback == policy.TimeoutEscalate && q.OnTimeout == policy.TimeoutApprove]
	}

	if m.fallback == policy.TimeoutApprove {
		m.fallback = policy.TimeoutDeny // the rules accepted a timeout only for the original call
	}
	m.join(q, x.now)
	if at := x.now.Add(m.within); at.Before(m.deadline) {
		m.deadline = at
	}
	got, more, err := x.give(id, Approve, true)
	if want, _ := x.answer(id, Approve, true); err != nil || got != want {
		t.Fatalf("the author's vote: got %q, %v, want %q", got, err, want)
	}
	x.record(append(events, more...))
}

func (x *trial) Time(t *rapid.T) {
	x.t = t
	x.now = x.now.Add(
		time.Duration(rapid.SampledFrom([]int{0, 1, 5, 14, 16, 60, 1500, 10000}).Draw(t, "minutes")) * time.Minute,
	)
	x.tick()
	if x.r.State.Open() && (x.r.Due == nil || !x.r.Due.After(x.now)) {
		t.Fatalf("due %v after a tick at %v", x.r.Due, x.now)
	}
}

func (x *trial) Move(t *rapid.T) {
	x.t = t
	id, g := person(rapid.IntRange(0, somePeople-1).Draw(t, "person")), group(
		rapid.IntRange(0, someGroups-1).Draw(t, "group"),
	)
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0: // leaves, with all names
		maps.DeleteFunc(x.town.names, func(_, to string) bool { return to == id && !barred[id] })
	case 1: // rejoins
		x.town.names[id] = id
	case 2: // turns out to be another person
		if other := person(rapid.IntRange(0, somePeople-1).Draw(t, "other")); x.town.names[other] == other &&
			!barred[id] {
			for name, to := range x.town.names {
				if to == id {
					x.town.names[name] = other
				}
			}
		}
	default:
		if x.town.holds[id][g] {
			delete(x.town.holds[id], g)
		} else {
			x.town.holds[id][g] = true
		}
	}
}

func (x *trial) Withdraw(t *rapid.T) {
	x.t = t
	x.tick()
	if rapid.IntRange(0, 9).Draw(t, "seldom") > 0 || !x.r.State.Open() {
		return
	}
	cause := rapid.SampledFrom([]Cause{ByRequester, BySupersede}).Draw(t, "cause")
	x.m.cause = cause
	x.m.state = map[State]State{Pending: Cancelled, Approved: Expired}[x.m.state]
	x.record([]Event{x.r.withdraw(cause, "runtime", "", x.now)})
}

func (x *trial) Consume(t *rapid.T) {
	x.t = t
	x.tick()
	b := rapid.SampledFrom([]string{
		binding(x.m.revision),
		binding(x.m.revision),
		binding(x.m.revision),
		binding(x.m.revision + 1),
		binding(0),
		"",
	}).
		Draw(t, "binding")
	key, by := rapid.SampledFrom([]string{"k1", "k1", "k2"}).Draw(t, "key"),
		rapid.SampledFrom([]string{"r1", "r1", "r2"}).Draw(t, "by")
	m, right := x.m, b == binding(x.m.revision)
	var want error
	switch {
	case m.state == Consumed && (key != m.key || by != m.by || !right):
		want = ErrConsumed
	case m.state == Pending:
		want = ErrPending
	case m.state == Approved && !right:
		want = ErrBinding
	case m.state == Approved:
		m.state = Consumed
		m.cause = ByConsume
		m.key = key
		m.by = by
		m.consumed++
	case m.state != Consumed:
		want = ErrNotApproved
	}

	e, err := x.r.consume(b, key, by, x.now)
	if !errors.Is(err, want) {
		t.Fatalf("consume: got %v, want %v", err, want)
	}
	if e.Type != "" {
		x.record([]Event{e})
	}
}

// Check compares the state machine with the model, and checks its invariants.
func (x *trial) Check(t *rapid.T) {
	x.t = t
	x.same()
	x.steps()
	x.replayed()
	x.before = copyOf(x.t, x.r)
}

func (x *trial) same() {
	r, m := x.r, x.m
	stages, called := map[string]int{}, map[string]bool{}
	for _, s := range r.Stages {
		stages[s.Group] = s.People
	}
	for _, g := range r.Called {
		called[g] = true
	}
	redact := map[string]bool{}
	for _, p := range r.Redact {
		redact[p] = true
	}
	got := fmt.Sprint(r.State, r.Cause, r.Current().Number, stages, r.OnTimeout, r.Deadline, called, r.Grants, redact)
	want := fmt.Sprint(m.state, m.cause, m.revision, m.stages, m.fallback, m.deadline, m.called, m.grants, m.redact)
	if got != want {
		x.t.Fatalf("\ngot  %s\nwant %s", got, want)
	}
	if (r.Permit != nil && r.Permit.Consumed != nil) != (m.consumed == 1) || m.consumed > 1 {
		x.t.Fatalf("consumed %d times: %+v", m.consumed, r.Permit)
	}
	if r.State.Open() != (r.Due != nil) || r.State.Open() != (r.Closed == nil) {
		x.t.Fatalf("%s, due %v, closed %v", r.State, r.Due, r.Closed)
	}
}

// steps checks that the change since the last check is allowed.
func (x *trial) steps() {
	allowed := map[State][]State{
		Pending:   {Pending, Approved, Denied, Expired, Cancelled},
		Approved:  {Approved, Consumed, Expired},
		Denied:    {Denied},
		Expired:   {Expired},
		Cancelled: {Cancelled},
		Consumed:  {Consumed},
	}
	old, r := x.before, x.r
	if old.ID != "" {
		// One action may first apply the effects of time and then its own: at most two steps.
		ok := slices.ContainsFunc(allowed[old.State], func(s State) bool {
			return slices.Contains(allowed[s], r.State)
		})
		if !ok || len(r.Votes) < len(old.Votes) || len(r.Revisions) < len(old.Revisions) ||
			len(r.Called) < len(old.Called) {
			x.t.Fatalf("from %s to %s", old.State, r.State)
		}
		if !policy.Tighter(policy.Require{
			Stages:    named(r.Stages),
			Grants:    r.Grants,
			Arguments: policy.Arguments{Redact: r.Redact},
		},
			policy.Require{
				Stages:    named(old.Stages),
				Grants:    old.Grants,
				Arguments: policy.Arguments{Redact: old.Redact},
			}) {
			x.t.Fatalf("loosened: %+v, was %+v", r, old)
		}

		if r.Deadline.After(old.Deadline) &&
			(old.OnTimeout != policy.TimeoutEscalate || r.OnTimeout != policy.TimeoutDeny) {
			x.t.Fatalf("the deadline moved from %v to %v", old.Deadline, r.Deadline)
		}
	}
}

// named removes the stage for any approver, because a person who fills another stage also fills it.
func named(stages []policy.Stage) []policy.Stage {
	return slices.DeleteFunc(slices.Clone(stages), func(s policy.Stage) bool { return s.Group == "" })
}

// replayed compares the request with the state according to the ledger.
func (x *trial) replayed() {
	a, r := x.auditor.requests[x.r.ID], x.r
	votes := 0
	for _, v := range r.Votes {
		if !v.Late {
			votes++
		}
	}
	if a.state != r.State || a.binding != r.Binding() || a.revision != r.Current().Number ||
		!reflect.DeepEqual(a.stages, r.Stages) ||
		len(a.votes) != votes {
		x.t.Fatalf("the ledger tells %+v of %+v", a, r)
	}
	if r.State == Pending &&
		(!a.deadline.Equal(r.Deadline) || a.onTimeout != r.OnTimeout || !slices.Equal(a.called, r.Called)) ||
		r.State == Approved && !a.expires.Equal(r.Permit.Expires) {
		x.t.Fatalf("the ledger tells %+v of %+v", a, r)
	}
}

// copyOf returns the request after encoding and decoding it, as a store does.
func copyOf(t *rapid.T, r *Request) (out Request) {
	doc, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(doc, &out)
	}
	if again, _ := json.Marshal(out); err != nil || string(again) != string(doc) {
		t.Fatalf("stored %s, read %s, %v", doc, again, err)
	}
	return out
}

func TestMachineAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTrial(t)
		t.Repeat(map[string]func(*rapid.T){
			"vote":       x.Vote,
			"vote again": x.Vote,
			"vote more":  x.Vote,
			"edit":       x.Edit,
			"time":       x.Time,
			"move":       x.Move,
			"withdraw":   x.Withdraw,
			"consume":    x.Consume,
			"":           x.Check,
		})
	})
}
