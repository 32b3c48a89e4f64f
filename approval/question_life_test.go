package approval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// TestSameKeySameQuestion: the same key is the same question, and questions with different keys are
// never merged.
func TestSameKeySameQuestion(t *testing.T) {
	h := newHarness(t)
	r := h.put("k")
	again, err := h.tryAsk("k")
	if err != nil || !again.Shared || again.Request.ID != r.ID {
		t.Fatalf("got %+v, %v", again, err)
	}
	for name, change := range map[string]func(*approval.AskInput){
		"other arguments": func(in *approval.AskInput) { in.Call = tool("quote", `{"path":"/etc/passwd"}`) },
		"another prompt":  func(in *approval.AskInput) { in.Question.Prompt = "Read /etc/motd?" },
		"another default": func(in *approval.AskInput) { in.Question.Default = 0 },
		"other labels": func(in *approval.AskInput) {
			in.Question.Choices = []string{"Yes for session", "Yes", "once", "No"}
		},
		"other people":  groups("risk"),
		"another asker": func(in *approval.AskInput) { in.Question.Asker = "motd" },
	} {
		if _, err := h.tryAsk("k", change); !errors.Is(err, approval.ErrKeyReuse) {
			t.Errorf("%s: got %v", name, err)
		}
	}

	_, err = h.tryOpen(tool("quote", `{"path":"/etc/motd"}`), func(in *approval.OpenInput) {
		in.Key, in.Asker.Person = "k", "dee"
	})
	h.fails(err, approval.ErrKeyReuse)
	twin := h.put("another key")
	if twin.ID == r.ID || twin.Binding() == r.Binding() ||
		approval.Summarize(twin).Rules == approval.Summarize(r).Rules {
		t.Error("an identical question is another one")
	}
	h.vote(r, "pat", approval.Choose, approval.VoteAnswered, index(0))
	h.is(twin.ID, approval.Pending, "")
	h.put("after the answer")
	h.history()
}

// TestKeyOutlivesTheQuestion: a key is remembered as long as the question can be answered, even if
// the service remembers keys for a shorter time.
func TestKeyOutlivesTheQuestion(t *testing.T) {
	h := newHarness(t)
	h.cfg.Remember = time.Minute
	h.start()
	long := func(in *approval.AskInput) { in.Within = time.Hour }
	r := h.put("k", long)
	h.pass(59 * time.Minute)
	if again, err := h.tryAsk("k", long); err != nil || again.Request.ID != r.ID {
		t.Fatalf("got %+v, %v", again, err)
	}
	h.pass(2 * time.Minute)
	h.tick(1)
	if again := h.put("k", long); again.ID == r.ID {
		t.Error("the end of a question was remembered for ever")
	}
}

// TestQuestionsStandAlone: standing approvals, cool-downs and open requests of a call don't affect
// its questions.
func TestQuestionsStandAlone(t *testing.T) {
	h := newHarness(t)
	pay := func(in *approval.AskInput) { in.Call = tool("pay", `{}`) }
	h.approved(tool("pay", `{}`), &approval.GrantOffer{})
	denied := tool("pay", `{"n":1}`)
	h.vote(h.asked(denied), "cy", approval.Deny, approval.VoteDenied)
	h.put("granted", pay)
	h.put("cools down", func(in *approval.AskInput) { in.Call = denied })
	if out := h.open(tool("pay", `{}`)); !out.Granted() {
		t.Errorf("got %+v", out)
	}
	h.history()
}

