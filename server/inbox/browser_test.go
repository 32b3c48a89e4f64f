package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestPagesInChromium opens every page, light and dark, wide and narrow, and lets axe-core look at it.
func TestPagesInChromium(t *testing.T) {
	t.Parallel()
	browser, axe := chromium(t), axeSource(t)
	h := openArmed(t, time.Millisecond)
	r := h.fill()
	if err := h.service.Freeze(t.Context(), tenant, "other-agent", "carol@example.com", "Looks odd"); err != nil {
		t.Fatal(err)
	}
	h.seal()
	hidden := h.ask(tool("pay", `{"iban":"DE0212","amount":7,"to":{"name":"Erika","note":"rent"}}`))
	long := h.ask(tool("big", `{"text":"`+strings.Repeat("lorem ipsum ", 8000)+`"}`))
	order := h.ask(tool("place_order", `{"side":"buy","quantity":1000,"symbol":"INIT"}`))
	other := h.ask(tool("place_order", `{"side":"buy","quantity":2000,"symbol":"INIT"}`))
	for name, path := range map[string]string{
		"queue": "/", "open": "/?tab=open", "decided": "/?tab=decided", "request": "/requests/" + r.ID, "hidden": "/requests/" + hidden.ID,
		"order": "/requests/" + order.ID, "long": "/requests/" + long.ID, "batch": "/batch?id=" + order.ID + "&id=" + other.ID,
		"grants": "/grants", "ledger": "/ledger", "activity": "/activity", "deliveries": "/deliveries?state=waiting", "freeze": "/freeze",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := h.tab(t, browser, "bob")
			tab.open(path)
			tab.armed()
			eval[chromedp.Void](tab, axe+";0")
			for _, look := range []struct {
				name   string
				scheme string
				width  int64
			}{{"light-wide", "light", 1280}, {"dark-wide", "dark", 1280}, {"light-narrow", "light", 390}, {"dark-narrow", "dark", 390}} {
				tab.scheme(look.scheme)
				tab.size(look.width, 900)
				tab.shoot(look.name + "-" + name)
				tab.armed() // a window that changes may come to the front anew
				tab.axe(look.name + " " + name)
			}
		})
	}
}
