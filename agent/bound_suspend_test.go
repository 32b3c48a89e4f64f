package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// TestSuspendAndResume suspends a function twice with each kind of request, and resumes it in
// another process.
func TestSuspendAndResume(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["n"]}`)
	for _, marked := range []bool{false, true} {
		bothWays(t, func(t runner) {
			j := &journal{}
			tool := suspending("wait", Suspend{
				State: json.RawMessage(`{"step":1}`),
				Requests: []content.InputRequest{
					&content.TextApprovalRequest{
						RequestID: "consent",
						Text:      "ok?",
					}, &content.StructuredInputRequest{RequestID: "data", Schema: schema},
					&content.ToolApprovalRequest{RequestID: "tool", Call: call("inner", "x", "")}},
			})
			tool.resumed = func(state json.RawMessage, given []content.InputResponse) (any, error) {
				if string(state) == `{"step":1}` {
					if len(given) != 3 || given[0].InputResponseTo() != "consent" ||
						given[1].InputResponseTo() != "data" ||
						given[2].InputResponseTo() != "tool" {
						t.Errorf("%v", given)
					}
					return nil, &Suspend{
						Requests: []content.InputRequest{
							&content.TextApprovalRequest{RequestID: "consent", Text: "sure?"},
						},
					}
				}

				return fmt.Sprintf("%s %v", state, content.Rejects(given[0])), nil
			}
			k := talk(t, said(call("1", "wait", "")), said(text("ok")))
			a := chat(k, LoopConfig{Audit: j.take}, nil, tool)
			th := NewThread("t")
			if marked {
				a = chat(k, LoopConfig{Audit: j.take}, nil, RequireApproval(tool))
				th = reload(t, approveAll(t, a, th, content.UserText("x")))
			} else {
				t.say(a, th, "x")
			}

			th = reload(t, th)
			open := th.Pending()
			if len(open) != 3 {
				t.Fatal(open)
			}
			consent := open[0].Request.(*content.TextApprovalRequest)
			data := open[1].Request.(*content.StructuredInputRequest)
			inner := open[2].Request.(*content.ToolApprovalRequest)
			resp := t.run(
				a,
				th,
				answers(&content.StructuredInputResponse{RequestID: data.RequestID, Data: json.RawMessage(`{}`)},
					&content.ToolApprovalResponse{RequestID: consent.RequestID, Approved: true},
					inner.CreateRejection("")),
			)
			expect(t, "refused", refusals(resp), data.RequestID+" bad_answer; "+consent.RequestID+" wrong_kind")
			if len(resp.UserInputRequests()) != 2 {
				t.Fatal(tell(resp.Messages))
			}
			th = reload(t, th)
			t.yes(a, th, consent)
			th = reload(t, th)
			t.run(a, th, answers(sure(data.CreateResponse(json.RawMessage(`{"n":1}`)))))
			th = reload(t, th)
			again := th.Pending()[0].Request.(*content.TextApprovalRequest)
			if again.RequestID == consent.RequestID || again.Text != "sure?" {
				t.Fatal(again)
			}
			t.run(a, th, answers(again.CreateRejection("")))
			expect(t, "sent", k.last(), "user: \"x\"\nassistant: 1=wait()\ntool: 1→\"null true\"\n")
			if strings.Count(j.tell(), "\nfinished 1\n") != 1 {
				t.Error(j.tell())
			}
		})
	}
}

func TestSuspendWithoutRequests(t *testing.T) {
	bothWays(t, func(t runner) {
		j := &journal{}
		tool := &asking{name: "wait", ask: func() *Suspend { return &Suspend{} }}
		got, _, th := runMarked(t, LoopConfig{Audit: j.take}, says(call("1", "wait", "")), tool)
		expect(t, "sent", got, "user: \"x\"\nassistant: 1=wait()\ntool: 1→\"Error: Function failed.\"\n")
		if len(th.Pending()) > 0 || !strings.Contains(j.tell(), "finished 1") {
			t.Error(th.Pending(), j.tell())
		}
	})
}

// TestSuspendedToolThatIsGone removes the tool before its call is resumed.
func TestSuspendedToolThatIsGone(t *testing.T) {
	bothWays(t, func(t runner) {
		tool := suspending("wait",
			Suspend{Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}})
		k := talk(t, said(call("1", "wait", "")), said(text("ok")))
		th := NewThread("t")
		q := t.run(chat(k, LoopConfig{}, nil, tool), th,
			content.UserText("x")).UserInputRequests()[0].(*content.TextApprovalRequest)
		t.run(chat(k, LoopConfig{}, nil), reload(t, th), answers(q.CreateApproval("")))
		if !strings.Contains(k.last(), `1→"Error: Requested function \"wait\" not found."`) {
			t.Error(k.last())
		}
	})
}

func TestPolledCallAfterFailedSave(t *testing.T) {
	bothWays(t, func(t runner) {
		tool := suspending("wait", Suspend{State: json.RawMessage(`1`), Poll: true,
			Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}})
		k := &keeper{}
		a := chat(talk(t, said(call("1", "wait", "")), said(text("ok"))), LoopConfig{}, k, tool)
		th := t.begin(a, "go")
		k.failAt, k.err = 1, errors.New("disk")
		if _, err := t.try(a, th, answers()); err == nil {
			t.Fatal("no error")
		}
		raw := must.Get(json.Marshal(th))(t)
		if _, err := loaded(raw, "t"); err != nil {
			t.Error(err)
		}
		if len(th.Pending()) != 1 {
			t.Error("the request is open no more, and nobody answered it")
		}
	})
}

func TestFinishedWithOpenAsksClosesThem(t *testing.T) {
	bothWays(t, func(t runner) {
		tool := suspending("wait", Suspend{Poll: true,
			Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}})
		a := chat(talk(t, said(text("w"), call("1", "wait", "")), said(text("ok")), said(text("hm"))), LoopConfig{},
			nil, tool)
		th := NewThread("t")
		q := t.say(a, th, "go").UserInputRequests()[0].(*content.TextApprovalRequest)
		t.run(a, th, answers())
		resp := t.run(a, th, answers(q.CreateApproval(""), text("x")))
		expect(t, "refused", refusals(resp), "ficc_1 closed_request")
	})
}

func TestPolledAtOnceInTheSameRun(t *testing.T) {
	bothWays(t, func(t runner) {
		polls := 0
		ask := func() *Suspend {
			return &Suspend{State: json.RawMessage(`1`), Poll: true,
				Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}}
		}
		tool := &asking{name: "wait", ask: ask}
		tool.resumed = func(_ json.RawMessage, given []content.InputResponse) (any, error) {
			if polls++; polls < 3 && len(given) == 0 {
				return nil, ask()
			}
			return len(given), nil
		}
		k := talk(t, said(text("w"), call("1", "wait", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, tool)
		th := NewThread("t")
		id := t.say(a, th, "x").UserInputRequests()[0].InputRequestID()
		for range 2 {
			th = reload(t, th)
			resp := t.run(a, th, answers())
			if asked := resp.UserInputRequests(); len(asked) != 1 || asked[0].InputRequestID() != id {
				t.Fatalf("a poll that changes nothing must not change the request:\n%s", tell(resp.Messages))
			}
		}

		t.run(a, th, answers())
		if polls != 3 || !strings.Contains(k.last(), "1→0\n") {
			t.Error(polls, k.last())
		}
	})
}

func TestPolledAndAnswered(t *testing.T) {
	bothWays(t, func(t runner) {
		tool := suspending("wait", Suspend{Poll: true,
			Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "?"}}})
		k := talk(t, said(text("w"), call("1", "wait", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, tool)
		th := NewThread("t")
		q := t.say(a, th, "x").UserInputRequests()[0].(*content.TextApprovalRequest)
		t.yes(a, th, q)
		if !strings.Contains(k.last(), "1→\"x true\"\n") {
			t.Error(k.last())
		}
	})
}

// A polled function that makes two requests with the same id must not leave a thread that can't
// be read.
func TestPolledRequestsOfOneID(t *testing.T) {
	two := func() *Suspend {
		return &Suspend{
			Poll: true,
			Requests: []content.InputRequest{
				&content.TextApprovalRequest{RequestID: "i", Text: "a"},
				&content.TextApprovalRequest{RequestID: "i", Text: "b"},
			},
		}
	}
	f := &asking{
		name: "f",
		ask:  two,
		resumed: func(json.RawMessage, []content.InputResponse) (any, error) {
			return nil, two()
		},
	}
	a := chat(talk(t, said(call("1", "f", "")), said(text("ok"))), LoopConfig{}, nil, f)
	th := runner{T: t}.begin(a, "x")
	mustRun(t, a, th)
	storable(t, th)
}

func TestAnswersWithDifferentData(t *testing.T) {
	bothWays(t, func(t runner) {
		tool := suspending("ask", Suspend{
			Requests: []content.InputRequest{
				&content.StructuredInputRequest{RequestID: "d"},
				&content.TextApprovalRequest{RequestID: "t", Text: "?"},
			},
		})
		k := talk(t, said(call("1", "ask", "")), said(text("ok")))
		a := chat(k, LoopConfig{}, nil, tool)
		th := NewThread("t")
		asked := t.say(a, th, "x").UserInputRequests()
		d, q := asked[0].(*content.StructuredInputRequest), asked[1].(*content.TextApprovalRequest)
		data := func(s string) content.Content {
			return &content.StructuredInputResponse{RequestID: d.RequestID, Data: json.RawMessage(s)}
		}
		resp := t.run(a, th, answers(data(`1`), data(`2`), data(`oops`)))
		expect(t, "refused", refusals(resp),
			d.RequestID+" bad_answer; "+d.RequestID+" contradiction; "+d.RequestID+" contradiction")
		resp = t.run(a, th, answers(data(`1`), data(`1`), q.CreateApproval(""), q.CreateApproval("again")))
		expect(t, "refused", refusals(resp), d.RequestID+" repeated_answer; "+q.RequestID+" repeated_answer")
		if !strings.Contains(k.last(), `1→"d true, t true"`) {
			t.Error(k.last())
		}
	})
}

// TestOneQuestionOfManyExpires checks that the whole call ends: the function is not resumed
// with only some of its answers.
func TestOneQuestionOfManyExpires(t *testing.T) {
	bothWays(t, func(t runner) {
		cl, j := newClock(), &journal{}
		tool := suspending("ask", Suspend{
			Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "a", Text: "a?"},
				&content.TextApprovalRequest{RequestID: "b", Text: "b?",
					Note: content.Note{Expires: cl.at.Add(time.Minute)}}},
		})
		k := talk(t, said(call("1", "ask", "")), said(text("ok")))
		a := chat(k, LoopConfig{Now: cl.now, Audit: j.take}, nil, tool)
		th := NewThread("t")
		asked := t.say(a, th, "x").UserInputRequests()
		cl.at = cl.at.Add(time.Minute)
		resp := t.run(a, reload(t, th), answers(asked[0].(*content.TextApprovalRequest).CreateApproval("")))
		expect(t, "refused", refusals(resp), asked[0].InputRequestID()+" closed_request")
		if !strings.Contains(k.last(), "1→\""+textExpired+"\"") || strings.Count(j.tell(), "expired 1") != 2 {
			t.Error(k.last(), j.tell())
		}
	})
}
