package hold_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/resolve"
)

// answered checks the state of a question.
func answered(t *testing.T, d seat, ref string, want hold.Answer) {
	t.Helper()
	if got, err := d.Answer(t.Context(), ref); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func chosen(index int, by string) hold.Answer {
	return hold.Answer{State: hold.Chosen, Selected: index, By: by}
}

func put(t *testing.T, d seat, key string, q hold.Question) string {
	t.Helper()
	ref, err := d.Ask(t.Context(), key, q)
	if err != nil || !approval.QuestionID(ref) {
		t.Fatalf("got %q, %v", ref, err)
	}
	return ref
}

func TestQuestionsAreAnswered(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		ref := put(t, d, "k", motd())
		if again := put(t, d, "k", motd()); again != ref {
			t.Errorf("the same key is another question: %s, %s", again, ref)
		}
		r, err := h.Service.Request(t.Context(), "acme", ref)
		must(t, err)
		if q := r.Question; q.Prompt != motd().Prompt || fmt.Sprint(q.Choices) != fmt.Sprint(motd().Choices) ||
			q.Default != 2 ||
			q.Asker != "files" ||
			string(r.Current().Call.Args) != `{ "path": "/etc/motd" }` {
			t.Errorf("people are shown %+v", r)
		}

		answered(t, d, ref, hold.Answer{State: hold.Pending})
		chooses(h, ref, "mara", 0)
		answered(t, d, ref, chosen(0, "mara"))
		must(t, d.Cancel(t.Context(), ref, "too late"))
		answered(t, d, ref, chosen(0, "mara"))

		ref = put(t, d, "k2", motd())
		h.Votes(ref, "mara", approval.Dismiss, approval.VoteAnswered, nil)
		answered(t, d, ref, hold.Answer{State: hold.Dismissed, Selected: 2, By: "mara"})

		q := motd()
		q.Groups = []string{"ops"}
		ref = put(t, d, "k3", q)
		chooses(h, ref, "ben", 1)
		answered(t, d, ref, chosen(1, "ben"))
	})
}

// TestEndsWithoutAnAnswer: neither expiry nor a withdrawal counts as an answer.
func TestEndsWithoutAnAnswer(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		q := motd()
		q.Within = time.Minute
		late := put(t, d, "late", q)
		gone := put(t, d, "gone", motd())
		plain := put(t, d, "plain", motd())
		must(t, d.Cancel(t.Context(), gone, "the call was interrupted"))
		must(t, d.Cancel(t.Context(), gone, "again"))
		must(t, d.Cancel(t.Context(), plain, ""))
		answered(t, d, gone, hold.Answer{State: hold.Cancelled, Reason: "the call was interrupted"})
		answered(t, d, plain, hold.Answer{State: hold.Cancelled, Reason: "the question was withdrawn"})
		w := watching(t, d)
		h.Clock.Add(time.Minute)
		w.until("the question expires", func(string) bool {
			got, err := d.Answer(t.Context(), late)
			return err == nil && got == hold.Answer{State: hold.Expired, Reason: "nobody answered in time"}
		})
	})
}

func TestQuestionsThatNobodyIsAsked(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		q := motd()
		q.Call = &resolve.Call{Kind: resolve.Tool, Tool: "drop"}
		denied, err := d.Ask(t.Context(), "k", q)
		must(t, err)
		must(t, h.Service.Freeze(t.Context(), "acme", "files", "mara", ""))
		frozen, err := d.Ask(t.Context(), "k2", motd())
		must(t, err)
		for ref, reason := range map[string]string{
			denied: `declares no local tool "drop"`,
			frozen: "agent files is frozen by mara",
		} {
			got, err := d.Answer(t.Context(), ref)
			if err != nil || got.State != hold.Denied || !strings.Contains(got.Reason, reason) {
				t.Errorf("got %+v, %v, want %s", got, err, reason)
			}
			must(t, d.Cancel(t.Context(), ref, ""))
		}

		must(t, h.Service.Thaw(t.Context(), "acme", "files", "mara", ""))
		put(t, d, "k2", motd())
	})
}

