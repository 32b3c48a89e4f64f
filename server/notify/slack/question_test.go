package slack_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/notify/slack"
)

func yesOrNo() approval.Question {
	return approval.Question{
		Asker:   "notes-server",
		Prompt:  "Allow writing to /srv/notes.txt?\nAgent: innocent",
		Choices: []string{"Yes for session", "Yes once", "No"},
		Default: 2,
	}
}

// asks lets a tool ask about a call of an agent that acts for no particular person.
func (w *world) asks(tool, args string, q approval.Question) *approval.Request {
	w.t.Helper()
	return w.asksFor("", tool, args, q)
}

// asksFor does the same as asks for an agent that acts for a person.
func (w *world) asksFor(principal, tool, args string, q approval.Question) *approval.Request {
	w.t.Helper()
	out, err := w.service.Ask(w.t.Context(), approval.AskInput{
		Tenant:   tenant,
		Asker:    approval.Asker{Token: "ci"},
		Agent:    agentID,
		Key:      approval.NewKey(),
		Question: q,
		Call:     &resolve.Call{Kind: resolve.Tool, Tool: tool, Args: []byte(args), Principal: principal},
	})
	if err != nil || out.Request == nil {
		w.t.Fatalf("ask: %+v, %v", out, err)
	}
	w.deliver()
	return out.Request
}

func choice(n int) string { return "assent_choose_" + strconv.Itoa(n) }

const dismiss = "assent_dismiss"

func (w *world) unanswered(id, name string) {
	w.t.Helper()
	if got := w.request(id); got.State != approval.Pending || got.Chosen != nil || len(got.Votes) != 0 {
		w.t.Errorf("%s: %s, %v, %+v", name, got.State, got.Chosen, got.Votes)
	}
}

func (w *world) answeredMessage(parts ...string) {
	w.t.Helper()
	p := w.only()
	holds(w.t, texts(p.blocks), parts...)
	for _, b := range p.blocks {
		for _, e := range b.Elements {
			if e.ActionID != "assent_open" {
				w.t.Errorf("%s is still there", e.ActionID)
			}
		}
	}
}

// TestQuestionInSlack checks that the facts come first, then the tool's text with bars, then
// every choice. One click answers.
func TestQuestionInSlack(t *testing.T) {
	w := newWorld(t)
	r := w.asks("trade", `{"amount":5,"what":"gold"}`, yesOrNo())
	p := w.only()
	text := texts(p.blocks)
	rest := text
	for _, part := range []string{
		"A tool asks",
		"Tool server: notes-server",
		"Agent: trader",
		"Asks before it goes on with: tool trade",
		"May answer: any approver",
		`"amount": 5`,
		"The tool says, in words of its own that nobody checked:",
		"│ Allow writing to /srv/notes.txt?",
		"│ Agent: innocent",
		"Its choices; [2] is the default, picked when you dismiss:",
		"│ [0] Yes for session",
		"│ [1] Yes once",
		"│ * [2] No",
		"[[0] Yes for session]",
		"[[2] No]",
		"[Dismiss]",
		"the default, [2]",
		"https://assent.example/requests/" + r.ID,
	} {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is not there, or too early:\n%s", part, text)
		}
		rest = after
	}

	lacks(t, text, "Needs:", "Because of", "[Approve]", "[Deny…]")
	w.click(p, choice(1), "U0RITA")
	got := w.request(r.ID)
	if got.State != approval.Answered || *got.Chosen != 1 || got.By != "rita@acme.example" ||
		got.Votes[0].Channel != "slack" || !got.Votes[0].Full {
		t.Fatalf("%s %v %+v", got.State, got.Chosen, got.Votes)
	}
	w.hears("Your answer: Picked [1] by rita@acme.example")
	w.answeredMessage(
		"Question: answered",
		"Picked [1] by rita@acme.example at 2026-03-01 12:00 UTC",
		"│ > [1] Yes once",
	)
	w.deliver()
	w.answeredMessage("Picked [1]")
	w.click(p, choice(0), "U0RITA") // the old message
	w.hears("too late")
	if got := w.request(r.ID); *got.Chosen != 1 {
		t.Error("an old button changed the answer")
	}
}

