package approval_test

import (
	"errors"
	"testing"

	"github.com/assent-dev/assent/approval"
)

// toolPermits sign permits, unless the arguments don't fit.
type toolPermits struct{ unfit error }

func (p *toolPermits) Fit(string, *approval.Request) error { return p.unfit }

func (p *toolPermits) Sign(tenant string, r *approval.Request) (string, error) {
	return "permit of " + tenant + "/" + r.ID, nil
}

// TestWhoConsumesGetsThePermit, who asks again for a lost answer gets
// the same, and nobody else gets it.
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

	if stored := h.request(r.ID); stored.Permit.Signed != "" {
		t.Errorf("it is stored: %+v", stored.Permit)
	}
	got, err := h.consume(r, tool("pay", `{}`), "another")
	h.fails(err, approval.ErrConsumed)
	if got != nil && got.Permit.Signed != "" {
		t.Errorf("another attempt got %+v", got.Permit)
	}
}

// TestACallThatNoPermitCanHoldUsesNothingUp: the approval stands.
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
