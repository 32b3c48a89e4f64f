package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// modelFunc is a model made from one function. A stream has one piece for each content,
// followed by the error.
type modelFunc func(n int, messages []*content.Message, opt *agent.Options) (*agent.Response, error)

type funcModel struct {
	run modelFunc
	n   int
}

func (m *funcModel) Respond(
	_ context.Context, messages []*content.Message, opt *agent.Options,
) (*agent.Response, error) {
	m.n++
	return m.run(m.n-1, messages, opt)
}

func (m *funcModel) Stream(
	ctx context.Context, messages []*content.Message, opt *agent.Options,
) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		resp, err := m.Respond(ctx, messages, opt)
		if resp == nil {
			yield(nil, err)
			return
		}
		for _, u := range piecesOf(resp.Messages) {
			u.ID = resp.ID
			u.Model = resp.Model
			u.ConversationID = resp.ConversationID
			u.FinishReason = resp.FinishReason
			if !yield(u, nil) {
				return
			}
		}

		if resp.Usage != nil && !yield(&agent.Update{Contents: []content.Content{resp.Usage}}, nil) {
			return
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// both runs the loop with and without streaming, each with its own messages and model.
func both(
	t *testing.T,
	cfg compat.Config,
	run modelFunc,
	input func() []*content.Message,
	opt *agent.Options,
	check func(t *testing.T, r *agent.Response, err error),
) {
	t.Helper()
	t.Run("whole", func(t *testing.T) {
		r, err := compat.NewFunctionInvoking(&funcModel{run: run}, cfg).Respond(t.Context(), input(), opt)
		check(t, r, err)
	})
	t.Run("streamed", func(t *testing.T) {
		r, err := agent.Collect(compat.NewFunctionInvoking(&funcModel{run: run}, cfg).Stream(t.Context(), input(), opt))
		check(t, r, err)
	})
}

func hello() []*content.Message { return []*content.Message{content.UserText("hello")} }

func callOf(id, name string) *content.FunctionCall {
	return &content.FunctionCall{CallID: id, Name: name}
}

func turn(contents ...content.Content) *agent.Response {
	return &agent.Response{Messages: []*content.Message{content.NewMessage(content.Assistant, contents...)}}
}

// answered returns an input with one request and its answer.
func answered(change func(*content.ToolApprovalResponse)) func() []*content.Message {
	return func() []*content.Message {
		q := &content.ToolApprovalRequest{RequestID: "ficc_1", Call: callOf("1", "f")}
		a := q.CreateApproval("")
		if change != nil {
			change(a)
		}
		return []*content.Message{content.NewMessage(content.Assistant, q), content.NewMessage(content.User, a)}
	}
}

// counted returns a function that counts its runs.
func counted(n *int) agent.Function {
	return agent.NewFunction("f", "", nil, func(context.Context, json.RawMessage) (any, error) {
		*n++
		return "ran", nil
	})
}

func resultsOf(ms []*content.Message) string {
	var out []string
	for r := range content.All[*content.FunctionResult](ms) {
		out = append(out, string(r.Result))
	}
	return strings.Join(out, " ")
}

func TestCutStreamReleasesNothing(t *testing.T) {
	cut := errors.New("connection lost")
	ran := 0
	model := &funcModel{run: func(int, []*content.Message, *agent.Options) (*agent.Response, error) {
		return turn(&content.Text{Text: "wait"}, callOf("1", "f"), &content.Text{Text: "more"}), cut
	}}
	loop := compat.NewFunctionInvoking(model, compat.Config{})
	got, err := agent.Collect(loop.Stream(t.Context(), hello(), &agent.Options{Tools: []agent.Tool{counted(&ran)}}))
	if !errors.Is(err, cut) || ran != 0 || len(got.Messages) != 1 || got.Text() != "wait" ||
		len(got.Messages[0].Contents) != 1 {
		t.Errorf("%v, ran %d, got %v", err, ran, listedMessages(got.Messages))
	}
}

func TestCutAfterARequestKeepsTheRequest(t *testing.T) {
	cut := errors.New("connection lost")
	ran := 0
	model := &funcModel{run: func(int, []*content.Message, *agent.Options) (*agent.Response, error) {
		return turn(callOf("1", "f")), cut
	}}
	loop := compat.NewFunctionInvoking(model, compat.Config{})
	got, err := agent.Collect(
		loop.Stream(t.Context(), hello(), &agent.Options{Tools: []agent.Tool{agent.RequireApproval(counted(&ran))}}),
	)
	if !errors.Is(err, cut) || ran != 0 || len(got.UserInputRequests()) != 1 {
		t.Errorf("%v, ran %d, got %v", err, ran, listedMessages(got.Messages))
	}
}

func TestModelErrorsArePassedOn(t *testing.T) {
	broken := errors.New("broken")
	both(t, compat.Config{}, func(int, []*content.Message, *agent.Options) (*agent.Response, error) {
		return nil, broken
	}, hello, nil,
		func(t *testing.T, _ *agent.Response, err error) {
			if !errors.Is(err, broken) {
				t.Error(err)
			}
		})
	both(t, compat.Config{}, func(int, []*content.Message, *agent.Options) (*agent.Response, error) {
		return nil, nil
	}, hello, nil,
		func(t *testing.T, _ *agent.Response, err error) {
			if err == nil {
				t.Error("neither a response nor an error went unnoticed")
			}
		})
}

func TestLeavingAStream(t *testing.T) {
	for stop := 1; stop <= 4; stop++ {
		ran, seen := 0, 0
		model := &funcModel{run: func(n int, _ []*content.Message, _ *agent.Options) (*agent.Response, error) {
			return turn(&content.Text{Text: "a"}, callOf(fmt.Sprint(n), "f")), nil
		}}
		loop := compat.NewFunctionInvoking(model, compat.Config{})
		for _, err := range loop.Stream(t.Context(), answered(nil)(),
			&agent.Options{Tools: []agent.Tool{counted(&ran)}}) {
			must.Do(t, err)
			if seen++; seen == stop {
				break
			}
		}

		// The pieces are: rebuilt call, its result, text, call. The first function runs before
		// the second piece, the model before the third.
		if want, turns := min(stop-1, 1), (stop-1)/2; ran != want || model.n != turns {
			t.Errorf("left after %d: ran %d, want %d; the model had %d turns, want %d", stop, ran, want, model.n, turns)
		}
	}
}

func TestStreamedIDs(t *testing.T) {
	n := 0
	model := &funcModel{run: func(n int, _ []*content.Message, _ *agent.Options) (*agent.Response, error) {
		if n == 0 {
			return turn(callOf("2", "f")), nil
		}
		return turn(&content.Text{Text: "done"}), nil
	}}
	loop := compat.NewFunctionInvoking(model, compat.Config{})
	got, err := agent.Collect(
		loop.Stream(t.Context(), answered(nil)(), &agent.Options{Tools: []agent.Tool{counted(&n)}}),
	)
	if err != nil || len(got.Messages) != 5 {
		t.Fatal(err, listedMessages(got.Messages))
	}
	calls := got.Messages[0].ID
	first := got.Messages[1].ID
	second := got.Messages[3].ID
	if calls == "" || first == "" || calls == first || first != second {
		t.Errorf("ids: call message %q, tool messages %q and %q", calls, first, second)
	}
}

func TestIDsNeedRandomness(t *testing.T) {
	cfg := compat.Config{Rand: strings.NewReader("short")}
	_, err := agent.Collect(compat.NewFunctionInvoking(&funcModel{}, cfg).Stream(t.Context(), hello(), nil))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestNilUpdate(t *testing.T) {
	loop := compat.NewFunctionInvoking(nilStreamer{}, compat.Config{})
	if _, err := agent.Collect(loop.Stream(t.Context(), hello(), nil)); err == nil {
		t.Error("a nil update went unnoticed")
	}
}

type nilStreamer struct{ agent.ChatClient }

func (nilStreamer) Stream(context.Context, []*content.Message, *agent.Options) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) { yield(nil, nil) }
}

