package rap_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/gateway"
)

// gatewayRows tests a Gateway against a scripted runtime.
func gatewayRows() []confRow {
	return []confRow{
		{"T1", "a call that needs approval is acknowledged, then asked about, and has not started", confT1},
		{"T2", "a call that needs none, or has a grant, runs without a question", confT2},
		{"T3", "an allowed call runs once, with the stored arguments, and sends one result", confT3},
		{"T4", "a denied call does not run, and its result says so", confT4},
		{"T5", "an index out of range ends the call with an error", confT5},
		{
			"T6",
			"an answer that can't be read ends the call with the right token, and changes nothing with a wrong one",
			confT6,
		},
		{"T7", "a repeated answer runs nothing again", confT7},
		{"T8", "the first of two different answers stands", confT8},
		{"T9", "unknown, expired and foreign tokens change nothing and tell nothing", confT9},
		{"T10", "a call without an answer ends with an error, and never runs", confT10},
		{"T11", "a cancelled question takes no answer", confT11},
		{"T12", "a cancellation of what is not there is acknowledged and does nothing", confT12},
		{"T13", "a cancellation that crosses the result does no harm", confT13},
		{"T14", "a closed thread voids its questions and session grants", confT14},
		{"T15", "a question that can't be posted is tried again, and a refused one ends the call", confT15},
		{"T16", "a result that can't be posted is tried again without running anything again", confT16},
		{"T17", "a repeated invocation is one call", confT17},
		{"T18", "another call under a used id gets an error and leaves the first alone", confT18},
		{"T19", "equal ids of two threads or callers are two calls", confT19},
		{
			"T20",
			"unknown operations, bad arguments and stale schemas are acknowledged and end with an error",
			confT20,
		},
		{
			"T21",
			"an invocation that can't be read is refused, or answered by a result where that can be sent",
			confT21,
		},
		{"T22", "call_id is echoed", confT22},
		{"T23", "strange ids are echoed exactly", confT23},
		{"T24", "the default is always the denial", confT24},
		{"T25", "a question survives a restart", confT25},
		{
			"T26",
			"a crash after the decision runs once, a crash during the run is reported and not repeated",
			confT26,
		},
		{
			"T27",
			"a session grant covers its own session, its children where it says so, and nobody else",
			confT27,
		},
		{
			"T28",
			"ancestors of a caller without a token are not believed, and a forged caller is refused",
			confT28,
		},
		{"T29", "callback URLs that are not the runtime's get no request", confT29},
		{"T30", "a forged Host header changes no URL", confT30},
		{"T31", "an answer without the token is refused", confT31},
		{"T32", "a failing operation tells no internals", confT32},
		{"T33", "a slow operation does not delay the acknowledgement", confT33},
		{"T34", "a hundred calls at once keep their results apart", confT34},
		{"T35", "discovery is valid and absolute", confT35},
		{"T36", "a runtime that shows no question lets the deadline end the call", confT36},
		{"T37", "the events after a result of a server behind are passed on in order, until the last", confT37},
		{
			"T38",
			"a subscription that is cancelled, closed, refused, lost or too long ends at the server behind, and the " +
				"runtime is told what it can't know",
			confT38,
		},
		{"T39", "events that could not be passed on are passed on later, also after a crash", confT39},
	}
}

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