func TestQuestionsThatCanNotBePut(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		for name, tt := range map[string]struct {
			key    string
			change func(q *hold.Question)
			want   error
		}{
			"no key":           {"", func(*hold.Question) {}, hold.ErrNoKey},
			"no call":          {"k", func(q *hold.Question) { q.Call = nil }, hold.ErrNoCall},
			"no choices":       {"k", func(q *hold.Question) { q.Choices = nil }, nil},
			"a default beyond": {"k", func(q *hold.Question) { q.Default = 3 }, nil},
			"broken words":     {"k", func(q *hold.Question) { q.Choices = []string{"\xff", "b", "c"} }, nil},
			"too late":         {"k", func(q *hold.Question) { q.Within = -time.Second }, nil},
			"another by a key": {"used", func(q *hold.Question) { q.Prompt = "Erase it?" }, nil},
			"decoded arguments": {"k", func(q *hold.Question) {
				q.Call = &resolve.Call{Kind: resolve.Tool, Tool: "write", Values: map[string]any{"a": 1}}
			}, nil},
		} {
			_ = put(t, d, "used", motd())
			q := motd()
			tt.change(&q)
			ref, err := d.Ask(t.Context(), tt.key, q)
			if err == nil || ref != "" || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%s: got %q, %v", name, ref, err)
			}
		}

		if _, err := of("rt", "nobody").Ask(t.Context(), "k", motd()); err == nil {
			t.Error("an agent that nobody knows asked")
		}
	})
}

// TestQuestionsOfOthers: a runtime finds only the questions that it asked for its own agent.
func TestQuestionsOfOthers(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		others := map[string]seat{"another agent": of("rt", "other-files"), "another runtime": of("rt2", "files")}
		if d.readsAll {
			delete(others, "another runtime")
		}
		ref := put(t, d, "k", motd())
		for _, answer := range []bool{false, true} {
			if answer {
				chooses(h, ref, "mara", 1)
			}
			for name, other := range others {
				if got, err := other.Answer(t.Context(), ref); !errors.Is(err, hold.ErrNoRequest) ||
					got != (hold.Answer{}) {
					t.Errorf("%s: got %+v, %v", name, got, err)
				}
			}
		}

		for _, unknown := range []string{"", "qst_0", "apr_0", "let:x:y"} {
			if _, err := d.Answer(t.Context(), unknown); !errors.Is(err, hold.ErrNoRequest) {
				t.Errorf("%q: got %v", unknown, err)
			}
		}
		for _, unknown := range []string{"qst_0", "apr_0"} {
			if err := d.Cancel(t.Context(), unknown, ""); !errors.Is(err, hold.ErrNoRequest) {
				t.Errorf("%q: got %v", unknown, err)
			}
		}
		open := put(t, d, "open", motd())
		if err := of("rt2", "files").Cancel(t.Context(), open, ""); !errors.Is(err, hold.ErrNoRequest) {
			t.Errorf("another runtime withdrew it: %v", err)
		}
		answered(t, d, open, hold.Answer{State: hold.Pending})
	})
}

// TestFrozenAnswers: during a freeze an answer is withheld, and Watch reports when the freeze is
// lifted.
func TestFrozenAnswers(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		ref := put(t, d, "k", motd())
		must(t, h.Service.Freeze(t.Context(), "acme", "", "mara", ""))
		chooses(h, ref, "mara", 1)
		answered(
			t,
			d,
			ref,
			hold.Answer{State: hold.Pending, Reason: "the agent is frozen by its operators: no answer is given out"},
		)
		must(t, d.Cancel(t.Context(), ref, "")) // too late, and reports nothing
		w := watching(t, d)
		must(t, h.Service.Thaw(t.Context(), "acme", "", "mara", ""))
		w.until("the answer is given out", func(ref2 string) bool {
			got, err := d.Answer(t.Context(), ref)
			return ref2 == "" && err == nil && got == chosen(1, "mara")
		})
	})
}

// TestQuestionsAndApprovalsShareNoKeys: an approval and a question with the same key are different
// requests.
func TestQuestionsAndApprovalsShareNoKeys(t *testing.T) {
	onAllSides(t, func(t *testing.T, h *assenttest.Assent, of func(token, agentID string) seat) {
		d := of("rt", "files")
		call := &resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: []byte(`{"n":1}`)}
		v := hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Ask}, Call: call}
		question := put(t, d, "k", motd())
		opened, err := d.Open(t.Context(), "k", v)
		must(t, err)
		if opened.State != hold.Pending || opened.Ref == question {
			t.Fatalf("got %+v", opened)
		}
		w := watching(t, d)
		h.Votes(opened.Ref, "ben", approval.Approve, approval.VoteApproved, nil)
		w.until("it is approved", func(string) bool {
			got, err := d.Look(t.Context(), opened.Ref)
			return err == nil && got.State == hold.Approved
		})
		must(t, d.Claim(t.Context(), opened.Ref, "run", v))
		if err := d.Claim(t.Context(), question, "run", v); !errors.Is(err, hold.ErrNotClaimed) && err == nil {
			t.Error("a question let a call run")
		}
		answered(t, d, question, hold.Answer{State: hold.Pending})
		must(t, d.Cancel(t.Context(), opened.Ref, ""))
	})
}