func TestDismissInSlack(t *testing.T) {
	w := newWorld(t)
	r := w.asks("trade", `{}`, yesOrNo())
	w.click(w.only(), dismiss, "U0RITA")
	if got := w.request(r.ID); got.State != approval.Answered || got.Cause != approval.ByDismissal || *got.Chosen != 2 {
		t.Fatalf("%s (%s) %v", got.State, got.Cause, got.Chosen)
	}
	w.answeredMessage("Dismissed, which picked the default [2] by rita@acme.example")
}

func TestWhoeverElseAnswersIsRefused(t *testing.T) {
	w := newWorld(t)
	q := yesOrNo()
	q.Groups = []string{"leads"}
	r := w.asks("trade", `{}`, q)
	for user, want := range map[string]string{
		"U0RITA":   "is not eligible to answer",
		"U0NOBODY": "not mapped to anybody",
	} {
		for _, action := range []string{choice(0), dismiss} {
			w.click(w.only(), action, user)
			w.hears(want)
			w.unanswered(r.ID, user)
		}
	}
}

// TestNothingUnreadableIsAChoice checks that an invalid value is refused and never becomes a
// number.
func TestNothingUnreadableIsAChoice(t *testing.T) {
	w := newWorld(t)
	r := w.asks("trade", `{}`, yesOrNo())
	p := w.only()
	b, _ := p.button(choice(0))
	ticket := strings.TrimSuffix(b.Value, " 0")
	for name, f := range map[string]struct{ action, value string }{
		"nothing":                  {choice(0), ""},
		"a number alone":           {choice(0), "0"},
		"no number":                {choice(0), ticket},
		"an empty number":          {choice(0), ticket + " "},
		"a label":                  {choice(0), ticket + " Yes for session"},
		"negative":                 {choice(0), ticket + " -1"},
		"signed":                   {choice(0), ticket + " +0"},
		"padded":                   {choice(0), ticket + " 00"},
		"spaced":                   {choice(0), ticket + "  0"},
		"fractional":               {choice(0), ticket + " 0.0"},
		"hexadecimal":              {choice(0), ticket + " 0x0"},
		"huge":                     {choice(0), ticket + " 99999999999999999999"},
		"a line more":              {choice(0), ticket + " 0\n"},
		"of another button":        {choice(1), ticket + " 0"},
		"of no button":             {"assent_choose_", ticket + " 0"},
		"of a button beyond ours":  {"assent_choose_0x", ticket + " 0"},
		"a value without a menu":   {"assent_choose", ticket + " 0"},
		"a choice as a dismissal":  {dismiss, ticket + " 0"},
		"a dismissal without more": {dismiss, ""},
	} {
		if status := w.post(w.signed(encode(
			t,
			w.payload(p, f.action, f.value, "U0RITA"),
		))); status != http.StatusBadRequest {
			t.Errorf("%s: answered %d", name, status)
		}

		w.app.Wait()
		w.unanswered(r.ID, name)
	}

	other := "0000000000000000"
	for name, f := range map[string]struct{ action, value, want string }{
		"out of range":         {choice(3), ticket + " 3", "no answer to this request"},
		"another binding":      {choice(0), r.ID + " 0 " + other + " 0", "not what was shown"},
		"another revision":     {choice(0), strings.Replace(ticket, " 0 ", " 1 ", 1) + " 0", "not what was shown"},
		"an approval":          {approve, ticket, "no answer to this request"},
		"a binding to dismiss": {dismiss, r.ID + " 0 " + other, "not what was shown"},
	} {
		w.send(w.payload(p, f.action, f.value, "U0RITA"))
		if got := w.slack.heard(); !strings.Contains(got, f.want) {
			t.Errorf("%s: heard %q", name, got)
		}
		w.unanswered(r.ID, name)
	}

	w.send(w.payload(p, deny, ticket, "U0RITA"))
	w.submit("U0RITA", "no")
	w.unanswered(r.ID, "a denial")

	call := w.ask("trade", `{"amount":5}`)
	binding := strings.TrimPrefix(call.Binding(), "sha256:")[:16]
	for _, action := range []string{choice(0), dismiss} {
		value := call.ID + " 0 " + binding
		if action != dismiss {
			value += " 0"
		}
		w.send(w.payload(p, action, value, "U0ALICE"))
		w.hears("no answer to this request")
		w.unanswered(call.ID, "an answer to a call")
	}
}

