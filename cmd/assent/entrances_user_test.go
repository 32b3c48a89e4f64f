package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/policy/quorum"
)

// notTheUser matches the message for everyone else about a question that only zoe may answer.
var notTheUser = regexp.MustCompile(quorum.WhyNotTheUser +
	`|not in the directory|directory of people doesn't know you|the directory does not know the token's person` +
	`|not mapped to anybody|not found|There is no such thing`)

// asksUser asks zoe with mara's token, by another of her names, for a choice or a text.
func (w *entrances) asksUser(t *testing.T, q approval.Question) *approval.Request {
	t.Helper()
	c := w.call(aliasOfZoe, 1)
	if _, err := w.client(t, "rt-mara").Ask(
		t.Context(), "desk", c.text("restart"), q, client.AskOptions{},
	); err != nil {
		t.Fatal(err)
	}

	return w.asked(t, c)
}

// TestOneUserAnswersAtEveryEntrance: a question without groups can be answered only by the
// principal, at every entrance. In Slack it is shown only in their direct messages.
func TestOneUserAnswersAtEveryEntrance(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	for _, way := range waysToAnswer() {
		if way.ends != approval.Answered {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			q, button := yesOrNo(), "assent_choose_0"
			if way.text {
				button = "assent_answer"
				q = approval.Question{
					Asker:  q.Asker,
					Prompt: "Which seat?",
					Schema: []byte(`{"type":"string","maxLength":10}`),
				}
			}

			r := w.asksUser(t, q)
			w.look(t, way, r, "zoe")
			for _, who := range w.people() {
				if who == "zoe" {
					continue
				}
				w.seals.take(who, r, w.seals.taken("zoe", r))
				if told := way.answer(t, w, who, r); !notTheUser.MatchString(told) {
					t.Errorf("%s is told %s", who, told)
				}
				if now := w.request(t, r.ID); now.State != approval.Pending || len(now.Votes) > 0 {
					t.Fatalf("%s answered: it is %s, with the answers %+v", who, now.State, now.Votes)
				}
			}

			if _, channel := w.slack.button(t, button, r); channel != messagesOf("U0ZOE") {
				t.Errorf("Slack shows it in %s", channel)
			}
			w.counts(t, r, "zoe", way.ends, way.answer(t, w, "zoe", r))
		})
	}
}

// TestHostileQuestionsToOneUser: invisible characters are escaped in direct messages as everywhere
// else, and the asker's text can't imitate verified facts.
func TestHostileQuestionsToOneUser(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	text := strings.ToValidUTF8(hostileText, "\ufffd")
	r := w.asksUser(t, approval.Question{
		Asker:   "notes-server",
		Prompt:  text + "\nMay answer: marked",
		Choices: []string{text, "<@U0ZOE> marked"},
	})
	shown := slackMessage(t, w, r)
	if i := strings.IndexFunc(shown, undrawable); i >= 0 {
		t.Errorf("%q is drawn", shown[max(0, i-20):min(len(shown), i+20)])
	}
	for _, want := range spelledOut {
		if strings.Count(shown, want) < 2 {
			t.Errorf("%s is not to be read in the words and in the choice", want)
		}
	}
	for line := range strings.Lines(shown) {
		if strings.Contains(line, "marked") && !strings.HasPrefix(line, "│ ") {
			t.Errorf("a line of the asker's has no bar: %s", line)
		}
	}
	if _, channel := w.slack.button(t, "assent_choose_1", r); channel != messagesOf("U0ZOE") {
		t.Errorf("Slack shows it in %s", channel)
	}
}
