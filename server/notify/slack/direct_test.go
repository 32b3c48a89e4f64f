package slack_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/store"
)

const rita = "rita@acme.example"

// asksRita lets a tool ask only the person that the agent acts for.
func (w *world) asksRita(q approval.Question) *approval.Request {
	w.t.Helper()

	return w.asksFor(rita, "trade", `{"what":"gold"}`, q)
}

// value returns the value of a button of the question.
func value(r *approval.Request, more string) string {
	return r.ID + " 0 " + strings.TrimPrefix(r.Binding(), "sha256:")[:16] + more
}

// chosenElsewhere answers with a choice in the inbox.
func (w *world) chosenElsewhere(r *approval.Request, n int) {
	w.t.Helper()
	if _, err := w.service.Vote(w.t.Context(), approval.VoteInput{
		Tenant:  tenant,
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  rita,
		Verdict: approval.Choose,
		Choice:  &n,
		Full:    true,
		Channel: "inbox",
	}); err != nil {
		w.t.Fatal(err)
	}

	w.deliver()
}

// TestOnePersonIsAskedInDirectMessages checks that the choices are buttons and that no channel
// gets a message. When the question ends, the message is updated.
func TestOnePersonIsAskedInDirectMessages(t *testing.T) {
	w := newWorld(t)
	r := w.asksRita(yesOrNo())
	p := w.only()
	if p.channel != messagesOf("U0RITA") {
		t.Fatalf("it stands in %s", p.channel)
	}
	p.shows(t,
		"A tool asks",
		"Tool server: notes-server",
		"May answer: rita@acme.example, for whom the agent acts",
		`"what": "gold"`,
		"│ Allow writing to /srv/notes.txt?",
		"│ * [2] No",
		"[[1] Yes once]",
		"[Dismiss]",
	)

	must.Do(t, w.app.Send(t.Context(), w.event(r, approval.EventReminded)))
	if all := w.slack.replies(); len(all) != 1 || all[0].channel != p.channel || all[0].thread != p.ts {
		t.Errorf("the reminder: %+v", all)
	}
	w.click(p, choice(1), "U0RITA")
	got := w.request(r.ID)
	if got.State != approval.Answered || *got.Chosen != 1 || got.By != rita || got.Votes[0].Channel != "slack" ||
		!got.Votes[0].Full {
		t.Fatalf("%s %v %+v", got.State, got.Chosen, got.Votes)
	}
	w.hears("Your answer: Picked [1] by rita@acme.example")
	w.answeredMessage("Question: answered", "Picked [1] by rita@acme.example", "│ > [1] Yes once")
	w.click(p, choice(0), "U0RITA")
	w.hears("too late")

	for want, act := range map[string]func(*world, *approval.Request){
		"Picked [0] by rita@acme.example": func(w *world, r *approval.Request) { w.chosenElsewhere(r, 0) },
		"Cancelled by ci": func(w *world, r *approval.Request) {
			if _, err := w.service.Cancel(t.Context(), tenant, r.ID, "ci", ""); err != nil {
				t.Fatal(err)
			}
		},
		"Expired at": func(w *world, _ *approval.Request) { w.pass(25 * time.Hour) },
		"Dismissed, which picked the default [2] by rita@acme.example": func(w *world, _ *approval.Request) {
			w.click(w.only(), dismiss, "U0RITA")
		},
	} {
		w := newWorld(t)
		r := w.asksRita(yesOrNo())
		old := w.only()
		act(w, r)
		w.deliver()
		w.answeredMessage(want)
		w.slack.heard()
		w.click(old, choice(1), "U0RITA")
		w.hears("too late")
	}
}

// event returns the delivery of an event about a request.
func (w *world) event(r *approval.Request, event string) store.Job {
	j := w.job(r, 1)
	j.Event = event

	return j
}