func TestNilMessagesAreNoPanic(t *testing.T) {
	n := 0
	input := func() []*content.Message {
		return append([]*content.Message{nil}, answered(nil)()...)
	}
	both(t, compat.Config{}, oneThen("done"), input, &agent.Options{Tools: []agent.Tool{counted(&n)}},
		func(t *testing.T, r *agent.Response, err error) {
			if err != nil || resultsOf(r.Messages) != `"ran"` {
				t.Error(err)
			}
		})
}

// oneThen returns a model that returns the same text in every turn.
func oneThen(s string) modelFunc {
	return func(int, []*content.Message, *agent.Options) (*agent.Response, error) {
		return turn(&content.Text{Text: s}), nil
	}
}

// calling returns a model that makes one call and then says done.
func calling(name string) modelFunc {
	return func(n int, _ []*content.Message, _ *agent.Options) (*agent.Response, error) {
		if n == 0 {
			return turn(callOf("1", name)), nil
		}
		return turn(&content.Text{Text: "done"}), nil
	}
}

// deciders returns the k-th verdict for the k-th call, and repeats the last one.
type deciders struct {
	verdicts []hold.Verdict
	errs     []error
	asked    int
}

func (d *deciders) Decide(_ context.Context, t agent.Tool, _ content.ToolCall) (hold.Verdict, error) {
	k := min(d.asked, len(d.verdicts)-1)
	d.asked++
	if t == nil {
		return hold.Verdict{}, errors.New("no such tool")
	}
	return d.verdicts[k], d.errs[k]
}

