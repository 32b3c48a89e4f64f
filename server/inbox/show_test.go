package inbox_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
)

// TestNotShownIsNotApproved: a call that is cut can only be approved from the page that shows all
// of it, and a call that is too large to read can't be approved.
func TestNotShownIsNotApproved(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	for name, c := range map[string]struct {
		args  string
		says  string
		never bool
	}{
		"long text": {`{"a":"` + strings.Repeat("x", 2001) + `END"}`, "1 of 2,004 characters", false},
		"long list": {`{"a":[` + strings.Repeat("1,", 300) + `1]}`, "101 of 301 not shown here", false},
		"many members": {
			`{"a":[[` + strings.Repeat(`"aaaaaaaaaaaaaaaaaaaa",`, 199) + `1]` +
				strings.Repeat(`,["`+strings.Repeat("b", 1900)+`"]`, 40) + `]}`,
			"more than a page shows at once",
			false,
		},
		"too deep": {strings.Repeat(`{"a":`, 30) + `1` + strings.Repeat(`}`, 30), "nested more than 24 levels", false},
		"1 MB":     {`{"a":"` + strings.Repeat("y", 1<<20) + `"}`, "Too large to approve here", true},
	} {
		r := h.ask(tool("big", c.args))
		p := bob.request(r.ID)
		if name != "long text" {
			p.says(t, c.says)
		} else {
			p.says(t, "4 of 2,004 characters not shown here")
		}
		p.lacks(t, `name="verdict" value="approve"`)
		all := bob.get("/requests/" + r.ID + "?show=all")
		if c.never {
			all.lacks(t, `name="verdict" value="approve"`)
			bob.answer(r.ID, "deny", nil).says(t, "Denied.")
			continue
		}
		all.lacks(t, "not shown here", "Not everything is shown")
		fields := all.form(t, "/requests/"+r.ID+"/vote", `value="approve"`)
		bob.cast(r.ID, fields).says(t, "Approved. It may now run once")
	}
}

// TestHiddenValuesStayHidden: hidden values and messages that contain them are on no page, but
// structure and sizes are.
func TestHiddenValuesStayHidden(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	r := h.ask(tool(
		"pay",
		`{"iban":"DE02120300000000202051","amount":1200,"to":{"name":"Erika Muster","note":"rent"}}`,
	))
	h.seal()
	p := bob.request(r.ID)
	p.says(
		t,
		"2 values are hidden by policy: iban, to.name.",
		"hidden by policy: string of 22 characters",
		`"note": "rent"`,
		"Whoever approves, approves them unseen",
	)
	p.lacks(t, "Edit the arguments")
	bob.answer(r.ID, "approve", url.Values{"grant": {"on"}, "uses": {"5"}, "hours": {"1"}}).says(t, "Approved.")
	h.seal()
	for _, path := range []string{
		"/",
		"/?tab=open",
		"/requests/" + r.ID,
		"/requests/" + r.ID + "?show=all",
		"/grants",
		"/ledger",
		"/ledger?subject=" + r.ID,
		"/deliveries?state=waiting",
	} {
		bob.get(path).lacks(t, "DE02", "Erika")
	}
}