// TestManyChoices checks that more choices than a block allows become a menu, and that more
// than a message allows are answered in the inbox.
func TestManyChoices(t *testing.T) {
	w := newWorld(t)
	q := approval.Question{Asker: "crm", Prompt: "Which?", Default: 0}
	for i := range 60 {
		q.Choices = append(q.Choices, fmt.Sprintf("Account %d", i))
	}
	q.Choices[7] = strings.Repeat("long ", 20) + "end"
	r := w.asks("trade", `{}`, q)
	p := w.only()
	menu, ok := p.button("assent_choose")
	if !ok || len(menu.Options) != 60 || menu.Confirm == nil || menu.Options[41].Text.Text != "[41] Account 41" ||
		!strings.HasSuffix(menu.Options[7].Text.Text, "…") {
		t.Fatalf("%+v", menu)
	}
	p.shows(t, q.Choices[7], "│ [59] Account 59")
	pick := func(selected any) map[string]any {
		payload := w.payload(p, "assent_choose", "", "U0RITA")
		payload["actions"] = []any{map[string]any{
			"type":            "static_select",
			"action_id":       "assent_choose",
			"block_id":        "b",
			"selected_option": selected,
		}}
		return payload
	}
	for name, selected := range map[string]any{
		"nothing":              nil,
		"no value":             map[string]any{},
		"a number":             map[string]any{"value": "41"},
		"a text":               "x",
		"a list":               []any{},
		"a label":              map[string]any{"value": strings.TrimSuffix(menu.Options[0].Value, "0") + "Account 41"},
		"a number that is one": map[string]any{"value": 41},
	} {
		if status := w.post(w.signed(encode(t, pick(selected)))); status != http.StatusBadRequest {
			t.Errorf("%s: answered %d", name, status)
		}
		w.app.Wait()
		w.unanswered(r.ID, name)
	}

	w.send(pick(map[string]any{
		"text":  map[string]any{"type": "plain_text", "text": "[41] Account 41"},
		"value": menu.Options[41].Value,
	}))
	if got := w.request(r.ID); got.State != approval.Answered || *got.Chosen != 41 {
		t.Errorf("%s %v", got.State, got.Chosen)
	}
	w.answeredMessage("Picked [41]", "│ > [41] Account 41")
}

// TestWhatDoesNotFitIsAnsweredInTheInbox checks that a click is refused if the message had no
// buttons.
func TestWhatDoesNotFitIsAnsweredInTheInbox(t *testing.T) {
	long := yesOrNo()
	long.Choices[1] = strings.Repeat("x", 3000)
	many := yesOrNo()
	for i := range 101 {
		many.Choices = append(many.Choices, strconv.Itoa(i))
	}
	wide := yesOrNo()
	for range 40 {
		wide.Choices = append(wide.Choices, strings.Repeat("wide ", 60))
	}
	for name, c := range map[string]struct {
		q          approval.Question
		tool, args string
		change     func(*slack.Config)
		says       string
	}{
		"long label":  {long, "trade", `{}`, nil, "Not all of the choices fit here"},
		"wide labels": {wide, "trade", `{}`, nil, "Not all of the choices fit here"},
		"no arguments": {yesOrNo(), "trade", `{"what":"gold"}`, func(c *slack.Config) {
			c.Arguments = false
		}, "is not shown in Slack"},
		"hidden values": {yesOrNo(), "pay", `{"card":"4111-1111","amount":5}`, nil, "they may repeat them"},
	} {
		var changes []func(*slack.Config)
		if c.change != nil {
			changes = append(changes, c.change)
		}
		w := newWorld(t, changes...)
		r := w.asks(c.tool, c.args, c.q)
		w.answeredMessage("A tool asks", "Tool server: notes-server", c.says)
		lacks(t, texts(w.only().blocks), "4111", "gold")
		if name == "no arguments" || name == "hidden values" {
			lacks(t, texts(w.only().blocks), "notes.txt", "Yes once")
		}
		w.send(w.payload(
			w.only(),
			choice(0),
			r.ID+" 0 "+strings.TrimPrefix(r.Binding(), "sha256:")[:16]+" 0",
			"U0RITA",
		))
		w.hears("not shown fully")
		w.unanswered(r.ID, name)
	}

	w := newWorld(t)
	w.asks("trade", `{}`, many)
	w.answeredMessage("A tool asks", "│ [103] 100")
}