// TestDirectMessagesOfForms checks that the modal opens for the person who is asked, and that
// their answer is not shown.
func TestDirectMessagesOfForms(t *testing.T) {
	w := newWorld(t)
	r := w.asksForm(`{"type":"string","maxLength":10}`, &resolve.Call{Principal: rita})
	p := w.only()
	if p.channel != messagesOf("U0RITA") {
		t.Fatalf("it stands in %s", p.channel)
	}
	p.shows(t, "An agent asks", "│ Who flies?")
	w.click(p, answers, "U0ALICE")
	w.hears("the question is for the person whom the agent acts for")
	w.click(p, answers, "U0RITA")
	long := map[string]values{"field_0": {"value": "far too long a text"}}
	if wrong := w.fills("U0RITA", long); wrong["field_0"] != "Expected a text, at most 10 characters." {
		t.Errorf("%v", wrong)
	}
	w.fills("U0ALICE", map[string]values{"field_0": {"value": "hers"}})
	w.hears("the question is for the person whom the agent acts for")
	w.unanswered(r.ID, "somebody else's text")
	w.fills("U0RITA", map[string]values{"field_0": {"value": "12 zz"}})
	if got := w.request(r.ID); string(got.Data) != `"12 zz"` {
		t.Errorf("%+v", got)
	}
	w.answeredMessage("Answered by rita@acme.example")
	lacks(t, texts(w.only().blocks), "12 zz")
}

// TestManyChoicesInDirectMessages checks that many choices are a menu, and too many for a menu
// are a link.
func TestManyChoicesInDirectMessages(t *testing.T) {
	for n, want := range map[int]string{25: choice(24), 60: "assent_choose", 101: "assent_open"} {
		w := newWorld(t)
		q := approval.Question{Asker: "crm", Prompt: "Which?"}
		for i := range n {
			q.Choices = append(q.Choices, strings.Repeat("&", 4)+strconv.Itoa(i))
		}
		w.asksRita(q)
		if _, there := w.only().button(want); !there {
			t.Errorf("%d choices: no %s in\n%s", n, want, texts(w.only().blocks))
		}
	}
}

// TestOnlyTheDirectoryGivesTheUser checks that the user is not taken from names in the request,
// mail addresses, display names or other workspaces. Without a user no message is sent to
// Slack, which is reported once for each question, and the question is in the inbox.
func TestOnlyTheDirectoryGivesTheUser(t *testing.T) {
	const head = "schema_version: \"1.0.0\"\npeople:\n"
	for name, c := range map[string]struct {
		people    string
		principal string
		want      string // user; empty if no message is sent
	}{
		"no user":        {people: `  - {id: rita@acme.example, also: [rita]}`, principal: rita},
		"a display name": {people: `  - {id: rita@acme.example, name: "slack:U0RITA"}`, principal: rita},
		"another workspace": {
			people:    `  - {id: rita@acme.example, also: ["slack:T0PARTNER:U0RITA"]}`,
			principal: rita,
		},
		"a longer team": {people: `  - {id: rita@acme.example, also: ["slack:T0HOMES:U0RITA"]}`, principal: rita},
		"a channel":     {people: `  - {id: rita@acme.example, also: ["slack:C0RISK"]}`, principal: rita},
		"two users in a name": {
			people:    `  - {id: rita@acme.example, also: ["slack:U0RITA,U0EVE"]}`,
			principal: rita,
		},
		"another scheme": {people: `  - {id: rita@acme.example, also: ["teams:U0RITA"]}`, principal: rita},
		"a mail address": {people: `  - {id: rita@acme.example, also: ["u0rita@acme.example"]}`, principal: rita},
		"unknown":        {people: `  - {id: bob@acme.example, also: ["slack:U0BOB"]}`, principal: "slack:U0EVE"},
		"unknown by a team": {
			people:    `  - {id: bob@acme.example, also: ["slack:U0BOB"]}`,
			principal: "slack:T0HOME:U0BOB",
		},
		"somebody else's by the workspace": {
			people: `  - {id: rita@acme.example, also: ["slack:U0EVE"]}
  - {id: eve@acme.example, also: ["slack:T0HOME:U0EVE"]}`,
			principal: rita,
		},
		"by another name": {
			people:    `  - {id: rita@acme.example, also: [rita, "slack:U0RITA"]}`,
			principal: "rita",
			want:      "U0RITA",
		},
		"the scheme's case": {
			people:    `  - {id: rita@acme.example, also: ["Slack:T0HOME:U0RITA"]}`,
			principal: rita,
			want:      "U0RITA",
		},
		"the id": {people: `  - {id: "slack:U0RITA"}`, principal: "slack:U0RITA", want: "U0RITA"},
		"of several": {
			people:    `  - {id: rita@acme.example, also: ["slack:T0PARTNER:U0OLD", "slack:U0RITA", "slack:U0TWO"]}`,
			principal: rita,
			want:      "U0RITA",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.knows(head + c.people)
			r := w.asksFor(c.principal, "trade", `{"what":"gold"}`, yesOrNo())
			if c.want != "" {
				if p := w.only(); p.channel != messagesOf(c.want) || len(w.report) > 0 {
					t.Fatalf("it stands in %s, %v", p.channel, w.report)
				}

				return
			}

			again := w.event(r, approval.EventReminded)
			must.Do(t, errors.Join(w.app.Send(t.Context(), again), w.app.Send(t.Context(), again)))
			if all := w.slack.now(); len(all) != 0 {
				t.Fatalf("it stands in %s", all[0].channel)
			}
			if len(w.report) != 1 || !strings.Contains(w.report[0], r.ID) || strings.Contains(w.report[0], "gold") {
				t.Errorf("reported: %q", w.report)
			}
			w.unanswered(r.ID, "nobody was told")
		})
	}
}

