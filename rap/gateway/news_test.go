package gateway

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// counted counts how often approvals are looked at.
type counted struct {
	*board
	looks map[string]int // guarded by the board's
}

func (c *counted) As(approval.Asker) hold.Requests { return c }

func (c *counted) Look(ctx context.Context, ref string) (hold.Held, error) {
	c.set(func() { c.looks[ref]++ })
	return c.board.Look(ctx, ref)
}

func (c *counted) all() (n int) {
	c.set(func() {
		for _, looks := range c.looks {
			n += looks
		}
	})
	return n
}

// TestGatewayFollowsTheDesk: news of one approval cost one look,
// however many wait, and so it is after a restart. Time stands still,
// so that none is looked at for its own sake.
func TestFollowsTheDesk(t *testing.T) {
	desk := &counted{newBoard(), map[string]int{}}
	h := newHarness(t, func(c *Config) {
		at := time.Now()
		c.Ask = AskApprovers
		c.People = desk
		c.Now = func() time.Time { return at }
	})
	const calls = 40
	for n := range calls {
		h.mustInvoke(fmt.Sprint("c", n), "write", `{}`)
	}
	held := func() (n int) {
		_ = h.g.engine.Each(t.Context(), "", func(kept store.Record) {
			if r, err := h.g.engine.Open(kept); err == nil && r.State == durable.Asking && r.Ask.Ref != "" {
				n++
			}
		})
		return n
	}
	h.runtime.until("all are held", func() bool { return held() == calls })
	for n := range 4 {
		if n == 2 {
			before := desk.all()
			h.restart()
			h.runtime.until("a look at all that wait", func() bool { return desk.all() == before+calls-2 })
		}
		before := desk.all()
		ref := fmt.Sprint("apr_", n+1)
		var changed func(string)
		desk.set(func() {
			desk.asked[ref].State = hold.Approved
			changed = desk.changed
		})
		changed(ref)
		h.runtime.until("a result", func() bool { return held() == calls-1-n })
		if looks := desk.all() - before; looks != 1 {
			t.Errorf("%d looks at what one was said of", looks)
		}
		changed("apr_of_another_house")
	}
}
