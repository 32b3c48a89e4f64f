package approval_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
)

func TestVoteOutcomes(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("trade", `{}`))
	counted := h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	if counted.Request.Version != r.Version+1 || counted.Detail == "" {
		t.Errorf("got %+v", counted)
	}
	h.vote(r, "ann@acme", approval.Approve, approval.VoteDuplicate) // under another name
	h.vote(r, "cy", approval.Approve, approval.VoteNotEligible)
	h.vote(r, "nobody", approval.Deny, approval.VoteNotEligible)
	h.vote(r, "bob", approval.Approve, approval.VoteApproved)
	h.vote(r, "bob", approval.Approve, approval.VoteDuplicate)
	h.vote(r, "ann", approval.Deny, approval.VoteRevoked)
	h.is(r.ID, approval.Expired, approval.ByLateDeny)
	h.vote(r, "bob", approval.Deny, approval.VoteLate)
	h.happened(
		"request_opened",
		"vote_counted",
		"vote_refused",
		"vote_refused",
		"vote_counted",
		"request_approved",
		"vote_late",
		"request_expired",
		"vote_late",
	)

	if out := h.open(tool("trade", `{}`)); out.Denied != "cooling_down" {
		t.Errorf("a deny was forgotten at once: %+v", out)
	}
	denied := h.asked(tool("trade", `{"n":2}`))
	h.vote(denied, "ann", approval.Approve, approval.VoteCounted)
	h.vote(denied, "ann", approval.Deny, approval.VoteDenied) // a person may change an approval to a denial
	h.vote(denied, "bob", approval.Approve, approval.VoteConflicting)
	h.is(denied.ID, approval.Denied, approval.ByVotes)

	used, _ := h.approved(tool("pay", `{}`), nil)
	works(h.consume(used, tool("pay", `{}`), "k"))(t)
	h.vote(used, "dee", approval.Deny, approval.VoteConflicting)
	h.is(used.ID, approval.Consumed, approval.ByConsume)
	h.history()
}

func TestVoteResponds(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{}`))
	h.vote(r, "eve", approval.Respond, approval.VoteDenied)
	for _, late := range []approval.Verdict{approval.Approve, approval.Deny} {
		works(h.tryVote(r, "cy", late))(t)
	}
	if got := h.is(r.ID, approval.Denied, approval.ByResponse); got.Answer != "do it by hand" {
		t.Errorf("the agent is told %q", got.Answer)
	}
	h.history()
}

func TestVoteRefuses(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{}`))
	type in = approval.VoteInput
	for field, change := range map[string]func(*in){
		"verdict":  func(v *in) { v.Verdict = "maybe" },
		"response": func(v *in) { v.Response = "x" },
		"reason":   func(v *in) { v.Reason = strings.Repeat("x", 4<<20) },
		"channel":  func(v *in) { v.Channel = "\x1b[2J" },
		"person":   func(v *in) { v.Person = "\xff" },
		"binding":  func(v *in) { v.Binding = strings.Repeat("a", 4<<20) },
		"grant": func(v *in) {
			v.Verdict, v.Grant = approval.Deny, &approval.GrantOffer{}
		},
	} {
		_, err := h.tryVote(r, "eve", approval.Approve, change)
		h.wrongField(err, field)
	}

	for _, reason := range []string{"a\x00b", "\xff"} {
		_, err := h.tryVote(r, "eve", approval.Approve, func(v *in) { v.Reason = reason })
		h.wrongField(err, "reason")
	}
	_, err := h.tryVote(r, "eve", approval.Respond, func(v *in) { v.Response = " " })
	h.wrongField(err, "response")
	_, err = h.tryVote(r, "eve", approval.Approve, func(v *in) { v.IfVersion = r.Version + 1 })
	h.fails(err, approval.ErrVersion)
	for _, seen := range []string{
		"",
		r.Binding()[:len("sha256:")+11],
		"sha256:" + strings.Repeat("0", 64),
		r.Binding() + "0",
	} {
		_, err = h.tryVote(r, "eve", approval.Approve, func(v *in) { v.Binding = seen })
		h.fails(err, approval.ErrBinding)
	}

	_, err = h.tryVote(r, "eve", approval.Approve, func(v *in) { v.Full = false })
	h.fails(err, approval.ErrNotShown)
	for _, id := range []string{"apr_nothing", "", "\x00", "\xff", strings.Repeat("x", 4<<20)} {
		_, err = h.tryVote(&approval.Request{ID: id, Revisions: r.Revisions}, "eve", approval.Approve)
		h.fails(err, approval.ErrNotFound)
	}
	h.is(r.ID, approval.Pending, "")
	h.happened("request_opened")
}

