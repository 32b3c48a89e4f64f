package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// heldStub is a Holder whose answers a test sets.
type heldStub struct {
	now, later                       hold.Held // now is returned by Open, later by Look
	openErr, lookErr, claimErr, gone error
	log                              []string
}

func (h *heldStub) Open(_ context.Context, key string, _ hold.Verdict) (hold.Held, error) {
	h.log = append(h.log, "open "+key)
	return h.now, h.openErr
}

func (h *heldStub) Look(_ context.Context, ref string) (hold.Held, error) {
	h.log = append(h.log, "look "+ref)
	return h.later, h.lookErr
}

func (h *heldStub) Claim(_ context.Context, ref, key string, _ hold.Verdict) error {
	h.log = append(h.log, "claim "+ref)
	return h.claimErr
}

func (h *heldStub) Cancel(_ context.Context, ref, reason string) error {
	h.log = append(h.log, "cancel "+ref)
	return h.gone
}

func pendingStub() *heldStub {
	h := &heldStub{now: hold.Held{Ref: "h1", State: hold.Pending, Where: "https://inbox/1",
		Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}
	h.later = h.now
	return h
}

func asks() Decider { return &changing{verdict: outcomeOf(resolve.Ask, "r")} }

func TestHeldRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		held   hold.Held
		result string
		events string
	}{
		"approved": {hold.Held{State: hold.Approved, By: "ann"}, `"ann"`,
			"answered 1 ficc_1 true\nstarted 1\nfinished 1\n"},
		"denied": {hold.Held{State: hold.Denied, By: "ann", Reason: "no"},
			`"Tool call invocation rejected. no"`, "answered 1 ficc_1 false\n"},
		"expired": {hold.Held{State: hold.Expired}, `"` + textExpired + `"`, "expired 1 ficc_1\n"},
		"cancelled": {hold.Held{State: hold.Cancelled}, `"Tool call not run: the request was withdrawn."`,
			"cancelled 1 ficc_1\n"},
		"responded": {hold.Held{State: hold.Responded, By: "ann", Reason: "use the other one"},
			`"use the other one"`, "answered 1 ficc_1\n"},
		"edited": {hold.Held{State: hold.Approved, By: "ann", Arguments: []byte(`{"n":4}`)}, `"ann"`,
			"answered 1 ficc_1 true\nstarted 1\nfinished 1\n"},
	} {
		bothWaysOf(t, name, func(t runner) {
			h, j := pendingStub(), &journal{}
			ran := []string{}
			pay := NewFunction("pay", "", nil, func(ctx context.Context, args json.RawMessage) (any, error) {
				ran = append(ran, string(args))
				return InvocationOf(ctx).Approval, nil
			})
			k := talk(t, said(text("?"), call("1", "pay", `{"n":5}`)), said(text("ok")))
			v := required(outcomeOf(resolve.Ask, "r"), 0, policy.Stage{Group: "ops", People: 1})
			a := chat(k, LoopConfig{Holder: h, Decider: &changing{verdict: v}, Audit: j.take}, nil, pay)
			th, q := t.asks(a, "x")
			if q.Note.Where != "https://inbox/1" || q.Note.Expires.Year() != 2027 || th.Pending()[0].Ref != "h1" {
				t.Errorf("%+v %+v", q.Note, th.Pending())
			}
			th = reload(t, th)
			resp := t.yes(a, th, q)
			expect(t, "refused", refusals(resp), "ficc_1 held_elsewhere")
			if len(ran) > 0 || len(k.seen) != 1 {
				t.Fatal("the messages approved:", ran)
			}
			h.later = tt.held
			h.later.Ref = "h1"
			th = reload(t, th)
			t.run(a, th)
			if !strings.Contains(k.last(), "1→"+tt.result+"\n") {
				t.Errorf("%s\n%s", tt.result, k.last())
			}
			if !strings.HasSuffix(j.tell(), "refused  ficc_1\n"+tt.events) {
				t.Error(j.tell())
			}
			claims := strings.Count(strings.Join(h.log, " "), "claim")
			if want := map[bool]int{true: 1}[tt.held.State == hold.Approved]; claims != want || len(ran) != want {
				t.Errorf("%v, ran %v", h.log, ran)
			}
			if tt.held.Arguments != nil && ran[0] != `{"n":4}` {
				t.Error(ran)
			}
		})
	}
}

