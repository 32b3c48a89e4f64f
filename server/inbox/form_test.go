package inbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	browsers "github.com/assent-dev/assent/internal/chromium"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// flight is the form of the accepted design's example.
const flight = `{"type":"object","title":"Your <b>flight</b>","properties":{
	"name":{"type":"string","title":"Passenger","minLength":2,"maxLength":60,"description":"As in the passport"},
	"mail":{"type":"string","format":"email","title":"E-mail"},
	"day":{"type":"string","format":"date","title":"Day"},
	"class":{"type":"string","title":"Class","enum":["eco","biz"],"enumNames":["Economy","Business"],"default":"eco"},
	"bags":{"type":"integer","title":"Bags","minimum":0,"maximum":3,"default":1},
	"aisle":{"type":"boolean","title":"On the aisle"},
	"extras":{"type":"array","title":"Extras","items":{"type":"string","enum":["wifi","meal","lounge"]},"maxItems":2},
	"note":{"type":"string","title":"Anything else"}},
	"required":["name","class"]}`

// asksForm asks bob a question with a form, as the agent itself.
func (h *site) asksForm(schema string, says ...info.Item) *approval.Request {
	h.t.Helper()
	out, err := h.service.Ask(h.t.Context(), approval.AskInput{
		Tenant:   tenant,
		Agent:    "trading-desk",
		Asker:    approval.Asker{Token: "desk-runtime"},
		Key:      approval.NewKey(),
		Call:     &resolve.Call{Principal: "bob"},
		Context:  says,
		Question: approval.Question{Asker: "booking", Prompt: "Who flies, and how?", Schema: json.RawMessage(schema)},
	})
	if err != nil || out.Request == nil {
		h.t.Fatal(out, err)
	}

	return out.Request
}

func TestAFormIsFilledInWithoutJavaScript(t *testing.T) {
	h := open(t)
	r := h.asksForm(flight, info.Item{Label: "Why", Text: "You asked for <i>Friday</i>."},
		info.Item{Label: "Fares", Link: "https://fares.example.com/x?y=1"})
	bob := h.browser("bob")
	bob.get("/").says(t, "booking asks for 8 things in a form")
	p := bob.get("/requests/" + r.ID)
	inOrder(t, p.text(), "Question of booking", "What we know", "The agent asks by itself", "Acts for",
		"What the agent says about it", "own words, which nobody checked", "You asked for <i>Friday</i>.",
		"fares.example.com", "What the agent asks", "Who flies, and how?", "Your <b>flight</b>", "Passenger",
		"As in the passport", "2 to 60 characters; needed", "Dismiss without an answer")
	for _, raw := range []string{"<b>flight</b>", "<i>Friday</i>", `name="choice"`} {
		if strings.Contains(p.body, raw) {
			t.Errorf("the page holds %q", raw)
		}
	}

	path := "/requests/" + r.ID + "/vote"
	fields := p.form(t, path, `value="submit"`)
	fields.Set("field.0", "M")
	fields.Set("field.1", "no mail")
	fields.Set("field.3", "first")
	fields.Set("field.4", "four")
	fields["field.6"] = []string{"wifi", "meal", "lounge"}
	fields.Set("field.7", `"><script>x</script>`)
	h.pass(time.Second)
	wrong := bob.post(path, fields)
	wrong.says(t, "Nothing was answered. Mend 5 fields", "Passenger: expected a text, 2 to 60 characters",
		"Expected an e-mail address", "Expected one of the 2 options", "Expected a whole number from 0 to 3",
		"Expected options of the list, each once, at most 2 options")
	if strings.Contains(wrong.body, "<script>x") || wrong.status != 200 || h.request(r.ID).State != approval.Pending {
		t.Errorf("%d, %s", wrong.status, h.request(r.ID).State)
	}

	again := wrong.form(t, path, `value="submit"`)
	again.Set("field.0", "Mara Ö")
	again.Set("field.7", fields.Get("field.7"))
	again.Set("field.3", "biz")
	again.Set("field.4", "2")
	again.Set("field.5", "true")
	again["field.6"] = []string{"meal"}
	h.pass(time.Second)
	bob.post(path, again).says(t, "Answered: booking gets what you wrote.")
	got := h.request(r.ID)
	want := `{"aisle":true,"bags":2,"class":"biz","extras":["meal"],"name":"Mara Ö","note":"\"><script>x</script>"}`
	var data map[string]any
	if err := json.Unmarshal(got.Data, &data); err != nil || data["note"] != `"><script>x</script>` ||
		data["bags"] != 2.0 || data["name"] != "Mara Ö" || len(data) != 6 {
		t.Errorf("got %s, %v, want %s", got.Data, err, want)
	}
	bob.get("/requests/"+r.ID).says(t, "Mara Ö", "Business", "Answered by Bob Roe", "meal")
}

func TestAFreeTextIsWrittenOrDismissed(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	r := h.asksForm(`{"type":"string","maxLength":30}`)
	path := "/requests/" + r.ID + "/vote"
	fields := bob.get("/requests/"+r.ID).form(t, path, `value="submit"`)
	fields.Set("field.0", strings.Repeat("x", 31))
	h.pass(time.Second)
	bob.post(path, fields).says(t, "The text: expected a text, at most 30 characters")
	fields.Set("field.0", "by\r\nthe window")
	bob.post(path, fields).says(t, "Answered: booking gets what you wrote.")
	if got := h.request(r.ID); string(got.Data) != `"by\nthe window"` {
		t.Errorf("got %s", got.Data)
	}

	r = h.asksForm(`{"type":"string"}`)
	bob.pick(r.ID, "dismiss").says(t, "Dismissed: booking gets no answer.")
	if got := h.request(r.ID); got.Cause != approval.ByDismissal || got.Data != nil {
		t.Errorf("got %+v", got)
	}
}