// TestVoteCountsMembersAsOfNow: groups are looked up when votes are counted, so people who left a
// group don't count, and people who rejoined do.
func TestVoteCountsMembersAsOfNow(t *testing.T) {
	h := newHarness(t)
	h.people.set(func(d *directory) { d.groups["fay"] = []string{"risk"} })
	r := h.asked(tool("trade", `{}`))
	h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	h.people.set(func(d *directory) { d.groups["ann"] = nil })
	h.vote(r, "bob", approval.Approve, approval.VoteCounted)
	h.people.set(func(d *directory) { delete(d.groups, "bob") })
	h.vote(r, "fay", approval.Approve, approval.VoteCounted)
	h.people.set(func(d *directory) {
		d.groups["ann"], d.groups["gus"] = []string{"risk"}, []string{"risk"}
	})
	h.vote(r, "gus", approval.Approve, approval.VoteApproved)
	h.history()
}

// TestVoteCountsOwnersAsOfNow: a person who turns out to own the agent after voting does not count
// either.
func TestVoteCountsOwnersAsOfNow(t *testing.T) {
	h := newHarness(t)
	h.people.set(func(d *directory) { d.groups["fay"] = []string{"risk"} })
	r := h.asked(tool("trade", `{}`))
	h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	h.people.set(func(d *directory) { d.owners = []string{"ann@acme"} })
	h.vote(r, "bob", approval.Approve, approval.VoteCounted)
	h.vote(r, "fay", approval.Approve, approval.VoteApproved)
	h.history()
}

// TestVoteWithoutADirectory: an error of the directory stops everything without partial changes.
func TestVoteWithoutADirectory(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("pay", `{}`))
	broken := errors.New("the directory is away")
	h.people.set(func(d *directory) { d.broken = broken })
	_, err := h.tryVote(r, "eve", approval.Approve)
	h.fails(err, broken)
	_, err = h.tryOpen(tool("pay", `{"n":2}`))
	h.fails(err, broken)
	if got := h.request(r.ID); got.Version != r.Version || len(got.Votes) != 0 {
		t.Errorf("got %+v", got)
	}
	h.happened("request_opened")
}

func (h *harness) edit(r *approval.Request, person, args string) (*approval.Edited, error) {
	return h.s.Edit(context.Background(), approval.EditInput{
		Tenant:    "t",
		ID:        r.ID,
		IfVersion: r.Version,
		Binding:   r.Binding(),
		Person:    person,
		Args:      args,
		Channel:   "test",
		Full:      true,
	})
}

