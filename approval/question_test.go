package approval_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// forSession is the question of the standard's example.
var forSession = approval.Question{
	Asker:   "files",
	Prompt:  "Write /etc/motd?",
	Choices: []string{"Yes for session", "Yes once", "No"},
	Default: 2,
}

func (h *harness) tryAsk(key string, change ...func(*approval.AskInput)) (*approval.Opened, error) {
	in := approval.AskInput{
		Tenant:   "t",
		Asker:    deesRunner(),
		Agent:    "desk",
		Key:      key,
		Call:     tool("quote", `{"path":"/etc/motd"}`),
		Question: forSession,
	}
	for _, c := range change {
		c(&in)
	}
	return h.s.Ask(context.Background(), in)
}

// deesRunner returns the asker of the questions in these tests.
func deesRunner() approval.Asker { return approval.Asker{Token: "runner", Person: "dee"} }

// put asks a question that must become a request.
func (h *harness) put(key string, change ...func(*approval.AskInput)) *approval.Request {
	h.t.Helper()
	out, err := h.tryAsk(key, change...)
	if err != nil || out.Outcome != resolve.Ask || out.Shared {
		h.t.Fatalf("got %+v, %v, want a new question", out, err)
	}
	return out.Request
}

func index(n int) func(*approval.VoteInput) { return func(in *approval.VoteInput) { in.Choice = &n } }

func groups(all ...string) func(*approval.AskInput) {
	return func(in *approval.AskInput) { in.Question.Groups = all }
}

func principal(name string) func(*approval.AskInput) {
	return func(in *approval.AskInput) { in.Call.Principal = name }
}

func TestQuestion(t *testing.T) {
	h := newHarness(t)
	r := h.put("k")
	if !approval.QuestionID(r.ID) || r.State != approval.Pending || r.Question.Prompt != forSession.Prompt ||
		r.Current().Decision.Message != "" ||
		r.Current().Decision.Outcome != resolve.Ask {
		t.Fatalf("got %+v", r)
	}
	s := approval.Summarize(r)
	if !s.Question || s.Message != "files asks for a choice, one of 3" || s.Needed != 1 ||
		strings.Contains(fmt.Sprint(s), "motd") {
		t.Errorf("got %+v", s)
	}
	_, err := h.s.Answer(context.Background(), "t", r.ID, deesRunner())
	h.fails(err, approval.ErrPending)
	out := h.vote(r, "pat", approval.Choose, approval.VoteAnswered, index(1))
	if got := out.Request; got.State != approval.Answered || got.Cause != approval.ByChoice || *got.Chosen != 1 ||
		got.By != "pat" ||
		out.Detail != "answered: choice [1] of 3" {
		t.Errorf("got %+v", out)
	}
	got, err := h.s.Answer(context.Background(), "t", r.ID, deesRunner())
	if err != nil || *got.Chosen != 1 || *got.Votes[0].Chosen != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	h.happened("request_opened", "vote_counted", "request_answered")
}

func TestDismissalPicksTheDefault(t *testing.T) {
	h := newHarness(t)
	r := h.put("k")
	out := h.vote(r, "pat@acme", approval.Dismiss, approval.VoteAnswered, func(in *approval.VoteInput) {
		in.Full = false
	})
	if got := out.Request; got.Cause != approval.ByDismissal || *got.Chosen != 2 ||
		out.Detail != "answered: choice [2] of 3, the default, since the question was dismissed" {
		t.Errorf("got %+v", out)
	}
	h.happened("request_opened", "vote_counted", "request_answered")
}