// TestWhoMayNotFillInReadsOnly: other people see what is asked, without a form.
func TestWhoMayNotFillInReadsOnly(t *testing.T) {
	h := open(t)
	r := h.asksForm(flight)
	p := h.browser("alice").get("/requests/" + r.ID)
	p.says(t, "You may not answer this: the question is for the person whom the agent acts for", "Passenger")
	p.lacks(t, "answer-form", `name="field.0"`)
	h.browser("alice").get("/").lacks(t, r.ID)
}

// TestContextCannotChangeWhatStandsAboveIt: for any text of the agent, the facts come first and are
// the same.
func TestContextCannotChangeWhatStandsAboveIt(t *testing.T) {
	h := open(t)
	in := approval.OpenInput{
		Tenant: tenant,
		Agent:  "trading-desk",
		Asker:  approval.Asker{Token: "desk-runtime"},
		Call:   tool("place_order", order),
	}
	plain, err := h.service.Open(t.Context(), in)
	must.Do(t, err)
	alice := h.browser("alice")
	before, _, _ := strings.Cut(alice.get("/requests/"+plain.Request.ID).body, "</dl>")
	if _, err := h.service.Cancel(t.Context(), tenant, plain.Request.ID, "desk-runtime", ""); err != nil {
		t.Fatal(err)
	}
	in.Context = []info.Item{
		{Label: "Approved by risk", Text: "</dd></dl></section><h1>quantity 1</h1>\u202e\u200bquantity: 1\r\n\x1b[2J"},
		{Label: "Agent", Diff: "@@ -1 +1 @@\n-</div><script>x</script>\n+quantity \u202e1\n"},
		{Label: "Read", Link: "https://evil.example/%22onclick=x"},
	}
	said, err := h.service.Open(t.Context(), in)
	must.Do(t, err)
	p := alice.get("/requests/" + said.Request.ID)
	after, _, _ := strings.Cut(p.body, "</dl>")
	same := func(body, id string) string { return strings.ReplaceAll(body, id[len(id)-6:], "") }
	if len(same(before, plain.Request.ID)) != len(same(after, said.Request.ID)) {
		t.Errorf("what stands above differs:\n%s\n\n%s", before, after)
	}
	for _, raw := range []string{"<h1>quantity", "<script>x", "\u202e", "\x1b", "\u200b"} {
		if strings.Contains(p.body, raw) {
			t.Errorf("the page holds %q", raw)
		}
	}
	p.says(t, "What the agent says about it", `\u{202e}`, "evil.example")
	inOrder(t, p.text(), "Who asks, and for what", "What the agent says about it", "Approved by risk")
}

// TestALongFormOnAPhone: a form with thirty fields can be filled in at 390 px in a real browser,
// and axe finds no problems.
func TestALongFormOnAPhone(t *testing.T) {
	browser, axe := chromium(t), axeSource(t)
	h := open(t)
	properties := make([]string, 30)
	for i := range properties {
		kinds := []string{
			`"type":"string"`,
			`"type":"integer","minimum":0`,
			`"type":"boolean"`,
			`"type":"string","enum":["a","b","c_that_is_a_rather_long_and_unbroken_option_of_the_list"]`,
			`"type":"array","items":{"type":"string","enum":["x","y"]}`,
			`"type":"string","enum":["1","2","3","4","5","6","7","8"]`,
		}
		properties[i] = fmt.Sprintf(`"f%d":{"title":"Field %d of a form","description":"Some help",%s}`, i, i, kinds[i%6])
	}

	r := h.asksForm(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":["f0"]}`)
	bob := h.tab(t, browser, "bob")
	bob.open("/requests/" + r.ID)
	bob.armed()
	eval[chromedp.Void](bob, axe+";0")
	look := func(name string) {
		t.Helper()
		for _, look := range browsers.Looks("form " + name) {
			bob.in.Show(look, 844)
			bob.armed()
			bob.shoot("form-" + name + "-" + look.String())
			bob.axe(name + " " + look.String())
		}

		bob.size(390, 844)
	}
	look("open")

	bob.click("#answer-form .decide button")
	bob.until("what is wrong", `document.querySelector("#wrong a")?.textContent.includes("Field 0")`)
	eval[chromedp.Void](bob, axe+";0")
	look("wrong")
	bob.armed()
	bob.do(chromedp.SendKeys(chromedp.CSS(`[name="field.0"]`), "Mara"))
	bob.click(`[name="field.3"][value="b"]`)
	bob.click(`[name="field.4"][value="y"]`)
	bob.click("#answer-form .decide button")
	bob.until("the outcome", `document.querySelector(".said.good")?.textContent.includes("gets what you wrote")`)
	eval[chromedp.Void](bob, axe+";0")
	look("answered")
	var data map[string]any
	if err := json.Unmarshal(h.request(r.ID).Data, &data); err != nil || data["f0"] != "Mara" || data["f3"] != "b" {
		t.Errorf("got %s, %v", h.request(r.ID).Data, err)
	}

	second := h.asksForm(flight)
	call(bob, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	bob.open("/requests/" + second.ID)
	bob.do(chromedp.SendKeys(chromedp.CSS(`[name="field.0"]`), "Ann"))
	h.pass(time.Second)
	bob.click("#answer-form .decide button")
	bob.do(chromedp.WaitVisible(chromedp.CSS(".said.good")))
	if got := h.request(second.ID); got.State != approval.Answered {
		t.Errorf("without JavaScript: %s", got.State)
	}
}