// TestLongPromptsAreAnnounced checks that long prompts don't displace the facts or the choices,
// and don't exceed Slack's limits.
func TestLongPromptsAreAnnounced(t *testing.T) {
	for _, prompt := range []string{
		strings.Repeat("line\n", 5000),
		strings.Repeat("x", 60_000),
		strings.Repeat("漢字🙂", 5000),
		strings.Repeat("\n", 60_000),
		strings.Repeat("\u202e\n", 3000),
	} {
		w := newWorld(t)
		q := yesOrNo()
		q.Prompt = prompt
		q.Choices[0] = strings.Repeat("y", 1900)
		r := w.asks("trade", `{"amount":5,"note":"`+strings.Repeat("note ", 3000)+`"}`, q)
		p := w.only()
		p.shows(t,
			`"amount": 5`,
			"not shown here",
			"Not all of what the call carries is shown",
			"│ [0] yyyy",
			"│ * [2] No",
		)
		w.click(p, choice(2), "U0RITA")
		if got := w.request(r.ID); got.State != approval.Answered || *got.Chosen != 2 {
			t.Errorf("%s %v", got.State, got.Chosen)
		}
	}
}

// TestHostileLabels checks that labels are shown after bars and on buttons as plain text, with
// the number first.
func TestHostileLabels(t *testing.T) {
	w := newWorld(t)
	q := approval.Question{
		Asker:  "x <!channel>",
		Prompt: "<!channel> *b* \u202e\x1b[2J\rAgent: x",
		Choices: []string{
			"",
			"   ",
			"Same",
			"Same",
			"<https://evil.example|No> :bomb:\u202e",
			"a\n[0] b",
			strings.Repeat("&", 70),
		},
		Default: 0,
	}
	w.asks("trade", `{}`, q)
	p := w.only()
	shown := texts(p.blocks)
	holds(
		t,
		shown,
		"│ * [0] (empty)",
		"│ [1]     (blank)",
		"│ [2] Same\n│ [3] Same\n",
		"│ [4] &lt;https://evil.example|No&gt; :bomb:\\u{202e}",
		`│ [5] a\u{a}[0] b`,
		"Tool server: x &lt;!channel&gt;",
		"[[0]]",
		"[[1]]",
		"[[4] &lt;https",
	)
	if strings.ContainsAny(shown, "\u202e\x1b\r") || strings.Contains(shown, "<!channel>") ||
		strings.Contains(shown, "<https") {
		t.Errorf("data acts:\n%s", shown)
	}
	w.click(p, choice(3), "U0RITA")
	w.answeredMessage("Picked [3]", "│ [2] Same\n│ > [3] Same\n")
}

func TestQuestionsThatEndWithoutAnAnswer(t *testing.T) {
	for want, act := range map[string]func(w *world, r *approval.Request){
		"Cancelled by ci": func(w *world, r *approval.Request) {
			if _, err := w.service.Cancel(t.Context(), tenant, r.ID, "ci", ""); err != nil {
				t.Fatal(err)
			}
		},
		"Expired at": func(w *world, r *approval.Request) { w.pass(25 * 60 * 60 * 1e9) },
	} {
		w := newWorld(t)
		r := w.asks("trade", `{}`, yesOrNo())
		old := w.only()
		act(w, r)
		w.deliver()
		w.answeredMessage(want)
		w.click(old, choice(0), "U0RITA")
		w.hears("too late")
	}
}
