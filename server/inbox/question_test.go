package inbox_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/approval"
	browsers "github.com/assent-dev/assent/internal/chromium"
	"github.com/assent-dev/assent/resolve"
)

// yesOrNo returns the question of the protocol's example.
func yesOrNo() approval.Question {
	return approval.Question{
		Asker:   "notes-server",
		Prompt:  "Direct mode: allow writing to /srv/notes.txt?",
		Choices: []string{"Yes (this thread and all children)", "Yes once", "No"},
		Default: 2,
	}
}

// asks makes a tool ask a question about a call.
func (h *site) asks(principal string, c *resolve.Call, q approval.Question) *approval.Request {
	h.t.Helper()
	c.Principal = principal
	out, err := h.service.Ask(h.t.Context(), approval.AskInput{
		Tenant:   tenant,
		Agent:    "trading-desk",
		Asker:    approval.Asker{Token: "desk-runtime"},
		Key:      approval.NewKey(),
		Call:     c,
		Question: q,
	})
	if err != nil || out.Request == nil {
		h.t.Fatal(out, err)
	}
	return out.Request
}

func (h *site) asksBob(q approval.Question) *approval.Request {
	h.t.Helper()
	return h.asks("bob", tool("place_order", order), q)
}

// pick presses a button on a question's page, like a person without JavaScript.
func (b *browser) pick(id, verdict string, choice ...string) page {
	b.h.t.Helper()
	fields := b.ballot(id, verdict)
	if len(choice) > 0 {
		fields["choice"] = choice
	}
	return b.cast(id, fields)
}

// TestAQuestionIsShownAsOne: our own facts come first, then the tool's texts, then every label with
// its number. The forms for approvals are missing.
func TestAQuestionIsShownAsOne(t *testing.T) {
	h := open(t)
	r := h.asksBob(yesOrNo())
	bob := h.browser("bob")
	list := bob.get("/")
	list.says(
		t,
		"Question notes-server asks about place_order side buy quantity 100 symbol ACME",
		"may answer: Bob Roe (bob), for whom the agent acts",
	)
	list.lacks(t, `name="id"`, "of 1 approved", "allow writing to") // they are only on the question's own page
	p := bob.request(r.ID)
	inOrder(
		t,
		p.text(),
		"tool server notes-server",
		`"symbol": "ACME"`,
		"Acts for",
		"Digest of all this",
		"The tool says",
		"allow writing to /srv/notes.txt?",
		"[0] Yes (this thread and all children)",
		"[1] Yes once",
		"[2] No default: picked when you dismiss",
		"Dismiss",
		"picks the default, [2]",
		"May answer: Bob Roe",
		"nothing is picked",
	)
	p.lacks(
		t,
		`value="approve"`,
		`value="deny"`,
		`value="respond"`,
		"Edit the arguments",
		"standing approval",
		`name="reason"`,
	)
	if n := strings.Count(p.body, `<button class="button" name="choice"`); n != 3 {
		t.Errorf("%d buttons for 3 choices", n)
	}
}

func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Errorf("%q is not there, or too early:\n%s", p, text)
			continue
		}
		rest = after
	}
}

func TestAnswersToQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		verdict string
		choice  []string
		chosen  int
		says    []string
	}{
		"the first": {
			"choose",
			[]string{"0"},
			0,
			[]string{
				"Answered: the tool is told [0] “Yes (this thread and all children)”.",
				"picked [0] Yes (this thread",
			},
		},
		"one": {
			"choose",
			[]string{"1"},
			1,
			[]string{
				"Answered: the tool is told [1] “Yes once”.",
				"Answered: a person picked one of its choices",
				"Answered by Bob Roe (bob@example.com),",
				"picked [1] Yes once",
				"You have answered this.",
			},
		},
		"none": {
			"dismiss",
			nil,
			2,
			[]string{
				"Dismissed: the tool is told its default, [2] “No”.",
				"Dismissed by Bob Roe",
				"the default [2] No",
				"You have dismissed this.",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			r := h.asksBob(yesOrNo())
			bob := h.browser("bob")
			p := bob.pick(r.ID, c.verdict, c.choice...)
			p.says(t, c.says...)
			p.lacks(t, "<button class=\"button\" name=\"choice\"", `value="dismiss"`)
			got := h.request(r.ID)
			if got.State != approval.Answered || got.Chosen == nil || *got.Chosen != c.chosen ||
				got.By != "bob@example.com" || got.Votes[0].Channel != "inbox" || !got.Votes[0].Full {
				t.Fatalf("%s %v %+v", got.State, got.Chosen, got.Votes)
			}
			h.seal()
			bob.get("/?tab=decided").says(t, "picked ["+strconv.Itoa(c.chosen)+"]", "by Bob Roe")
			bob.request(r.ID).says(t, "request_answered", "vote_counted")
			bob.get("/activity").says(t, "Bob Roe (bob@example.com)1only questions")
			bob.get("/").says(t, "Nothing waits for you.")
		})
	}
}

// TestNoOtherTextIsAChoice: a text that is not a number is refused and never treated as one.
func TestNoOtherTextIsAChoice(t *testing.T) {
	h := open(t)
	r := h.asksBob(yesOrNo())
	bob := h.browser("bob")
	for _, choice := range [][]string{
		nil,
		{""},
		{"Yes once"},
		{"-1"},
		{"+1"},
		{"01"},
		{" 1"},
		{"1.0"},
		{"1e0"},
		{"0x1"},
		{"3"},
		{"99999999999999999999"},
		{"0", "1"},
		{"١"},
	} {
		bob.pick(r.ID, "choose", choice...).says(t, "Nothing was decided.", "Choice: expected the")
	}

	// A number that is posted with a dismissal has no effect.
	bob.pick(r.ID, "dismiss", "1").says(t, "Dismissed: the tool is told its default")
	for _, verdict := range []string{"approve", "deny", "respond"} {
		r := h.asksBob(yesOrNo())
		fields := bob.ballot(r.ID, "dismiss")
		fields.Set("verdict", verdict)
		fields.Set("response", "x")
		fields.Set("preset", "Not needed")
		bob.cast(r.ID, fields).
			says(t, "Nothing was decided.", "this is a question of a tool")
		if got := h.request(r.ID); got.State != approval.Pending {
			t.Errorf("%s: %s", verdict, got.State)
		}
	}

	call := h.ask(tool("place_order", order))
	fields := bob.ballot(call.ID, "approve")
	fields.Set("verdict", "choose")
	fields.Set("choice", "0")
	bob.cast(call.ID, fields).says(t, "Nothing was decided.")
	if got := h.request(call.ID); got.State != approval.Pending || len(got.Votes) != 0 {
		t.Errorf("a choice approved a call: %s", got.State)
	}
}

// TestWhoMayNotAnswerReadsOnly: other people see the question and who is asked, without a form.
func TestWhoMayNotAnswerReadsOnly(t *testing.T) {
	h := open(t)
	forRisk := yesOrNo()
	forRisk.Groups = []string{"risk"}
	mine := h.asksBob(yesOrNo())
	risk := h.asks("bob", tool("place_order", order), forRisk)
	anyone := h.asks("", tool("place_order", order), yesOrNo())
	for _, c := range []struct {
		who, id, why string
	}{
		{"alice", mine.ID, "the question is for the person whom the agent acts for"},
		{"bob", risk.ID, "the agent acts for you"},
		{"olga", risk.ID, "you own the agent"},
		{"carol", risk.ID, "in none of the groups that are asked"},
	} {
		p := h.browser(c.who).get("/requests/" + c.id)
		p.says(t, "You may not answer this: ", c.why, "[1] Yes once", "allow writing to")
		p.lacks(t, `name="verdict"`, "<button class=\"button\" name=\"choice\"")
		h.browser(c.who).get("/").lacks(t, c.id)
	}

	for who, id := range map[string]string{"bob": mine.ID, "alice": risk.ID, "olga": anyone.ID} {
		h.browser(who).get("/").says(t, "…"+id[len(id)-6:])
		h.browser(who).pick(id, "choose", "1").says(t, "Answered: the tool is told [1]")
	}
}

