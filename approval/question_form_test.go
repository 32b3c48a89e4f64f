package approval_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/resolve"
)

const seatForm = `{"type":"object","properties":{"seat":{"type":"string","enum":["12a","14c"]},` +
	`"bags":{"type":"integer","minimum":0,"maximum":3}},"required":["seat"]}`

// fills makes a question for a text or a form, asked by the agent itself without a call.
func fills(schema string) func(*approval.AskInput) {
	return func(in *approval.AskInput) {
		in.Call = &resolve.Call{Principal: "pat@acme", Session: "s1"}
		in.Question = approval.Question{Asker: "booking", Prompt: "Which seat?", Schema: json.RawMessage(schema)}
	}
}

func data(text string) func(*approval.VoteInput) {
	return func(in *approval.VoteInput) { in.Data = []byte(text) }
}

func TestFormIsFilledInByTheUser(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", fills(seatForm))
	if r.Current().Call.Target() != "no call" || r.Requester.Principal != "pat@acme" || r.Binding() == "" {
		t.Fatalf("got %+v", r)
	}
	if s := approval.Summarize(r); s.Message != "booking asks for 2 things in a form" {
		t.Errorf("got %+v", s)
	}
	h.vote(r, "cy", approval.Submit, approval.VoteNotEligible, data(`{"seat":"12a"}`))
	out := h.vote(r, "pat", approval.Submit, approval.VoteAnswered, data(`{ "bags":1, "seat":"12a" }`))
	got := out.Request
	if got.State != approval.Answered || got.Cause != approval.BySubmission || got.Chosen != nil ||
		string(got.Data) != `{"bags":1,"seat":"12a"}` || string(got.Votes[0].Data) != string(got.Data) {
		t.Errorf("got %+v", got)
	}
	got, err := h.s.Answer(context.Background(), "t", r.ID, deesRunner())
	if err != nil || string(got.Data) != `{"bags":1,"seat":"12a"}` {
		t.Errorf("got %+v, %v", got, err)
	}
	h.happened("request_opened", "vote_refused", "vote_counted", "request_answered")
	h.history()
}

func TestFreeTextIsWritten(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", fills(`{"type":"string","maxLength":20}`), groups("support"))
	out := h.vote(r, "bob", approval.Submit, approval.VoteAnswered, data(`"by the window"`))
	if string(out.Request.Data) != `"by the window"` {
		t.Errorf("got %+v", out.Request)
	}
	h.history()
}

func TestDismissedFormHasNoAnswer(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", fills(seatForm))
	out := h.vote(r, "pat", approval.Dismiss, approval.VoteAnswered)
	if got := out.Request; got.Cause != approval.ByDismissal || got.Data != nil || got.Chosen != nil ||
		out.Detail != "answered: dismissed, without an answer" {
		t.Errorf("got %+v", out)
	}
	if _, err := h.s.Answer(context.Background(), "t", r.ID, deesRunner()); err != nil {
		t.Error(err)
	}
	h.history()
}

