package approval_test

import (
	"errors"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
)

// toolPermits signs permits unless the arguments don't fit.
type toolPermits struct{ unfit error }

func (p *toolPermits) Audience(string, *approval.Request) (string, time.Duration, error) {
	return "broker", time.Minute, p.unfit
}

func (p *toolPermits) Sign(tenant string, r *approval.Request) (string, error) {
	return "permit of " + tenant + "/" + r.ID, nil
}

// TestWhoConsumesGetsThePermit: the consumer gets the permit, and the same one after a repeated
// attempt. No other caller gets it.
func TestWhoConsumesGetsThePermit(t *testing.T) {
	h := newHarness(t)
	h.cfg.Permits = &toolPermits{}
	h.start()
	r, _ := h.approved(tool("pay", `{}`), nil)
	for range 2 {
		got, err := h.consume(r, tool("pay", `{}`), "mine")
		if err != nil || got.Permit.Signed != "permit of t/"+r.ID {
			t.Errorf("got %+v, %v", got, err)
		}
	}

	stored := h.request(r.ID).Permit
	if stored.Signed != "" || stored.Audience != "broker" || !stored.Until.Equal(stored.Consumed.Add(time.Minute)) {
		t.Errorf("stored: %+v", stored)
	}
	got, err := h.consume(r, tool("pay", `{}`), "another")
	h.fails(err, approval.ErrConsumed)
	if got != nil && got.Permit.Signed != "" {
		t.Errorf("another attempt got %+v", got.Permit)
	}
}

// TestACallThatRanWithoutAPermitGetsNoneLater: no permit is signed later if the tool starts to
// verify permits.
func TestACallThatRanWithoutAPermitGetsNoneLater(t *testing.T) {
	h := newHarness(t)
	r, _ := h.approved(tool("pay", `{}`), nil)
	if _, err := h.consume(r, tool("pay", `{}`), "mine"); err != nil {
		t.Fatal(err)
	}
	h.cfg.Permits = &toolPermits{}
	h.start()
	got, err := h.consume(r, tool("pay", `{}`), "mine")
	if err != nil || got.Permit.Signed != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestACallThatNoPermitCanHoldUsesNothingUp: the approval remains usable.
func TestACallThatNoPermitCanHoldUsesNothingUp(t *testing.T) {
	h := newHarness(t)
	h.cfg.Permits = &toolPermits{unfit: errors.New("a number")}
	h.start()
	r, _ := h.approved(tool("pay", `{}`), nil)
	_, err := h.consume(r, tool("pay", `{}`), "mine")
	h.wrongField(err, "arguments")
	if now := h.request(r.ID); now.State != approval.Approved {
		t.Errorf("it is %s", now.State)
	}
}