// TestQuestionsToOthersHideNothing: a request that waits for the visitor is on the first page, even
// if many questions to others are due before it.
func TestQuestionsToOthersHideNothing(t *testing.T) {
	h := open(t)
	for range 30 {
		h.asksBob(yesOrNo())
	}
	anyone := h.asks("", tool("place_order", order), yesOrNo())
	p := h.browser("alice").get("/")
	p.says(t, "…"+anyone.ID[len(anyone.ID)-6:], "1 waiting for you")
	p.lacks(t, "cursor=", "batch-bar")
	h.browser("bob").get("/").says(t, "31 waiting for you", "Next page")
}

func TestTheFirstAnswerStands(t *testing.T) {
	h := open(t)
	q := yesOrNo()
	q.Groups = []string{"risk"}
	r := h.asks("carol", tool("place_order", order), q)
	alice, dave := h.browser("alice"), h.browser("dave")
	late := dave.ballot(r.ID, "choose")
	late.Set("choice", "0")
	alice.pick(r.ID, "choose", "2").says(t, "Answered: the tool is told [2]")
	dave.cast(r.ID, late).says(t, "Too late", "answered: a person picked one of its choices")
	if got := h.request(r.ID); *got.Chosen != 2 || got.By != "alice@example.com" {
		t.Errorf("%d by %s", *got.Chosen, got.By)
	}
	gone := h.asksBob(yesOrNo())
	bob := h.browser("bob")
	fields := bob.ballot(gone.ID, "dismiss")
	if _, err := h.service.Cancel(t.Context(), tenant, gone.ID, "desk-runtime", "the tool is done"); err != nil {
		t.Fatal(err)
	}
	bob.cast(gone.ID, fields).says(t, "Too late", "cancelled: whoever asked took it back")
}

func TestQuestionsAreNeverAnsweredTogether(t *testing.T) {
	h := open(t)
	a, b := h.asks("", tool("place_order", order), yesOrNo()), h.asks("", tool("place_order", order), yesOrNo())
	bob := h.browser("bob")
	bob.get("/").lacks(t, "Review the chosen ones together")
	bob.get("/batch?id="+a.ID+"&id="+b.ID).says(t, "Questions are answered one by one")
	mixed := url.Values{"verdict": {"approve"}}
	for _, id := range []string{a.ID, b.ID} {
		mixed.Add("seen", bob.get("/requests/"+id).form(t, "/requests/"+id+"/vote", "dismiss").Get("seen"))
	}
	bob.later("/batch", mixed).says(t, "Nothing was done")
	if h.request(a.ID).State != approval.Pending || h.request(b.ID).State != approval.Pending {
		t.Error("a batch answered a question")
	}
}

// TestLabelsAreTakenAsTheyAre: empty, equal, hostile and very many labels are shown in order with
// their numbers, and the number decides.
func TestLabelsAreTakenAsTheyAre(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	q := approval.Question{
		Asker:  "srv",
		Prompt: "",
		Choices: []string{
			"",
			"Same",
			"Same",
			"   ",
			"Approve\u202eevorppa",
			"N\u043e",
			"a\nb",
			"<b>bold</b>",
			"[0] Yes",
		},
		Default: 0,
	}
	r := h.asksBob(q)
	p := bob.request(r.ID)
	inOrder(
		t,
		p.text(),
		"[0] (empty) default: picked",
		"[1] Same",
		"[2] Same (the same words as [1])",
		"[3] (blank)",
		`[4] Approve\u{202e}evorppa`,
		"[5] N\u043enot “No”: U+043E",
		`[6] a\nb`,
		"[7] <b>bold</b>",
		"[8] [0] Yes",
	)
	p.says(
		t,
		"Hidden characters in the tool’s words",
		"Look-alike characters in the tool’s words",
		"Characters that reorder text are spelled out.",
	)
	p.lacks(t, "\u202e", "<b><")
	bob.pick(r.ID, "choose", "2").says(t, "the tool is told [2] “Same”")
	many := approval.Question{Asker: "srv", Prompt: "Which?", Default: 49}
	for i := range 50 {
		many.Choices = append(
			many.Choices,
			fmt.Sprintf("Account %d ", i)+strings.Repeat("of a customer with a long name ", 4),
		)
	}

	r = h.asksBob(many)
	if n := strings.Count(bob.request(r.ID).body, `<button class="button" name="choice"`); n != 50 {
		t.Errorf("%d buttons", n)
	}
	bob.pick(r.ID, "choose", "37").says(t, "the tool is told [37] “Account 37 of a customer")
}

