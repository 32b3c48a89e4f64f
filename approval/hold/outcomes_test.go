package hold_test

import (
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/resolve"
)

// outcome is an action on a request and the state that the agent's side sees afterwards.
type outcome struct {
	name   string
	tool   string // "trade" if empty
	happen func(h *assenttest.Assent, id string)
	want   hold.Held // Ref and Where are checked in all cases, Expires is not compared
	claim  hold.State
	runs   string // arguments that can be claimed; empty for none
	edited bool   // the original call can't be claimed
}

func outcomes() []outcome {
	words := func(reason string) func(*approval.VoteInput) {
		return func(in *approval.VoteInput) { in.Reason = reason }
	}
	return []outcome{
		{
			name:   "nobody answered yet",
			happen: func(*assenttest.Assent, string) {},
			want:   hold.Held{State: hold.Pending},
			claim:  hold.Pending,
		},
		{
			name: "approved",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "mara", approval.Approve, approval.VoteApproved, words("fine"))
			},
			want: hold.Held{State: hold.Approved, By: "mara"},
			runs: `{"amount":7}`,
		},
		{
			name: "one of two",
			tool: "wire",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "mara", approval.Approve, approval.VoteCounted, nil)
			},
			want:  hold.Held{State: hold.Pending},
			claim: hold.Pending,
		},
		{
			name: "two of two",
			tool: "wire",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "mara", approval.Approve, approval.VoteCounted, nil)
				h.Votes(id, "ben", approval.Approve, approval.VoteApproved, nil)
			},
			want: hold.Held{State: hold.Approved, By: "mara, ben"},
			runs: `{"amount":7}`,
		},
		{
			name: "denied",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "ben", approval.Deny, approval.VoteDenied, words("too much"))
			},
			want:  hold.Held{State: hold.Denied, By: "ben", Reason: "too much"},
			claim: hold.Denied,
		},
		{
			name: "answered instead",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "ben", approval.Respond, approval.VoteDenied, func(in *approval.VoteInput) {
					in.Response = "ask again on Monday"
				})
			},
			want:  hold.Held{State: hold.Responded, By: "ben", Reason: "ask again on Monday"},
			claim: hold.Responded,
		},
		{
			name: "edited",
			happen: func(h *assenttest.Assent, id string) {
				must(h.T, h.Edit(id, "mara", `{"amount": 5}`))
			},
			want:   hold.Held{State: hold.Approved, By: "mara", Arguments: []byte(`{"amount": 5}`)},
			runs:   `{"amount":5}`,
			edited: true,
		},
		{
			name: "edited there and back",
			happen: func(h *assenttest.Assent, id string) {
				must(h.T, h.Edit(id, "mara", `{"amount":5}`))
				must(h.T, h.Edit(id, "mara", `{"amount":7}`))
				h.Votes(id, "ben", approval.Approve, approval.VoteApproved, nil)
			},
			tool: "wire",
			want: hold.Held{State: hold.Approved, By: "mara, ben"},
			runs: `{"amount":7}`,
		},
		{
			name: "a vote before the edit",
			tool: "wire",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "ben", approval.Approve, approval.VoteCounted, nil)
				must(h.T, h.Edit(id, "mara", `{"amount":5}`))
				h.Votes(id, "kim", approval.Approve, approval.VoteApproved, nil)
			},
			want:   hold.Held{State: hold.Approved, By: "mara, kim", Arguments: []byte(`{"amount":5}`)},
			runs:   `{"amount":5}`,
			edited: true,
		},
		{
			name: "approved once more",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
				h.Votes(id, "ben", approval.Approve, approval.VoteLate, nil)
			},
			want: hold.Held{State: hold.Approved, By: "mara"},
			runs: `{"amount":7}`,
		},
		{
			name: "nobody in time",
			tool: "wire",
			happen: func(h *assenttest.Assent, _ string) {
				h.Later(61 * time.Minute)
			},
			want:  hold.Held{State: hold.Expired, Reason: "nobody decided in time; that is no denial"},
			claim: hold.Expired,
		},
		{
			name: "silence is consent",
			tool: "publish",
			happen: func(h *assenttest.Assent, _ string) {
				h.Later(61 * time.Minute)
			},
			want: hold.Held{State: hold.Approved, By: "timeout"},
			runs: `{"amount":7}`,
		},
		{
			name: "not used in time",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
				h.Later(16 * time.Minute)
			},
			want: hold.Held{
				State:  hold.Expired,
				By:     "mara",
				Reason: "it was approved, and the approval was not used in time; that is no denial",
			},
			claim: hold.Expired,
		},
		{
			name: "denied before it ran",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
				h.Votes(id, "ben", approval.Deny, approval.VoteRevoked, words("stop"))
			},
			want:  hold.Held{State: hold.Denied, By: "ben", Reason: "stop"},
			claim: hold.Denied,
		},
		{
			name: "taken back by another hand",
			happen: func(h *assenttest.Assent, id string) {
				_, err := h.Service.Cancel(h.T.Context(), "acme", id, "root", "the user left")
				must(h.T, err)
			},
			want:  hold.Held{State: hold.Cancelled, By: "root", Reason: "the user left"},
			claim: hold.Cancelled,
		},
		{
			name: "superseded",
			happen: func(h *assenttest.Assent, id string) {
				h.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
				_, err := h.Service.Open(h.T.Context(), approval.OpenInput{
					Tenant:   "acme",
					Asker:    approval.Asker{Token: "rt"},
					Agent:    "desk",
					Call:     asks("trade", `{"amount":8}`).Call,
					Replaces: id,
				})
				must(h.T, err)
			},
			want:  hold.Held{State: hold.Cancelled, By: "rt", Reason: "a newer request stands in its place"},
			claim: hold.Cancelled,
		},
	}
}