// TestAnswersThatTheFormRefuses: the question can still be answered after refused answers.
func TestAnswersThatTheFormRefuses(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", fills(seatForm))
	for name, text := range map[string]string{
		"no JSON":        `{`,
		"a twin":         `{"seat":"12a","seat":"14c"}`,
		"another field":  `{"seat":"12a","x":1}`,
		"no seat":        `{"bags":1}`,
		"another seat":   `{"seat":"1a"}`,
		"too many":       `{"seat":"12a","bags":4}`,
		"a megabyte":     `{"seat":"` + strings.Repeat("x", 1<<20) + `"}`,
		"another type":   `"12a"`,
		"trailing words": `{"seat":"12a"} {}`,
	} {
		_, err := h.tryVote(r, "pat", approval.Submit, data(text))
		var wrong *approval.AnswerError
		var problems form.Problems
		if !errors.As(err, &wrong) || !errors.As(err, &problems) || len(problems) == 0 {
			t.Errorf("%s: got %v", name, err)
		}
	}

	_, err := h.tryVote(r, "pat", approval.Submit)
	h.wrongField(err, "data")
	_, err = h.tryVote(r, "pat", approval.Choose, index(0))
	h.wrongField(err, "verdict")
	_, err = h.tryVote(r, "pat", approval.Approve)
	h.wrongField(err, "verdict")
	_, err = h.tryVote(r, "pat", approval.Dismiss, data(`{"seat":"12a"}`))
	h.wrongField(err, "data")
	_, err = h.tryVote(h.put("choice"), "pat", approval.Submit, data(`{"seat":"12a"}`))
	h.wrongField(err, "verdict")
	unseen := func(in *approval.VoteInput) { in.Full = false }
	_, err = h.tryVote(r, "pat", approval.Submit, data(`{"seat":"12a"}`), unseen)
	h.fails(err, approval.ErrNotShown)
	h.vote(r, "pat", approval.Submit, approval.VoteAnswered, data(`{"seat":"12a"}`))
	h.history()
}

// countingStore counts the writing transactions.
type countingStore struct {
	approval.Store
	updates int
}

func (s *countingStore) Update(ctx context.Context, tenant string, fn func(approval.Tx) error) error {
	s.updates++

	return s.Store.Update(ctx, tenant, fn)
}

// TestAnswerIsCheckedBeforeTheTransaction: the time for matching depends on the schema and the
// answer, and a writing transaction blocks all other writers.
func TestAnswerIsCheckedBeforeTheTransaction(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", fills(`{"type":"string","pattern":"^.{0,900}x$"}`))
	store := &countingStore{Store: h.store}
	h.s = approval.New(store, h.plans, h.people, h.now, rand.Reader, h.cfg)
	for _, text := range []string{`"y"`, `"` + strings.Repeat("x", 60_000) + `"`, `{`} {
		var wrong *approval.AnswerError
		if _, err := h.tryVote(r, "pat", approval.Submit, data(text)); !errors.As(err, &wrong) {
			t.Errorf("%.10s: got %v", text, err)
		}
	}
	if store.updates != 0 {
		t.Errorf("answers that the form refuses began %d transactions", store.updates)
	}
	h.vote(r, "pat", approval.Submit, approval.VoteAnswered, data(`"yx"`))
	if store.updates != 1 {
		t.Errorf("an answer that fits took %d transactions", store.updates)
	}
}

func TestFormsThatCannotBeAsked(t *testing.T) {
	h := newHarness(t)
	for name, change := range map[string]func(*approval.AskInput){
		"nested":         fills(`{"type":"object","properties":{"a":{"type":"object"}}}`),
		"a password":     fills(`{"type":"object","properties":{"password":{"type":"string"}}}`),
		"no JSON":        fills(`{`),
		"a broken bound": fills(`{"type":"string","maxLength":1,"default":"ab"}`),
		"a pattern of 240,000 instructions": fills(
			`{"type":"string","pattern":"^(` + strings.Repeat(".{0,999}", 119) + `)x$"}`,
		),
		"a default that is long for its pattern": fills(
			`{"type":"string","pattern":".{0,900}","default":"` + strings.Repeat("a", 16_000) + `"}`,
		),
		"more groups than may be asked": func(in *approval.AskInput) {
			fills(seatForm)(in)
			for i := range 51 {
				in.Question.Groups = append(in.Question.Groups, fmt.Sprintf("g%d", i))
			}
		},
		"both": func(in *approval.AskInput) {
			in.Question.Schema = json.RawMessage(seatForm)
		},
	} {
		_, err := h.tryAsk(name, change)
		field := "question.schema"
		if name == "more groups than may be asked" {
			field = "question.groups"
		}
		h.t.Run(name, func(*testing.T) { h.wrongField(err, field) })
	}
}