func TestEdit(t *testing.T) {
	h := open(t)
	bob, alice := h.browser("bob"), h.browser("alice")
	r := h.ask(tool("execute_trade", `{"amount":20000,"currency":"USD","note":"a\u202eb"}`))
	alice.answer(r.ID, "approve", nil)
	path := "/requests/" + r.ID + "/edit"
	fields := bob.request(r.ID).form(t, path, "arguments")
	if got := fields.Get("arguments"); !strings.Contains(got, `a\u202eb`) || strings.Contains(got, "\u202e") {
		t.Errorf("the editor holds %q", got)
	}
	h.pass(time.Second)
	preview := func(args string) page {
		fields.Set("arguments", args)
		fields.Set("step", "preview")
		return bob.post(path, fields)
	}
	preview(`{"amount":1,"amount":2}`).says(t, "Arguments: expected readable JSON")
	preview(`"{\"amount\":1}"`).says(t, "Arguments: expected an object")
	preview(`{"amount":20000,"currency":"USD","note":"a\u202eb"}`).says(t, "Nothing is changed yet.")
	p := preview("{\r\n\"amount\":18000,\r\n\"currency\":\"USD\",\"memo\":[1]}")
	p.says(
		t,
		"amount 20000 18000",
		"memo not there [1]",
		"note",
		"removed",
		"The rules say: ask",
		"would need: 1 of desk-heads, 2 of risk",
		"This is all that you approve",
		"Acts forclient-7",
		"Rules as of plan",
		"This replaces the arguments",
	)
	if got := h.request(r.ID); len(got.Revisions) != 1 {
		t.Fatal("a preview changed something")
	}
	confirm := p.form(t, path, "Replace and approve")
	h.pass(time.Second)
	tampered := url.Values{}
	for k, v := range confirm {
		tampered[k] = v
	}
	tampered["arguments"] = []string{`{"amount":99000,"currency":"USD"}`}
	bob.post(path, tampered).says(t, "Your page did not show the whole call.")
	bob.post(path, confirm).says(
		t,
		"The arguments are replaced",
		"It takes more people",
		"Edited by Bob Roe",
		"1 of 1 approved",
		"Still missing: 2 of risk (Alice Doe, Dave Moe may)",
	)
	got := h.request(r.ID)
	if len(got.Revisions) != 2 || string(got.Current().Call.Args) != "{\n\"amount\":18000,\n"+
		"\"currency\":\"USD\",\"memo\":[1]}" || got.Current().Author != "bob@example.com" {
		t.Errorf("%+v", got.Current())
	}
	bob.post(path, confirm).says(t, "Nothing was decided: the request changed")
}

func TestBatch(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	var ids []string
	q := url.Values{}
	for _, n := range []string{"1", "2", "3"} {
		r := h.ask(tool("place_order", `{"side":"buy","quantity":`+n+`,"symbol":"BATCH`+n+`"}`))
		ids = append(ids, r.ID)
		q.Add("id", r.ID)
	}
	other := h.ask(tool("execute_trade", trade))
	bob.get("/batch").says(t, "Choose requests first")
	bob.get("/batch?"+q.Encode()+"&id="+other.ID).says(t, "These can't be answered together")
	h.browser("olga").get("/batch?"+q.Encode()).says(t, "One of these can't be answered by you")
	p := bob.get("/batch?" + q.Encode())
	p.says(t, "3 requests for tool place_order", "BATCH1", "BATCH2", "BATCH3", "Approve all 3", "Deny all 3")
	fields := p.form(t, "/batch", `value="approve"`)
	h.pass(time.Second)
	h.browser("carol").answer(ids[1], "deny", nil)
	bob.post("/batch", fields).
		says(t, "Approved. It may now run once", "Too late, and it ended the other way: denied.")
	for i, want := range []approval.State{approval.Approved, approval.Denied, approval.Approved} {
		if got := h.request(ids[i]).State; got != want {
			t.Errorf("%d: %s", i, got)
		}
	}
	mixed := url.Values{
		"verdict": {"approve"},
		"seen": {
			bob.request(other.ID).form(t, "/requests/"+other.ID+"/vote", `"approve"`).Get("seen"),
			bob.get("/requests/"+h.ask(tool("place_order", `{"quantity":9}`)).ID).form(
				t,
				"/requests/"+h.ask(tool("place_order", `{"quantity":9}`)).ID+"/vote",
				`"approve"`,
			).Get("seen"),
		},
	}
	bob.later("/batch", mixed).says(t, "Nothing was done")
	if got := h.request(other.ID); len(got.Votes) != 0 {
		t.Error("a mixed batch voted")
	}
}

// hostile is inserted wherever a text from outside can appear.
const hostile = `"><script>document.title="owned"</script><img src=x onerror="document.title='owned'">{{.}}</textarea>` + "\u202e\U000e0041"

