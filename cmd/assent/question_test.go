package main

import (
	"io"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/term"
)

func yesOrNo() approval.Question {
	return approval.Question{
		Asker:   "notes-server",
		Prompt:  "Allow writing?",
		Choices: []string{"Yes for session", "Yes once", "No"},
		Default: 2,
	}
}

// asks has a tool ask about a call.
func (h *testServer) asks(t *testing.T, call string, q approval.Question) *approval.Request {
	t.Helper()
	opened, err := h.client(t, "runtime").Ask(t.Context(), "desk", []byte(call), q, client.AskOptions{})
	if err != nil || opened.Request == nil {
		t.Fatalf("%+v, %v", opened, err)
	}
	return opened.Request
}

func (h *testServer) holds(t *testing.T, id string, state approval.State, chosen int) *approval.Request {
	t.Helper()
	r := h.request(t, id)
	if r.State != state || state == approval.Answered && (r.Chosen == nil || *r.Chosen != chosen) {
		t.Errorf("%+v", r)
	}
	return r
}

const quoteForAlice = `{"kind":"tool","tool":"quote","args":{"n":1},"principal":"alice"}`

// TestAnswerAsksForTheID: nothing but the last characters of this id
// answers, and what could not be printed was not shown.
func TestAnswerAsksForTheID(t *testing.T) {
	h := start(t, "")
	r := h.asks(t, quoteForAlice, yesOrNo())
	for _, command := range [][]string{{"choose", r.ID, "1"}, {"dismiss", r.ID}} {
		for _, typed := range []string{"", "\n", "1\n", "yes\n", "Yes once\n", strings.ToUpper(last(r.ID)) + "\n"} {
			holds(t, h.types(t, typed, "alice", term.ExitNo, command...), "stopped: nothing was done")
		}

		h.breaks(t, last(r.ID)+"\n", append(command, "--yes", "--binding", r.Binding())...)
	}

	h.holds(t, r.ID, approval.Pending, 0)
	chosen := h.types(t, last(r.ID)+"\n", "alice", term.ExitOK, "choose", r.ID, "1")
	holds(t, chosen, "[1] Yes once", "To answer "+r.ID)
	if got := h.holds(t, r.ID, approval.Answered, 1); !got.Votes[0].Full || got.Votes[0].Channel != "cli" {
		t.Errorf("%+v", got.Votes)
	}
}

// TestApproveIsForCalls: with or without a terminal, approve says how a
// question is answered.
func TestApproveIsForCalls(t *testing.T) {
	h := start(t, "")
	r := h.asks(t, quoteForAlice, yesOrNo())
	for _, args := range [][]string{
		{"approve", r.ID},
		{"approve", r.ID, "--yes"},
		{"approve", r.ID, "--yes", "--binding", r.Binding()},
		{"deny", r.ID, "--reason", "no"},
	} {
		told := h.types(t, last(r.ID)+"\n", "alice", term.ExitNo, args...)
		holds(t, told, "assent choose "+r.ID+" NUMBER")
	}

	holds(t, h.prints(t, "alice", term.ExitOK, "list"), "only alice")
	h.holds(t, r.ID, approval.Pending, 0)
}

// TestLongQuestions: a long prompt is cut with words that say so and
// can be opened; labels never are, so it can be answered all the same.
func TestLongQuestions(t *testing.T) {
	h := start(t, "")
	q := yesOrNo()
	q.Prompt, q.Choices[0] = "HEAD\n"+strings.Repeat("line\n", 5000)+"MIDDLE\n"+strings.Repeat(
		"line\n",
		500,
	)+"TAIL", strings.Repeat("long label ", 300)+"END"
	for range 60 {
		q.Choices = append(q.Choices, "more")
	}
	r := h.asks(t, quoteForAlice, q)
	shown := h.prints(t, "alice", term.ExitOK, "show", r.ID)
	holds(t, shown, "  | TAIL", "lines are left out here: --all shows them", q.Choices[0], "[62] more", "  | HEAD")
	if strings.Contains(shown, "MIDDLE") {
		t.Error("nothing is cut")
	}
	holds(t, h.prints(t, "alice", term.ExitOK, "show", r.ID, "--all"), "  | MIDDLE")
	h.types(t, last(r.ID)+"\n", "alice", term.ExitOK, "choose", r.ID, "62")
	h.holds(t, r.ID, approval.Answered, 62)
}