func verdict(o resolve.Outcome, message string) hold.Verdict {
	return hold.Verdict{Decision: resolve.Decision{Outcome: o, Message: message}}
}

func TestDecider(t *testing.T) {
	allow := verdict(resolve.Allow, "")
	ask := verdict(resolve.Ask, "sure?")
	deny := verdict(resolve.Deny, "never")
	broken := errors.New("broken")
	for _, test := range []struct {
		name     string
		verdicts []hold.Verdict
		errs     []error
		approved bool // the call comes from an answer, not from the model
		asks     bool
		result   string
	}{
		{"allowed", []hold.Verdict{allow}, []error{nil}, false, false, `"ran"`},
		{"asked about", []hold.Verdict{ask}, []error{nil}, false, true, ""},
		{"denied is asked about", []hold.Verdict{deny}, []error{nil}, false, true, ""},
		{"undecided is asked about", []hold.Verdict{allow}, []error{broken}, false, true, ""},
		{
			"allowed, then asked about",
			[]hold.Verdict{allow, ask},
			[]error{nil, nil},
			false,
			false,
			`"Tool call invocation rejected. sure?"`,
		},
		{
			"allowed, then denied",
			[]hold.Verdict{allow, deny},
			[]error{nil, nil},
			false,
			false,
			`"Tool call invocation rejected. never"`,
		},
		{"approved", []hold.Verdict{ask}, []error{nil}, true, false, `"ran"`},
		{
			"approved, denied by now",
			[]hold.Verdict{deny},
			[]error{nil},
			true,
			false,
			`"Tool call invocation rejected. never"`,
		},
		{
			"approved, undecided by now",
			[]hold.Verdict{allow},
			[]error{broken},
			true,
			false,
			`"Tool call invocation rejected. It could not be decided whether the call may run."`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			input, model := hello, calling("f")
			if test.approved {
				input, model = answered(nil), oneThen("done")
			}
			for _, concurrent := range []bool{false, true} {
				ran := 0
				d := &deciders{verdicts: test.verdicts, errs: test.errs}
				opt := &agent.Options{Tools: []agent.Tool{counted(&ran)}}
				both(t, compat.Config{Decider: d, Concurrent: concurrent}, model, input, opt,
					func(t *testing.T, r *agent.Response, err error) {
						if err != nil || (len(r.UserInputRequests()) == 1) != test.asks ||
							resultsOf(r.Messages) != test.result ||
							(ran == 1) != (test.result == `"ran"`) {
							t.Errorf("%v: ran %d, %v", err, ran, listedMessages(r.Messages))
						}
						ran, d.asked = 0, 0
					})
			}
		})
	}
}

