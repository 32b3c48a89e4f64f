package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/approval"
)

// TestFlowsInChromium goes through typical tasks in one browser.
func TestFlowsInChromium(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	for name, flow := range map[string]struct {
		who  string
		walk func(*testing.T, *tab)
	}{
		"a click right after the page came up decides nothing": {"bob", armFlow},
		"without JavaScript": {"bob", plainFlow},
		"keys":               {"bob", keyFlow},
		"live":               {"alice", liveFlow},
		"edit":               {"bob", editFlow},
		"batch":              {"bob", batchFlow},
		"hostile texts":      {"carol", hostileFlow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow.walk(t, open(t).tab(t, browser, flow.who))
		})
	}
}

func (b *tab) asked(args string) *approval.Request {
	b.t.Helper()
	return b.h.ask(tool("place_order", args))
}

func armFlow(t *testing.T, b *tab) {
	r := b.asked(`{"quantity":1}`)
	b.open("/requests/" + r.ID)
	if got := eval[string](
		b,
		`document.querySelector("#approve-form button").click(), document.getElementById("live").textContent`,
	); !strings.Contains(got, "Not yet") {
		t.Errorf("the page says %q", got)
	}

	b.armed()
	eval[chromedp.Void](b, `window.dispatchEvent(new Event("focus"))`) // returning to the window restarts the wait
	b.click("#approve-form button")
	if !strings.HasPrefix(eval[string](b, "location.pathname+location.search"), "/requests/"+r.ID) ||
		len(b.h.request(r.ID).Votes) != 0 {
		t.Error("a click that came too soon decided")
	}
	b.armed()
	b.click("#approve-form button")
	b.until(
		"the outcome",
		`document.querySelector(".said.good")?.textContent.includes("Approved. It may now run once")`,
	)
	if got := b.h.request(r.ID); got.State != approval.Approved {
		t.Error(got.State)
	}
}

func plainFlow(t *testing.T, b *tab) {
	r := b.asked(`{"quantity":2}`)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open("/")
	b.click("#r-" + r.ID + " h2 a")
	// The elements that chromedp finds before the page is complete may be gone when it uses them.
	b.until("the page of the request", `document.readyState === "complete" && document.querySelector("#deny-form")`)
	b.h.pass(time.Second)
	b.click(`#deny-form input[value="Wrong target or values"]`)
	b.do(chromedp.SendKeys(chromedp.CSS("#deny-form input[name=reason]"), "not this one"))
	b.click("#deny-form button")
	b.until("the outcome", `document.querySelector(".said.done")`)
	if got := b.h.request(r.ID); got.State != approval.Denied || got.Reason != "Wrong target or values: not this one" {
		t.Errorf("%s %q", got.State, got.Reason)
	}
}

func keyFlow(t *testing.T, b *tab) {
	first, second := b.asked(`{"quantity":3}`), b.asked(`{"quantity":4}`)
	b.open("/")
	b.armed()
	focused := func() string {
		return eval[string](b, `document.activeElement.closest(".request")?.id ?? ""`)
	}
	for _, step := range []struct{ key, want string }{
		{"j", first.ID},
		{"j", second.ID},
		{"j", second.ID},
		{"k", first.ID},
	} {
		if b.press(step.key); focused() != "r-"+step.want {
			t.Errorf("%s leads to %s", step.key, focused())
		}
	}

	b.press("\r")
	b.until("the request", `location.pathname === "/requests/`+first.ID+`"`)
	b.armed()
	for key, want := range map[string]string{"a": "approve-form", "r": "deny-form", "e": "edit-form"} {
		b.press(key)
		if got := eval[string](b, `document.activeElement.closest("form")?.id ?? ""`); got != want {
			t.Errorf("%s leads to %q", key, got)
		}
		b.press("aj?") // in a field, keys only enter text
		eval[chromedp.Void](b, "document.activeElement.blur()")
	}

	b.press("?")
	b.until("the list of keys", `document.getElementById("keys").open`)
	b.click("#keys-on")
	b.until("shortcuts off", `localStorage.getItem("assent-keys") === "off"`)
	b.click("#keys button")
	b.until("no list of keys", `!document.getElementById("keys").open`)
	b.press("a") // the focus may still be returning from the list of keys
	if got := eval[bool](b, `document.activeElement.closest("#approve-form") === null`); !got {
		t.Error("a key works though shortcuts are off")
	}
	eval[chromedp.Void](b, "localStorage.clear()")
	if got := b.h.request(first.ID); got.State != approval.Pending || len(got.Votes) != 0 {
		t.Error("a key decided")
	}
}

