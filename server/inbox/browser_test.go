package inbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/approval"
	browsers "github.com/assent-dev/assent/internal/chromium"
	"github.com/assent-dev/assent/internal/must"
)

// TestPagesInChromium opens every page, light and dark, wide and narrow, and checks it with
// axe-core.
func TestPagesInChromium(t *testing.T) {
	t.Parallel()
	browser, axe := chromium(t), axeSource(t)
	h := openArmed(t, time.Millisecond)
	r := h.fill()
	must.Do(t, h.service.Freeze(t.Context(), tenant, "other-agent", "carol@example.com", "Looks odd"))
	h.seal()
	hidden := h.ask(tool("pay", `{"iban":"DE0212","amount":7,"to":{"name":"Erika","note":"rent"}}`))
	long := h.ask(tool("big", `{"text":"`+strings.Repeat("lorem ipsum ", 8000)+`"}`))
	order := h.ask(tool("place_order", `{"side":"buy","quantity":1000,"symbol":"INIT"}`))
	other := h.ask(tool("place_order", `{"side":"buy","quantity":2000,"symbol":"INIT"}`))
	for name, path := range map[string]string{
		"queue":      "/",
		"open":       "/?tab=open",
		"decided":    "/?tab=decided",
		"request":    "/requests/" + r.ID,
		"hidden":     "/requests/" + hidden.ID,
		"order":      "/requests/" + order.ID,
		"long":       "/requests/" + long.ID,
		"batch":      "/batch?id=" + order.ID + "&id=" + other.ID,
		"grants":     "/grants",
		"ledger":     "/ledger",
		"activity":   "/activity",
		"deliveries": "/deliveries?state=waiting",
		"freeze":     "/freeze",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := h.tab(t, browser, "bob")
			tab.open(path)
			tab.armed()
			eval[chromedp.Void](tab, axe+";0")
			for _, look := range browsers.Looks(name) {
				tab.in.Show(look, 900)
				tab.shoot(look.String() + "-" + name)
				tab.armed() // a resized window may come to the front again
				tab.axe(look.String() + " " + name)
			}
		})
	}
}

// TestAnswersLeadOn: one key goes back to the list, and another one to the next waiting request.
func TestAnswersLeadOn(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	first, second := h.ask(tool("place_order", `{"quantity":1}`)), h.ask(tool("place_order", `{"quantity":2}`))
	b := h.tab(t, browser, "bob")
	b.size(1280, 900)
	at := func(path string) {
		t.Helper()
		b.until(path, `location.pathname === "`+path+`"`)
	}
	b.open("/requests/" + first.ID)
	b.armed()
	b.click("#approve-form button")
	b.until("the outcome", `document.querySelector(".said.good")`)
	b.armed()
	b.press("n")
	at("/requests/" + second.ID)
	b.armed()
	b.press("u")
	at("/")
	b.armed()
	b.press("j")
	b.press("\r")
	at("/requests/" + second.ID)
	if eval[bool](b, `!!document.getElementById("next")`) {
		t.Error("nothing else waits")
	}
}

// TestTitlesCountAndNotificationsTell: every page has them, without any content of the requests.
func TestTitlesCountAndNotificationsTell(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	h.ask(tool("place_order", `{"quantity":1}`))
	b := h.tab(t, browser, "bob")
	b.open("/ledger")
	b.until("a count in the title", `document.title === "(1) Ledger · assent"`)
	eval[chromedp.Void](
		b,
		`window.Notification = class { static permission = "granted"; static async requestPermission() { return `+
			`"granted" } constructor(title, options) { window.told = options.body } addEventListener() {} }`,
	)
	b.click("#notify")
	b.until("it is kept", `localStorage.getItem("assent-notify") === "on"`)
	eval[chromedp.Void](b, `Object.defineProperty(document, "hidden", { value: true })`)
	h.ask(tool("place_order", `{"quantity":4242}`))
	h.seal()
	b.until("the new count", `document.title === "(2) Ledger · assent"`)
	b.until("the notification", `window.told === "2 waiting for you"`)
	eval[chromedp.Void](b, "localStorage.clear()")
	if p := h.browser("bob").get("/"); !strings.Contains(p.body, "<title>(2) Queue · assent</title>") {
		t.Error("without a script the list's title counts too")
	}
	h.browser("bob").get("/waiting").says(t, `{"more":false,"total":2}`)
}

// TestTheListStaysUnderThePointer: the visible part of the list does not move when a request is
// inserted before it.
func TestTheListStaysUnderThePointer(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	h.many()
	b := h.tab(t, browser, "bob")
	b.size(390, 500)
	b.open("/")
	b.armed()
	const row = `[...document.querySelectorAll(".request")][12]`
	eval[chromedp.Void](
		b,
		row+`.classList.add("current"), window.kept = `+row+`.id, `+row+
			`.scrollIntoView(), window.top0 = document.getElementById(kept).getBoundingClientRect().top`,
	)
	h.ask(tool("execute_trade", trade)) // due first
	h.seal()
	b.until("the new list", `document.getElementById("total").textContent.startsWith("28 ")`)
	if moved := eval[float64](
		b,
		`Math.abs(document.getElementById(kept).getBoundingClientRect().top - top0)`,
	); moved > 2 {
		t.Errorf("the row moved by %.0f pixels", moved)
	}
}

// TestTheTotalFollowsWhatIsTyped: the total is the number of uses times the largest number that
// each use may have.
func TestTheTotalFollowsWhatIsTyped(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	r := h.ask(tool("refund", `{"amount":340.00,"currency":"USD","order":"R-1"}`))
	b := h.tab(t, browser, "bob")
	b.size(1280, 900)
	b.open("/requests/" + r.ID)
	b.armed()
	b.click("details.grant summary")
	total := `document.querySelector("output[data-each]").textContent`
	if got := eval[string](b, total); got != "1 × 340.00 = 340.00 USD" {
		t.Errorf("%q", got)
	}
	for uses, want := range map[string]string{
		"20":    "20 × 340.00 = 6,800.00 USD",
		"10000": "10,000 × 340.00 = 3,400,000.00 USD",
		"":      "…",
	} {
		eval[chromedp.Void](
			b,
			`(()=>{const u=document.querySelector("input[name=uses]"); u.value="`+uses+
				`"; u.dispatchEvent(new Event("input",{bubbles:true}))})()`,
		)
		if got := eval[string](b, total); got != want {
			t.Errorf("%s: %q, want %q", uses, got, want)
		}
	}

	b.shoot("grant")
}

// TestPagesOfEveryKindFitAPhone: no page is wider than the window.
func TestPagesOfEveryKindFitAPhone(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	h := openArmed(t, time.Millisecond)
	h.many()
	h.seal()
	b := h.tab(t, browser, "bob")
	list, err := h.store.Requests(
		t.Context(),
		tenant,
		approval.Filter{States: []approval.State{approval.Pending}, Limit: 100},
	)
	must.Do(t, err)
	for i, s := range list.Requests[17:] {
		b.size(1280, 900)
		b.open("/requests/" + s.ID)
		b.shoot(fmt.Sprintf("kind-%d-wide", i))
		b.size(390, 844)
		b.shoot(fmt.Sprintf("kind-%d-narrow", i))
		if over := eval[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%s: the page is %d pixels wider than a phone", s.Target, over)
		}
	}
}
