package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/store"
)

const seats = `{"type":"object","properties":{"seat":{"type":"string","enum":["3A","12C"]}},"required":["seat"]}`

// desk is a flow whose questions are answered by people of an approval service.
type desk struct {
	t     *testing.T
	h     *assenttest.Assent
	asks  *agent.HeldQuestions
	store *filestore.Store
	heard []string // the results of the questions, at the end of the flow
}

// atDesks runs a test with people in this process and with people of a server.
func atDesks(t *testing.T, cfg assenttest.Config, test func(t *testing.T, d *desk)) {
	t.Helper()
	cfg.Service.AcceptUnknown = func(string) bool { return true }
	for name, side := range map[string]func(h *assenttest.Assent) hold.People{
		"service": func(h *assenttest.Assent) hold.People {
			return hold.Service(h.Service, h.Store, hold.Place{Tenant: assenttest.Tenant, Agent: "desk"})
		},
		"client": func(h *assenttest.Assent) hold.People {
			return client.People("desk", map[string]*client.Client{
				"rt": h.Client(store.Token{Name: "rt", Scopes: []string{"request", "read"}}),
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := assenttest.New(t, cfg)
			people := side(h)
			test(t, &desk{
				t: t,
				h: h,
				asks: &agent.HeldQuestions{People: people.As(approval.Asker{Token: "rt"}), Watch: people.Watch,
					Asker: "flights", Within: time.Hour, Now: h.Clock.Now},
				store: must.Get(filestore.New(t.TempDir()))(t),
			})
		})
	}
}

// book asks for a seat and for consent at the same time, and then for a text.
func (d *desk) book(ctx context.Context, f *agent.Flow) error {
	var seat struct{ Seat string }
	price, waits := f.Ask(ctx, "price", &content.TextApprovalRequest{Text: "249 EUR?",
		Note: content.Note{Context: []info.Item{{Label: "Fares", Link: "https://fares.example/531"}}}})
	err := errors.Join(waits, f.Data(ctx, "seat", "Which seat?", json.RawMessage(seats), &seat))
	if err != nil {
		return err
	}
	told := price.(*content.TextApprovalResponse)
	var meal string
	if err := f.Data(ctx, "meal", "Anything else?", json.RawMessage(`{"type":"string"}`), &meal); err != nil {
		return err
	}
	d.heard = append(d.heard, fmt.Sprint(told.Approved, told.By, told.Reason, seat.Seat, meal))
	return nil
}

// run makes one run in a separate process.
func (d *desk) run(said ...content.Content) (*agent.Thread, *agent.Response) {
	d.t.Helper()
	thread := must.Get(agent.LoadOrNew(d.t.Context(), d.store, "trip"))(d.t)
	flow := agent.NewFlow("flight", agent.FlowConfig{Store: d.store, Now: d.h.Clock.Now}, d.book)
	resp := must.Get(flow.Run(d.t.Context(), thread, content.NewMessage(content.User, said...)))(d.t)
	return thread, resp
}

func (d *desk) answers(thread *agent.Thread, asked ...content.InputRequest) []content.Content {
	d.t.Helper()
	var out []content.Content
	for _, a := range must.Get(d.asks.Answers(d.t.Context(), thread, asked...))(d.t) {
		out = append(out, a)
	}
	return out
}

// question returns the only question with that text that people ever saw.
func (d *desk) question(prompt string) *approval.Request {
	d.t.Helper()
	var found []*approval.Request
	for _, r := range d.all() {
		full := must.Get(d.h.Service.Request(d.t.Context(), assenttest.Tenant, r.ID))(d.t)
		if full.Question.Prompt == prompt {
			found = append(found, full)
		}
	}

	if len(found) != 1 {
		d.t.Fatalf("%q was asked %d times", prompt, len(found))
	}
	return found[0]
}

func (d *desk) all() []approval.Summary {
	d.t.Helper()
	return must.Get(d.h.Store.Requests(d.t.Context(), assenttest.Tenant, approval.Filter{}))(d.t).Requests
}

func (d *desk) submits(prompt, data string) {
	d.t.Helper()
	d.h.Votes(d.question(prompt).ID, "mara", approval.Submit, approval.VoteAnswered, func(in *approval.VoteInput) {
		in.Data = []byte(data)
	})
}

func (d *desk) chooses(prompt string, choice int, reason string) {
	d.t.Helper()
	d.h.Votes(d.question(prompt).ID, "mara", approval.Choose, approval.VoteAnswered, func(in *approval.VoteInput) {
		in.Choice = &choice
		in.Reason = reason
	})
}

// TestHeldQuestions answers the questions of a flow one after the other. One process ends
// before it has saved the references of its questions.
func TestHeldQuestions(t *testing.T) {
	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		thread, resp := d.run(&content.Text{Text: "To Lisbon"})
		unkept := must.Get(thread.Encode())(t)
		if got := d.answers(thread, resp.UserInputRequests()...); len(got) != 0 {
			t.Fatalf("nobody has answered, got %v", got)
		}
		lost := &agent.Thread{} // the thread of a process that ended before it could save
		must.Do(t, json.Unmarshal(unkept, lost))
		for _, th := range []*agent.Thread{lost, must.Get(d.store.Load(t.Context(), "trip"))(t), thread} {
			if got := d.answers(th); len(got) != 0 || len(d.all()) != 2 {
				t.Fatalf("got %v, and %d questions", got, len(d.all()))
			}
		}

		price, seat := d.question("249 EUR?"), d.question("Which seat?")
		if q := price.Question; !slices.Equal(q.Choices, []string{"Approve", "Reject"}) || q.Default != 1 ||
			q.Asker != "flights" || len(price.Context) != 1 || price.Context[0].Label != "Fares" {
			t.Errorf("people see %+v, %+v", price.Question, price.Context)
		}
		if string(seat.Question.Schema) != seats {
			t.Errorf("people see %s", seat.Question.Schema)
		}

		d.submits("Which seat?", `{"seat":"3A"}`)
		half := d.answers(must.Get(d.store.Load(t.Context(), "trip"))(t))
		if len(half) != 1 || half[0].(*content.StructuredInputResponse).By != "mara" {
			t.Fatalf("got %+v", half)
		}
		thread, _ = d.run(half...)
		if got := d.answers(thread); len(got) != 0 {
			t.Fatalf("got %v", got)
		}
		d.chooses("249 EUR?", 0, "the last one")
		thread, resp = d.run(d.answers(thread)...)
		if len(d.answers(thread, resp.UserInputRequests()...)) != 0 || len(d.all()) != 3 {
			t.Fatalf("there are %d questions", len(d.all()))
		}
		d.submits("Anything else?", `"no meal"`)
		_, resp = d.run(d.answers(thread)...)
		if len(resp.Refused) != 0 || !slices.Equal(d.heard, []string{"truemarathe last one3Ano meal"}) {
			t.Errorf("told %q, refused %+v", d.heard, resp.Refused)
		}
		thread = must.Get(d.store.Load(t.Context(), "trip"))(t)
		got := d.answers(thread)
		if kept := string(thread.State["held questions"]); len(got) != 0 || len(d.all()) != 3 || kept != "{}" {
			t.Errorf("at the end: %v, %d questions, kept %s", got, len(d.all()), kept)
		}
	})
}

