package inbox_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

const wire = `{"amount":25000,"currency":"EUR","to":"DE89370400440532013000","reference":"Invoice 4711"}`

// many opens 27 requests of many kinds.
func (h *site) many() (first *approval.Request) {
	h.t.Helper()
	first = h.ask(tool("wire", wire))
	h.ask(tool("pay", `{"iban":"DE02120300000000202051","amount":1200.5,"to":{"name":"Erika","note":"rent"}}`))
	h.ask(tool("vault", `{"path":"prod/db","auth":{"secret":"hunter2"}}`))
	h.ask(tool("purge", `{"table":"customers"}`))
	h.ask(tool("refund", `{"amount":340.00,"currency":"USD","order":"R-1093"}`))
	h.ask(tool(
		"execute_trade",
		`{"amount":1200000,"currency":"USD","note":"Rebalance.\nCheck with p\u0430ypal\u202egnp"}`,
	))
	code := `{"path":"internal/cache/ttl.go","message":"cache: honour the TTL\n\nEntries lived for ` +
		`ever.","diff":"--- a/ttl.go\n+++ b/ttl.go\n@@ -1,4 +1,4 @@\n func (c *Cache) ttl() time.Duration ` +
		`{\n-\treturn 0\n+\treturn c.cfg.TTL // \"as configured\"\n }\n"}`
	commit := &resolve.Call{
		Kind:           resolve.MCPTool,
		Server:         "git",
		Tool:           "commit_file",
		Args:           []byte(code),
		Principal:      "client-7",
		Session:        "s-1",
		ToolDefinition: "sha256:" + strings.Repeat("ab", 32),
	}
	h.ask(commit)
	hinted := &resolve.Call{
		Kind:        resolve.MCPTool,
		Server:      "git",
		Tool:        "push",
		Args:        []byte(`{"remote":"origin","force":true}`),
		Principal:   "client-7",
		Session:     "s-1",
		Annotations: map[string]bool{"destructiveHint": true},
	}
	h.ask(hinted)
	unknown := tool("place_order", `{"side":"buy","quantity":7,"symbol":"ACME"}`)
	unknown.Principal = "mallory"
	h.ask(unknown)
	h.ask(&resolve.Call{
		Kind:        resolve.Delegation,
		Agent:       "settler",
		Args:        []byte(`{}`),
		ParentInput: []byte(`{"amount":50000,"desk":"fx"}`),
		Principal:   "client-7",
		Session:     "s-1",
	})
	for i := range 17 {
		h.ask(tool("place_order", fmt.Sprintf(`{"side":"buy","quantity":%d,"symbol":"ACME"}`, 100*(i+1))))
	}

	return first
}

// TestTheQueueIsDense: at least twelve of 27 requests are visible on a laptop without scrolling,
// each with a description of its effect.
func TestTheQueueIsDense(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	h.many()
	b := h.tab(t, browser, "bob")
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.size(1280, 900)
		b.open("/?tab=open")
		b.shoot("queue-open-wide-" + scheme)
		b.open("/")
		b.armed()
		inView := `[...document.querySelectorAll(".request")].filter((r) => r.getBoundingClientRect().bottom <= ` +
			`innerHeight).length`
		if n := eval[int](b, inView); n < 12 {
			t.Errorf("%s: %d rows are in view", scheme, n)
		}
		b.shoot("queue-wide-" + scheme)
		b.size(390, 844)
		b.shoot("queue-narrow-" + scheme)
		if over := eval[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%s: the page is %d pixels wider than a phone", scheme, over)
		}
	}
}

// TestAPhoneShowsWhatAndTheButtonsAtOnce: the call, the reason, the approvers and both buttons are
// visible on a phone without scrolling.
func TestAPhoneShowsWhatAndTheButtonsAtOnce(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := open(t)
	r := h.many()
	h.seal()
	b := h.tab(t, browser, "bob")
	inView := func(selector string) bool {
		return eval[bool](
			b,
			`(()=>{const r=document.querySelector("`+selector+
				`")?.getBoundingClientRect(); return !!r && r.height>0 && r.top>=0 && r.top<innerHeight-60})()`,
		)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.size(390, 844)
		b.open("/requests/" + r.ID)
		for _, selector := range []string{"h1", "#call", "#why", "#progress"} {
			if !inView(selector) {
				t.Errorf("%s: %s is not in the first view", scheme, selector)
			}
		}
		bar := eval[string](
			b,
			`[...document.querySelectorAll(".bar-bottom .button")].filter((x) => { const r = `+
				`x.getBoundingClientRect(); return r.width && r.bottom <= innerHeight }).map((x) => `+
				`x.textContent).join(" ")`,
		)
		if bar != "Approve Deny…" {
			t.Errorf("%s: the bar shows %q", scheme, bar)
		}
		b.shoot("request-narrow-" + scheme)
		b.size(1280, 900)
		b.shoot("request-wide-" + scheme)
	}
}