func TestEditsAreRefused(t *testing.T) {
	ran := 0
	edited := answered(func(a *content.ToolApprovalResponse) { a.Edited = callOf("1", "f") })
	both(t, compat.Config{}, oneThen("done"), edited, &agent.Options{Tools: []agent.Tool{counted(&ran)}},
		func(t *testing.T, _ *agent.Response, err error) {
			if err == nil || ran != 0 {
				t.Errorf("%v, ran %d: an edit must not run as the original", err, ran)
			}
		})
}

func TestDuplicateRequestNamesTheID(t *testing.T) {
	input := func() []*content.Message { return append(answered(nil)(), answered(nil)()...) }
	both(t, compat.Config{}, oneThen("done"), input, nil, func(t *testing.T, _ *agent.Response, err error) {
		double, ok := errors.AsType[*compat.DuplicateRequestError](err)
		if !ok || double.RequestID != "ficc_1" || !strings.Contains(err.Error(), "ficc_1") {
			t.Error(err)
		}
	})
}

func TestWhatIsSaidOfTheWholeAnswer(t *testing.T) {
	n := 0
	model := func(n int, _ []*content.Message, _ *agent.Options) (*agent.Response, error) {
		r := turn(&content.Text{Text: "done"})
		if n == 0 {
			r = turn(callOf("1", "f"))
		}
		r.ID = fmt.Sprint("r", n)
		r.Model = "m"
		r.ConversationID = fmt.Sprint("conv", n)
		r.FinishReason = fmt.Sprint("finish", n)
		r.Usage = &content.Usage{Input: 1, Output: 2, Total: 3}
		return r, nil
	}
	both(t, compat.Config{}, model, hello, &agent.Options{Tools: []agent.Tool{counted(&n)}},
		func(t *testing.T, r *agent.Response, err error) {
			if err != nil || r.ID != "r1" || r.Model != "m" || r.ConversationID != "conv1" ||
				r.FinishReason != "finish1" ||
				r.Usage == nil ||
				r.Usage.Total != 6 {
				t.Errorf("%v %+v", err, r)
			}
		})
}

// A service that stops keeping the history must get all of it.
func TestHistoryAfterAConversationEnds(t *testing.T) {
	n := 0
	var sent []int
	var conversations []string
	model := func(n int, messages []*content.Message, opt *agent.Options) (*agent.Response, error) {
		sent, conversations = append(sent, len(messages)), append(conversations, opt.ConversationID)
		r := turn(callOf(fmt.Sprint(n), "f"))
		switch n {
		case 0:
			r.ConversationID = "kept"
		case 3:
			return turn(&content.Text{Text: "done"}), nil
		}

		return r, nil
	}
	both(t, compat.Config{}, model, hello, &agent.Options{Tools: []agent.Tool{counted(&n)}},
		func(t *testing.T, _ *agent.Response, err error) {
			if err != nil || !slices.Equal(sent, []int{1, 1, 5, 7}) ||
				!slices.Equal(conversations, []string{"", "kept", "", ""}) {
				t.Errorf("%v: sent %v in %q", err, sent, conversations)
			}
			sent, conversations = nil, nil
		})
}

func TestRequestIDsOfTheCaller(t *testing.T) {
	n := 0
	cfg := compat.Config{RequestID: func(id string) string { return "mine-" + id }}
	both(t, cfg, calling("f"), hello, &agent.Options{Tools: []agent.Tool{agent.RequireApproval(counted(&n))}},
		func(t *testing.T, r *agent.Response, err error) {
			if err != nil || r.UserInputRequests()[0].InputRequestID() != "mine-1" {
				t.Error(err)
			}
		})
}