func TestHolderErrors(t *testing.T) {
	away := errors.New("the holder is away")
	for name, spoil := range map[string]func(h *heldStub){
		"look":          func(h *heldStub) { h.lookErr = away },
		"unknown state": func(h *heldStub) { h.later.State = "maybe" },
		"claim":         func(h *heldStub) { h.later.State, h.claimErr = hold.Approved, away },
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			h := pendingStub()
			k := talk(t, said(text("?"), call("1", "pay", "")), said(text("ok")))
			a := chat(k, LoopConfig{Holder: h, Decider: asks()}, nil, c.tool("pay"))
			th := t.begin(a, "x")
			spoil(h)
			if _, err := t.try(a, th); err == nil || len(c.runs) > 0 {
				t.Fatal(err, c.runs)
			}
			h.lookErr = nil
			h.claimErr = nil
			h.later = hold.Held{Ref: "h1", State: hold.Approved}
			t.run(a, reload(t, th))
			if c.runs["pay"] != 1 {
				t.Error(c.runs)
			}
		})
	}
}

func TestHolderCantOpen(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		h := pendingStub()
		h.openErr = errors.New("away")
		a := chat(talk(t, said(call("1", "pay", ""))), LoopConfig{Holder: h, Decider: asks()}, nil, c.tool("pay"))
		th := NewThread("t")
		if _, err := t.try(a, th, content.UserText("x")); err == nil || len(th.Pending()) > 0 || len(c.runs) > 0 {
			t.Error(err, th.Pending(), c.runs)
		}
	})
}

func TestHolderIsMissing(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		k := paying(t, "")
		th := NewThread("t")
		q := approvalOf(
			t,
			t.run(chat(k, LoopConfig{Holder: pendingStub(), Decider: asks()}, nil, c.tool("pay")), th,
				content.UserText("x")),
			0,
		)
		a := chat(k, LoopConfig{Decider: asks()}, nil, c.tool("pay"))
		if _, err := t.try(a, reload(t, th), answers(q.CreateApproval(""))); err == nil || len(c.runs) > 0 {
			t.Error(err, c.runs)
		}
	})
}

func TestNotClaimed(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		h, j := pendingStub(), &journal{}
		h.claimErr = fmt.Errorf("%w: taken", hold.ErrNotClaimed)
		k := talk(t, said(text("?"), call("1", "pay", "")), said(text("ok")))
		a := chat(k, LoopConfig{Holder: h, Decider: asks(), Audit: j.take}, nil, c.tool("pay"))
		th := t.begin(a, "x")
		h.later.State = hold.Approved
		t.run(a, th)
		if len(c.runs) > 0 || !strings.Contains(k.last(), "1→\"Tool call not run: ") ||
			!strings.HasSuffix(j.tell(), "denied 1\n") {
			t.Error(c.runs, k.last(), j.tell())
		}
	})
}

func TestSupersedeWithdraws(t *testing.T) {
	for _, gone := range []error{nil, errors.New("away")} {
		bothWays(t, func(t runner) {
			var c counted
			h := pendingStub()
			h.gone = gone
			k := paying(t, "")
			a := chat(k, LoopConfig{Holder: h, Decider: asks(), OnNewMessage: Supersede}, nil, c.tool("pay"))
			th := t.begin(a, "x")
			_, err := t.try(a, th, content.UserText("y"))
			if !errors.Is(err, gone) || h.log[len(h.log)-1] != "cancel h1" || len(c.runs) > 0 {
				t.Error(err, h.log)
			}
		})
	}
}

func TestDeadlineOfTheHolder(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		h, cl := pendingStub(), newClock()
		h.now.Expires = time.Time{}
		h.later = h.now
		d := &changing{verdict: required(outcomeOf(resolve.Ask, "r"), time.Minute)}
		a := chat(talk(t, said(text("?"), call("1", "pay", ""))),
			LoopConfig{Holder: h, Decider: d, Now: cl.now}, nil, c.tool("pay"))
		th := t.begin(a, "x")
		cl.at = cl.at.Add(time.Hour)
		if resp := t.run(a, th); len(resp.UserInputRequests()) != 1 {
			t.Error("only the holder ends what it holds:", tell(resp.Messages))
		}
	})
}

// TestClaimKeys checks that an attempt can be repeated after a crash if the thread has a store,
// and can't be repeated without a store.
func TestClaimKeys(t *testing.T) {
	for _, stored := range []bool{false, true} {
		bothWays(t, func(t runner) {
			var c counted
			keys := &keyedStub{heldStub: *pendingStub()}
			var store ThreadStore
			if stored {
				store = &keeper{}
			}
			a := chat(talk(t, said(text("?"), call("1", "pay", "")), said(text("ok"))),
				LoopConfig{Holder: keys, Decider: asks()}, store, c.tool("pay"))
			th := t.begin(a, "x")
			keys.later.State, keys.claimErr = hold.Approved, errors.New("away")
			raw := sure(json.Marshal(th))
			for range 2 { // two processes that both die before the run
				other := sure(loaded(raw, "t"))
				if _, err := t.try(a, other); err == nil {
					t.Fatal("no error")
				}
			}

			if same := keys.keys[0] == keys.keys[1]; same != stored {
				t.Errorf("stored %v: %v", stored, keys.keys)
			}
		})
	}
}

