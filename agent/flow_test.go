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
	"github.com/assent-dev/assent/internal/must"
)

// booking returns a flow that looks for a seat, asks for consent and data, and books once.
func booking(looks, books *int) Agent {
	return NewFlow("booking", FlowConfig{NewID: func(key string) (string, error) {
		return "q-" + key, nil
	}}, func(ctx context.Context, f *Flow) error {
		var seat string
		if err := f.Step(ctx, "look", func(context.Context) (any, error) {
			*looks++
			return "12A", nil
		}, &seat); err != nil {
			return err
		}

		f.Say("Seat " + seat + " is free.")
		if err := f.Approve(ctx, "take", "Take seat "+seat+"?"); errors.Is(err, ErrDeclined) {
			f.Say("No seat, then.")
			return nil
		} else if err != nil {
			return err
		}

		var who struct{ Name string }
		schema := json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}`,
		)
		if err := f.Data(ctx, "who", "Who flies?", schema, &who); err != nil {
			return err
		}
		if err := f.Step(ctx, "book", func(context.Context) (any, error) {
			*books++
			return nil, nil
		}, nil); err != nil {
			return err
		}

		f.Say("Booked for " + who.Name + ".")
		return nil
	})
}

func TestFlow(t *testing.T) {
	var looks, books int
	a := booking(&looks, &books)
	thread := NewThread("t")
	resp := mustRun(t, a, thread, content.UserText("a seat, please"))
	expect(t, "first", tell(resp.Messages), "assistant: \"Seat 12A is free.\"\nassistant: q-take?\"Take seat 12A?\"\n")
	thread = reload(t, thread)
	yes := resp.UserInputRequests()[0].(*content.TextApprovalRequest).CreateApproval("")
	resp = mustRun(t, a, thread, answers(yes))
	if len(resp.UserInputRequests()) != 1 || len(resp.Messages) != 1 {
		t.Fatal(tell(resp.Messages))
	}
	who := resp.UserInputRequests()[0].(*content.StructuredInputRequest)
	if _, err := who.CreateResponse(json.RawMessage(`{"name":""}`)); err == nil {
		t.Fatal("the schema accepts an empty name")
	}
	resp = mustRun(
		t,
		a,
		thread,
		answers(&content.StructuredInputResponse{RequestID: who.RequestID, Data: json.RawMessage(`{"name":""}`)}, yes),
	)
	if len(resp.Refused) != 2 || resp.Refused[0].Reason != BadAnswer || resp.Refused[1].Reason != ClosedRequest {
		t.Fatalf("%+v", resp.Refused)
	}
	data := must.Get(who.CreateResponse(json.RawMessage(`{"name":"Ann"}`)))(t)
	thread = reload(t, thread)
	resp = mustRun(t, a, thread, answers(data))
	expect(t, "last", tell(resp.Messages), "assistant: \"Booked for Ann.\"\n")
	if looks != 1 || books != 1 || len(thread.Pending()) != 0 || len(thread.State) != 0 {
		t.Fatalf("looked %d times, booked %d times, pending %v, state %v", looks, books, thread.Pending(), thread.State)
	}

	expect(t, "history", tell(thread.Messages),
		"user: \"a seat, please\"\nassistant: \"Seat 12A is free.\"\nassistant: \"Booked for Ann.\"\n")
}

func flowOf(cfg FlowConfig, run func(ctx context.Context, f *Flow) error) Agent {
	if cfg.NewID == nil {
		cfg.NewID = func(key string) (string, error) { return "q-" + key, nil }
	}
	return NewFlow("flow", cfg, run)
}

func yesTo(q content.InputRequest) content.InputResponse {
	return q.(*content.TextApprovalRequest).CreateApproval("")
}

// TestFlowCrashes continues from every save. No step is done twice, and an interrupted step
// returns an error.
func TestFlowCrashes(t *testing.T) {
	bothWays(t, func(t runner) {
		run := func(done *[]string) func(ctx context.Context, f *Flow) error {
			step := func(name string) func(context.Context) (any, error) {
				return func(context.Context) (any, error) {
					*done = append(*done, name)
					return name, nil
				}
			}
			return func(ctx context.Context, f *Flow) error {
				if err := f.Step(ctx, "one", step("one"), nil); err != nil {
					return err
				}
				if err := f.Approve(ctx, "ask", "sure?"); err != nil {
					return err
				}
				var got string
				if err := f.Step(ctx, "two", step("two"), &got); err != nil || got != "two" {
					return fmt.Errorf("%q: %w", got, err)
				}
				f.Say("done")
				return nil
			}
		}
		var done []string
		store := &keeper{}
		a := flowOf(FlowConfig{Store: store}, run(&done))
		th := NewThread("t")
		q := t.say(a, th, "x").UserInputRequests()[0]
		t.run(a, th, answers(yesTo(q)))
		if fmt.Sprint(done) != "[one two]" || len(store.saved) != 6 {
			t.Fatal(done, len(store.saved))
		}
		lost := 0
		for i, raw := range store.saved[:5] {
			var after []string
			left := sure(loaded(raw, "t"))
			b := flowOf(FlowConfig{Store: &keeper{saved: [][]byte{raw}}}, run(&after))
			resp, err := t.try(b, left)
			if err == nil && len(resp.UserInputRequests()) > 0 {
				_, err = t.try(b, left, answers(yesTo(resp.UserInputRequests()[0])))
			}
			if errors.Is(err, ErrStepLost) {
				lost++
				if _, err := t.try(b, left); !errors.Is(err, ErrStepLost) {
					t.Error("a lost step must stay lost:", err)
				}
			} else if err != nil {
				t.Errorf("save %d: %v", i, err)
			}

			all := strings.Join(after, " ")
			if strings.Contains(all, "one") || i >= 3 && all != "" {
				t.Errorf("save %d: done again: %s", i, all)
			}
		}

		if lost != 2 {
			t.Errorf("%d steps were cut off, expected 2", lost)
		}
	})
}

func TestFlowStepErrors(t *testing.T) {
	bothWays(t, func(t runner) {
		boom := errors.New("boom")
		var result any = "x"
		var fail error
		var into any
		var number int
		a := flowOf(FlowConfig{}, func(ctx context.Context, f *Flow) error {
			return f.Step(ctx, "s", func(context.Context) (any, error) { return result, fail }, into)
		})
		th := NewThread("t")
		fail = boom
		if _, err := t.try(a, th, content.UserText("x")); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		th = reload(t, th)
		fail, result = nil, func() {}
		if _, err := t.try(a, th); err == nil {
			t.Fatal("a result that is no JSON was kept")
		}
		result, into = "a text", &number
		if _, err := t.try(a, th); err == nil || !strings.Contains(err.Error(), `the result of step "s"`) {
			t.Fatal(err)
		}
		into = nil
		t.run(a, th)
		if len(th.State) > 0 {
			t.Error(th.State)
		}
	})
}

func TestFlowStepIsNotDoneWhenItCantBeSaved(t *testing.T) {
	boom := errors.New("disk")
	n := 0
	store := &keeper{failAt: 1, err: boom}
	a := flowOf(FlowConfig{Store: store}, func(ctx context.Context, f *Flow) error {
		return f.Step(ctx, "s", func(context.Context) (any, error) {
			n++
			return nil, nil
		}, nil)
	})
	th := NewThread("t")
	if _, err := a.Run(t.Context(), th, content.UserText("x")); !errors.Is(err, boom) || n != 0 {
		t.Fatal(err, n)
	}
	if mustRun(t, a, th); n != 1 {
		t.Error(n)
	}
}

func TestFlowThatPanics(t *testing.T) {
	bothWays(t, func(t runner) {
		for _, inStep := range []bool{false, true} {
			a := flowOf(FlowConfig{}, func(ctx context.Context, f *Flow) error {
				if inStep {
					return f.Step(ctx, "s", func(context.Context) (any, error) { panic("boom") }, nil)
				}
				panic("boom")
			})
			if _, err := t.try(a, NewThread("t"), content.UserText("x")); err == nil ||
				!strings.Contains(err.Error(), "boom") {
				t.Error(err)
			}
		}
	})
}

func TestFlowExpiry(t *testing.T) {
	bothWays(t, func(t runner) {
		cl, j := newClock(), &journal{}
		var got error
		a := flowOf(FlowConfig{Now: cl.now, Audit: j.take}, func(ctx context.Context, f *Flow) error {
			_, got = f.Ask(ctx, "k",
				&content.TextApprovalRequest{Text: "?", Note: content.Note{Expires: newClock().at.Add(time.Hour)}})
			if errors.Is(got, ErrExpired) {
				f.Say("too late")
				return nil
			}
			return got
		})
		th := NewThread("t")
		q := t.say(a, th, "x").UserInputRequests()[0]
		cl.at = cl.at.Add(time.Hour - 1)
		if t.run(a, reload(t, th)); !errors.Is(got, ErrWaiting) {
			t.Error(got)
		}
		cl.at = cl.at.Add(1)
		resp := t.run(a, reload(t, th), answers(yesTo(q)))
		if !errors.Is(got, ErrExpired) || errors.Is(got, ErrDeclined) || resp.Text() != "too late" {
			t.Error(got, resp.Text())
		}
		expect(t, "refused", refusals(resp), "q-k closed_request")
		expect(t, "journal", j.tell(), "requested k q-k\nexpired k q-k\nrefused  q-k\n")
	})
}

func TestFlowHearsOfNewMessages(t *testing.T) {
	bothWays(t, func(t runner) {
		var later, input string
		a := flowOf(FlowConfig{}, func(ctx context.Context, f *Flow) error {
			later, input = tell(f.Later()), tell(f.Input())
			f.Say("hello")
			if err := errors.Join(f.Approve(ctx, "a", "a?"), f.Approve(ctx, "b", "b?")); err != nil {
				return err
			}
			return nil
		})
		th := NewThread("t")
		resp := t.say(a, th, "one")
		if len(resp.UserInputRequests()) != 2 {
			t.Fatal(tell(resp.Messages))
		}
		th = reload(t, th)
		resp = t.run(a, th, content.UserText("two"), answers(yesTo(resp.UserInputRequests()[1]), text("three")))
		expect(t, "shown once", tell(resp.Messages), "assistant: q-a?\"a?\"\n")
		expect(t, "later", later, "user: \"two\"\nuser: \"three\"\n")
		expect(t, "input", input, "user: \"one\"\n")
		th = reload(t, th)
		t.run(a, th, answers(yesTo(resp.UserInputRequests()[0])))
		expect(t, "history", tell(th.Messages), "user: \"one\"\nassistant: \"hello\"\nuser: \"two\"\nuser: \"three\"\n")
		resp = t.say(a, th, "again")
		if expect(t, "a new flow", input, "user: \"again\"\n"); len(resp.UserInputRequests()) != 2 {
			t.Error(tell(resp.Messages))
		}
	})
}

func TestFlowDataDeclined(t *testing.T) {
	bothWays(t, func(t runner) {
		var got error
		a := flowOf(FlowConfig{}, func(ctx context.Context, f *Flow) error {
			var n int
			if got = f.Data(ctx, "k", "n?", nil, &n); errors.Is(got, ErrWaiting) {
				return got
			}
			return nil
		})
		th := NewThread("t")
		q := t.say(a, th, "x").UserInputRequests()[0].(*content.StructuredInputRequest)
		t.run(a, th, answers(q.CreateRejection("no")))
		if !errors.Is(got, ErrDeclined) {
			t.Error(got)
		}
		q = t.say(a, th, "x").UserInputRequests()[0].(*content.StructuredInputRequest)
		t.run(a, th,
			answers(&content.StructuredInputResponse{RequestID: q.RequestID, Data: json.RawMessage(`"a text"`)}))
		if got == nil || !strings.Contains(got.Error(), `the data of "k"`) {
			t.Error(got)
		}
	})
}

func TestFlowContradictions(t *testing.T) {
	bothWays(t, func(t runner) {
		var got error
		a := flowOf(FlowConfig{}, func(ctx context.Context, f *Flow) error {
			if got = f.Approve(ctx, "k", "?"); errors.Is(got, ErrWaiting) {
				return got
			}
			return nil
		})
		th := NewThread("t")
		q := t.say(a, th, "x").UserInputRequests()[0].(*content.TextApprovalRequest)
		resp := t.run(a, th, answers(q.CreateApproval(""), q.CreateRejection(""), q.CreateApproval("")))
		if !errors.Is(got, ErrDeclined) {
			t.Error("of answers that differ only the rejection can stand:", got)
		}
		expect(t, "refused", refusals(resp), "q-k contradiction; q-k contradiction")
	})
}

func TestFlowErrorsBeforeItRuns(t *testing.T) {
	ran := 0
	run := func(ctx context.Context, f *Flow) error {
		ran++
		return f.Approve(ctx, "k", "?")
	}
	th := NewThread("t")
	th.State["flow/flow"] = json.RawMessage(`[]`)
	if _, err := flowOf(FlowConfig{}, run).Run(t.Context(), th, content.UserText("x")); err == nil || ran > 0 {
		t.Error("a state that can't be read was started anew:", err)
	}
	bad := flowOf(FlowConfig{NewID: func(string) (string, error) { return "", errors.New("no randomness") }}, run)
	if _, err := bad.Run(t.Context(), NewThread("t"), content.UserText("x")); err == nil {
		t.Error("a request without an id")
	}
	a := NewFlow("own ids", FlowConfig{}, run)
	th = NewThread("t")
	if id := mustRun(t, a, th, content.UserText("x")).UserInputRequests()[0].InputRequestID(); len(id) != len(
		"k.",
	)+16 ||
		a.Name() != "own ids" {
		t.Error(id)
	}
}

func TestFlowStreamLeftEarly(t *testing.T) {
	n := 0
	a := flowOf(FlowConfig{}, func(ctx context.Context, f *Flow) error {
		f.Say("a")
		f.Say("b")
		if err := f.Step(ctx, "s", func(context.Context) (any, error) {
			n++
			return nil, nil
		}, nil); err != nil {
			return err
		}

		return f.Approve(ctx, "k", "?")
	})
	th := NewThread("t")
	for range a.Stream(t.Context(), th, content.UserText("x")) {
		break
	}
	resp := mustRun(t, a, reload(t, th))
	if n != 1 || len(resp.UserInputRequests()) != 1 {
		t.Error(n, tell(resp.Messages))
	}
	for u, err := range a.Stream(t.Context(), th, answers(&content.TextApprovalResponse{RequestID: "no"})) {
		if err != nil || len(u.Contents)+len(u.Refused) == 0 {
			t.Error(u, err)
		}
	}
}

// TestFlowWhoseJournalFails makes the journal fail for each kind of event. The run ends with
// the error, and repeating the run does and records everything once.
func TestFlowWhoseJournalFails(t *testing.T) {
	for _, kind := range []string{"requested", "answered", "refused"} {
		bothWaysOf(t, kind, func(t runner) {
			j := &journal{failAt: func(e Event) bool { return e.Type == kind }}
			a := flowOf(FlowConfig{Audit: j.take}, func(ctx ctxOf, f *Flow) error { return f.Approve(ctx, "k", "?") })
			th, in := NewThread("t"), content.UserText("x")
			if kind != "requested" {
				q := yesTo(t.run(a, th, in).UserInputRequests()[0])
				if kind == "refused" {
					q = &content.TextApprovalResponse{RequestID: "no"}
				}
				in = answers(q, text("hi"))
			}
			if _, err := t.try(a, th, in); !errors.Is(err, errAudit) || kind != "requested" && len(th.Pending()) != 1 {
				t.Fatalf("%v, %d open", err, len(th.Pending()))
			}
			j.failAt = nil
			t.run(a, th, in)
			if said := strings.Count(tell(th.Messages), in.Text()); said != 1 || strings.Count(j.tell(), kind) != 1 {
				t.Errorf("journal\n%s history\n%s", j.tell(), tell(th.Messages))
			}
		})
	}
}

// TestFlowEndsWithAQuestionOpen ends a flow with an open question, which Flow.end must close: a
// late answer is refused as "closed", not "unknown".
func TestFlowEndsWithAQuestionOpen(t *testing.T) {
	b := flowOf(FlowConfig{}, func(ctx ctxOf, f *Flow) error {
		if len(f.Later()) > 0 {
			return nil
		}
		return f.Approve(ctx, "k", "?")
	})
	th := NewThread("t")
	q := mustRun(t, b, th, content.UserText("x")).UserInputRequests()[0].(*content.TextApprovalRequest)
	mustRun(t, b, th, content.UserText("never mind"))
	resp := mustRun(t, b, th, answers(q.CreateApproval("")))
	expect(t, "refused", refusals(resp), "q-k closed_request")
}

// An answer that is sent again after the end of a flow must not start the flow again.
func TestFlowStartedByALateAnswer(t *testing.T) {
	reserved := 0
	a := NewFlow("f", FlowConfig{}, func(ctx context.Context, f *Flow) error {
		if err := f.Step(ctx, "reserve", func(context.Context) (any, error) {
			reserved++
			return nil, nil
		}, nil); err != nil {
			return err
		}

		return f.Approve(ctx, "go", "Go?")
	})
	th := NewThread("t")
	q := mustRun(t, a, th, content.UserText("x")).UserInputRequests()[0].(*content.TextApprovalRequest)
	mustRun(t, a, th, answers(q.CreateApproval("")))
	resp := mustRun(t, a, th, answers(q.CreateApproval(""))) // the client sends it twice
	if reserved != 1 || len(resp.UserInputRequests()) != 0 {
		t.Errorf("reserved %d times, asked again: %d", reserved, len(resp.UserInputRequests()))
	}
}