// The properties of the original message are restored with its calls. Streamed updates have no
// member for them.
func TestRebuiltMessagesKeepProperties(t *testing.T) {
	ms := answered(nil)()
	ms[0].Properties, ms[0].CreatedAt = json.RawMessage(`{"a":1}`), "2026-01-01T00:00:00Z"
	n := 0
	loop := compat.NewFunctionInvoking(&funcModel{run: oneThen("done")}, compat.Config{})
	r, err := loop.Respond(t.Context(), ms, &agent.Options{Tools: []agent.Tool{counted(&n)}})
	if err != nil || string(r.Messages[0].Properties) != `{"a":1}` || r.Messages[0].CreatedAt == "" ||
		len(r.Messages[0].Contents) != 1 {
		t.Error(err, listedMessages(r.Messages))
	}
	if len(ms[0].Contents) != 1 || len(ms) != 2 {
		t.Error("the caller's messages lost something")
	}
}

func TestApprovedCallsKnowIt(t *testing.T) {
	var turns []int
	var by []string
	f := agent.NewFunction("f", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
		inv := agent.InvocationOf(ctx)
		turns, by = append(turns, inv.Turn), append(by, inv.Approval)
		return nil, nil
	})
	both(t, compat.Config{Log: slog.New(slog.DiscardHandler)}, calling("f"), answered(nil),
		&agent.Options{Tools: []agent.Tool{f}},
		func(t *testing.T, _ *agent.Response, err error) {
			if err != nil || !slices.Equal(turns, []int{-1, 0}) || !slices.Equal(by, []string{"user", ""}) {
				t.Error(err, turns, by)
			}
			turns, by = nil, nil
		})
}

func TestFailuresEndARun(t *testing.T) {
	bad := errors.New("bad")
	f := agent.NewFunction("f", "", nil, func(context.Context, json.RawMessage) (any, error) { return nil, bad })
	both(t, compat.Config{MaxErrors: -1}, oneThen("done"), answered(nil), &agent.Options{Tools: []agent.Tool{f}},
		func(t *testing.T, _ *agent.Response, err error) {
			if !errors.Is(err, bad) {
				t.Error(err)
			}
		})
}

// Each answer that is applied is logged with .NET's text. An answer whose call already has a
// result is not applied again.
func TestAnswersAreToldToTheLog(t *testing.T) {
	var log bytes.Buffer
	model := newScripted([]content.Content{&content.Text{Text: "ok"}})
	loop := compat.NewFunctionInvoking(model,
		compat.Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	asked := func(id string) *content.ToolApprovalRequest {
		return &content.ToolApprovalRequest{RequestID: "ficc_" + id,
			Call: &content.FunctionCall{CallID: id, Name: "Func" + id}}
	}
	must.Get(loop.Respond(t.Context(), []*content.Message{
		content.NewMessage(content.Assistant, asked("1"), asked("2"), asked("3")),
		content.NewMessage(content.User,
			asked("1").CreateApproval(""), asked("2").CreateRejection("no"), asked("3").CreateApproval("")),
		content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "3"}),
	}, &agent.Options{}))(t)

	var got []string
	for _, line := range strings.Split(log.String(), "\n") {
		if _, rest, ok := strings.Cut(line, "level=DEBUG msg=\"Processing"); ok {
			got = append(got, rest)
		}
	}
	want := ` approval response for 'Func1'. Approved: True"; approval response for 'Func2'. Approved: False"`
	if strings.Join(got, ";") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ";"), want)
	}
}

// scripted is a model with a fixed list of turns. It fails at a nil turn.
type scripted struct {
	funcModel
	seen [][]*content.Message
}

var errAway = errors.New("the model is away")