// TestHeldQuestionsAreWithdrawn checks that open questions are withdrawn when the flow has
// ended without their answers.
func TestHeldQuestionsAreWithdrawn(t *testing.T) {
	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		flow := agent.NewFlow("flight", agent.FlowConfig{}, func(ctx context.Context, f *agent.Flow) error {
			agreed := f.Approve(ctx, "price", "249 EUR?")
			picked := f.Data(ctx, "seat", "Which seat?", json.RawMessage(seats), nil)
			if errors.Is(agreed, agent.ErrDeclined) {
				return nil
			}
			return errors.Join(agreed, picked)
		})
		thread := agent.NewThread("t")
		must.Get(flow.Run(t.Context(), thread, content.UserText("To Lisbon")))(t)
		d.answers(thread)
		d.chooses("249 EUR?", 1, "too dear")
		must.Get(flow.Run(t.Context(), thread, content.NewMessage(content.User, d.answers(thread)...)))(t)
		if got := d.answers(thread); len(got) != 0 || d.question("Which seat?").State != approval.Cancelled ||
			d.question("249 EUR?").State != approval.Answered {
			t.Errorf("got %v, the seat is %s", got, d.question("Which seat?").State)
		}
	})
}

// TestHeldQuestionsThatEndWithoutAnswer checks that such questions are rejections that say what
// happened.
func TestHeldQuestionsThatEndWithoutAnswer(t *testing.T) {
	type ending struct {
		happen func(d *desk)
		by     string
		reason string // empty if the answer is still being waited for
	}
	for name, c := range map[string]ending{
		"rejected": {func(d *desk) { d.chooses("249 EUR?", 1, "too dear") }, "mara", "too dear"},
		"dismissed": {func(d *desk) {
			d.h.Votes(d.question("249 EUR?").ID, "mara", approval.Dismiss, approval.VoteAnswered, nil)
		}, "mara", "dismissed without an answer"},
		"expired": {func(d *desk) { d.h.Later(2 * time.Hour) }, "", "nobody answered in time"},
		"withdrawn": {func(d *desk) {
			id := d.question("249 EUR?").ID
			must.Get(d.h.Service.Cancel(d.t.Context(), assenttest.Tenant, id, "root", "closed"))(d.t)
		}, "", "closed"},
		"frozen": {func(d *desk) {
			d.chooses("249 EUR?", 0, "")
			must.Do(d.t, d.h.Service.Freeze(d.t.Context(), assenttest.Tenant, "desk", "mara", "odd"))
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
				thread, _ := d.run(&content.Text{Text: "To Lisbon"})
				d.answers(thread)
				c.happen(d)
				var got *content.TextApprovalResponse
				for _, a := range d.answers(thread) {
					if text, ok := a.(*content.TextApprovalResponse); ok {
						got = text
					}
				}
				if c.reason == "" {
					if got != nil {
						t.Errorf("got %+v", got)
					}
					return
				}

				if got == nil || got.Approved || got.By != c.by || got.Reason != c.reason {
					t.Errorf("got %+v, want a no by %q: %q", got, c.by, c.reason)
				}
			})
		})
	}

	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		must.Do(t, d.h.Service.Freeze(t.Context(), assenttest.Tenant, "desk", "mara", "odd"))
		thread, _ := d.run(&content.Text{Text: "To Lisbon"})
		got := d.answers(thread)
		if len(got) != 2 || len(d.all()) != 0 ||
			!strings.Contains(got[0].(*content.TextApprovalResponse).Reason, "desk is frozen by mara") {
			t.Errorf("got %+v", got)
		}
	})
}

