package inbox_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	browsers "github.com/assent-dev/assent/internal/chromium"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/openapi"
)

// digestOf returns a digest that consists of the repeated text.
func digestOf(with string) string { return "sha256:" + strings.Repeat(with, 64/len(with)) }

// settings are the settings that a server shows for its agents. They can be changed.
type settings struct {
	agents openapi.Agents
	loaded []openapi.Loaded
}

func (s *settings) site(t *testing.T) *site {
	return openWith(t, func(c *inbox.Config) {
		c.Arm = time.Millisecond
		c.Agents = func(of string) openapi.Agents {
			if of != tenant {
				t.Errorf("asked for tenant %q", of)
			}
			return s.agents
		}
		c.Loaded = func(string) []openapi.Loaded { return s.loaded }
	})
}

// troubled returns agents with every kind of problem.
func troubled() *settings {
	found := `trading-desk.agf.yaml:14:9: advisory policy "acme.hints" is not in the registry, so decisions are made ` +
		`without it`
	broken := "/etc/assent/decisions.yaml can't be used: /etc/assent/decisions.yaml:2:13: \"never\" is out of bounds; " +
		"its last good copy decides"

	return &settings{
		agents: openapi.Agents{
			ApproveOnTimeout: true,
			Configuration:    digestOf("a1"),
			PermitAge:        "30m",
			Undeclared:       "ask",
			Registry: &openapi.RegistryInForce{
				Origin:    "https://policies.example.com/a/rather/long/path/to/the/bundle/policies.json",
				State:     openapi.RegistryStateStale,
				Confirmed: "2026-11-22T20:10:00Z",
				Age:       "41m3s",
				Keep:      "1h",
				Problem:   "the server answered with status 502",
			},
			Agents: []openapi.AgentInForce{
				{
					ID:            "trading-desk",
					Name:          "Trading Desk",
					Version:       "2.3.0",
					Plan:          digestOf("b2"),
					Configuration: digestOf("a1"),
					Findings:      1,
					Found:         []string{found},
				},
				{ID: "<b>x</b>\u202e" + strings.Repeat("long", 30), Version: "1", Plan: digestOf("c3")},
			},
		},
		loaded: []openapi.Loaded{
			{Part: "agents", Digest: digestOf("d4"), Count: 2},
			{Part: "configuration", Digest: digestOf("a1"), Count: 1, Problems: []string{broken}},
		},
	}
}

// TestTheAgentsPageSaysWhatDecides: all signed-in people see the same texts as in the API, with a
// clear warning if calls are approved by timeout. The name that an agent gives itself is only text.
func TestTheAgentsPageSaysWhatDecides(t *testing.T) {
	s := troubled()
	h := s.site(t)
	p := h.browser("alice").get("/agents")
	p.says(
		t,
		"Approval by timeout is on.",
		"on: a call may run that nobody decided",
		"asks one person",
		"An approval waits to be used for30m",
		digestOf("a1"),
		"Policy registry",
		"stale",
		"the last good copy decides, until it is 1h old",
		"41m3s ago, 22 Nov 2026 20:10:00 UTC",
		"the server answered with status 502",
		"2 agents",
		"trading-desk Trading Desk",
		"version 2.3.0",
		digestOf("b2"),
		"1 finding when it was loaded",
		"trading-desk.agf.yaml:14:9: advisory policy",
		`<b>x</b>\u{202e}long`,
		"What can’t be used as it stands",
		"decisions.yaml:2:13: ",
	)
	if strings.Contains(p.body, "<b>x") || strings.Contains(p.body, "\u202e") {
		t.Errorf("a name is no text:\n%s", p.body)
	}
	if n := strings.Count(p.body, `<span class="flag">approval by timeout</span>`); n != 2 {
		t.Errorf("%d of 2 agents say that silence approves", n)
	}

	s.agents.Registry.State = openapi.RegistryStateUnavailable
	s.agents.Registry.Confirmed = ""
	s.agents.Registry.Age = ""
	s.agents.Agents = nil
	h.browser("alice").get("/agents").says(t, "Every call is denied:", "never yet", "0 agents", "No agent can be used.")

	one := openapi.AgentInForce{ID: "one", Version: "1", Plan: digestOf("b2")}
	*s = settings{agents: openapi.Agents{Agents: []openapi.AgentInForce{one}}}
	p = h.browser("alice").get("/agents")
	p.says(
		t,
		"1 agent",
		"Approval by timeoutoff",
		"is denied",
		"for15m",
		"none: every choice is as by default",
		"Nothing was found when it was loaded.",
	)
	p.lacks(t, "Policy registry", "can’t be used", "is on", "class=\"flag\"", "grave-note")
}

// TestTheAgentsPageNeedsASignIn: the page needs a sign-in, changes nothing, and says so if the
// server does not provide the information.
func TestTheAgentsPageNeedsASignIn(t *testing.T) {
	h := troubled().site(t)
	for _, who := range []string{"", "mallory"} {
		if p := h.browser(who).get("/agents"); p.status != http.StatusUnauthorized || strings.Contains(p.body, "desk") {
			t.Errorf("%q: %d %s", who, p.status, p.text())
		}
	}
	if p := h.browser("alice").post("/agents", nil); p.status == http.StatusOK {
		t.Errorf("POST: %d", p.status)
	}
	open(t).browser("alice").get("/agents").says(t, "This server does not tell which agents it has.")
}

// TestTheAgentsPageInChromium checks the page with axe-core, light and dark, wide and at 390 px.
// The link in the navigation works without JavaScript.
func TestTheAgentsPageInChromium(t *testing.T) {
	t.Parallel()
	browser, axe := chromium(t), axeSource(t)
	plain := &settings{agents: openapi.Agents{
		PermitAge: "15m",
		Registry:  &openapi.RegistryInForce{Origin: "https://p.example", State: "unavailable", Keep: "1h"},
	}}
	for name, s := range map[string]*settings{"troubled": troubled(), "denied": plain} {
		h := s.site(t)
		tab := h.tab(t, browser, "bob")
		tab.open("/")
		tab.armed()
		tab.click(`nav a[href="/agents"]`)
		tab.until("the page", `document.querySelector('nav a[href="/agents"][aria-current=page]')`)
		tab.armed()
		eval[chromedp.Void](tab, axe+";0")
		for _, look := range browsers.Looks("agents " + name) {
			tab.in.Show(look, 900)
			tab.armed()
			tab.shoot(look.String() + "-agents-" + name)
			tab.axe(look.String() + " agents " + name)
		}
	}
}