func TestQuestionsRefused(t *testing.T) {
	h := newHarness(t)
	for name, call := range map[string]*resolve.Call{
		"denied":       tool("wire", `{}`),
		"not declared": tool("rm", `{}`),
		"unreadable":   tool("quote", `{`),
	} {
		out, err := h.tryAsk(name, func(in *approval.AskInput) { in.Call = call })
		if err != nil || out.Outcome != resolve.Deny || out.Denied != "policy" || out.Request != nil {
			t.Errorf("%s: got %+v, %v", name, out, err)
		}
	}

	if out, err := h.tryAsk("asks", func(in *approval.AskInput) {
		in.Call = tool("trade", `{}`)
	}); err != nil || out.Outcome != resolve.Ask {
		t.Errorf("got %+v, %v", out, err) // the decision about the call was made before
	}
	_, err := h.tryAsk("k", func(in *approval.AskInput) { in.Agent = "nobody" })
	h.fails(err, approval.ErrUnknownAgent)
	h.people.set(func(d *directory) { d.broken = errors.New("away") })
	if _, err = h.tryAsk("k"); err == nil {
		t.Error("a question was put while the directory could not say whose agent it is")
	}
	h.happened("call_denied", "call_denied", "call_denied", "request_opened")
}

func TestQuestionsThatAreNone(t *testing.T) {
	h := newHarness(t)
	many := func(n, size int) func(*approval.AskInput) {
		return func(in *approval.AskInput) {
			in.Question.Choices, in.Question.Default = nil, 0
			for range n {
				in.Question.Choices = append(in.Question.Choices, strings.Repeat("x", size))
			}
		}
	}
	ask := func(change func(q *approval.Question)) func(*approval.AskInput) {
		return func(in *approval.AskInput) { change(&in.Question) }
	}
	for name, tt := range map[string]struct {
		change func(*approval.AskInput)
		field  string
	}{
		"no key":           {func(in *approval.AskInput) { in.Key = "" }, "key"},
		"no call":          {func(in *approval.AskInput) { in.Call = nil }, "call"},
		"no time":          {func(in *approval.AskInput) { in.Within = -1 }, "within"},
		"too much time":    {func(in *approval.AskInput) { in.Within = 8761 * time.Hour }, "within"},
		"nobody asks":      {ask(func(q *approval.Question) { q.Asker = "" }), "question.asker"},
		"a name of lines":  {ask(func(q *approval.Question) { q.Asker = "a\nb" }), "question.asker"},
		"no choices":       {many(0, 0), "question.choices"},
		"too many choices": {many(10_001, 0), "question.choices"},
		"a long label":     {many(1, 4<<10+1), "question.choices[0]"},
		"a label with NUL": {ask(func(q *approval.Question) {
			q.Choices = []string{"", "", "\x00"}
		}), "question.choices[2]"},
		"long all together": {many(65, 4<<10), "question"},
		"a long prompt": {ask(func(q *approval.Question) {
			q.Prompt = strings.Repeat("x", 64<<10+1)
		}), "question.prompt"},
		"a broken prompt":  {ask(func(q *approval.Question) { q.Prompt = "\xff" }), "question.prompt"},
		"a default below":  {ask(func(q *approval.Question) { q.Default = -1 }), "question.default"},
		"a default beyond": {ask(func(q *approval.Question) { q.Default = 3 }), "question.default"},
		"a group of all":   {groups("risk", ""), "question.groups[1]"},
		"a group of lines": {groups("a\nb"), "question.groups[0]"},
		"too many groups":  {groups(strings.Split(strings.Repeat("g ", 50), " ")...), "question.groups"},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			_, err := h.tryAsk("k", tt.change)
			h.wrongField(err, tt.field)
		})
	}

	h.t = t
	for name, change := range map[string]func(*approval.AskInput){
		"most choices": many(10_000, 20),
		"empty labels": many(3, 0),
		"longest":      many(64, 4000),
		"no prompt": ask(func(q *approval.Question) {
			q.Prompt = ""
		}),
		"odd words": ask(func(q *approval.Question) { q.Prompt, q.Choices[0] = "\x1b[31m\u202e<b>\n", "\x7f" }),
	} {
		h.put(name, func(in *approval.AskInput) {
			in.Question.Choices = append([]string(nil), in.Question.Choices...)
			change(in)
		})
	}

	h.history()
}