// TestWhoeverElseClicksInDirectMessages checks that clicks of other people, from other places
// or for another revision are refused. While the agent is frozen, an answer is held back from
// it.
func TestWhoeverElseClicksInDirectMessages(t *testing.T) {
	w := newWorld(t)
	r := w.asksRita(yesOrNo())
	p := w.only()
	elsewhere, others := p, p
	elsewhere.channel, others.channel = "C0RISK", messagesOf("U0ALICE")
	for name, c := range map[string]struct {
		at     posted
		action string
		value  string
		user   string
		want   string
	}{
		"somebody else": {
			at:     p,
			action: choice(0),
			value:  value(r, " 0"),
			user:   "U0ALICE",
			want:   "for the person whom the agent acts for",
		},
		"nobody known": {
			at:     p,
			action: choice(0),
			value:  value(r, " 0"),
			user:   "U0NOBODY",
			want:   "not mapped to anybody",
		},
		"a dismissal": {
			at:     p,
			action: dismiss,
			value:  value(r, ""),
			user:   "U0ALICE",
			want:   "for the person whom the agent acts for",
		},
		"in a channel": {
			at:     elsewhere,
			action: choice(0),
			value:  value(r, " 0"),
			user:   "U0RITA",
			want:   "not shown fully",
		},
		"in others' own": {
			at:     others,
			action: choice(0),
			value:  value(r, " 0"),
			user:   "U0RITA",
			want:   "not shown fully",
		},
		"another binding": {
			at:     p,
			action: choice(0),
			value:  r.ID + " 0 0000000000000000 0",
			user:   "U0RITA",
			want:   "not what was shown",
		},
		"another revision": {
			at:     p,
			action: choice(0),
			value:  strings.Replace(value(r, " 0"), " 0 ", " 1 ", 1),
			user:   "U0RITA",
			want:   "not what was shown",
		},
		"no such choice": {
			at:     p,
			action: choice(3),
			value:  value(r, " 3"),
			user:   "U0RITA",
			want:   "no answer to this request",
		},
		"an approval of it": {
			at:     p,
			action: approve,
			value:  value(r, ""),
			user:   "U0RITA",
			want:   "no answer to this request",
		},
	} {
		w.send(w.payload(c.at, c.action, c.value, c.user))
		if got := w.slack.heard(); !strings.Contains(got, c.want) {
			t.Errorf("%s: heard %q", name, got)
		}
		w.unanswered(r.ID, name)
	}

	if all := w.slack.now(); len(all) != 1 || all[0].channel != p.channel {
		t.Errorf("%+v", all)
	}

	must.Do(t, w.service.Freeze(t.Context(), tenant, agentID, rita, "odd"))
	w.click(p, choice(0), "U0RITA")
	asker := approval.Asker{Token: "ci", Principal: rita}
	if _, err := w.service.Answer(t.Context(), tenant, r.ID, asker); !errors.Is(err, approval.ErrFrozen) {
		t.Errorf("while the agent is frozen: %v", err)
	}
}

