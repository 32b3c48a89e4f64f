package inbox_test

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	browsers "github.com/assent-dev/assent/internal/chromium"
)

// TestMain closes the browser that the tests share.
func TestMain(m *testing.M) { os.Exit(browsers.Main(m, &shared)) }

// shared is the real browser that all tests use.
var shared browsers.Browser

func chromium(t *testing.T) context.Context { t.Helper(); return shared.Context(t) }

func axeSource(t *testing.T) string { t.Helper(); return browsers.AxeSource(t) }

// tab is one tab of a signed-in person. Every error in the browser's log fails the test.
type tab struct {
	t   *testing.T
	ctx context.Context
	in  *browsers.Tab
	h   *site
}

func (h *site) tab(t *testing.T, browser context.Context, who string) *tab {
	t.Helper()
	in := browsers.NewTab(t, browser, h.url+"/assets/icon.svg")
	b := &tab{t: t, ctx: in.Ctx, in: in, h: h}
	call(b, network.SetCookie, network.SetCookieParams{Name: "who", Value: who, URL: h.url})

	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) { b.t.Helper(); b.in.Do(steps...) }

// eval runs a script of the test in the page.
func eval[T any](b *tab, script string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	return browsers.Eval[T](b.in, script, options...)
}

// call sends one command to the browser.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	browsers.Call(b.in, command, params)
}

func (b *tab) open(path string)         { b.t.Helper(); b.in.Open(b.h.url + path) }
func (b *tab) click(selector string)    { b.t.Helper(); b.in.Click(selector) }
func (b *tab) press(keys string)        { b.t.Helper(); b.in.Press(keys) }
func (b *tab) size(width, height int64) { b.t.Helper(); b.in.Size(width, height) }
func (b *tab) scheme(name string)       { b.t.Helper(); b.in.Scheme(name) }
func (b *tab) shoot(name string)        { b.t.Helper(); b.in.Shoot(name) }
func (b *tab) axe(name string)          { b.t.Helper(); b.in.Axe(name) }

// until waits until a script returns true, even across pages.
func (b *tab) until(what, script string) { b.t.Helper(); b.in.Until(what, script) }

// listens waits until the event stream is open that was requested after the page's own one. The
// page is not notified of earlier events.
func (b *tab) listens() {
	b.t.Helper()
	b.until(
		"an open stream",
		`(window.probe ??= new EventSource("/events")).readyState === EventSource.OPEN && (window.probe.close(), true)`,
	)
}

// armed waits until the page's forms are accepted and show that by their colours.
func (b *tab) armed() {
	b.t.Helper()
	b.until(
		"armed buttons",
		`document.documentElement.classList.contains("scripted") && `+
			`!document.querySelector("[aria-disabled=true]:not([data-after])") && document.getAnimations().length === 0`,
	)
}