// TestQuestionsExpire: an expired question has no answer, and later votes don't change that.
func TestQuestionsExpire(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", func(in *approval.AskInput) { in.Within = time.Hour })
	standard := h.put("standard")
	h.pass(30 * time.Minute)
	h.tick(1)
	h.pass(24 * time.Minute)
	h.tick(1)
	h.pass(6 * time.Minute)
	h.vote(r, "pat", approval.Choose, approval.VoteLate, index(0)) // before any tick
	h.vote(r, "pat", approval.Choose, approval.VoteDuplicate, index(0))
	h.vote(r, "pat", approval.Choose, approval.VoteLate, index(1))
	h.vote(r, "pat", approval.Dismiss, approval.VoteLate)
	h.vote(r, "ann", approval.Dismiss, approval.VoteNotEligible)
	if got := h.is(r.ID, approval.Expired, approval.ByDeadline); got.Chosen != nil || len(got.Votes) != 3 {
		t.Errorf("got %+v", got)
	}
	got, err := h.s.Answer(context.Background(), "t", r.ID, deesRunner())
	if h.fails(err, approval.ErrNotApproved); got.State != approval.Expired {
		t.Errorf("got %+v", got)
	}
	h.pass(23 * time.Hour)
	h.tick(1)
	h.is(standard.ID, approval.Expired, approval.ByDeadline)
	h.happened(
		"request_opened",
		"request_opened",
		"request_reminded",
		"request_reminded",
		"request_expired",
		"vote_late",
		"vote_late",
		"vote_late",
		"vote_refused",
		"request_expired",
	)
}

func TestQuestionsAreWithdrawn(t *testing.T) {
	h := newHarness(t)
	r := h.put("k")
	works(h.s.Cancel(context.Background(), "t", r.ID, "runner", "the call was interrupted"))(t)
	h.vote(r, "pat", approval.Choose, approval.VoteLate, index(0))
	h.is(r.ID, approval.Cancelled, approval.ByRequester)
	_, err := h.s.Cancel(context.Background(), "t", r.ID, "runner", "")
	h.fails(err, approval.ErrClosed)
	_, err = h.s.Answer(context.Background(), "t", r.ID, deesRunner())
	h.fails(err, approval.ErrNotApproved)
	h.history()
}

// TestFirstAnswerWins: later answers don't change the answer that the tool gets.
func TestFirstAnswerWins(t *testing.T) {
	h := newHarness(t)
	r := h.put("k", groups("risk", "support"), func(in *approval.AskInput) { in.Asker.Person = "" })
	var all sync.WaitGroup
	outcomes := make([]approval.VoteOutcome, 3)
	for i, person := range []string{"ann", "bob", "cy"} {
		all.Go(func() {
			if out, err := h.tryVote(r, person, approval.Choose, index(i)); err == nil {
				outcomes[i] = out.Outcome
			}
		})
	}

	all.Wait()
	counts := map[approval.VoteOutcome]int{}
	for _, o := range outcomes {
		counts[o]++
	}
	got := h.is(r.ID, approval.Answered, approval.ByChoice)
	if counts[approval.VoteAnswered] != 1 || counts[approval.VoteLate] != 2 ||
		outcomes[*got.Chosen] != approval.VoteAnswered {
		t.Errorf("got %v and choice %d", outcomes, *got.Chosen)
	}
	h.history()
}

// TestFreezeHoldsAnswersBack: a freeze keeps questions open and withholds their answers.
func TestFreezeHoldsAnswersBack(t *testing.T) {
	for _, agent := range []string{"", "desk"} {
		h := newHarness(t)
		ctx, r := context.Background(), h.put("k")
		must(t, h.s.Freeze(ctx, "t", agent, "dee", ""))
		if out, err := h.tryAsk("another"); err != nil || out.Denied != "frozen" || out.Request != nil {
			t.Errorf("got %+v, %v", out, err)
		}
		_, err := h.s.Answer(ctx, "t", r.ID, deesRunner())
		h.fails(err, approval.ErrPending)
		h.vote(r, "pat", approval.Choose, approval.VoteAnswered, index(1))
		if out, err := h.tryAsk("k"); err != nil || out.Denied != "frozen" || out.Request != nil {
			t.Errorf("the answer got out by asking again: %+v, %v", out, err)
		}
		held, err := h.s.Answer(ctx, "t", r.ID, deesRunner())
		if h.fails(err, approval.ErrFrozen); held != nil {
			t.Errorf("got %+v", held)
		}
		must(t, h.s.Thaw(ctx, "t", agent, "dee", ""))
		if got, err := h.s.Answer(ctx, "t", r.ID, deesRunner()); err != nil || *got.Chosen != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		h.history()
	}
}

