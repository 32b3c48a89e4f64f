package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
)

// TestHostedRequestsAreHeld gives questions of the model's side to a holder: only its people can approve, and the run is claimed.
func TestHostedRequestsAreHeld(t *testing.T) {
	for name, tt := range map[string]struct {
		later hold.Held
		claim error
		now   resolve.Outcome // the plan's word when the answer is there
		want  string
	}{
		"approved":           {later: hold.Held{State: hold.Approved, By: "ann"}, now: resolve.Ask, want: "?r1, !yes r1"},
		"denied":             {later: hold.Held{State: hold.Denied, Reason: "no"}, now: resolve.Ask, want: "?r1, !no r1"},
		"expired":            {later: hold.Held{State: hold.Expired}, now: resolve.Ask, want: "?r1, !no r1"},
		"approved and taken": {later: hold.Held{State: hold.Approved}, claim: hold.ErrNotClaimed, now: resolve.Ask, want: "?r1, !no r1"},
		"denied by now":      {later: hold.Held{State: hold.Approved}, now: resolve.Deny, want: "?r1, !no r1"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, r runner) {
				h, d := pendingStub(), &changing{verdict: outcomeOf(resolve.Ask, "r")}
				k := talk(t, said(mcpRequest("r1")), said(text("ok")))
				a := chat(k, LoopConfig{Holder: h, Decider: d}, nil)
				th := NewThread("t")
				q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
				th = reload(t, th)
				resp := r.run(a, th, answers(q.CreateApproval("")))
				if expect(t, "refused", refusals(resp), "r1 held_elsewhere"); len(k.seen) != 1 {
					t.Fatal("the messages approved")
				}
				h.later, h.claimErr, d.verdict = tt.later, tt.claim, outcomeOf(tt.now, "r")
				h.later.Ref = "h1"
				r.run(a, reload(t, th))
				expect(t, "pairs", hosted(k.seen[1]), tt.want)
				if claimed := strings.Contains(strings.Join(h.log, " "), "claim"); claimed != (tt.later.State == hold.Approved && tt.now == resolve.Ask) {
					t.Error(h.log)
				}
			})
		})
	}
}

func TestAnswersWithDifferentData(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		tool := &asking{name: "ask", ask: func() *Suspend {
			return &Suspend{Requests: []content.InputRequest{&content.StructuredInputRequest{RequestID: "d"}, &content.TextApprovalRequest{RequestID: "t", Text: "?"}}}
		}}
		k := talk(t, said(call("1", "ask", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, tool)
		th := NewThread("t")
		asked := r.run(a, th, content.UserText("x")).UserInputRequests()
		d, q := asked[0].(*content.StructuredInputRequest), asked[1].(*content.TextApprovalRequest)
		data := func(s string) content.Content {
			return &content.StructuredInputResponse{RequestID: d.RequestID, Data: json.RawMessage(s)}
		}
		resp := r.run(a, th, answers(data(`1`), data(`2`), data(`oops`)))
		expect(t, "refused", refusals(resp), d.RequestID+" bad_answer; "+d.RequestID+" contradiction; "+d.RequestID+" contradiction")
		resp = r.run(a, th, answers(data(`1`), data(`1`), q.CreateApproval(""), q.CreateApproval("again")))
		expect(t, "refused", refusals(resp), d.RequestID+" repeated_answer; "+q.RequestID+" repeated_answer")
		if !strings.Contains(k.last(), `1→"d true, t true"`) {
			t.Error(k.last())
		}
	})
}

// TestOneQuestionOfManyExpires ends the whole call: the function is not resumed with half of its answers.
func TestOneQuestionOfManyExpires(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		cl, j := newClock(), &journal{}
		tool := &asking{name: "ask", ask: func() *Suspend {
			return &Suspend{Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "a", Text: "a?"},
				&content.TextApprovalRequest{RequestID: "b", Text: "b?", Note: content.Note{Expires: cl.at.Add(time.Minute)}}}}
		}}
		k := talk(t, said(call("1", "ask", "")), said(text("ok")))
		a := chat(k, LoopConfig{Now: cl.now, Audit: j.take}, nil, tool)
		th := NewThread("t")
		asked := r.run(a, th, content.UserText("x")).UserInputRequests()
		cl.at = cl.at.Add(time.Minute)
		resp := r.run(a, reload(t, th), answers(asked[0].(*content.TextApprovalRequest).CreateApproval("")))
		expect(t, "refused", refusals(resp), asked[0].InputRequestID()+" closed_request")
		if !strings.Contains(k.last(), "1→\""+textExpired+"\"") || strings.Count(j.tell(), "expired 1") != 2 {
			t.Error(k.last(), j.tell())
		}
	})
}

func TestEditWithoutASchema(t *testing.T) {
	bothWays(t, func(t *testing.T, r runner) {
		var c counted
		a := chat(talk(t, said(call("1", "pay", `{"n":5}`)), said(text("ok"))), LoopConfig{}, nil, RequireApproval(c.tool("pay")))
		th := NewThread("t")
		q := approvalOf(t, r.run(a, th, content.UserText("x")), 0)
		edit := sure(q.CreateEdit(json.RawMessage(`{"n":4}`), ""))
		resp := r.run(a, th, answers(edit, edit))
		expect(t, "refused", refusals(resp), "ficc_1 repeated_answer")
		if c.runs[`pay{"n":4}`] != 1 || len(c.runs) != 1 {
			t.Error(c.runs)
		}
	})
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

// TestJournalFailsAtEnds fails the record of each way a call can end: the run stops, and tells it again when the journal works.
func TestJournalFailsAtEnds(t *testing.T) {
	for kind, state := range map[string]hold.State{"expired": hold.Expired, "cancelled": hold.Cancelled, "answered": hold.Denied, "denied": hold.Approved} {
		t.Run(kind, func(t *testing.T) {
			bothWays(t, func(t *testing.T, r runner) {
				var c counted
				h, d := pendingStub(), &changing{verdict: outcomeOf(resolve.Ask, "r")}
				j := &journal{failAt: func(e Event) bool { return e.Type == kind }}
				a := chat(talk(t, said(text("?"), call("1", "pay", "")), said(text("ok"))), LoopConfig{Holder: h, Decider: d, Audit: j.take}, nil, c.tool("pay"))
				th := NewThread("t")
				r.run(a, th, content.UserText("x"))
				h.later.State = state
				if kind == "denied" {
					d.verdict = outcomeOf(resolve.Deny, "r")
				}
				if _, err := r.try(a, th); !errors.Is(err, errAudit) || len(c.runs) > 0 {
					t.Fatal(err, c.runs)
				}
				j.failAt = nil
				r.run(a, reload(t, th))
				if strings.Count(j.tell(), "\n"+kind+" 1") != 1 || len(c.runs) > 0 {
					t.Error(j.tell(), c.runs)
				}
			})
		})
	}
}