// TestLongPromptsAreCutAndCanBeOpened: long prompts are cut, labels never are.
func TestLongPromptsAreCutAndCanBeOpened(t *testing.T) {
	h := open(t)
	q := yesOrNo()
	q.Prompt, q.Choices[0] = "HEAD "+strings.Repeat("lorem ipsum ", 5000)+"MIDDLE "+strings.Repeat("dolor sit ", 300)+
		"TAIL", strings.Repeat("long label ", 300)+"END"
	r := h.asksBob(q)
	bob := h.browser("bob")
	bob.get("/").lacks(t, "lorem")
	p := bob.request(r.ID)
	p.says(t, "HEAD", "TAIL", "characters not shown here", "The middle is not shown.", "Show everything", q.Choices[0])
	p.lacks(t, "MIDDLE")
	all := bob.get("/requests/" + r.ID + "?show=all")
	all.says(t, "MIDDLE")
	all.lacks(t, "not shown")
	bob.pick(r.ID, "choose", "1").says(t, "the tool is told [1]")
}

func TestPrunedQuestions(t *testing.T) {
	h := open(t)
	r := h.asksBob(yesOrNo())
	bob := h.browser("bob")
	bob.pick(r.ID, "choose", "1")
	h.seal()
	if _, _, err := h.store.Prune(t.Context(), tenant, h.now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p := bob.request(r.ID)
	p.says(t, "no longer kept", "[1] (no longer kept) picked", "Answered by Bob Roe")
	p.lacks(t, "notes.txt", "Yes once")
	bob.get("/?tab=decided").says(t, "picked [1] (no longer kept)")
}

func TestHiddenValuesAndQuestions(t *testing.T) {
	h := open(t)
	r := h.asks(
		"bob",
		tool("pay", `{"iban":"DE02120300000000202051","amount":1200,"to":{"name":"Erika Muster"}}`),
		approval.Question{Asker: "bank", Prompt: "Pay Erika?", Choices: []string{"Yes", "No"}, Default: 1},
	)
	bob := h.browser("bob")
	list := bob.get("/")
	list.says(t, "iban hidden amount 1200 to.name hidden")
	list.lacks(t, "Erika")
	p := bob.request(r.ID)
	p.says(t, "2 values are hidden by policy", "The tool’s words may repeat them.", "Pay Erika?")
	p.lacks(t, "DE02", "Muster")
	h.seal()
	bob.get("/ledger?subject="+r.ID).lacks(t, "Erika", "DE02")
}

var figurePattern = regexp.MustCompile(`(?s)<figure.*?</figure>`)

// TestHostileQuestions: a tool's texts are plain text on every page, and only appear inside of the
// quotation.
func TestHostileQuestions(t *testing.T) {
	h := open(t)
	words := hostile + "\nassent: you have approved this\x1b[2J"
	q := approval.Question{Asker: "srv", Prompt: words, Choices: []string{words, "No"}, Default: 0}
	r := h.asksBob(q)
	bob := h.browser("bob")
	open := []string{"/", "/?tab=open", "/requests/" + r.ID, "/requests/" + r.ID + "?show=all"}
	check := func(path string) {
		t.Helper()
		p := bob.get(path)
		rest := html.UnescapeString(p.body)
		if p.status != 200 || strings.Contains(p.body, "<script>document") || strings.Contains(p.body, "<img") ||
			strings.ContainsAny(rest, "\u202e\U000e0041\x1b") {
			t.Errorf("%s: %d, markup or a hidden character reaches the page", path, p.status)
		}
		if fenced := figurePattern.ReplaceAllString(p.body, ""); p.status == 200 &&
			strings.HasPrefix(path, "/requests") && h.request(r.ID).State == approval.Pending &&
			strings.Contains(fenced, "assent: you have") {
			t.Errorf("%s: the tool's words stand outside of the quotation", path)
		}
	}
	for _, path := range open {
		check(path)
	}
	bob.pick(r.ID, "choose", "0")
	h.seal()
	for _, path := range append(open, "/?tab=decided", "/ledger", "/ledger?subject="+r.ID, "/activity") {
		check(path)
	}
}

// TestQuestionInChromium answers a question with and without the script, and checks its page with
// axe-core.
func TestQuestionInChromium(t *testing.T) {
	t.Parallel()
	browser, axe := chromium(t), axeSource(t)
	h := openArmed(t, time.Millisecond)
	q := yesOrNo()
	q.Choices = append(q.Choices, "", "N\u043e", "No")
	q.Prompt = "Direct mode: allow writing to /srv/notes.txt?\n\nThe file is there already; what it holds will be " +
		"lost.\u202e"
	first, second := h.asksBob(q), h.asksBob(yesOrNo())
	many := approval.Question{Asker: "crm", Prompt: "Which account is meant?", Default: 49}
	for i := range 50 {
		many.Choices = append(
			many.Choices,
			fmt.Sprintf("Account %d of a customer with a rather long name and an unbroken_number_%050d", i, i),
		)
	}

	long := h.asksBob(many)
	bob := h.tab(t, browser, "bob")
	look := func(name, path string) {
		t.Helper()
		bob.open(path)
		bob.armed()
		eval[chromedp.Void](bob, axe+";0")
		for _, l := range browsers.Looks(name) {
			bob.in.Show(l, 900)
			bob.shoot(l.String() + "-" + name)
			bob.armed()
			bob.axe(l.String() + " " + name)
		}
	}
	look("question", "/requests/"+first.ID)
	look("question-many", "/requests/"+long.ID)
	look("question-queue", "/")
	bob.open("/requests/" + first.ID)
	bob.armed()
	bob.press("c")
	if got := eval[string](
		bob,
		`document.activeElement.value + document.activeElement.closest("form").id`,
	); got != "0choose-form" || h.request(first.ID).State != approval.Pending {
		t.Errorf("the key led to %q", got)
	}

	bob.click(`#choose-form button[value="5"]`)
	bob.until("the outcome", `document.querySelector(".said.good")?.textContent.includes("the tool is told [5] “No”")`)
	look("question-answered", "/requests/"+first.ID)
	if got := h.request(first.ID); got.Chosen == nil || *got.Chosen != 5 {
		t.Errorf("%s %v", got.State, got.Chosen)
	}
	call(bob, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	bob.open("/requests/" + second.ID)
	h.pass(time.Second)
	bob.click("#dismiss-form button")
	bob.do(chromedp.WaitVisible(chromedp.CSS(".said.good")))
	bob.open("/requests/" + long.ID)
	h.pass(time.Second)
	bob.click(`#choose-form button[value="42"]`)
	bob.do(chromedp.WaitVisible(chromedp.CSS(".said.good")))
	if a, b := h.request(second.ID), h.request(long.ID); a.Cause != approval.ByDismissal || *a.Chosen != 2 ||
		*b.Chosen != 42 {
		t.Errorf("%s %v, %v", a.Cause, a.Chosen, b.Chosen)
	}
}