type keyedStub struct {
	heldStub
	keys []string
}

func (h *keyedStub) Claim(ctx context.Context, ref, key string, v hold.Verdict) error {
	h.keys = append(h.keys, key)
	return h.heldStub.Claim(ctx, ref, key, v)
}

// TestMarkerAloneCannotBeHeld uses a holder with no decider, or with one that allows the call.
// No policy names the people to ask, so the marked call is refused.
func TestMarkerAloneCannotBeHeld(t *testing.T) {
	for _, d := range []Decider{nil, &changing{verdict: outcomeOf(resolve.Allow)}} {
		bothWays(t, func(t runner) {
			var c counted
			h := pendingStub()
			k := paying(t, "")
			resp := t.run(c.asked(k, LoopConfig{Holder: h, Decider: d}), NewThread("t"), content.UserText("x"))
			if len(resp.UserInputRequests()) > 0 || len(c.runs) > 0 || len(h.log) > 0 {
				t.Error(tell(resp.Messages), c.runs, h.log)
			}
		})
	}
}

// TestHostedRequestsAreHeld gives requests of the model's service to a holder. Only the
// holder's people can approve them, and the run is claimed.
func TestHostedRequestsAreHeld(t *testing.T) {
	for name, tt := range map[string]struct {
		later hold.Held
		claim error
		now   resolve.Outcome // the plan's decision when the answer arrives
		want  string
	}{
		"approved": {later: hold.Held{State: hold.Approved, By: "ann"}, now: resolve.Ask, want: "?r1, !yes r1"},
		"denied":   {later: hold.Held{State: hold.Denied, Reason: "no"}, now: resolve.Ask, want: "?r1, !no r1"},
		"expired":  {later: hold.Held{State: hold.Expired}, now: resolve.Ask, want: "?r1, !no r1"},
		"approved and taken": {later: hold.Held{State: hold.Approved}, claim: hold.ErrNotClaimed,
			now: resolve.Ask, want: "?r1, !no r1"},
		"denied by now": {later: hold.Held{State: hold.Approved}, now: resolve.Deny, want: "?r1, !no r1"},
	} {
		bothWaysOf(t, name, func(t runner) {
			h, d := pendingStub(), &changing{verdict: outcomeOf(resolve.Ask, "r")}
			j := &journal{}
			k := talk(t, said(mcpRequest("r1")), said(text("ok")))
			a := chat(k, LoopConfig{Holder: h, Decider: d, Audit: j.take}, nil)
			th, q := t.asks(a, "x")
			if q.Note.Where == "" || q.Note.Expires.IsZero() {
				t.Errorf("%+v", q.Note)
			}
			th = reload(t, th)
			resp := t.yes(a, th, q)
			if expect(t, "refused", refusals(resp), "r1 held_elsewhere"); len(k.seen) != 1 {
				t.Fatal("the messages approved")
			}
			h.later = tt.later
			h.claimErr = tt.claim
			d.verdict = outcomeOf(tt.now, "r")
			h.later.Ref = "h1"
			t.run(a, reload(t, th))
			expect(t, "pairs", hosted(k.seen[1]), tt.want)
			wanted := tt.later.State == hold.Approved && tt.now == resolve.Ask
			if claimed := strings.Contains(strings.Join(h.log, " "), "claim"); claimed != wanted {
				t.Error(h.log)
			}
			if n := strings.Count(j.tell(), "denied "); n > 1 {
				t.Errorf("%d denials:\n%s", n, j.tell())
			}
		})
	}
}

func TestClaimThatNeedsRandomness(t *testing.T) {
	var c counted
	h := pendingStub()
	k := talk(t, said(text("?"), call("1", "pay", "")))
	th := NewThread("t")
	mustRun(t, chat(k, LoopConfig{Holder: h, Decider: asks()}, nil, c.tool("pay")), th, content.UserText("x"))
	h.later.State = hold.Approved
	a := chat(k, LoopConfig{Holder: h, Decider: asks(), Rand: emptyReader{}}, nil, c.tool("pay"))
	if _, err := a.Run(t.Context(), th); err == nil || len(c.runs) > 0 {
		t.Error(err, c.runs)
	}
}