func TestOutcomes(t *testing.T) {
	for _, o := range outcomes() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			atDesks(t, func(t *testing.T, h *assenttest.Assent, d *desk) { o.check(t, h, d) })
		})
	}
}

func (o outcome) check(t *testing.T, h *assenttest.Assent, d *desk) {
	tool := o.tool
	if tool == "" {
		tool = "trade"
	}
	asked := asks(tool, `{"amount":7}`)
	opened := d.open("key-1", asked)
	if opened.State != hold.Pending || opened.Expires.Before(h.Clock.Now()) ||
		opened.Where != h.URL+"/requests/"+opened.Ref {
		t.Fatalf("opened: %+v", opened)
	}
	o.happen(h, opened.Ref)
	got := d.look(opened.Ref)
	open := o.want.State == hold.Pending || o.want.State == hold.Approved
	if open != got.Expires.After(h.Clock.Now()) {
		t.Errorf("it expires at %v", got.Expires)
	}
	o.want.Ref = opened.Ref
	o.want.Where = opened.Where
	o.want.Expires = got.Expires
	if string(got.Arguments) != string(o.want.Arguments) || !sameBut(got, o.want) {
		t.Errorf("got %+v\nwant %+v", got, o.want)
	}
	if again := d.open("key-1", asked); !sameBut(again, got) || string(again.Arguments) != string(got.Arguments) {
		t.Errorf("opening again with the same key: got %+v\nwant %+v", again, got)
	}
	if o.runs == "" {
		first := d.refuses(opened.Ref, "run", asked, o.claim)
		if again := d.refuses(opened.Ref, "run", asked, o.claim); again.Detail != first.Detail {
			t.Errorf("the same claim is told %q, then %q", first.Detail, again.Detail)
		}
		return
	}

	if o.edited {
		d.refuses(opened.Ref, "run", asked, approval.ErrBinding)
	}
	d.runsOnce(opened.Ref, asks(tool, o.runs))
}

// sameBut compares everything except the arguments, which are not comparable.
func sameBut(a, b hold.Held) bool {
	return a.Ref == b.Ref && a.State == b.State && a.Reason == b.Reason && a.By == b.By && a.Where == b.Where &&
		a.Expires.Equal(b.Expires)
}

// runsOnce claims the one run of a call and checks that other claims fail.
func (d *desk) runsOnce(ref string, v hold.Verdict) {
	d.t.Helper()
	d.refuses(ref, "run", asks(v.Call.Tool, `{"amount":70}`), approval.ErrBinding)
	other := *v.Call
	other.Session = "s-2"
	d.refuses(ref, "run", hold.Verdict{Decision: v.Decision, Call: &other}, approval.ErrBinding)
	denied := v
	denied.Decision = resolve.Decision{Outcome: resolve.Deny, Message: "not today"}
	d.refuses(ref, "run", denied, hold.Denied)
	d.takes(ref, "run", v)
	d.takes(ref, "run", v)
	d.refuses(ref, "run-2", v, approval.ErrConsumed)
	if got := d.look(ref); got.State != hold.Approved || got.By == "" {
		d.t.Errorf("after the run: %+v", got)
	}
	must(d.t, d.Cancel(d.t.Context(), ref, "too late"))
	d.takes(ref, "run", v)
}