func newScripted(turns ...[]content.Content) *scripted {
	s := &scripted{}
	s.run = func(n int, messages []*content.Message, _ *agent.Options) (*agent.Response, error) {
		s.seen = append(s.seen, messages)
		// as the loop does with calls that it handled
		for q := range content.All[*content.ToolApprovalResponse](messages) {
			q.Call.(*content.FunctionCall).InformationalOnly = true
		}
		if turns[n] == nil {
			return nil, errAway
		}
		return turn(turns[n]...), nil
	}
	return s
}

func payment() *content.ToolApprovalRequest {
	return &content.ToolApprovalRequest{RequestID: "ficc_1",
		Call: &content.FunctionCall{CallID: "1", Name: "pay", Arguments: []byte(`{"n":5}`)}}
}

// A run that fails leaves the request for the next one: an approval can be repeated, and
// neither run changes the caller's messages.
func TestFailedRunLeavesRequestsForRetry(t *testing.T) {
	for name, streaming := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			said := func(s string) []content.Content { return []content.Content{&content.Text{Text: s}} }
			inner := newScripted([]content.Content{payment()}, nil, nil, said("paid"), said("hm"))
			b := compat.NewBinding(inner,
				compat.BindingConfig{Rules: compat.Rules125, Log: slog.New(slog.DiscardHandler)})
			opt := &agent.Options{Thread: agent.NewThread("t")}
			run := func(messages ...*content.Message) error {
				if !streaming {
					_, err := b.Respond(t.Context(), messages, opt)
					return err
				}
				_, err := agent.Collect(b.Stream(t.Context(), messages, opt))
				return err
			}
			must.Do(t, run(content.UserText("pay")))
			yes := payment().CreateApproval("")
			// This run would reject the request if it succeeded.
			if err := run(content.UserText("something else")); !errors.Is(err, errAway) {
				t.Fatal(err)
			}
			if err := run(content.NewMessage(content.User, yes)); !errors.Is(err, errAway) {
				t.Fatal(err)
			}
			must.Do(t, run(content.NewMessage(content.User, yes)))
			must.Do(t, run(content.NewMessage(content.User, yes, &content.Text{Text: "again"})))

			for i, want := range []int{0, 1, 1, 1, 0} {
				n := 0
				for a := range content.All[*content.ToolApprovalResponse](inner.seen[i]) {
					n++
					if a.Approved != (i > 1) {
						t.Errorf("run %d: approved %v", i, a.Approved)
					}
				}

				if n != want {
					t.Errorf("run %d: %d answers, want %d", i, n, want)
				}
			}

			if yes.Call.(*content.FunctionCall).InformationalOnly {
				t.Error("the caller's answer was changed")
			}
		})
	}
}

// A rule is made from the recorded call, even if the answer contains a different one.
func TestRuleComesFromTheRecordedCall(t *testing.T) {
	for rules, want := range map[compat.BindingRules]bool{compat.Rules114: true, compat.Rules125: false} {
		wipe := &content.ToolApprovalRequest{RequestID: "ficc_2", Call: callOf("2", "wipe")}
		inner := newScripted([]content.Content{payment()}, []content.Content{&content.Text{Text: "paid"}},
			[]content.Content{wipe}, []content.Content{&content.Text{Text: "wiped"}})
		log := slog.New(slog.DiscardHandler)
		c := compat.NewStanding(compat.NewBinding(inner, compat.BindingConfig{Rules: rules, Log: log}),
			compat.StandingConfig{Rules: rules})
		opt := &agent.Options{Thread: agent.NewThread("t")}
		must.Get(c.Respond(t.Context(), []*content.Message{content.UserText("pay")}, opt))(t)
		forged := payment().CreateAlwaysApprove(content.AlwaysTool, "")
		forged.Call = &content.FunctionCall{CallID: "1", Name: "wipe"}
		must.Get(c.Respond(t.Context(), []*content.Message{content.NewMessage(content.User, forged)}, opt))(t)
		must.Get(c.Respond(t.Context(), []*content.Message{content.UserText("wipe")}, opt))(t)
		if approved := len(inner.seen) > 3; approved != want {
			t.Errorf("rules %d: wipe was approved: %v, want %v", rules, approved, want)
		}
	}
}
