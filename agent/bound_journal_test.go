package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

func TestJournalIsCompleteAndInOrder(t *testing.T) {
	bothWays(t, func(t runner) {
		j := &journal{}
		var c counted
		d := decideFunc(func(_ Tool, call content.ToolCall) (hold.Verdict, error) {
			if call.ToolName() == "no" {
				return outcomeOf(resolve.Deny, "r"), nil
			}
			return outcomeOf(resolve.Allow), nil
		})
		k := talk(
			t,
			said(
				call("1", "pay", `{"n":1}`),
				call("2", "no", ""),
				call("3", "pay", ""),
				call("4", "look", ""),
				call("5", "theirs", ""),
			),
			said(text("ok")),
		)
		a := chat(k, LoopConfig{Audit: j.take, Decider: d}, nil, RequireApproval(c.tool("pay")), c.tool("no"),
			c.tool("look"), declaredTool("theirs"))
		th := NewThread("the thread")
		resp := t.say(a, th, "x")
		q1, q3 := approvalOf(t, resp, 0), approvalOf(t, resp, 1)
		bad := q1.CreateApproval("")
		bad.Call.(*content.FunctionCall).Name = "x"
		t.run(a, th, answers(bad, q3.CreateRejection("no")))
		t.run(a, th, answers(q1.CreateApproval("fine")),
			content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "5"}))
		expect(t, "journal", j.tell(),
			"requested 1 ficc_1\ndenied 2\nrequested 3 ficc_3\nfinished 4\nanswered 3 ficc_3 false\nrefused  ficc_1\n"+
				"answered 1 ficc_1 true\nfinished 5\nstarted 1\nfinished 1\n")
		for _, e := range j.events {
			if e.Thread != "the thread" || e.At.IsZero() || e.CallID == "1" && e.Arguments != `{"n":1}` {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestJournalFails makes the journal fail for each kind of event that is recorded before a call
// runs. Nothing must have run, and the answer must work later.
func TestJournalFails(t *testing.T) {
	for _, kind := range []string{"requested", "answered", "started", "refused"} {
		bothWaysOf(t, kind, func(t runner) {
			var c counted
			j := &journal{failAt: func(e Event) bool { return e.Type == kind }}
			turn := said(text("?"), call("1", "pay", ""))
			k := talk(t, turn, said(text("ok")))
			if kind == "requested" {
				k = talk(t, turn, turn, said(text("ok")))
			}
			a := c.asked(k, LoopConfig{Audit: j.take})
			th := NewThread("t")
			resp, err := t.try(a, th, content.UserText("x"))
			if kind == "requested" {
				if !errors.Is(err, errAudit) || len(th.Pending()) > 0 {
					t.Fatal(err, th.Pending())
				}
				j.failAt = nil
				resp, err = t.try(a, th, content.UserText("x"))
			}

			must.Do(t, err)
			q := approvalOf(t, resp, 0)
			if j.failAt != nil {
				unknown := q.CreateApproval("")
				unknown.RequestID = "unknown"
				reply := answers(q.CreateApproval(""))
				if kind == "refused" {
					reply = answers(unknown)
				}
				if _, err := t.try(a, th, reply); !errors.Is(err, errAudit) {
					t.Fatal(err)
				}
			}

			if len(c.runs) > 0 {
				t.Fatal("ran without a record")
			}
			j.failAt = nil
			t.yes(a, reload(t, th), q)
			if c.runs["pay"] != 1 {
				t.Error(c.runs)
			}
		})
	}
}

// TestJournalFailsAtEnds makes the journal fail for each way a call can end. The run fails, and
// records the end again when the journal works.
func TestJournalFailsAtEnds(t *testing.T) {
	for kind, state := range map[string]hold.State{
		"expired":   hold.Expired,
		"cancelled": hold.Cancelled,
		"answered":  hold.Denied,
		"denied":    hold.Approved,
	} {
		bothWaysOf(t, kind, func(t runner) {
			var c counted
			h, d := pendingStub(), &changing{verdict: outcomeOf(resolve.Ask, "r")}
			j := &journal{failAt: func(e Event) bool { return e.Type == kind }}
			a := chat(talk(t, said(text("?"), call("1", "pay", "")), said(text("ok"))),
				LoopConfig{Holder: h, Decider: d, Audit: j.take}, nil, c.tool("pay"))
			th := t.begin(a, "x")
			h.later.State = state
			if kind == "denied" {
				d.verdict = outcomeOf(resolve.Deny, "r")
			}
			if _, err := t.try(a, th); !errors.Is(err, errAudit) || len(c.runs) > 0 {
				t.Fatal(err, c.runs)
			}
			j.failAt = nil
			t.run(a, reload(t, th))
			if strings.Count(j.tell(), "\n"+kind+" 1") != 1 || len(c.runs) > 0 {
				t.Error(j.tell(), c.runs)
			}
		})
	}
}

func TestEventsOfEnds(t *testing.T) {
	t.Run("an ended request is recorded once the journal works again", func(t *testing.T) {
		j := &journal{failAt: func(e Event) bool { return e.Type == "expired" }}
		cl := newClock()
		var c counted
		d := decideFunc(func(Tool, content.ToolCall) (hold.Verdict, error) {
			v := outcomeOf(resolve.Ask, "x")
			v.Require = &policy.Require{}
			v.Require.Within = time.Minute
			return v, nil
		})
		a := chat(paying(t, ""), LoopConfig{Audit: j.take, Decider: d, Now: cl.now}, nil, c.tool("pay"))
		th := runner{T: t}.begin(a, "x")
		cl.at = cl.at.Add(time.Hour)
		if _, err := a.Run(t.Context(), th, content.UserText("y")); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		mustRun(t, a, th, content.UserText("y"))
		if !strings.Contains(j.tell(), "expired 1") {
			t.Error(j.tell())
		}
	})
	t.Run("a lost call is recorded once the journal works again", func(t *testing.T) {
		store := &keeper{}
		var c counted
		a := chat(paying(t, ""), LoopConfig{}, store, RequireApproval(c.tool("pay")))
		th, q := runner{T: t}.asks(a, "x")
		mustRun(t, a, th, answers(q.CreateApproval("")))
		crashed := must.Get(loaded(store.saved[1], "t"))(t)
		j := &journal{failAt: func(e Event) bool { return e.Type == "lost" }}
		b := chat(talk(t, said(text("ok"))), LoopConfig{Audit: j.take}, nil, RequireApproval(c.tool("pay")))
		if _, err := b.Run(t.Context(), crashed, content.UserText("y")); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		mustRun(t, b, crashed, content.UserText("y"))
		if !strings.Contains(j.tell(), "lost 1") {
			t.Error("the loss is on no record")
		}
	})
	t.Run("a result of the caller is recorded once the journal works again", func(t *testing.T) {
		j := &journal{failAt: func(e Event) bool { return e.Type == "finished" }}
		a := chat(talk(t, said(call("1", "theirs", "")), said(text("ok"))), LoopConfig{Audit: j.take}, nil,
			declaredTool("theirs"))
		th := runner{T: t}.begin(a, "x")
		result := content.NewMessage(content.ToolRole,
			&content.FunctionResult{CallID: "1", Result: json.RawMessage(`1`)})
		if _, err := a.Run(t.Context(), th, result); !errors.Is(err, errAudit) {
			t.Fatal(err)
		}
		j.failAt = nil
		resp := mustRun(t, a, th, result)
		if !strings.Contains(j.tell(), "finished 1") {
			t.Errorf("on no record; refused %q", refusals(resp))
		}
	})
}

// TestResultsOutliveAFailingJournal checks that a result whose end could not be recorded
// reaches the model later, from the store or from memory.
func TestResultsOutliveAFailingJournal(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		bothWays(t, func(t runner) {
			var pay, send counted
			j := &journal{failAt: func(e Event) bool { return e.Type == "finished" && (concurrent || e.CallID == "1") }}
			k := talk(t, said(call("1", "pay", ""), call("2", "send", "")), said(text("ok")))
			store, want := ThreadStore(&keeper{}), `1→"did pay"`
			if concurrent {
				store, want = nil, `2→"did send"`
			}
			a := chat(k, LoopConfig{Audit: j.take, Concurrent: concurrent}, store, RequireApproval(pay.tool("pay")),
				RequireApproval(send.tool("send")))
			th := t.begin(a, "go")
			if _, err := t.try(a, th, approvals(th)); !errors.Is(err, errAudit) {
				t.Fatal(err)
			}
			j.failAt = nil
			if store != nil {
				t.run(a, must.Get(store.Load(t.Context(), "t"))(t))
			} else {
				t.say(a, th, "and?")
			}
			if !strings.Contains(k.last(), want) {
				t.Errorf("the result of a call that ended is lost:\n%s", k.last())
			}
		})
	}
}

// TestAuditTo checks that the record of a run is complete although the service keeps the
// history.
func TestAuditTo(t *testing.T) {
	var out bytes.Buffer
	var c counted
	model := paying(t, `{"n":1}`)
	model.keeps = "conv"
	a := c.asked(model, LoopConfig{Audit: AuditTo(&out)})
	thread := NewThread("t")
	q := approvalOf(t, mustRun(t, a, thread, content.UserText("pay")), 0)
	mustRun(t, a, thread, answers(q.CreateApproval("fine")))
	var types []string
	for line := range strings.Lines(out.String()) {
		var e Event
		must.Do(t, json.Unmarshal([]byte(line), &e))
		if e.Thread != "t" || e.Tool != "pay" || e.Arguments != `{"n":1}` || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
		types = append(types, e.Type)
	}

	expect(t, "events", strings.Join(types, " "), "requested answered started finished")
}

func TestAuditToFullDisk(t *testing.T) {
	full := errors.New("no space left")
	if err := AuditTo(fullDisk{full})(t.Context(), Event{}); !errors.Is(err, full) {
		t.Error(err)
	}
}

type fullDisk struct{ err error }

func (b fullDisk) Write([]byte) (int, error) { return 0, b.err }

// TestWhoAnswered checks that the record and the function get the name of the person or rule
// that approved the call.
func TestWhoAnswered(t *testing.T) {
	for by, want := range map[string]string{"": "user", "standing rule-1": "standing rule-1"} {
		var out bytes.Buffer
		told := ""
		pay := NewFunction("pay", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
			told = InvocationOf(ctx).Approval
			return nil, nil
		})
		a := chat(paying(t, ""), LoopConfig{Audit: AuditTo(&out)}, nil, RequireApproval(pay))
		thread := NewThread("t")
		answer := approvalOf(t, mustRun(t, a, thread, content.UserText("pay")), 0).CreateApproval("")
		answer.By = by
		mustRun(t, a, thread, answers(answer))
		if told != want || strings.Count(out.String(), `"by":"`+want+`"`) != 3 {
			t.Errorf("the function was told %q:\n%s", told, out.String())
		}
	}
}
