package rap_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/gateway"
)

const confMotd = `{"path":"/etc/motd","text":"hello world!"}`

// asked makes a call that is asked about, and returns the question.
func (r *confRuntime) asked() (*confCall, *confCallback) {
	r.t.Helper()
	c := r.call("write_file", confMotd).invoke()
	return c, c.choice()
}

// confGone reports an answer that was refused as one of nobody's question.
func confGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// confRefused reports a 4xx.
func confRefused(status int) bool { return status/100 == 4 }

// refuses posts a pick of the first choice, which has to be refused.
func (c *confCall) refuses(q *confCallback) {
	c.t.Helper()
	if status := c.answer(q, 0); !confGone(status) {
		c.t.Errorf("an answer to a dead question: %d, want 404 or 410", status)
	}
}

// picks posts an answer that has to be taken.
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

// denies finds the words of a denial.
func confDenies(text string) bool {
	return regexp.MustCompile(`(?i)\b(den(y|ied)|declined?|reject(ed)?|refused?)\b`).MatchString(text)
}

// confSoon runs the parts of a row beside each other.
func confSoon(t *testing.T, parts map[string]func(*testing.T)) {
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t)
		})
	}
}