func liveFlow(t *testing.T, b *tab) {
	b.asked(`{"quantity":50}`)
	b.open("/?agent=trading-desk&target=tool+place_order")
	b.armed()
	b.click("input[name=id]")
	r := b.asked(`{"quantity":5}`)
	b.h.seal()
	b.until("the new request", `document.getElementById("r-`+r.ID+`")`)
	if !eval[bool](b, `document.querySelector("input[name=id]").checked`) ||
		!strings.Contains(eval[string](b, `document.getElementById("live").textContent`), "waiting for you") {
		t.Error("the choice is lost, or nothing is said")
	}
	b.open("/requests/" + r.ID)
	b.armed()
	b.h.browser("bob").answer(r.ID, "deny", nil)
	b.h.seal()
	b.until("the notice", `document.getElementById("moved")?.textContent.includes("Something happened")`)
}

func editFlow(t *testing.T, b *tab) {
	r := b.asked(`{"side":"buy","quantity":600,"symbol":"ACME"}`)
	b.open("/requests/" + r.ID)
	b.armed()
	b.press("e") // the protocol also types the key although the page handled it; a keyboard would not
	eval[chromedp.Void](
		b,
		`(()=>{const a=document.querySelector("#edit-form textarea"); `+
			`a.value=a.value.replace(/^e/,"").replace("600","60"); a.dispatchEvent(new `+
			`Event("input",{bubbles:true}))})()`,
	)
	b.until("the live difference", `document.querySelector("#preview ins")?.textContent === "60"`)
	b.shoot("flow-edit")
	b.click("#edit-form button")
	b.until("the preview", `document.title.includes("Edit ")`)
	b.armed()
	b.shoot("flow-edit-confirm")
	b.click("[data-guard] button.primary")
	b.until("the outcome", `document.querySelector(".said.good")?.textContent.includes("The arguments are replaced")`)
	b.shoot("flow-edited")
	if got := b.h.request(r.ID); got.State != approval.Approved ||
		!strings.Contains(string(got.Current().Call.Args), "60,") {
		t.Errorf("%s %s", got.State, got.Current().Call.Args)
	}
}

func batchFlow(t *testing.T, b *tab) {
	one, two := b.asked(`{"quantity":71}`), b.asked(`{"quantity":72}`)
	other := b.h.ask(tool("big", `{}`))
	b.open("/")
	b.armed()
	b.click("#r-" + one.ID + " input")
	if !eval[bool](b, `document.querySelector("#r-`+other.ID+` input").disabled`) {
		t.Error("requests of other rules can be chosen too")
	}
	b.click("#r-" + two.ID + " input")
	b.shoot("flow-batch")
	b.click(".batch-bar button")
	b.until("the batch", `document.title.includes("Answer together")`)
	b.armed()
	b.click("#approve-form button")
	b.until("the outcome", `document.querySelectorAll(".said p").length === 2`)
	for _, r := range []*approval.Request{one, two} {
		if got := b.h.request(r.ID).State; got != approval.Approved {
			t.Error(got)
		}
	}
}

func hostileFlow(t *testing.T, b *tab) {
	r := b.h.hostileRequest()
	for _, path := range b.h.hostilePages(r) {
		b.open(path)
		b.until("the script", `document.documentElement.classList.contains("scripted")`)
		if got := eval[string](b, "document.title"); got == "owned" {
			t.Errorf("%s: data ran as a script", path)
		}
		if n := eval[int](b, `document.querySelectorAll("img, script:not([src])").length`); n != 0 {
			t.Errorf("%s: %d elements came from data", path, n)
		}
	}

	b.open("/requests/" + r.ID)
	b.shoot("flow-hostile")
}