// TestTheDirectoryTakesAUserAway removes a user from the directory. The question is removed
// from their messages, their clicks have no effect, and the end of the question is not shown to
// them.
func TestTheDirectoryTakesAUserAway(t *testing.T) {
	for name, file := range map[string]string{
		"another user": strings.Replace(peopleFile, "U0RITA", "U0TRUE", 1),
		"no user":      strings.Replace(peopleFile, `"slack:T0HOME:U0RITA", `, "", 1),
		"bob's": strings.NewReplacer(`"slack:T0HOME:U0RITA", `, "", `"slack:U0BOB"`, `"slack:U0RITA"`).
			Replace(peopleFile),
	} {
		w := newWorld(t)
		r := w.asksRita(yesOrNo())
		p := w.only()
		w.knows(file)
		w.click(p, choice(0), "U0RITA")
		w.hears("Nothing was counted")
		w.unanswered(r.ID, name)
		w.chosenElsewhere(r, 1)
		w.answeredMessage("Question: answered", "in the inbox")
		lacks(t, texts(w.only().blocks), "gold", "notes.txt", "Yes once")
	}
}

// TestSlackOpensOtherMessages checks that no message is posted if Slack opens the direct
// messages of another user.
func TestSlackOpensOtherMessages(t *testing.T) {
	for name, channel := range map[string]any{
		"of somebody else": map[string]any{"id": "D0EVE", "is_im": true, "user": "U0EVE"},
		"of nobody":        map[string]any{"id": "D0EVE"},
		"a channel":        map[string]any{"id": "C0RISK", "user": "U0RITA"},
		"nothing":          nil,
	} {
		w := newWorld(t)
		w.slack.opens = map[string]any{"channel": channel}
		r := w.asksRita(yesOrNo())
		err := w.app.Send(t.Context(), w.event(r, approval.EventOpened))
		if got, ok := errors.AsType[*notify.Failure](err); !ok || got.Permanent || len(w.slack.now()) != 0 {
			t.Errorf("%s: %v, %+v", name, err, w.slack.now())
		}
	}

	w := newWorld(t)
	w.slack.order("conversations.open", failure{code: "missing_scope"})
	w.asksRita(yesOrNo())
	jobs, err := w.store.Jobs(t.Context(), tenant, store.DeadEnd, 10)
	if err != nil || len(jobs) != 1 || !strings.Contains(jobs[0].Problem, "missing_scope") || len(w.slack.now()) != 0 {
		t.Errorf("an app without the scope: %+v, %v, %+v", jobs, err, w.slack.now())
	}
}

// TestDirectMessageThatNobodyRemembers loses the stored place of a message. It is posted again,
// once. A click on the forgotten one works before and after that, and rewrites it.
func TestDirectMessageThatNobodyRemembers(t *testing.T) {
	for _, clicked := range []string{"before", "after"} {
		var lose atomic.Int32
		w := newWorld(t, func(c *slack.Config) { c.Values = forgetful{c.Values, &lose} })
		lose.Store(1)
		out, err := w.service.Ask(t.Context(), approval.AskInput{
			Tenant:   tenant,
			Asker:    approval.Asker{Token: "ci"},
			Agent:    agentID,
			Key:      approval.NewKey(),
			Question: yesOrNo(),
			Call:     &resolve.Call{Kind: resolve.Tool, Tool: "trade", Principal: rita},
		})
		must.Do(t, err)
		w.worker.Once(t.Context())
		forgotten := w.only()
		want := 1
		if clicked == "after" {
			w.pass(time.Minute)
			w.deliver()
			want = 2
		}
		w.click(forgotten, choice(0), "U0RITA")
		w.pass(time.Minute)
		w.deliver()
		if got := w.request(out.Request.ID); got.State != approval.Answered || *got.Chosen != 0 || len(got.Votes) != 1 {
			t.Fatalf("%s: got %s with %+v", clicked, got.State, got.Votes)
		}
		all := w.slack.now()
		if len(all) != want {
			t.Errorf("%s: %d messages", clicked, len(all))
		}
		for _, p := range all {
			p.shows(t, fmt.Sprintf("Picked [%d] by %s", 0, rita))
			if _, ok := p.button(choice(0)); ok || p.channel != messagesOf("U0RITA") {
				t.Errorf("%s: a button is left, or it stands in %s", clicked, p.channel)
			}
		}
	}
}
