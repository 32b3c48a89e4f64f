package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/store"
)

// TestGatewayApprovalAfterItsTime: an approval that came after the
// call's deadline, while no gateway looked, allows nothing (T10).
func TestApprovalAfterItsTime(t *testing.T) {
	h, b := newDeskHarness(t, AskApprovers)
	h.mustInvoke("c1", "write", `{}`)
	h.runtime.until("a request", func() bool { return b.open() == 1 })
	h.stop()
	h.pass(time.Hour)
	b.set(func() { b.asked["apr_1"].State = hold.Approved })
	h.start()
	if got := h.runtime.result("c1"); !strings.Contains(got, "in time") || h.runs("c1") != 0 {
		t.Errorf("%q, %d runs", got, h.runs("c1"))
	}
	h.runtime.until("the approval withdrawn", func() bool {
		held, err := b.Look(t.Context(), "apr_1")
		return err == nil && held.State == hold.Cancelled
	})
}

// TestGatewaySharesItsWork: a caller with many calls that hang does not
// keep the deadlines of others from being seen.
func TestSharesItsWork(t *testing.T) {
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer slow.Close()
	defer close(hang)
	h := newHarness(t, func(c *Config) {
		c.Rate, c.MaxThread = 100_000, 100_000
		c.Callers = append(c.Callers, Caller{
			Name:      "slow",
			TokenHash: sum("slow-token"),
			Callbacks: peer.Config{Allow: []string{slow.URL}, Timeout: time.Hour},
		})
	})
	in := wire.Invocation{
		Operation:   "burn",
		Arguments:   []byte("{}"),
		CallbackURL: slow.URL + "/cb",
		GroupID:     "thread",
	}
	for i := range 1200 {
		in.ID = fmt.Sprint(i)
		if code := h.postAs("slow-token", "/invoke", string(in.Append(nil))); code != http.StatusOK {
			t.Fatalf("invocation %d: %d", i, code)
		}
	}

	h.mustInvoke("c1", "write", `{}`)
	h.runtime.choice("c1")
	h.runtime.until("its question is posted", func() bool {
		r, err := h.g.engine.Get(t.Context(), callKey("runtime", "thread", "c1"))
		return err == nil && r.Part.Question != nil && r.Part.Question.Posted
	})
	h.pass(11 * time.Minute)
	if got := h.runtime.result("c1"); !strings.Contains(got, "in time") {
		t.Errorf("%q", got)
	}
}

// TestH7_GatewayRunsNoKeysThatFoldAlike: on an operation that nobody is
// asked about, too.
func TestH7_GatewayRunsNoKeysThatFoldAlike(t *testing.T) {
	h := newHarness(t, nil)
	h.mustInvoke("c1", "look", `{"path":"fine","Path":"evil"}`)
	if got := h.runtime.result("c1"); !strings.Contains(got, "differ in upper and lower case alone") ||
		h.runs("c1") != 0 {
		t.Errorf("%q, %d runs", got, h.runs("c1"))
	}
}

// stuckLists are records whose lists wait.
type stuckLists struct {
	store.Records
	stuck atomic.Bool
}

func (s *stuckLists) ListRecords(
	ctx context.Context,
	room, prefix, after string,
	limit int,
) ([]store.Record, error) {
	if s.stuck.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Records.ListRecords(ctx, room, prefix, after, limit)
}

// TestGatewayGoesOnWhileItLists: going through all calls, of which
// there may be very many, holds up none.
func TestGoesOnWhileItLists(t *testing.T) {
	b, lists := newBoard(), &stuckLists{}
	h := newHarness(t, func(c *Config) {
		lists.Records = c.Records
		c.Records = lists
		c.Ask = AskApprovers
		c.People = b
	})
	h.runtime.until("that it is watched", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.changed != nil
	})
	lists.stuck.Store(true)
	b.changed("")
	for i := range 20 {
		h.mustInvoke(fmt.Sprint(i), "look", `{}`)
		h.runtime.result(fmt.Sprint(i))
	}
}

// TestGatewayHoldsFewBodies: a caller has some invocations in memory at
// a time, and takes no room from others.
func TestHoldsFewBodies(t *testing.T) {
	h := newHarness(t, func(c *Config) {
		other := c.Callers[0]
		other.Name, other.TokenHash = "flood", sum("flood-token")
		c.Callers = append(c.Callers, other)
	})
	reads, end := raptest.Floods(t, h.g, "/tools/invoke", "flood-token")
	h.runtime.until("bodies are read", func() bool { return reads.Load() >= maxReads })
	h.mustInvoke("c1", "look", `{}`)
	h.runtime.result("c1")
	if n := reads.Load(); n > maxReads {
		t.Errorf("%d bodies at once", n)
	}
	end()
}

// TestBelow: threads of two callers never have one name.
func TestBelow(t *testing.T) {
	word := rapid.StringMatching(`[ab/%]{1,5}`)
	rapid.Check(t, func(t *rapid.T) {
		c1 := word.Draw(t, "caller")
		t1 := word.Draw(t, "thread")
		c2 := word.Draw(t, "other caller")
		t2 := word.Draw(t, "other thread")
		if (below(c1, t1) == below(c2, t2)) != (c1 == c2 && t1 == t2) {
			t.Fatalf("%q %q and %q %q", c1, t1, c2, t2)
		}
	})
	if below("a", "b/x") == below("a/b", "x") {
		t.Error("one caller has a thread of another")
	}
}