// TestFreezeHoldsForms: a frozen agent can't ask, and gets no answer.
func TestFreezeHoldsForms(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", fills(seatForm))
	h.vote(r, "pat", approval.Submit, approval.VoteAnswered, data(`{"seat":"12a"}`))
	must(t, h.s.Freeze(context.Background(), "t", "desk", "dee", ""))
	_, err := h.s.Answer(context.Background(), "t", r.ID, deesRunner())
	h.fails(err, approval.ErrFrozen)
	out, err := h.tryAsk("next", fills(seatForm))
	if err != nil || out.Denied != "frozen" {
		t.Errorf("got %+v, %v", out, err)
	}
}

// TestOneAnswerOfMany: of 64 concurrent answers the first one counts, and the others don't change
// it.
func TestOneAnswerOfMany(t *testing.T) {
	h := newHarness(t)
	const many = 64
	for i := range many {
		h.people.groups[fmt.Sprint("person", i)] = []string{""}
	}
	r := h.put("k", fills(`{"type":"string"}`), principal(""))
	start := make(chan struct{})
	outcomes := make(chan approval.VoteOutcome, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			<-start
			person := fmt.Sprint("person", i)
			out, err := h.tryVote(r, person, approval.Submit, data(`"`+person+`"`))
			if err != nil {
				t.Error(err)
				return
			}
			outcomes <- out.Outcome
		})
	}

	close(start)
	all.Wait()
	close(outcomes)
	got := map[approval.VoteOutcome]int{}
	for o := range outcomes {
		got[o]++
	}
	if got[approval.VoteAnswered] != 1 || got[approval.VoteLate] != many-1 {
		t.Errorf("got %v", got)
	}
	answered := h.request(r.ID)
	if string(answered.Data) != `"`+answered.By+`"` {
		t.Errorf("%s by %s", answered.Data, answered.By)
	}
	h.history()
}

func TestContextIsKeptAndBindsNothing(t *testing.T) {
	h := newHarness(t)
	says := []info.Item{{Label: "Why", Text: "the customer asked"}, {Label: "Ticket", Link: "https://x.example/1"}}
	with := func(in *approval.OpenInput) { in.Context = says }
	out, err := h.tryOpen(tool("pay", `{"n":7}`), with)
	if err != nil || len(out.Request.Context) != 2 {
		t.Fatalf("got %+v, %v", out, err)
	}
	again := h.open(tool("pay", `{"n":7}`))
	if !again.Shared || again.Request.Binding() != out.Request.Binding() || len(again.Request.Context) != 2 {
		t.Errorf("got %+v", again.Request)
	}
	if s := approval.Summarize(out.Request); strings.Contains(s.Message, "customer") {
		t.Errorf("got %+v", s)
	}

	says = []info.Item{{Label: "Why", Link: "javascript:alert(1)"}}
	_, err = h.tryOpen(tool("pay", `{"n":8}`), with)
	var wrong *info.Error
	if !errors.As(err, &wrong) || wrong.Path != "context.0.link" {
		t.Errorf("got %v", err)
	}
	h.history()
}

// TestNothingRunsWithoutACall: only a question may have no call; a call that is to run must have a
// kind.
func TestNothingRunsWithoutACall(t *testing.T) {
	h := newHarness(t)
	out := h.open(&resolve.Call{Principal: "pat@acme"})
	if out.Outcome != resolve.Deny || out.Request != nil {
		t.Errorf("got %+v", out)
	}
	r := h.put("k", fills(seatForm))
	h.vote(r, "pat", approval.Submit, approval.VoteAnswered, data(`{"seat":"12a"}`))
	call := r.Current().Call
	_, err := h.s.Consume(context.Background(), approval.ConsumeInput{
		Tenant: "t",
		ID:     r.ID,
		Asker:  deesRunner(),
		Call:   &call,
		Key:    "k",
	})
	h.fails(err, approval.ErrQuestion)
	h.history()
}