func TestEdit(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("refund", `{"amount":50,"to":"x"}`))
	h.vote(r, "nobody", approval.Approve, approval.VoteNotEligible)
	h.pass(5 * time.Minute)
	out, err := h.edit(r, "cy", `{"amount":500,"why":"two"}`)
	if err != nil || out.Voted.Outcome != approval.VoteCounted || len(out.Changes) != 3 || out.Binding == r.Binding() {
		t.Fatalf("got %+v, %v", out, err)
	}
	now := h.request(r.ID)
	if len(now.Stages) != 2 || !now.Deadline.Equal(h.now().Add(20*time.Minute)) || !now.Grants.Forbid ||
		now.Current().Author != "cy" ||
		now.Binding() != out.Binding {
		t.Errorf("the edited call's demands don't hold: %+v", now)
	}
	_, err = h.tryVote(r, "ann", approval.Approve) // the person saw the original call, not this one
	h.fails(err, approval.ErrBinding)
	_, err = h.edit(now, "ann", `{"amount":500.0, "why":"two"}`)
	h.wrongField(err, "arguments")
	for _, args := range []string{"", "{", `{"a":1,"a":2}`, "\xff", "\x00"} {
		_, err = h.edit(now, "ann", args)
		h.wrongField(err, "arguments")
	}
	_, err = h.edit(now, "eve", `{"amount":1}`)
	h.fails(err, approval.ErrNotEligible)
	_, err = h.edit(now, "stranger", `{"amount":1}`)
	h.fails(err, approval.ErrUnknownName)
	_, err = h.edit(r, "ann", `{"amount":1}`)
	h.fails(err, approval.ErrVersion)

	less, err := h.edit(now, "bob", `{"amount":5}`) // its own rules require less, but the requirement is not relaxed
	if err != nil || len(less.Voted.Request.Stages) != 2 || less.Voted.Outcome != approval.VoteCounted {
		t.Fatalf("got %+v, %v", less, err)
	}
	done := h.vote(less.Voted.Request, "cy", approval.Approve, approval.VoteApproved).Request
	for _, old := range []string{`{"amount":50,"to":"x"}`, `{"amount":500,"why":"two"}`} {
		_, err = h.consume(done, tool("refund", old), "k")
		h.fails(err, approval.ErrBinding)
	}
	if _, err = h.consume(done, tool("refund", `{"amount":5}`), "k"); err != nil {
		t.Error(err)
	}
	_, err = h.edit(h.request(r.ID), "bob", `{"amount":6}`)
	h.fails(err, approval.ErrClosed)
	h.history()
}

func TestPreview(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("refund", `{"amount":50}`))
	preview := func(args string) (*approval.Edited, error) {
		return h.s.Preview(context.Background(), approval.EditInput{
			Tenant:  "t",
			ID:      r.ID,
			Binding: r.Binding(),
			Person:  "cy",
			Args:    args,
		})
	}
	out, err := preview(`{"amount":500}`)
	if err != nil || len(out.Decision.Require.Stages) != 2 || out.Voted != nil || len(out.Changes) != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	h.plans.set(
		t,
		strings.Replace(
			policyFile,
			"approval: true, require: {stages: [{group: support}], within: 1h}",
			`deny: "Closed."`,
			1,
		),
	)
	if out, err = preview(`{"amount":500}`); err != nil || out.Decision.Outcome.String() != "deny" {
		t.Errorf("got %+v, %v", out, err)
	}
	if out, err = h.edit(r, "cy", `{"amount":500}`); !errors.Is(err, approval.ErrEditDenied) || out == nil ||
		out.Decision.Outcome.String() != "deny" {
		t.Errorf("got %+v, %v", out, err)
	}
	if got := h.is(r.ID, approval.Pending, ""); len(got.Revisions) != 1 {
		t.Errorf("got %+v", got)
	}
	h.happened("request_opened", "edit_refused")
}

// TestEditIntoAnotherRequest: an edit can't lead to two requests for the same call.
func TestEditIntoAnotherRequest(t *testing.T) {
	h := newHarness(t)
	one, two := h.asked(tool("pay", `{"n":1}`)), h.asked(tool("pay", `{"n":2}`))
	_, err := h.edit(one, "eve", `{"n":2}`)
	h.wrongField(err, "arguments")
	h.vote(two, "eve", approval.Deny, approval.VoteDenied)
	works(h.edit(one, "eve", `{"n":2}`))(t)
	h.history()
}

// TestOpenFindsAnEditedRequest: an older request that was edited into a call is found before a
// newer one that has ended.
func TestOpenFindsAnEditedRequest(t *testing.T) {
	h := newHarness(t)
	one := h.asked(tool("trade", `{"n":1}`))
	h.pass(time.Second)
	two := h.asked(tool("trade", `{"n":2}`))
	works(h.s.Cancel(context.Background(), "t", two.ID, "runner", ""))(t)
	works(h.edit(one, "ann", `{"n":2}`))(t)
	if out := h.open(tool("trade", `{"n":2}`)); !out.Shared || out.Request.ID != one.ID {
		t.Errorf("got %+v", out)
	}
}