func (h *site) hostileRequest() *approval.Request {
	h.t.Helper()
	quoted := `"\"><script>document.title=\"owned\"</script><img src=x ` +
		`onerror=\"document.title='owned'\">{{.}}</textarea>` + "\u202e\U000e0041" + `"`
	c := tool("place_order", `{`+quoted+`:`+quoted+`,"side":`+quoted+`,"quantity":7}`)
	c.Session, c.ToolDefinition = hostile, hostile
	r := h.ask(c)
	bob := h.browser("bob")
	bob.answer(r.ID, "approve", url.Values{
		"reason": {strings.ReplaceAll(hostile, "\n", " ")},
		"grant":  {"on"},
		"uses":   {"2"},
		"hours":  {"1"},
	})
	c.Args = []byte(strings.Replace(string(c.Args), "7", "8", 1))
	again := h.ask(c)
	if err := h.service.Freeze(h.t.Context(), tenant, "x"+hostile, "carol@example.com", hostile); err != nil {
		h.t.Fatal(err)
	}
	h.seal()
	return again
}

func (h *site) hostilePages(r *approval.Request) []string {
	q := url.QueryEscape(hostile)
	return []string{
		"/",
		"/?tab=decided&agent=" + q,
		"/?tab=open&target=" + q + "&principal=" + q,
		"/requests/" + r.ID,
		"/requests/" + r.ID + "?said=" + q,
		"/grants",
		"/ledger",
		"/ledger?subject=" + q,
		"/activity",
		"/agents",
		"/freeze",
	}
}

// TestHostileTexts: all data is plain text on a page, and characters that could be invisible are
// spelled out.
func TestHostileTexts(t *testing.T) {
	h := open(t)
	r := h.hostileRequest()
	for _, path := range h.hostilePages(r) {
		p := h.browser("carol").get(path)
		if p.status != 200 {
			t.Errorf("%s: %d %s", path, p.status, p.text())
		}
		if strings.Contains(p.body, "<script>document") || strings.Contains(p.body, "<img") {
			t.Errorf("%s: markup from data", path)
		}
		rest := html.UnescapeString(inputPattern.ReplaceAllString(p.body, ""))
		if strings.ContainsAny(rest, "\u202e\U000e0041") {
			t.Errorf("%s: a hidden character reaches the page", path)
		}
	}
}

// TestTroubleIsNamed: the list and the page describe spelled-out characters in a sentence, even if
// JSON escapes hide them.
func TestTroubleIsNamed(t *testing.T) {
	h := open(t)
	r := h.ask(tool("place_order", `{"to":"p\u0430ypal","note":"a\u202eb","pad":"x`+strings.Repeat(" ", 40)+`y"}`))
	bob := h.browser("bob")
	bob.get("/").says(t, "Hidden characters in the arguments", "Look-alike characters in the arguments")
	bob.request(r.ID).says(
		t,
		"Characters that reorder text are spelled out.",
		"Some words mix alphabets",
		"not “paypal”: U+0430",
		"[40 spaces]",
		`a\u{202e}b`,
	)
}

// TestPrunedRequests: the page says which data retention has deleted, and shows the rest.
func TestPrunedRequests(t *testing.T) {
	h := open(t)
	h.fill()
	r := h.ask(tool("place_order", `{"side":"buy","quantity":4711}`))
	h.browser("bob").answer(r.ID, "deny", url.Values{"reason": {"no"}})
	h.seal()
	if _, _, err := h.store.Prune(t.Context(), tenant, h.now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p := h.browser("bob").request(r.ID)
	p.says(t, "no longer kept", "Denied")
	p.lacks(t, "4711")
	for _, path := range []string{
		"/?tab=decided",
		"/grants?all=1",
		"/ledger",
		"/requests/" + h.ask(tool("place_order", `{"quantity":1}`)).ID,
	} {
		if p := h.browser("bob").get(path); p.status != 200 {
			t.Errorf("%s: %d %s", path, p.status, p.text())
		}
	}
}
