package gateway

import (
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
)

func TestC1_CallsOfAGatewayOfAnEarlierVersionEndWithoutRunning(t *testing.T) {
	h, b := newDeskHarness(t, AskApprovers)
	h.mustInvoke("held", "write", `{}`)
	h.runtime.until("a request", func() bool { return b.open() == 1 })
	if got := b.askers[0]; got != (approval.Asker{Token: "gw/runtime"}) {
		t.Errorf("asked as %+v", got)
	}
	h.stop()
	key := callKey("runtime", "thread", "held")
	_, err := h.g.engine.Change(t.Context(), key, func(r *record) error {
		r.Asker = approval.Asker{}
		r.Ask.Next = h.now()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.decide(hold.Held{State: hold.Approved})
	b.set(func() { b.askers = nil })
	h.start()
	if got := h.runtime.result("held"); !strings.Contains(got, "nothing was run") ||
		!strings.Contains(got, "earlier version") ||
		h.runs("held") != 0 {
		t.Errorf("result %q, %d runs", got, h.runs("held"))
	}
	h.runtime.until("its withdrawal", func() bool {
		return slices.Contains(b.was(), approval.Asker{Token: "gw"})
	})
}

// was are those in whose name the desk was used.
func (b *board) was() (out []approval.Asker) {
	b.set(func() { out = slices.Clone(b.askers) })
	return out
}

// A session grant of an asker that is no more the same covers nothing:
// here the runtime belongs to somebody else by now.
func TestC1_SessionGrantsAreTheAskersOwn(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.Grants.Offer = true })
	h.mustInvoke("c1", "write", `{}`)
	h.answer(h.runtime.choice("c1"), 1)
	h.runtime.result("c1")
	h.mustInvoke("c2", "write", `{}`)
	h.runtime.result("c2")
	h.stop()
	h.cfg.Callers = slices.Clone(h.cfg.Callers)
	h.cfg.Callers[0].Person = "mara"
	h.start()
	h.mustInvoke("c3", "write", `{}`)
	h.answer(h.runtime.choice("c3"), 0)
	h.runtime.result("c3")
	if n := h.runtime.choices("c1") + h.runtime.choices("c2") + h.runtime.choices("c3"); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