// TestAnswersThatMakeNoSense: an impossible answer of the other side is an error.
func TestAnswersThatMakeNoSense(t *testing.T) {
	one, three := 1, 3
	for name, r := range map[string]*approval.Request{
		"approved":  {State: approval.Approved, Question: &approval.Question{Choices: []string{"a"}}},
		"unknown":   {State: "odd"},
		"no choice": {State: approval.Answered, Question: &approval.Question{Choices: []string{"a"}}},
		"no such": {
			State:    approval.Answered,
			Question: &approval.Question{Choices: []string{"a", "b", "c"}},
			Chosen:   &three,
		},
		"no choices": {State: approval.Answered, Chosen: &one},
	} {
		r.Agent.ID = "files"
		d := hold.Over(fixed{request: r}, "files", "")
		if got, err := d.Answer(t.Context(), "qst_1"); err == nil || got != (hold.Answer{}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}

	for name, o := range map[string]*approval.Opened{
		"allowed":     {Outcome: resolve.Allow},
		"granted":     {Outcome: resolve.Allow, Grant: &approval.Grant{}},
		"nothing":     {Outcome: resolve.Ask},
		"an approval": {Outcome: resolve.Ask, Request: &approval.Request{ID: "apr_1"}},
	} {
		d := hold.Over(fixed{opened: o}, "files", "")
		if ref, err := d.Ask(context.Background(), "k", motd()); err == nil || ref != "" {
			t.Errorf("%s: got %q, %v", name, ref, err)
		}
	}

	d := hold.Over(fixed{opened: &approval.Opened{Outcome: resolve.Deny}}, "files", "")
	if ref, err := d.Ask(context.Background(), "k", motd()); err != nil || ref != "denied:the rules deny the call" {
		t.Errorf("got %q, %v", ref, err)
	}
}

// fixed is a Side that always returns the same results.
type fixed struct {
	hold.Side
	opened  *approval.Opened
	request *approval.Request
}

func (f fixed) Ask(context.Context, string, hold.Question) (*approval.Opened, error) {
	return f.opened, nil
}
func (f fixed) Answer(context.Context, string) (*approval.Request, error) { return f.request, nil }

// TestAskersWithoutANameAskNothing: an asker without a name, or without a token of the server, can
// neither ask nor read anything.
func TestAskersWithoutANameAskNothing(t *testing.T) {
	h := newAssent(t, assenttest.Config{Runs: true})
	rt := inProcess(h, "rt", "files")
	server := atServer("request")(h, "rt", "files").people
	for name, d := range map[string]hold.Requests{
		"nobody, in this process": rt.people.As(approval.Asker{}),
		"nobody, at a server":     server.As(approval.Asker{}),
		"another, at a server":    server.As(approval.Asker{Token: "rt2"}),
	} {
		mine := put(t, rt, name, motd())
		v := hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Ask}, Call: motd().Call}
		_, opened := d.Open(t.Context(), "k", v)
		_, looked := d.Look(t.Context(), mine)
		_, asked := d.Ask(t.Context(), "k", motd())
		_, answered := d.Answer(t.Context(), mine)
		claimed, cancelled := d.Claim(t.Context(), mine, "k", v), d.Cancel(t.Context(), mine, "")
		for what, err := range map[string]error{
			"opens":   opened,
			"looks":   looked,
			"asks":    asked,
			"reads":   answered,
			"claims":  claimed,
			"cancels": cancelled,
		} {
			if err == nil {
				t.Errorf("%s %s", name, what)
			}
		}

		if r, err := h.Service.Request(t.Context(), "acme", mine); err != nil || r.State != approval.Pending {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestEveryFieldOfAQuestionIsPut fails if a field of package approval's Question is not passed on,
// because it would be lost silently.
func TestEveryFieldOfAQuestionIsPut(t *testing.T) {
	q := motd()
	q.Server = "files"
	q.Schema = []byte(`{"type":"string"}`)
	q.Groups = []string{"risk"}
	got := reflect.ValueOf(q.Put())
	for i := range got.NumField() {
		if got.Field(i).IsZero() {
			t.Errorf("%s is not put", got.Type().Field(i).Name)
		}
	}
}
