package rap_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
)

// TestGatewayGoesByApprovers: what people say of a call is what becomes
// of it.
func TestGatewayGoesByApprovers(t *testing.T) {
	edited := func(args string) hold.Held { return hold.Held{State: hold.Approved, Arguments: []byte(args)} }
	for name, tt := range map[string]struct {
		held hold.Held
		want string
		ran  int
	}{
		"expired":        {hold.Held{State: hold.Expired}, "Error: nobody approved the call in time; nothing was run", 0},
		"withdrawn":      {hold.Held{State: hold.Cancelled}, "Error: the approval was withdrawn; nothing was run", 0},
		"responded":      {hold.Held{State: hold.Responded, Reason: "pay it yourself"}, "pay it yourself", 0},
		"edited":         {edited(`{"amount":150}`), `done {"amount":150}`, 1},
		"edited, broken": {edited(`{"amount":"1"}`), "Error: the arguments do not fit", 0},
		"edited, small":  {edited(`{"amount":1}`), "changed since", 0},
	} {
		desk := raptest.NewDesk(t)
		h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
		c := r.call("pay", `{"amount":200}`).invoke()
		desk.Holds(1, tt.held)
		if got := c.result(); !strings.Contains(got, tt.want) || c.count("") != 1 {
			t.Errorf("%s: %q\n%s", name, got, r.heard())
		}
		h.ran("pay", tt.ran)
	}
}

// TestApproversAreToldTheGatewaysTimeWhateverAsks: the agent's file
// alone demands nothing of the approval, and its requests end when the
// gateway gives up all the same.
func TestApproversAreToldTheGatewaysTimeWhateverAsks(t *testing.T) {
	for require, want := range map[string]time.Duration{
		"":                        9 * time.Minute,
		", require: {within: 2m}": 2 * time.Minute,
		", require: {within: 2h}": 9 * time.Minute,
		", require: {stages: [{group: risk, people: 2}]}": 9 * time.Minute,
		"the agent's file alone":                          9 * time.Minute,
	} {
		desk := raptest.NewDesk(t)
		h, r := confGateway(t, confAsk(gateway.AskApprovers, desk), func(cfg *gateway.Config) {
			cfg.Within = 9 * time.Minute
		})
		if !strings.HasPrefix(require, "the") {
			h.rules(confToolsFile, "{schema_version: \"1.0.0\", policy_ref: acme.tools, description: Writes., rules: ["+
				"{id: writes, match: {targets: [write_file]}, approval: true"+require+"}]}")
		}
		r.call("write_file", confMotd).invoke()
		if got := desk.Request(1).Verdict.Within(); got <= want-time.Minute || got > want {
			t.Errorf("%q: open for %s, want %s", require, got, want)
		}
	}
}

// waits lets time pass until a call has ended.
func (h *confHarness) waits(c *confCall) string {
	h.t.Helper()
	testwait.Until(h.t, "a result", func() bool {
		h.clock.pass(time.Second)
		return c.count("tool_result") > 0
	})
	return c.result()
}

// holds waits until the gateway has kept that so many calls are before
// approvers.
func (h *confHarness) holds(calls int) {
	h.t.Helper()
	testwait.Until(h.t, "all are held", func() bool {
		due, err := h.cfg.Records.DueRecords(h.t.Context(), "harness/calls", h.cfg.Now(), 1)
		refs, failed := h.cfg.Records.ListRecords(h.t.Context(), "harness/refs", "", "", 100)
		return err == nil && failed == nil && len(due) == 0 && len(refs) == calls
	})
}

func TestGatewayCantClaim(t *testing.T) {
	t.Parallel()
	for want, claim := range map[string]error{
		"can't be used":    fmt.Errorf("%w: taken", hold.ErrNotClaimed),
		"can't be reached": errors.New("the desk is away"),
	} {
		desk := raptest.NewDesk(t)
		desk.ClaimErr = claim
		h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
		c := r.call("write_file", confMotd).invoke()
		desk.Decide(1, hold.Approved, "")
		if got := h.waits(c); !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
		h.ran("write_file", 0)
	}
}

func TestGatewayWithoutItsDesk(t *testing.T) {
	t.Parallel()
	desk := raptest.NewDesk(t)
	away := func(err error) { desk.Set(func() { desk.Fails = err }) }
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
	away(errors.New("the desk is away"))
	if got := h.waits(r.call("write_file", confMotd).invoke()); !strings.Contains(got, "can't be reached") {
		t.Errorf("result %q", got)
	}

	away(nil)
	known := r.call("write_file", confMotd).invoke()
	desk.Request(1)
	forgotten := r.call("write_file", `{"path":"x"}`).invoke()
	desk.Request(2)
	away(errors.New("the desk is away"))
	desk.Tell("")
	h.crash()
	away(nil)
	desk.Set(func() { desk.Shown[1].Ref = "another" })
	desk.Decide(1, hold.Approved, "")
	desk.Tell("ref-2")
	if got := known.result(); !strings.HasPrefix(got, "done") {
		t.Errorf("result %q", got)
	}
	if got := forgotten.fails(); !strings.Contains(got, "known no more") {
		t.Errorf("result %q", got)
	}
	h.ran("write_file", 1)
}

// TestGatewayApprovalAfterItsTime: an approval that came after the
// call's deadline, while no gateway looked, allows nothing.
func TestGatewayApprovalAfterItsTime(t *testing.T) {
	desk := raptest.NewDesk(t)
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
	c := r.call("write_file", confMotd).invoke()
	desk.Request(1)
	h.holds(1)
	h.stop()
	h.clock.pass(time.Hour)
	desk.Decide(1, hold.Approved, "")
	h.restart()
	if got := c.fails(); !strings.Contains(got, "in time") {
		t.Errorf("result %q", got)
	}
	desk.Dropped(1)
	h.ran("write_file", 0)
}

// TestGatewayFollowsTheDesk: news of one approval cost one look,
// however many wait, and so it is after a restart. Time stands still,
// so that none is looked at for its own sake.
func TestGatewayFollowsTheDesk(t *testing.T) {
	desk := raptest.NewDesk(t)
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk), func(cfg *gateway.Config) {
		at := time.Now()
		cfg.Now = func() time.Time { return at }
	})
	looks := func() (n int) {
		desk.Set(func() { n = desk.Looks })
		return n
	}
	calls := make([]*confCall, 40)
	for n := range calls {
		calls[n] = r.call("write_file", confMotd).invoke()
		desk.Request(n + 1)
	}
	h.holds(len(calls))
	for n := range 4 {
		before := looks()
		if n == 2 {
			h.restart()
			testwait.Until(t, "a look at all that wait", func() bool { return looks() == before+len(calls)-2 })
			before = looks()
		}
		desk.Decide(n+1, hold.Approved, "")
		calls[n].result()
		if looks := looks() - before; looks != 1 {
			t.Errorf("%d looks at what one was said of", looks)
		}
		desk.Tell("req_of_another_house")
	}
}