// TestHolderFailsToAskAgain leaves the call with the holder. Answers in the messages can't
// approve it in the meantime.
func TestHolderFailsToAskAgain(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		h, d := pendingStub(), &changing{verdict: outcomeOf(resolve.Ask, "one")}
		a := chat(paying(t, ""), LoopConfig{Decider: d, Holder: h}, nil, c.tool("pay"))
		th := t.begin(a, "pay")
		h.later.State = hold.Approved
		h.openErr = errors.New("away")
		d.verdict = outcomeOf(resolve.Ask, "two")
		if _, err := t.try(a, th, answers()); err == nil {
			t.Fatal("no error though the holder is away")
		}
		h.later.State, h.openErr = hold.Pending, nil
		for _, p := range th.Pending() {
			t.try(a, th, answers(p.Request.(*content.ToolApprovalRequest).CreateApproval("")))
		}
		if len(c.runs) > 0 {
			t.Fatalf("ran on the word of the messages: %v, %v", c.runs, h.log)
		}
	})
}

// TestHolderEditsAtOnce uses a holder that approves immediately with an edit. The model's own
// call must not be left in the history without a result.
func TestHolderEditsAtOnce(t *testing.T) {
	bothWays(t, func(t runner) {
		h := &heldStub{now: hold.Held{Ref: "h1", State: hold.Approved, By: "ann", Arguments: []byte(`{"n":1}`)}}
		var c counted
		k := talk(t, said(call("1", "pay", `{"n":5}`)), said(text("ok")), said(text("again")))
		a := chat(k, LoopConfig{Holder: h, Decider: asks()}, nil, c.tool("pay"))
		th := NewThread("t")
		resp, err := t.try(a, th, content.UserText("x"))
		if err != nil {
			t.Error(err)
			return
		}
		if strings.Contains(tell(resp.Messages), `{"n":5}`) || c.runs[`pay{"n":1}`] != 1 {
			t.Errorf("shown %s ran %v", tell(resp.Messages), c.runs)
		}
	})
}

// A request that is asked again and approved immediately runs in the same run. Otherwise the
// caller would get an empty response without a request to answer.
func TestAskedAgainAndApprovedAtOnce(t *testing.T) {
	d := &changing{verdict: outcomeOf(resolve.Ask, "r")}
	h := pendingStub()
	var c counted
	k := paying(t, "")
	a := chat(k, LoopConfig{Holder: h, Decider: d}, nil, c.tool("pay"))
	th := runner{T: t}.begin(a, "x")
	h.later = hold.Held{Ref: "h1", State: hold.Approved, By: "ann"}
	h.now = hold.Held{Ref: "let:2", State: hold.Approved, By: "standing"}
	d.verdict = outcomeOf(resolve.Ask, "r", "r2")
	resp := mustRun(t, a, th)
	if len(resp.UserInputRequests()) == 0 && resp.Text() == "" {
		t.Errorf("an empty response; waiting %v, pending %v, ran %v", th.waiting(), th.Pending(), c.runs)
	}
}

// A request that its holder has forgotten, because its store was pruned or moved, must not make
// the thread unusable.
func TestHolderForgot(t *testing.T) {
	h := pendingStub()
	var c counted
	k := talk(t, said(call("1", "pay", "")), said(text("ok")), said(text("ok")), said(text("ok")))
	a := chat(k, LoopConfig{Holder: h, Decider: asks(), OnNewMessage: Supersede}, nil, c.tool("pay"))
	th := runner{T: t}.begin(a, "x")
	h.lookErr = errors.New("not found")
	for range 3 {
		if _, err := a.Run(t.Context(), th, content.UserText("never mind, something else")); err != nil {
			t.Error(err)
		}
	}
}

// If the holder approved a call that the caller runs, the loop must claim the permit before it
// hands the call to the caller (clear in bound_run.go).
func TestHeldCallOfTheCallersIsClaimed(t *testing.T) {
	h := pendingStub()
	a := chat(talk(t, said(text("?"), call("1", "theirs", ""))), LoopConfig{Holder: h, Decider: asks()}, nil,
		declaredTool("theirs"))
	th := runner{T: t}.begin(a, "x")
	h.later.State = hold.Approved
	resp := mustRun(t, a, th)
	if !strings.Contains(tell(resp.Messages), "1=theirs()") || h.log[len(h.log)-1] != "claim h1" {
		t.Errorf("handed over without a claim: %v\n%s", h.log, tell(resp.Messages))
	}
}

// TestHolderKeysNameTheThread uses request ids that are made from call ids alone. An approval
// for one thread must not let the same call of another thread run.
func TestHolderKeysNameTheThread(t *testing.T) {
	h := pendingStub()
	var c counted
	for _, id := range []string{"one", "two"} {
		k := talk(t, said(call("call_0", "pay", "")))
		mustRun(t, chat(k, LoopConfig{Holder: h, Decider: asks()}, nil, c.tool("pay")), NewThread(id),
			content.UserText("x"))
	}

	expect(t, "opened", strings.Join(h.log, ", "), "open one/ficc_call_0, open two/ficc_call_0")
}