// TestWhatCantBeHeld checks that a request that can't be put is refused with its place, before
// any question is asked.
func TestWhatCantBeHeld(t *testing.T) {
	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		fine := &content.TextApprovalRequest{RequestID: "fine", Text: "ok?"}
		for want, q := range map[string]content.InputRequest{
			"properties.at": &content.StructuredInputRequest{RequestID: "bad",
				Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"object"}}}`)},
			"approvals of calls are held by the Holder": &content.ToolApprovalRequest{RequestID: "bad",
				Call: &content.FunctionCall{CallID: "1", Name: "pay"}},
			"at most 65536 bytes": &content.TextApprovalRequest{RequestID: "bad", Text: strings.Repeat("x", 70_000)},
			"assent.context.0.link": &content.TextApprovalRequest{RequestID: "bad",
				Note: content.Note{Context: []info.Item{{Label: "Fares", Link: "ftp://x"}}}},
		} {
			_, err := d.asks.Answers(t.Context(), agent.NewThread("t"), fine, q)
			var bad *agent.HeldQuestionError
			if !errors.As(err, &bad) || bad.RequestID != "bad" || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if schema := (*form.SchemaError)(nil); want == "properties.at" && !errors.As(err, &schema) {
				t.Errorf("got %v", err)
			}
		}

		if len(d.all()) != 0 {
			t.Errorf("people were asked: %+v", d.all())
		}
	})
}

// TestWaitForAnswers checks that Wait returns when an answer arrives.
func TestWaitForAnswers(t *testing.T) {
	atDesks(t, assenttest.Config{Runs: true}, func(t *testing.T, d *desk) {
		if got, err := d.asks.Wait(t.Context(), agent.NewThread("t")); got != nil || err != nil {
			t.Errorf("nothing is asked, got %v, %v", got, err)
		}
		thread, _ := d.run(&content.Text{Text: "To Lisbon"})
		d.answers(thread)
		d.asks.Poll = time.Hour // so that only Watch can end the wait
		type end struct {
			answers []content.InputResponse
			err     error
		}
		ended := make(chan end, 1)
		go func() {
			answers, err := d.asks.Wait(t.Context(), thread)
			ended <- end{answers, err}
		}()
		d.chooses("249 EUR?", 0, "")
		if got := <-ended; got.err != nil || len(got.answers) != 1 || content.Rejects(got.answers[0]) {
			t.Errorf("got %+v", got)
		}
	})
}

// unsure is a function that asks before it sells.
type unsure struct{ told []content.InputResponse }

func (*unsure) Definition() agent.Definition { return agent.Definition{Name: "quote"} }

func (*unsure) Invoke(context.Context, *content.FunctionCall) (any, error) {
	return nil, &agent.Suspend{Requests: []content.InputRequest{
		&content.TextApprovalRequest{RequestID: "x", Text: "Sure?"},
		&content.StructuredInputRequest{RequestID: "y", Text: "Seat?", Schema: json.RawMessage(seats)},
	}}
}

func (u *unsure) Resume(
	_ context.Context, _ *content.FunctionCall, _ json.RawMessage, answers []content.InputResponse,
) (any, error) {
	u.told = answers
	return "sold", nil
}

// TestLoopHoldsQuestions checks that people answer the requests of a suspended function during
// its call, and that answers in the messages are refused.
func TestLoopHoldsQuestions(t *testing.T) {
	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		d.asks.Groups = []string{"risk"} // the call is for client-7, who is not a known person here
		tool, model := &unsure{}, &script{says: []content.Content{
			&content.FunctionCall{CallID: "1", Name: "quote", Arguments: json.RawMessage(`{"of":"ACME"}`)},
			&content.Text{Text: "That is all."},
		}}
		compiled := must.Get(d.h.Plans.Plan(t.Context(), assenttest.Tenant, "desk"))(t)
		run := func(said ...*content.Message) *agent.Response {
			t.Helper()
			loop := agent.NewFunctionInvoking(model, agent.LoopConfig{
				Decider:   agent.ByPlan(compiled.Plan, agent.PlanOptions{Principal: "client-7"}),
				Holder:    d.asks.People,
				Questions: d.asks,
			})
			seller := agent.NewChatAgent(loop,
				agent.ChatAgentConfig{Name: "seller", Tools: []agent.Tool{tool}, Store: d.store})
			thread := must.Get(agent.LoadOrNew(t.Context(), d.store, "trip"))(t)
			return must.Get(seller.Run(t.Context(), thread, said...))(t)
		}

		asked := run(content.UserText("Sell.")).UserInputRequests()
		if len(asked) != 2 || len(d.all()) != 2 {
			t.Fatalf("asked %d things, people %d", len(asked), len(d.all()))
		}
		if c := d.question("Sure?").Current().Call; c.Tool != "quote" || string(c.Args) != `{"of":"ACME"}` {
			t.Errorf("it is asked during %+v", c)
		}
		yes := asked[0].(*content.TextApprovalRequest).CreateApproval("")
		no := run(content.NewMessage(content.User, yes))
		if len(no.Refused) != 1 || no.Refused[0].Reason != agent.HeldElsewhere || tool.told != nil {
			t.Fatalf("an answer in the messages: %+v", no.Refused)
		}
		d.h.Votes(d.question("Seat?").ID, "mara", approval.Submit, approval.VoteAnswered, func(in *approval.VoteInput) {
			in.Data = []byte(`{"seat":"3A"}`)
		})
		if run(); tool.told != nil || len(d.all()) != 2 {
			t.Fatalf("half of the answers: %+v", tool.told)
		}
		d.h.Votes(d.question("Sure?").ID, "kim", approval.Choose, approval.VoteAnswered, func(in *approval.VoteInput) {
			in.Choice = new(int)
		})
		if resp := run(); resp.Text() != "That is all." || len(tool.told) != 2 || content.Rejects(tool.told[0]) {
			t.Fatalf("got %q, told %+v", resp.Text(), tool.told)
		}
		sure, seat := tool.told[0].(*content.TextApprovalResponse), tool.told[1].(*content.StructuredInputResponse)
		if sure.By != "kim" || seat.By != "mara" { // although the thread was loaded between the two
			t.Errorf("answered by %q and %q", sure.By, seat.By)
		}
	})
}

// TestLoopPutsQuestionsLater checks that a question that could not be put is put once by the
// next run, and that an answer in the messages is refused meanwhile.
func TestLoopPutsQuestionsLater(t *testing.T) {
	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		people := d.asks.People
		d.asks.People = hold.Nobody(errors.New("the line is down"))
		tool, model := &unsure{}, &script{says: []content.Content{
			&content.FunctionCall{CallID: "1", Name: "quote"},
			&content.Text{Text: "That is all."},
		}}
		run := func(said ...*content.Message) (*agent.Response, error) {
			loop := agent.NewFunctionInvoking(model, agent.LoopConfig{Questions: d.asks})
			seller := agent.NewChatAgent(loop,
				agent.ChatAgentConfig{Name: "seller", Tools: []agent.Tool{tool}, Store: d.store})
			return seller.Run(t.Context(), must.Get(agent.LoadOrNew(t.Context(), d.store, "trip"))(t), said...)
		}

		asked := must.Get(run(content.UserText("Sell.")))(t).UserInputRequests()
		if len(asked) != 2 || len(d.all()) != 0 {
			t.Fatalf("asked %d things, people %d", len(asked), len(d.all()))
		}
		if _, err := run(); err == nil || !strings.Contains(err.Error(), "the line is down") {
			t.Fatalf("got %v", err)
		}
		yes := asked[0].(*content.TextApprovalRequest).CreateApproval("")
		resp, err := run(content.NewMessage(content.User, yes))
		if err == nil && (len(resp.Refused) != 1 || resp.Refused[0].Reason != agent.HeldElsewhere) || tool.told != nil {
			t.Fatalf("an answer in the messages: %+v, %v", resp, err)
		}
		d.asks.People = people
		for range 2 {
			must.Get(run())(t)
			if d.question("Sure?"); len(d.all()) != 2 {
				t.Fatalf("asked %d questions", len(d.all()))
			}
		}
	})
}

// TestLoopWithdrawsQuestions checks that questions are withdrawn when their answers are no
// longer needed.
func TestLoopWithdrawsQuestions(t *testing.T) {
	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		model := &script{says: []content.Content{
			&content.FunctionCall{CallID: "1", Name: "quote"},
			&content.Text{Text: "Never mind."},
		}}
		loop := agent.NewFunctionInvoking(model, agent.LoopConfig{Questions: d.asks, OnNewMessage: agent.Supersede})
		seller := agent.NewChatAgent(loop, agent.ChatAgentConfig{Name: "seller", Tools: []agent.Tool{&unsure{}}})
		thread := agent.NewThread("t")
		must.Get(seller.Run(t.Context(), thread, content.UserText("Sell.")))(t)
		must.Get(seller.Run(t.Context(), thread, content.UserText("Forget it.")))(t)
		for _, prompt := range []string{"Sure?", "Seat?"} {
			if r := d.question(prompt); r.State != approval.Cancelled {
				t.Errorf("%s is %s", prompt, r.State)
			}
		}
	})
}

// TestLoopSaysWhy checks that the agent's context for a call is part of the request that people
// see, and that a call whose context can't be shown is refused.
func TestLoopSaysWhy(t *testing.T) {
	atDesks(t, assenttest.Config{}, func(t *testing.T, d *desk) {
		compiled := must.Get(d.h.Plans.Plan(t.Context(), assenttest.Tenant, "desk"))(t)
		trade := agent.NewFunction("trade", "Sells.", nil, func(context.Context, json.RawMessage) (any, error) {
			return "sold", nil
		})
		run := func(says ...info.Item) (*script, *agent.Response) {
			model := &script{says: []content.Content{
				&content.FunctionCall{CallID: "1", Name: "trade", Arguments: json.RawMessage(`{"amount":9}`)},
				&content.Text{Text: "That is all."},
			}}
			loop := agent.NewFunctionInvoking(model, agent.LoopConfig{
				Decider: agent.ByPlan(compiled.Plan, agent.PlanOptions{Principal: "client-7"}),
				Holder:  d.asks.People,
				Says: func(_ context.Context, call *content.FunctionCall) ([]info.Item, error) {
					if call.Name != "trade" {
						return nil, errors.New("another call")
					}
					return says, nil
				},
			})
			seller := agent.NewChatAgent(loop, agent.ChatAgentConfig{Name: "seller", Tools: []agent.Tool{trade}})
			return model, must.Get(seller.Run(t.Context(), agent.NewThread(t.Name()), content.UserText("Sell.")))(t)
		}

		model, resp := run(info.Item{Label: "Why"})
		told := must.Get(json.Marshal(model.seen[1]))(t)
		if len(resp.UserInputRequests()) != 0 || len(d.all()) != 0 ||
			!strings.Contains(string(told), "assent.context.0: expected one of text, link and diff") {
			t.Errorf("asked %+v, told %s", resp.UserInputRequests(), told)
		}
		_, resp = run(info.Item{Label: "Why", Text: "It falls."})
		if len(d.all()) != 1 {
			t.Fatalf("asked %+v", resp.UserInputRequests())
		}
		r := must.Get(d.h.Service.Request(t.Context(), assenttest.Tenant, d.all()[0].ID))(t)
		note := content.NoteOf(resp.UserInputRequests()[0])
		if len(r.Context) != 1 || r.Context[0].Text != "It falls." || len(note.Context) != 1 {
			t.Errorf("people see %+v, the user %+v", r.Context, note)
		}
	})
}
