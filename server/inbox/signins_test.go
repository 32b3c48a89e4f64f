package inbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/inbox"
)

// signIns are the open sign-ins of people, by their ids.
type signIns struct {
	mu     sync.Mutex
	of     map[string][]signin.Asked
	broken error
}

func (s *signIns) SignIns(_ context.Context, of, person string) (signin.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of != tenant {
		return signin.Page{}, nil
	}

	return signin.Page{SignIns: s.of[person]}, s.broken
}

func (s *signIns) SignIn(context.Context, string, string) (signin.Asked, string, error) {
	return signin.Asked{}, "", approval.ErrNotFound
}

func (s *signIns) set(person string, all ...signin.Asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of = map[string][]signin.Asked{person: all}
}

func signInTo(id, link string) signin.Asked {
	at := signin.At(link, func(address string) error {
		if strings.HasPrefix(address, "https://idp.example/") {
			return nil
		}
		return errors.New("another origin")
	})

	return signin.Asked{
		ID:        id,
		Agent:     "desk",
		Server:    "notes\u202e<b>",
		Operation: "read_<script>alert(1)</script>",
		Host:      at.Host,
		Link:      at.Link,
		Until:     time.Now().Add(time.Hour),
	}
}

const bob = "bob@example.com"

// TestSignInsAreShownToTheirPersonAlone: they are on the list of what waits for the person, with
// the host before all texts of the tool.
func TestSignInsAreShownToTheirPersonAlone(t *testing.T) {
	all := &signIns{}
	h := openWith(t, func(c *inbox.Config) { c.SignIns = all })
	h.browser("bob").get("/").lacks(t, "Sign in for your agents")
	all.set(bob, signInTo("sign_in_1", "https://idp.example/a?state=1&x=2#y"))
	h.pass(time.Minute)
	for _, path := range []string{"/", "/queue", "/?tab=mine&agent=nobody"} {
		p := h.browser("bob").get(path)
		p.says(t, "Sign in for your agents", "idp.example", `notes\u{202e}<b>`, "Sign-in", "<script>alert(1)</script>")
		p.lacks(t, "Not registered")
		const link = `<a class="button primary" href="https://idp.example/a?state=1&amp;x=2#y" ` +
			`rel="noopener noreferrer" target="_blank">Sign in at idp.example`
		if !strings.Contains(p.body, link) || strings.Contains(p.body, "<script>alert") {
			t.Errorf("%s: no link in\n%s", path, p.body)
		}
		if host, words := strings.Index(p.body, "idp.example"), strings.Index(p.body, "read_"); host > words {
			t.Errorf("%s: the tool's words stand before the host", path)
		}
	}

	h.browser("bob").get("/?tab=open").lacks(t, "Sign in for your agents")
	h.browser("carol").get("/").lacks(t, "Sign in for your agents", "idp.example")
	all.set(bob)
	h.pass(time.Minute)
	h.browser("bob").get("/").lacks(t, "Sign in for your agents")
}

// TestSignInElsewhereHasNoLink: an address that is not registered or not plain https is shown with
// a warning and without a link.
func TestSignInElsewhereHasNoLink(t *testing.T) {
	for link, host := range map[string]string{
		"https://idp.example.evil.org/x":      "idp.example.evil.org",
		"https://xn--dp-fla.example/x":        "xn--dp-fla.example",
		"https://іdp.example/x":               "An address that can’t be shown",
		"https://idp.example\u202e/x":         "An address that can’t be shown",
		"https://idp.example@evil.org/x":      "An address that can’t be shown",
		"javascript:alert(1)//idp.example/x":  "An address that can’t be shown",
		"data:text/html,<script>x</script>":   "An address that can’t be shown",
		"https://" + long("a") + ".evil.org/": "evil.org",
	} {
		all := &signIns{}
		all.set(bob, signInTo("sign_in_1", link))
		h := openWith(t, func(c *inbox.Config) { c.SignIns = all })
		p := h.browser("bob").get("/")
		p.says(t, host, "Not registered", "Do not sign in there")
		if strings.Contains(p.body, `target="_blank"`) || strings.Contains(p.body, "href=\"https:") ||
			strings.Contains(p.body, "javascript:") || strings.Contains(p.body, "data:text") {
			t.Errorf("%.60s: it can be followed\n%s", link, p.body)
		}
	}
}

func long(label string) string { return strings.Repeat(label+".", 400) + label }

// TestSignInsThatCantBeRead: the rest of the list is shown as usual.
func TestSignInsThatCantBeRead(t *testing.T) {
	h := openWith(t, func(c *inbox.Config) { c.SignIns = &signIns{broken: errors.New("away")} })
	h.ask(tool("pay", `{"amount":7}`))
	h.browser("bob").get("/").says(t, "can’t be read now", "pay")
}

// TestSignInsInChromium: they appear and disappear while the page is open, fit a phone, and axe
// finds no problems. They are also there without the script.
func TestSignInsInChromium(t *testing.T) {
	t.Parallel()
	browser, axe := chromium(t), axeSource(t)
	all := &signIns{}
	h := openWith(t, func(c *inbox.Config) {
		c.SignIns = all
		c.Arm = time.Millisecond
	})
	tab := h.tab(t, browser, "bob")
	tab.open("/")
	tab.armed()
	tab.listens()
	change := func(event string, asked ...signin.Asked) {
		t.Helper()
		all.set(bob, asked...)
		must.Do(t, h.service.Record(t.Context(), tenant, event, "call", "runtime", nil))
		h.seal()
	}
	change(signin.EventAsked,
		signInTo("sign_in_1", "https://idp.example/"+strings.Repeat("a", 3000)),
		signInTo("sign_in_2", "https://"+long("a")+".evil.org/"))
	tab.until("the sign-ins are there", `document.querySelectorAll(".sign-in").length == 2`)
	eval[chromedp.Void](tab, axe+";0")
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"light-wide", "light", 1280}, {"dark-narrow", "dark", 390}, {"light-narrow", "light", 390}} {
		tab.scheme(look.scheme)
		tab.size(look.width, 900)
		tab.shoot(look.name + "-sign-ins")
		tab.armed()
		tab.axe(look.name + " sign-ins")
		if over := eval[int](tab, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%s: the page is %d pixels wider than its window", look.name, over)
		}
	}

	links := eval[int](tab, `[...document.querySelectorAll(".sign-in a")].filter(a =>
		a.protocol == "https:" && a.host == "idp.example" && a.target == "_blank" &&
		a.relList.contains("noopener") && a.relList.contains("noreferrer")).length`)
	if all := eval[int](tab, `document.querySelectorAll(".sign-in a").length`); links != 1 || all != 1 {
		t.Errorf("%d of %d links lead to the registered host", links, all)
	}
	change(signin.EventOver)
	tab.until("the sign-ins are gone", `document.querySelectorAll(".sign-in").length == 0`)
}