// TestTheBarApprovesOnlyWhatWasScrolledThrough: on a phone the button only becomes active after the
// end of the call was visible.
func TestTheBarApprovesOnlyWhatWasScrolledThrough(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	r := h.ask(tool("place_order", `{"text":"`+strings.Repeat(`line\n`, 120)+`"}`))
	b := h.tab(t, browser, "bob")
	b.size(390, 844)
	b.open("/requests/" + r.ID)
	b.armed()
	pressed := eval[string](
		b,
		`document.querySelector(".bar-bottom button").click(), document.getElementById("live").textContent`,
	)
	if !strings.Contains(pressed, "scroll to the end") || len(h.request(r.ID).Votes) != 0 {
		t.Errorf("the page says %q", pressed)
	}
	eval[chromedp.Void](b, `document.getElementById("why").scrollIntoView()`)
	b.until("the armed button", `!document.querySelector(".bar-bottom button[aria-disabled=true]")`)
	b.click(".bar-bottom button")
	b.until("the outcome", `document.querySelector(".said.good")?.textContent.includes("Approved.")`)
}

// TestLinesOfATextAreLines: line breaks are drawn with a mark, and so are tabs. Neither causes a
// warning, and both are always marked in the same way.
func TestLinesOfATextAreLines(t *testing.T) {
	h := open(t)
	r := h.ask(tool("place_order", `{"side":"one\ntwo\tthree","quantity":1234567}`))
	p := h.browser("bob").request(r.ID)
	for _, want := range []string{
		// The argument.
		`one<span class="mark" title="line break">\n</span><br>two<span class="mark" title="tab">\t</span>three`,
		// The message.
		`one<span class="mark" title="line break">\n</span>two<span class="mark" title="tab">\t</span>three 1234567`,
		`1234567</span></span> <span class="size">(1,234,567)</span>`,
	} {
		if !strings.Contains(p.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}

	p.lacks(t, `class="esc"`, `class="flags"`, `\u{a}`)
}

// TestASealServesOnePurpose: the seal of an edit's preview can only confirm that edit.
func TestASealServesOnePurpose(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	r := h.ask(tool("big", `{"text":"`+strings.Repeat("x", 5000)+`"}`)) // its page does not show all of it
	vote, edit := "/requests/"+r.ID+"/vote", "/requests/"+r.ID+"/edit"
	page := bob.request(r.ID)
	deny := page.form(t, vote, `value="deny"`)
	all := bob.get("/requests/" + r.ID + "?show=all")
	approve, change := all.form(t, vote, `value="approve"`), all.form(t, edit, "arguments")
	h.pass(time.Second)
	change.Set("arguments", `{"text":"short"}`)
	change.Set("step", "preview")
	confirm := bob.post(edit, change).form(t, edit, "Replace and approve")
	h.pass(time.Second)

	for name, forged := range map[string]struct {
		path   string
		fields url.Values
		seal   string
	}{
		"a preview as a vote":         {vote, deny, confirm.Get("seen")},
		"an editor as a vote":         {vote, deny, change.Get("seen")},
		"a vote as a confirmed edit":  {edit, confirm, approve.Get("seen")},
		"an editor as a confirmation": {edit, confirm, change.Get("seen")},
		"a vote as a batch":           {"/batch", url.Values{"verdict": {"approve"}}, approve.Get("seen")},
	} {
		fields := url.Values{}
		for k, v := range forged.fields {
			fields[k] = v
		}
		fields.Set("seen", forged.seal)
		fields.Set("verdict", "approve")
		bob.post(forged.path, fields).says(t, "not from a page of yours")
		if got := h.request(r.ID); len(got.Votes) != 0 || len(got.Revisions) != 1 {
			t.Fatalf("%s decided: %+v", name, got.Votes)
		}
	}

	bob.post(edit, confirm).says(t, "The arguments are replaced", "Approved.")
}

// TestAnEditShowsAllThatItApproves: the preview shows the input of the delegating agent, the
// principal, and the tool's definition, in addition to the new arguments. If one of them can't be
// shown in full, the edit can't be confirmed.
func TestAnEditShowsAllThatItApproves(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	call := func(input string) *resolve.Call {
		return &resolve.Call{
			Kind:           resolve.Delegation,
			Agent:          "settler",
			Args:           []byte(`{"mode":"all"}`),
			ParentInput:    []byte(input),
			Principal:      "client-7",
			Session:        "s-1",
			ToolDefinition: "sha256:abcdef",
		}
	}
	preview := func(r *approval.Request) page {
		fields := bob.get("/requests/"+r.ID+"?show=all").form(t, "/requests/"+r.ID+"/edit", "arguments")
		h.pass(time.Second)
		fields.Set("arguments", `{"mode":"one"}`)
		fields.Set("step", "preview")
		return bob.post("/requests/"+r.ID+"/edit", fields)
	}
	r := h.ask(call(`{"amount":50000,"order":"DELETE EVERYTHING"}`))
	p := preview(r)
	p.says(
		t,
		"This is all that you approve",
		"DELETE EVERYTHING",
		"client-7",
		"sha256:abcdef",
		`"mode": "one"`,
		"desk-runtime",
	)
	confirm := p.form(t, "/requests/"+r.ID+"/edit", "Replace and approve")
	bob.later("/requests/"+r.ID+"/edit", confirm).says(t, "The arguments are replaced")
	if v := h.request(r.ID).Votes; len(v) != 1 || !v[0].Full {
		t.Errorf("%+v", v)
	}

	large := h.ask(call(`{"amount":50000,"order":"` + strings.Repeat("x", 1<<20) + `"}`))
	p = preview(large)
	p.says(t, "The edited call can't be shown fully")
	p.lacks(t, "Replace and approve")
}

// TestWhatMovedIsNotConfirmed: if the rules decide an edit differently after its preview, it can't
// be confirmed.
func TestWhatMovedIsNotConfirmed(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	r := h.ask(tool("place_order", order))
	fields := bob.request(r.ID).form(t, "/requests/"+r.ID+"/edit", "arguments")
	h.pass(time.Second)
	fields.Set("arguments", `{"side":"buy","quantity":10,"symbol":"ACME"}`)
	fields.Set("step", "preview")
	confirm := bob.post("/requests/"+r.ID+"/edit", fields).
		form(t, "/requests/"+r.ID+"/edit", "Replace and approve")
	h.pass(time.Second)
	if _, err := h.service.Open(t.Context(), approval.OpenInput{
		Tenant: tenant,
		Asker:  approval.Asker{Token: "second"},
		Agent:  "trading-desk",
		Call:   &r.Current().Call,
	}); err != nil {
		t.Fatal(err) // another caller joined, which the page did not show
	}

	bob.post("/requests/"+r.ID+"/edit", confirm).says(t, "Nothing was decided")
	if got := h.request(r.ID); len(got.Revisions) != 1 {
		t.Error("it was edited")
	}
}

// TestHiddenValuesStayHiddenEverywhere: values at any depth and in the parent's input are hidden,
// listed by path, recorded, and block an approval if the policy says so.
func TestHiddenValuesStayHiddenEverywhere(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	c := tool("vault", `{"path":"prod/db","auth":[{"secret":"hunter2"}]}`)
	r := h.ask(c)
	for _, path := range []string{"/", "/?tab=open", "/requests/" + r.ID, "/requests/" + r.ID + "?show=all"} {
		bob.get(path).lacks(t, "hunter2")
	}
	p := bob.request(r.ID)
	p.says(
		t,
		"1 value is hidden by policy: auth.0.secret.",
		"A policy forbids approving it while they are hidden",
		"It can be denied",
	)
	p.lacks(t, `value="approve"`, "Edit the arguments")
	forced := p.form(t, "/requests/"+r.ID+"/vote", `value="deny"`)
	forced.Set("verdict", "approve")
	bob.cast(r.ID, forced).says(t, "Nothing was decided.", "forbids approving while it hides a value", "auth.0.secret")
	bob.answer(r.ID, "deny", nil).says(t, "Denied.")
	if v := h.request(r.ID).Votes; len(v) != 1 || !slices.Equal(v[0].Hidden, []string{"auth.0.secret"}) {
		t.Errorf("%+v", v)
	}

	pay := h.ask(tool("pay", `{"iban":"DE02","amount":1200,"to":{"name":"Erika","note":"rent"}}`))
	bob.answer(pay.ID, "approve", nil).says(t, "Approved.")
	if v := h.request(pay.ID).Votes; !slices.Equal(v[0].Hidden, []string{"iban", "to.name"}) {
		t.Errorf("%+v", v)
	}
	plain := h.ask(tool("vault", `{"path":"prod/db"}`)) // contains no hidden value
	bob.answer(plain.ID, "approve", nil).says(t, "Approved.")
}

// TestAnUnknownPersonIsCalledOne: the list, the head of the page and the fact say that the person
// is unknown.
func TestAnUnknownPersonIsCalledOne(t *testing.T) {
	h := open(t)
	c := tool("place_order", order)
	c.Principal = "mallory"
	r := h.ask(c)
	bob := h.browser("bob")
	bob.get("/").says(t, "Unknown person: mallory")
	bob.request(r.ID).says(
		t,
		"for mallory (unknown person)",
		"nobody is known by this name, so one more person must agree",
		"0 of 2 approved",
	)
	known := h.ask(tool("place_order", order))
	bob.request(known.ID).lacks(t, "unknown person")
}

// TestWaitingForMeHoldsWhatMyAnswerWouldChange: requests that the visitor has answered are in a
// separate list, and requests that they may not answer are in neither list.
func TestWaitingForMeHoldsWhatMyAnswerWouldChange(t *testing.T) {
	h := open(t)
	big := h.ask(tool("execute_trade", trade))
	alice := h.browser("alice")
	dave := h.browser("dave")
	bob := h.browser("bob")
	olga := h.browser("olga")
	lists := func(b *browser, tab string) bool {
		return strings.Contains(b.get("/?tab="+tab).body, "r-"+big.ID)
	}
	if !lists(alice, "mine") || lists(alice, "others") {
		t.Error("it waits for alice")
	}
	if lists(olga, "mine") || lists(olga, "others") || !lists(olga, "open") {
		t.Error("an owner is not asked")
	}
	alice.answer(big.ID, "approve", nil)
	if lists(alice, "mine") || !lists(alice, "others") {
		t.Error("alice has answered")
	}
	dave.answer(big.ID, "approve", nil)
	if !lists(bob, "mine") {
		t.Error("the seat of desk-heads is free for bob")
	}
	h.pass(11 * time.Minute)
	if _, err := h.service.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	bob.request(big.ID).says(t, "risk-leads is called in and may approve in place of desk-heads, risk")
}

// TestAQuorumThatNobodyCanFillIsSaidBeforeAnybodyVotes: the list and the page show it, with the
// numbers.
func TestAQuorumThatNobodyCanFillIsSaidBeforeAnybodyVotes(t *testing.T) {
	h := open(t)
	r := h.ask(tool("purge", `{"table":"customers"}`))
	bob := h.browser("bob")
	bob.get("/").says(t, "Nobody can fill its quorum")
	bob.request(r.ID).says(
		t,
		"Nobody can fill this quorum.",
		"9 of desk-heads: only 2 of them may answer this",
		"It can only be denied, or expire",
	)
	fine := h.ask(tool("wire", wire))
	bob.request(fine.ID).lacks(t, "Nobody can fill")
}

// TestEveryTextIsLabelledWithItsWriter: the writer is an agent's author, a policy's author, or
// assent. The values are the agent's.
func TestEveryTextIsLabelledWithItsWriter(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	for name, c := range map[string]struct{ args, says string }{
		"place_order": {
			order,
			"By the author of the agent’s file, not checked by anybody. The values in it come from the call",
		},
		"wire": {wire, "By the author of a policy. The values in it come from the call"},
		"big": {
			`{"key":"AKIA"}`,
			"Made by assent from the call, since no rule has a message: its values are the agent’s.",
		},
	} {
		r := h.ask(tool(name, c.args))
		bob.request(r.ID).says(t, c.says)
	}

	bob.get("/").lacks(t, "author")
}

// TestWhyIsSaidInWords: the page shows the rule's description and the values that matched.
func TestWhyIsSaidInWords(t *testing.T) {
	h := open(t)
	r := h.ask(tool("wire", wire))
	h.browser("bob").request(r.ID).says(
		t,
		"Wires above 10,000 need two of risk and a head.",
		"amount is 25,000, above 10,000",
		"policy acme.trade-controls, rule wires",
	)
}

// TestTitlesSayWhatWouldRun: titles are made from the call, so that five wires have five different
// titles.
func TestTitlesSayWhatWouldRun(t *testing.T) {
	h := open(t)
	r := h.ask(tool("wire", wire))
	bob := h.browser("bob")
	const what = "wire amount 25,000 EUR to DE89370400440532013000 reference Invoice 4711"
	bob.get("/").says(t, what)
	p := bob.request(r.ID)
	p.says(t, what, "wire amount 25,000 EUR, to DE89370400440532013000, reference Invoice 4711 · assent")
}

// TestADenialNeedsAReason: a denial needs a reason in the form and in a batch, even if fields are
// missing, and its message is not shown as a success.
func TestADenialNeedsAReason(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	r, other := h.ask(tool("place_order", order)), h.ask(tool("place_order", `{"quantity":7}`))
	for _, none := range []url.Values{{"preset": {""}, "reason": {"  "}}, {"preset": {"made up"}}} {
		bob.answer(r.ID, "deny", none).says(t, "Nothing was decided.", "Say why it must not run")
	}
	fields := bob.get("/batch?id="+r.ID+"&id="+other.ID).form(t, "/batch", `value="deny"`)
	bob.later("/batch", fields).says(t, "Nothing was decided", "say why it must not run")
	if got := h.request(r.ID); got.State != approval.Pending || len(got.Votes) != 0 {
		t.Fatalf("%s %v", got.State, got.Votes)
	}
	p := bob.answer(r.ID, "deny", url.Values{"preset": {""}, "reason": {"the wrong desk"}})
	p.says(t, "Denied. It will not run. The agent is told why.", "the wrong desk")
	if !strings.Contains(p.body, `class="said done"`) {
		t.Error("a denial is shown as a success")
	}
	for _, preset := range []string{"Not needed", "Wrong target or values", "Not now", "Talk to me first"} {
		bob.request(other.ID).says(t, preset)
	}
}

// TestButtonsSayWhatTheyDo: ids and digests are shown next to the buttons, and requests that need
// special attention are answered alone.
func TestButtonsSayWhatTheyDo(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	one, two := h.ask(tool("place_order", `{"quantity":1}`)), h.ask(tool("place_order", `{"quantity":2}`))
	odd := h.ask(tool("place_order", `{"quantity":3,"note":"a\u202eb"}`))
	p := bob.get("/batch?id=" + one.ID + "&id=" + two.ID)
	for _, button := range []string{"data-armed>Approve both</button>", "data-armed>Deny both</button>"} {
		if !strings.Contains(p.body, button) {
			t.Errorf("no %s", button)
		}
	}
	if body := bob.request(one.ID).body; !strings.Contains(
		body,
		`data-armed>Approve</button> <span class="for">…`+one.ID[len(one.ID)-6:],
	) {
		t.Error("the button and what it is for are one text")
	}

	bob.get("/batch?id="+one.ID+"&id="+odd.ID).says(t, "One of these is answered alone")
	if strings.Contains(bob.get("/").body, `name="id" value="`+odd.ID) {
		t.Error("it can be chosen")
	}
}

// TestWhoHasApprovedIsNotAskedAgain: the form disappears, and the page says what is still missing.
func TestWhoHasApprovedIsNotAskedAgain(t *testing.T) {
	h := open(t)
	big := h.ask(tool("execute_trade", trade))
	p := h.browser("alice").answer(big.ID, "approve", nil)
	p.lacks(t, `value="approve"`, "Edit the arguments", "Approve…")
	p.says(
		t,
		"You have approved this. Still missing: 1 of desk-heads (Bob Roe, Carol Poe may), 1 of risk (Bob Roe, Dave "+
			"Moe may).",
	)
	p.form(t, "/requests/"+big.ID+"/vote", `value="deny"`)
}

// TestHintsAreSaidInPlainWords: the page shows what a server claims about its tool and how
// trustworthy that is. A missing hint is not shown as a double negation.
func TestHintsAreSaidInPlainWords(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	mcp := func(args string, hints map[string]bool) *approval.Request {
		return h.ask(&resolve.Call{
			Kind:        resolve.MCPTool,
			Server:      "git",
			Tool:        "push",
			Args:        []byte(args),
			Principal:   "client-7",
			Annotations: hints,
		})
	}
	bob.get("/requests/"+mcp(`{"n":1}`, nil).ID).says(t, "Not declared safe")
	p := bob.get("/requests/" + mcp(`{"n":2}`, map[string]bool{"destructiveHint": false}).ID)
	p.says(t, "Hint destructiveHint", "by its server, which is not believed: it takes the call out of no rule")
	p.lacks(t, "stricter", "Not declared safe")
	bob.get("/requests/"+mcp(`{"n":3}`, map[string]bool{"destructiveHint": true}).ID).
		says(t, "Declared destructive")
}
