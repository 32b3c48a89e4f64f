package rap_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/gateway"
)

const confMotd = `{"path":"/etc/motd","text":"hello world!"}`

// asked makes a call that needs approval, and returns its question.
func (r *confRuntime) asked() (*confCall, *confCallback) {
	r.t.Helper()
	c := r.call("write_file", confMotd).invoke()
	return c, c.choice()
}

// confGone reports whether an answer was refused because no such question is open.
func confGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// confRefused reports whether a status is a 4xx.
func confRefused(status int) bool { return status/100 == 4 }

// refuses posts an answer that has to be refused.
func (c *confCall) refuses(q *confCallback) {
	c.t.Helper()
	if status := c.answer(q, 0); !confGone(status) {
		c.t.Errorf("an answer to a dead question: %d, want 404 or 410", status)
	}
}

// picks posts an answer that has to be accepted.
func (c *confCall) picks(q *confCallback, selected int) {
	c.t.Helper()
	if status := c.answer(q, selected); status != http.StatusOK {
		c.t.Fatalf("answer %d of %q: %d", selected, q.Choices, status)
	}
}

func confAsk(whom gateway.Whom, desk hold.People) func(*gateway.Config) {
	return func(cfg *gateway.Config) { cfg.Ask, cfg.People = whom, desk }
}

func confOffer(cfg *gateway.Config) { cfg.Grants.Offer = true }

// confDenies reports whether a text describes a denial.
func confDenies(text string) bool {
	return regexp.MustCompile(`(?i)\b(den(y|ied)|declined?|reject(ed)?|refused?)\b`).MatchString(text)
}

// confSoon runs the parts of a row in parallel.
func confSoon(t *testing.T, parts map[string]func(*testing.T)) {
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t)
		})
	}
}

// T40: requesting a call's status changes nothing, and works only for the caller's own calls.
// Calls can't be migrated.
func confT40(t *testing.T) {
	alpha, beta := newConfRuntime(t, "alpha"), newConfRuntime(t, "beta")
	h := confGatewayOf(t, []*confRuntime{alpha, beta})
	c, q := alpha.asked()
	for range 3 {
		if !alpha.alive(c.in.GroupID, c.in.ID) {
			t.Fatal("a call that waits for its user is not alive")
		}
	}
	for name, alive := range map[string]bool{
		"another caller": beta.alive(c.in.GroupID, c.in.ID),
		"another thread": alpha.alive(c.in.GroupID+"x", c.in.ID),
		"another id":     alpha.alive(c.in.GroupID, c.in.ID+"x"),
	} {
		if alive {
			t.Errorf("%s: alive", name)
		}
	}

	for _, path := range []string{"/migrate", "/migrate/"} {
		status, _ := alpha.tell(path, map[string]any{"session_id": c.in.GroupID, "destination_url": alpha.server.URL})
		if status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}

	c.picks(q, q.index(t, "once"))
	c.result()
	alpha.over(c.in.GroupID, c.in.ID)
	h.ran("write_file", 1)
}