func TestEditHasAnEnd(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("trade", `{"n":0}`))
	for i := 1; ; i++ {
		out, err := h.edit(r, "ann", `{"n":`+strings.Repeat("1", i)+`}`)
		if err != nil {
			if h.wrongField(err, "arguments"); i != 51 {
				t.Errorf("after %d edits: %v", i-1, err)
			}
			break
		}

		r = out.Voted.Request
	}

	h.history()
}

func TestCancelAndRevokeRefuse(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	r := h.asked(tool("pay", `{}`))
	_, err := h.s.Cancel(ctx, "t", r.ID, "runner", "\x00")
	h.wrongField(err, "reason")
	works(h.s.Cancel(ctx, "t", r.ID, "runner", "changed my mind"))(t)
	h.is(r.ID, approval.Cancelled, approval.ByRequester)
	_, err = h.s.Cancel(ctx, "t", r.ID, "runner", "")
	h.fails(err, approval.ErrClosed)
	_, err = h.s.Cancel(ctx, "other", r.ID, "runner", "")
	h.fails(err, approval.ErrNotFound)
	_, err = h.s.Revoke(ctx, "t", "grt_nothing", "ann", "")
	h.fails(err, approval.ErrNotFound)
	h.happened("request_opened", "request_cancelled")
}

// TestVoteAtOnce: concurrent votes are all recorded.
func TestVoteAtOnce(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("trade", `{}`))
	outcomes, wg := make([]approval.VoteOutcome, 32), sync.WaitGroup{}
	for i := range outcomes {
		wg.Go(func() {
			if out, err := h.tryVote(r, []string{"ann", "bob"}[i%2], approval.Approve); err == nil {
				outcomes[i] = out.Outcome
			}
		})
	}

	wg.Wait()
	count := map[approval.VoteOutcome]int{}
	for _, o := range outcomes {
		count[o]++
	}
	if count[approval.VoteCounted] != 1 || count[approval.VoteApproved] != 1 || count[approval.VoteDuplicate] != 30 {
		t.Errorf("got %v", count)
	}
	h.happened("request_opened", "vote_counted", "vote_counted", "request_approved")
}

// outside fails the test if an agent's plan is requested while a transaction is open.
type outside struct {
	approval.Store
	approval.Planner
	t  *testing.T
	in atomic.Int64
}

func (o *outside) Update(ctx context.Context, tenant string, fn func(approval.Tx) error) error {
	return o.Store.Update(ctx, tenant, func(tx approval.Tx) error {
		o.in.Add(1)
		defer o.in.Add(-1)
		return fn(tx)
	})
}

func (o *outside) Plan(ctx context.Context, tenant, agent string) (*approval.Compiled, error) {
	if o.in.Load() > 0 {
		o.t.Error("the call is decided within a transaction")
	}
	return o.Planner.Plan(ctx, tenant, agent)
}

// TestEditsAreDecidedOutsideOfTheTransaction: large arguments are decided and compared before the
// transaction, which blocks other writers.
func TestEditsAreDecidedOutsideOfTheTransaction(t *testing.T) {
	h := newHarness(t)
	o := &outside{Store: h.store, Planner: h.plans, t: t}
	h.s = approval.New(o, o, h.people, h.now, rand.Reader, h.cfg)
	r := h.asked(tool("trade", `{"n":5}`))
	_, err := h.edit(r, "ann", `{"n":4}`)
	must(t, err)
	if _, err := h.edit(r, "bob", `{"n":3}`); err == nil {
		t.Error("an edit of an earlier form of the call is taken")
	}
	if got := string(h.request(r.ID).Current().Call.Args); got != `{"n":4}` {
		t.Errorf("got %s", got)
	}
	h.history()
}
