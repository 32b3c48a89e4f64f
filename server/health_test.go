package server_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"context"
	"errors"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/openapi"
	"sync/atomic"
)

// TestABrokenAgentDegrades checks that an agent with a broken file leaves the server ready,
// that its last good copy is used, and that the answer shows the problem but not the agent.
func TestABrokenAgentDegrades(t *testing.T) {
	h := newHarness(t, func(c *server.Config) {
		c.UnusableAgents = func() int { return 1 }
		c.Loaded = func(tenant string) []openapi.Loaded {
			return []openapi.Loaded{{Part: "agents", Digest: "sha256:aa", Problems: []string{"of " + tenant}}}
		}
	})
	testwait.Until(t, "ready", func() bool { return h.do("GET", "/readyz", "", "").status == 200 })
	if text := h.do("GET", "/metrics", "", "").text; !strings.Contains(text, "assent_degraded{part=\"agents\"} 0") {
		t.Error(text)
	}

	h.rewrite("agents/other.agf.yaml", "alias: trade", "alias: [trade]")
	testwait.Until(t, "degraded", func() bool {
		a := h.do("GET", "/readyz", "", "").must(200)
		if strings.Contains(a.text, "other") {
			t.Errorf("anybody may read %s", a.text)
		}
		return strings.Contains(a.text, `"degraded":true,"ok":true}`) && strings.Contains(a.text,
			`{"degraded":true,"name":"agents","ok":false,"problem":"failing"}`)
	})
	rt := h.runtime()
	h.do("POST", "/v1/agents/other/requests", rt, `{"call":{"kind":"tool","tool":"trade"}}`).must(201)
	h.opens(rt, `{"call":{"kind":"tool","tool":"quote"}}`).must(200)
	text := h.do("GET", "/metrics", "", "").text
	for _, line := range []string{`assent_degraded{part="agents"} 1`, "assent_unusable_agents 1"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	for token, want := range map[string]string{"": `"problems":["of "]`, rt: `"problems":["of acme"]`} {
		if a := h.do("GET", "/readyz?verbose", token, "").must(200); !strings.Contains(a.text, want) {
			t.Errorf("got %s, want %s", a.text, want)
		}
	}
	h.do("GET", "/readyz?verbose", "assent_nobody", "").must(401)
	if a := h.do("GET", "/readyz", "", ""); strings.Contains(a.text, "loaded") {
		t.Errorf("got %s", a.text)
	}
}

// TestAnAgentThatWasNeverGoodIsDenied checks that the denial has the position of the error.
func TestAnAgentThatWasNeverGoodIsDenied(t *testing.T) {
	h := newHarness(t)
	text, err := os.ReadFile(filepath.Join(h.dir, "agents", "other.agf.yaml"))
	must(t, err)
	late := strings.NewReplacer("id: other", "id: late", "alias: trade", "alias: [trade]").Replace(string(text))
	must(t, os.WriteFile(filepath.Join(h.dir, "agents", "late.agf.yaml"), []byte(late), 0o600))
	h.plans.Reload()
	a := h.do("POST", "/v1/agents/late/requests", h.runtime(), `{"call":{"kind":"tool","tool":"trade"}}`)
	if a.status != 503 || a.str("code") != "agent_unusable" || a.str("outcome") != "deny" ||
		!strings.Contains(a.str("detail"), "late.agf.yaml:12:") {
		t.Errorf("got %s", a.text)
	}
}

// TestFiguresAreOfNow checks that an opened request and a freeze show at the next scrape,
// however seldom the store is read otherwise.
func TestFiguresAreOfNow(t *testing.T) {
	h := newHarness(t, func(c *server.Config) { c.Timing.Gauges, c.Version = time.Hour, "1.2.3" })
	shows := func(lines ...string) {
		t.Helper()
		h.clock.Add(2 * time.Second)
		text := h.do("GET", "/metrics", "", "").must(200).text
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line) {
				t.Errorf("no %s in\n%s", line, text)
			}
		}
	}
	shows(`assent_build_info{goversion="go`, "assent_oldest_pending_seconds 0", "assent_frozen 0")
	rt, mara := h.runtime(), h.voter("mara")
	h.ask(rt, `{"amount":1}`)
	h.clock.Add(58 * time.Second)
	h.ask(rt, `{"amount":2}`)
	h.do("POST", "/v1/freezes", mara, `{"reason":"a drill"}`).must(200)
	shows(`assent_open_requests{state="pending"} 2`, "assent_oldest_pending_seconds 60", "assent_frozen 1")
	if text := h.do("GET", "/metrics", "", "").text; !strings.Contains(text, `version="1.2.3"`) {
		t.Error("the version is not there")
	}
}

// TestMetricsElsewhere checks that with a separate listener the metrics are not served by
// the API.
func TestMetricsElsewhere(t *testing.T) {
	h := newHarness(t, func(c *server.Config) { c.MetricsElsewhere = true })
	h.do("GET", "/metrics", "", "").must(404)
	own := httptest.NewRecorder()
	h.srv.MetricsHandler().ServeHTTP(own, httptest.NewRequest("GET", "/metrics", nil))
	if own.Code != 200 || !strings.Contains(own.Body.String(), "assent_frozen 0") {
		t.Errorf("got %d %s", own.Code, own.Body)
	}
}

// TestAWrongClockExpiresNothing checks that while the clock is wrong, the server is not
// ready and a request past its deadline stays open.
func TestAWrongClockExpiresNothing(t *testing.T) {
	var wrong atomic.Bool
	h := newHarness(t, func(c *server.Config) {
		c.Clock = func(context.Context) error {
			if wrong.Load() {
				return errors.New("the clock is wrong")
			}
			return nil
		}
	})
	r := h.ask(h.runtime(), `{"amount":5}`)
	wrong.Store(true)
	testwait.Until(t, "no more work", func() bool { // a round that had begun before could still expire it
		a := h.do("GET", "/readyz", "", "")
		return a.status == 503 && strings.Contains(a.text, `{"name":"time","ok":false`) &&
			strings.Contains(a.text, `{"name":"clock","ok":false`)
	})
	h.clock.Add(48 * time.Hour)
	rounds := strings.Count(h.log.String(), "the clock is wrong")
	h.do("GET", "/readyz", "", "").must(503)
	if state := h.look(h.runtime(), r).str("state"); state != "pending" || rounds == 0 {
		t.Errorf("with a wrong clock it is %s; the log says %d times that the clock is wrong", state, rounds)
	}
	wrong.Store(false)
	testwait.Until(t, "time goes on", func() bool { return h.look(h.runtime(), r).str("state") == "expired" })
}