// TestQuestionsApproveNothing: an answer is only for the runtime that asked; questions and
// approvals can't be used in place of each other.
func TestQuestionsApproveNothing(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	r := h.put("k")
	call := h.asked(tool("pay", `{}`))
	for id, runtime := range map[string]string{r.ID: "another", call.ID: "runner", "qst_0": "runner"} {
		_, err := h.s.Answer(ctx, "t", id, approval.Asker{Token: runtime, Person: "dee"})
		h.fails(err, approval.ErrNotFound)
	}

	edit := approval.EditInput{Tenant: "t", ID: r.ID, Binding: r.Binding(), Person: "pat", Args: `{}`}
	for range 2 {
		_, err := h.s.Edit(ctx, edit)
		h.fails(err, approval.ErrQuestion)
		_, err = h.s.Preview(ctx, edit)
		h.fails(err, approval.ErrQuestion)
		_, err = h.s.Consume(ctx, approval.ConsumeInput{
			Tenant: "t",
			ID:     r.ID,
			Asker:  deesRunner(),
			Call:   tool("quote", `{"path":"/etc/motd"}`),
			Key:    "run",
		})
		h.fails(err, approval.ErrQuestion)
		_, err = h.tryOpen(tool("pay", `{"n":1}`), func(in *approval.OpenInput) { in.Replaces = r.ID })
		h.wrongField(err, "replaces")
		if _, err = h.tryVote(r, "pat", approval.Choose, index(0)); err != nil { // and once more after the answer
			t.Fatal(err)
		}
	}

	h.is(r.ID, approval.Answered, approval.ByChoice)
	h.history()
}

// TestQuestionsRedact: values of the call that a policy hides are also hidden with a question.
func TestQuestionsRedact(t *testing.T) {
	h := newHarness(t)
	h.plans.set(
		t,
		strings.Replace(policyFile, "require: {stages: [{group: support}], within: 10m, grants: forbid}",
			"require: {stages: [{group: support}], within: 10m, grants: forbid, arguments: {redact: [card]}}", 1),
	)
	r := h.put("k", func(in *approval.AskInput) { in.Call = tool("vault", `{"card":"4711"}`) })
	if fmt.Sprint(r.Redact) != "[card]" || r.OnTimeout != "deny" || r.Within != 24*time.Hour {
		t.Errorf("got %+v", r)
	}
}

// TestFiguresOfQuestions: answers to questions count as work, but not in the approve rate.
func TestFiguresOfQuestions(t *testing.T) {
	h := newHarness(t)
	for i := range 32 {
		h.vote(h.put(fmt.Sprint(i)), "pat", approval.Choose, approval.VoteAnswered, index(0))
	}
	h.vote(h.asked(tool("pay", `{}`), func(in *approval.OpenInput) {
		in.Call.Principal = ""
	}), "pat", approval.Deny, approval.VoteDenied)
	votes, err := h.store.Votes(context.Background(), "t", h.now().Add(-time.Hour), 1000)
	must(t, err)
	s := approval.Figures(votes, h.now())
	p, a := s.Approvers[0], s.Agents[0]
	if p.Votes != 33 || p.ApproveRate != 0 || p.RubberStamps || !p.TooMany || a.Asks != 1 || a.Decided != 1 ||
		a.ApproveRate != 0 {
		t.Errorf("got %+v, %+v", p, a)
	}
}