// TestWatchAnswersQuestions: no key answers by itself; c asks for the
// number, digits and x name the answer, and all are confirmed.
func TestWatchAnswersQuestions(t *testing.T) {
	h := start(t, "")
	first := h.asks(t, quoteForAlice, yesOrNo())
	in, keys := io.Pipe()
	screen := &terminal{in: in, env: map[string]string{"NO_COLOR": "1"}}
	ended := make(chan int, 1)
	go func() { ended <- h.run(t, screen, "alice", "watch") }()
	typed := func(text string) {
		if _, err := io.WriteString(keys, text); err != nil {
			t.Error(err)
		}
	}
	screen.saw(t, "> …"+last(first.ID))
	screen.saw(t, "c answer  x dismiss")
	for _, key := range []string{"a", "d", "e"} {
		typed(key)
		screen.saw(t, "answer with `assent choose "+first.ID)
		typed("\n")
	}
	typed("s")
	screen.saw(t, "asks before it goes on")
	typed("\n7")
	screen.saw(t, "there is no choice 7")
	typed("\n1")
	screen.saw(t, "Your answer: [1] Yes once")
	typed("\n") // no confirmation
	screen.saw(t, "stopped: nothing was done")
	typed("\ncYes once\n")
	screen.saw(t, `"Yes once" is no NUMBER`)
	h.holds(t, first.ID, approval.Pending, 0)
	typed("\nc0\n")
	screen.saw(t, "Your answer: [0] Yes for session")
	typed(last(first.ID) + "\n")
	screen.saw(t, "answered: the tool is told [0] Yes for session")
	second := h.asks(t, quoteForAlice, yesOrNo())
	typed("\n")
	screen.saw(t, "> …"+last(second.ID))
	typed("x")
	screen.saw(t, "dismiss, which picks the default [2] No")
	typed(last(second.ID) + "\n")
	screen.saw(t, "answered: the tool is told [2] No")
	third := h.asks(t, quoteForAlice, yesOrNo())
	typed("\n")
	screen.saw(t, "> …"+last(third.ID))
	typed("cdismiss\n" + last(third.ID) + "\n")
	typed("\n")
	call := h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	screen.saw(t, "> …"+last(call.ID))
	for _, key := range []string{"c", "0", "x"} {
		typed(key)
		screen.saw(t, "this is no question but a call")
	}
	typed("q")
	if code := <-ended; code != term.ExitOK {
		t.Errorf("exit %d\n%s", code, screen.out.String())
	}
	h.holds(t, first.ID, approval.Answered, 0)
	h.holds(t, second.ID, approval.Answered, 2)
	if got := h.holds(t, third.ID, approval.Answered, 2); got.Cause != approval.ByDismissal ||
		got.Votes[0].Channel != "watch" {
		t.Errorf("%+v", got)
	}
	h.holds(t, call.ID, approval.Pending, 0)
}

// TestHostileQuestions: no byte of a tool's words controls the
// terminal, and no line of them passes for one of ours.
func TestHostileQuestions(t *testing.T) {
	h := start(t, "")
	evil := []string{
		"\x1b[2J\x1b[31mAPPROVED",
		"\x1b]8;;http://evil.example\x07click\x1b]8;;\x07",
		"\x1b]52;c;ZXZpbA==\x07",
		"\u009b31m",
		"\u202egnp.exe\u202c",
		"\u200b\u200d\u2060\ufeff",
		"\U000e0041",
		"line\nassent: approved\r\n\u2028\u2029\u0085x",
		"\b\b\b\x7f",
		strings.Repeat(" ", 200) + "tail",
		"x\n* [0] forged\n> [0] forged\nMay answer\n  you",
		"\r* [0] forged",
	}
	for _, text := range evil {
		q := approval.Question{Asker: "srv", Prompt: text, Choices: []string{text, "", "   ", text}, Default: 3}
		r := h.asks(t, quoteForAlice, q)
		for _, args := range [][]string{
			{"show", r.ID},
			{"show", r.ID, "--all"},
			{"show", r.ID, "--json"},
			{"choose", r.ID, text},
			{"choose", r.ID, "0"},
			{"dismiss", r.ID},
			{"approve", r.ID},
			{"__complete", "choose", r.ID, ""},
			{"list"},
			{"list", "--json"},
			{"choose", r.ID, "0", "--yes", "--binding", r.Binding()},
			{"show", r.ID},
			{"watch", "--lines", "--after", "-1", "--until", "request_answered"},
		} {
			screen := &terminal{}
			h.run(t, screen, "alice", args...)
			if unforged(t, args, screen, "assent: approved", "tail", "* [0]", "> [0] forged") == "" {
				t.Errorf("%q printed nothing", args)
			}
		}

		h.holds(t, r.ID, approval.Answered, 0)
	}
}

// TestHiddenValuesOfQuestions: arguments stay hidden. The text of the question is shown, with a
// warning that it may repeat them.
func TestHiddenValuesOfQuestions(t *testing.T) {
	h := start(t, `schema_version: "1.0.0"
policy_ref: acme.hide
applies: implicit
rules: [{id: hide, match: {targets: [quote]}, approval: true, require: {arguments: {redact: [secret]}}}]
`)
	r := h.asks(t, `{"kind":"tool","tool":"quote","args":{"secret":"hunter2"},"principal":"alice"}`, yesOrNo())
	shown := h.prints(t, "alice", term.ExitOK, "show", r.ID)
	holds(t, shown, "these words may repeat them", "  | Allow writing?")
	if strings.Contains(shown, "hunter2") {
		t.Error(shown)
	}
}