// TestWhoMayAnswer: the user or the groups that are asked may answer, with the same exclusions as
// for approvals, but never the runtime itself.
func TestWhoMayAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		ask func(*approval.AskInput)
		may []string
	}{
		"the user":                      {principal("pat@acme"), []string{"pat", "pat@acme", "U123"}},
		"the user, who owns the agent":  {principal("olga@acme"), []string{"olga"}},
		"the user, whose runtime it is": {principal("dee"), []string{"dee"}},
		"the user, who is the runtime": {func(in *approval.AskInput) {
			in.Asker.Token, in.Call.Principal = "U123", "pat"
		}, nil},
		"a user nobody knows": {principal("zoe"), nil},
		"nobody is named":     {principal(""), []string{"ann", "bob", "cy", "dee", "eve", "olga", "pat"}},
		"nobody is named, but a runtime": {func(in *approval.AskInput) {
			in.Asker.Token, in.Call.Principal = "eve", ""
		}, []string{"ann", "olga"}},
		// neither the owner nor the user
		"a group": {groups("support"), []string{"bob", "cy"}},
		// not dee, who owns the runtime
		"any of two groups": {groups("risk", "leads", "risk"), []string{"ann", "bob"}},
	} {
		h := newHarness(t)
		for i, person := range []string{
			"ann",
			"bob",
			"cy",
			"dee",
			"eve",
			"olga",
			"pat",
			"pat@acme",
			"U123",
			"zoe",
			"runner",
			"desk",
			"",
		} {
			r := h.put(fmt.Sprint(i), tt.ask)
			out, err := h.tryVote(r, person, approval.Choose, index(0))
			want := approval.VoteNotEligible
			if slices.Contains(tt.may, person) ||
				name == "nobody is named" && slices.Contains([]string{"pat@acme", "U123"}, person) ||
				name == "nobody is named, but a runtime" &&
					!slices.Contains([]string{"eve", "zoe", "runner", "desk", ""}, person) {
				want = approval.VoteAnswered
			}

			if err != nil || out.Outcome != want {
				t.Errorf("%s: %q: got %+v, %v, want %s", name, person, out, err, want)
			}
			if want == approval.VoteNotEligible {
				h.is(r.ID, approval.Pending, "")
			}
		}

		h.history()
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	h := newHarness(t)
	r := h.put("k")
	for name, tt := range map[string]struct {
		verdict approval.Verdict
		change  func(*approval.VoteInput)
		field   string
	}{
		"an approval":        {approval.Approve, index(0), "choice"},
		"a denial":           {approval.Deny, func(*approval.VoteInput) {}, "verdict"},
		"a response":         {approval.Respond, func(*approval.VoteInput) {}, "verdict"},
		"no verdict":         {"", func(*approval.VoteInput) {}, "verdict"},
		"no choice":          {approval.Choose, func(*approval.VoteInput) {}, "choice"},
		"a negative choice":  {approval.Choose, index(-1), "choice"},
		"a choice beyond":    {approval.Choose, index(3), "choice"},
		"a dismissal of one": {approval.Dismiss, index(2), "choice"},
		"a standing approval": {approval.Choose, func(in *approval.VoteInput) {
			in.Choice, in.Grant = new(int), &approval.GrantOffer{}
		}, "grant"},
	} {
		t.Run(name, func(t *testing.T) {
			h.t = t
			_, err := h.tryVote(r, "pat", tt.verdict, tt.change)
			h.wrongField(err, tt.field)
		})
	}

	h.t = t
	_, err := h.tryVote(r, "pat", approval.Choose, index(0), func(in *approval.VoteInput) { in.Full = false })
	h.fails(err, approval.ErrNotShown)
	_, err = h.tryVote(r, "pat", approval.Choose, index(0), func(in *approval.VoteInput) {
		in.Binding = h.put("other").Binding()
	})
	h.fails(err, approval.ErrBinding)
	call := h.asked(tool("pay", `{}`))
	for _, v := range []approval.Verdict{approval.Choose, approval.Dismiss} {
		_, err = h.tryVote(call, "cy", v, func(in *approval.VoteInput) {
			if v == approval.Choose {
				in.Choice = new(int)
			}
		})
		h.wrongField(err, "verdict")
	}

	h.is(r.ID, approval.Pending, "")
	h.is(call.ID, approval.Pending, "")
	h.happened("request_opened", "request_opened", "request_opened")
}
