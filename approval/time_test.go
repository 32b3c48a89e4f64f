package approval_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/approval"
)

// TestLadder goes through all scheduled steps, with a restart before each one: a reminder, an
// escalation, another reminder, the extension, and the end.
func TestLadder(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("nudge", `{}`))
	for _, next := range []struct {
		pass time.Duration
		last string
	}{
		{10 * time.Minute, "request_escalated"},
		{10 * time.Minute, "request_reminded"},
		{16 * time.Minute, "request_reminded"},
		{4 * time.Minute, "request_escalated"},
		{40 * time.Minute, "request_expired"},
	} {
		h.pass(next.pass - time.Microsecond)
		h.tick(0)
		h.pass(time.Microsecond)
		h.start()
		h.tick(1)
		h.tick(0)
		if got := h.history(); got[len(got)-1] != next.last {
			t.Fatalf("got %v, want %s", got, next.last)
		}
	}

	got := h.is(r.ID, approval.Expired, approval.ByDeadline)
	if !slices.Equal(got.Called, []string{"leads"}) || !got.Deadline.Equal(r.Created.Add(80*time.Minute)) {
		t.Errorf("got %+v", got)
	}
	h.vote(r, "cy", approval.Deny, approval.VoteLate) // a late denial is recorded
	if got := h.is(r.ID, approval.Expired, approval.ByDeadline); len(got.Votes) != 1 || !got.Votes[0].Late {
		t.Errorf("got %+v", got.Votes)
	}
}

// TestLadderAllAtOnce: if no worker ran in the meantime, the request ends at once, after all missed
// steps.
func TestLadderAllAtOnce(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("nudge", `{}`))
	h.pass(time.Hour)
	h.tick(1)
	if got := h.is(r.ID, approval.Pending, ""); !got.Due.After(h.now()) {
		t.Errorf("due %v", got.Due)
	}
	h.pass(time.Hour)
	h.tick(1)
	h.is(r.ID, approval.Expired, approval.ByDeadline)
	h.history()
}

// TestEscalationLetsStandInsApprove: people who are called in may then fill the seats of the rule
// that called them.
func TestEscalationLetsStandInsApprove(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("nudge", `{}`))
	h.vote(r, "dee", approval.Approve, approval.VoteNotEligible)
	h.pass(10*time.Minute - time.Second)
	h.vote(r, "dee", approval.Approve, approval.VoteNotEligible)
	h.pass(time.Second)
	h.vote(r, "dee", approval.Approve, approval.VoteApproved)
	h.history()
}

// TestEscalationToLookGivesNoSeat: people who are called in as readers may deny, but fill no seat.
func TestEscalationToLookGivesNoSeat(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("glance", `{}`))
	h.vote(r, "dee", approval.Deny, approval.VoteNotEligible)
	h.pass(10 * time.Minute)
	h.vote(r, "dee", approval.Approve, approval.VoteNotEligible)
	h.vote(h.request(r.ID), "dee", approval.Deny, approval.VoteDenied)
	h.history()
}

func TestDeadlineDenies(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("trade", `{}`))
	h.vote(r, "ann", approval.Approve, approval.VoteCounted)
	h.pass(30 * time.Minute)
	h.vote(r, "bob", approval.Approve, approval.VoteLate) // no worker has processed the deadline yet
	h.is(r.ID, approval.Expired, approval.ByDeadline)
	h.happened("request_opened", "vote_counted", "request_expired", "vote_late")
}

func TestDeadlineApproves(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("drift", `{}`))
	h.pass(10 * time.Minute)
	h.tick(1)
	h.is(r.ID, approval.Approved, approval.ByTimeout)
	if _, err := h.consume(r, tool("drift", `{}`), "k"); err != nil {
		t.Error(err)
	}
	h.history()
}

// TestClockJumps: a wall clock that jumps never revives what has ended and never stops time.
func TestClockJumps(t *testing.T) {
	h := newHarness(t)
	r, _ := h.approved(tool("pay", `{}`), nil)
	h.pass(20 * time.Minute)
	h.tick(1)
	h.pass(-time.Hour)
	_, err := h.consume(r, tool("pay", `{}`), "k")
	h.fails(err, approval.ErrNotApproved)

	next, _ := h.approved(tool("pay", `{"n":2}`), nil)
	h.pass(10 * time.Minute)
	h.tick(0)
	h.pass(-24 * time.Hour)
	h.tick(0)
	h.pass(30 * time.Minute) // half speed until the wall clock has caught up
	h.tick(1)
	h.is(next.ID, approval.Expired, approval.ByPermitAge)
	h.history()
}

func TestWait(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	r := h.asked(tool("pay", `{}`))
	if got, err := h.wait(ctx, r.ID, r.Version-1, time.Hour); err != nil || got.Version != r.Version {
		t.Errorf("a change that has been: got %+v, %v", got, err)
	}
	if got, err := h.wait(ctx, r.ID, r.Version, 10*time.Millisecond); err != nil || got.Version != r.Version {
		t.Errorf("no change: got %+v, %v", got, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := h.wait(gone, r.ID, r.Version, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_, err := h.wait(ctx, "apr_nothing", 0, time.Hour)
	h.fails(err, approval.ErrNotFound)
}

// TestWaitWakes: waiting callers wake at once after any change: a vote, the effects of time, or a
// change by another service on the same store.
func TestWaitWakes(t *testing.T) {
	for name, change := range map[string]func(*harness, *approval.Request){
		"vote": func(h *harness, r *approval.Request) { h.vote(r, "eve", approval.Approve, approval.VoteApproved) },
		"time": func(h *harness, _ *approval.Request) {
			h.pass(25 * time.Hour)
			if n, err := h.s.Tick(context.Background()); err != nil || n == 0 {
				h.t.Error(n, err)
			}
		},
		"replaced": func(h *harness, r *approval.Request) {
			h.asked(tool("trade", `{}`), func(in *approval.OpenInput) { in.Replaces = r.ID })
		},
		"elsewhere": func(h *harness, r *approval.Request) {
			other := approval.New(h.store, h.plans, h.people, h.now, zeros{}, h.cfg)
			if _, err := other.Cancel(context.Background(), "t", r.ID, "runner", ""); err != nil {
				h.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				r := h.asked(tool("pay", `{"for":"`+name+`"}`))
				began := time.Now()
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						got, err := h.wait(context.Background(), r.ID, r.Version, 20*time.Second)
						if err != nil || got.Version == r.Version || time.Since(began) > time.Second {
							t.Errorf("%+v, %v after %v", got, err, time.Since(began))
						}
					})
				}

				synctest.Wait()
				change(h, r)
				all.Wait()
			})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// wait returns a request as soon as its version has changed or the time is over.
func (h *harness) wait(ctx context.Context, id string, version int64, wait time.Duration) (*approval.Request, error) {
	if err := h.s.Await(ctx, "t", id, version, wait); err != nil {
		return nil, err
	}
	return h.s.Request(ctx, "t", id)
}
