package rap_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
)

// TestGatewaySharesItsWork: a caller with many calls that hang does not
// keep the deadlines of others from being seen.
func TestGatewaySharesItsWork(t *testing.T) {
	t.Parallel()
	r, slow := newConfRuntime(t, "alpha"), newConfRuntime(t, "slow")
	h := confGatewayOf(t, []*confRuntime{r, slow}, func(cfg *gateway.Config) {
		cfg.Rate, cfg.MaxThread = 100_000, 100_000
		cfg.Callers[1].Callbacks.Timeout = time.Hour
	})
	slow.answers(func(*confCallback, int) int { return confHang })
	for range 1200 {
		slow.call("drop_table", `{}`).invoke()
	}
	c, _ := r.asked()
	h.through(r)
	h.clock.pass(11 * time.Minute)
	if got := c.fails(); !strings.Contains(got, "in time") {
		t.Errorf("%q", got)
	}
}

// TestGatewayGoesOnWhileItLists: going through all calls, of which
// there may be very many, holds up none.
func TestGatewayGoesOnWhileItLists(t *testing.T) {
	var stuck atomic.Bool
	desk := raptest.NewDesk(t)
	h, r := confGateway(t, confAsk(gateway.AskApprovers, desk), func(cfg *gateway.Config) {
		cfg.Records = &confDisk{Records: cfg.Records, left: -1, lists: func(ctx context.Context) error {
			if stuck.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
	})
	h.through(r)
	stuck.Store(true)
	desk.Tell("")
	for range 20 {
		h.through(r)
	}
}

// TestGatewayHoldsFewBodies: a caller has some invocations in memory at
// a time, and takes no room from others.
func TestGatewayHoldsFewBodies(t *testing.T) {
	const most = 64
	r, flood := newConfRuntime(t, "alpha"), newConfRuntime(t, "flood")
	h := confGatewayOf(t, []*confRuntime{r, flood})
	reads, end := raptest.Floods(t, h.gateway, "/invoke", flood.token)
	testwait.Until(t, "bodies are read", func() bool { return reads.Load() >= most })
	h.through(r)
	if n := reads.Load(); n > most {
		t.Errorf("%d bodies at once", n)
	}
	end()
}

func TestGatewayBoundsWhatIsOpen(t *testing.T) {
	h, r := confGateway(t, func(cfg *gateway.Config) { cfg.MaxOpen, cfg.MaxThread = 3, 2 })
	named := func(id, thread string) *confCall {
		return r.call("write_file", confMotd).with(func(in *confInvocation) { in.ID, in.GroupID = id, thread })
	}
	first := named("a", "1")
	for _, tt := range []struct {
		c    *confCall
		want int
	}{
		{first, 200},
		{named("b", "1"), 200},
		{named("c", "1"), 503},
		{named("c", "2"), 200},
		{named("d", "2"), 503},
		{named("d", "3"), 503},
		{first, 200}, // it is open already
	} {
		if status := tt.c.post(); status != tt.want {
			t.Errorf("%s in %s: %d", tt.c.in.ID, tt.c.in.GroupID, status)
		}
	}

	h.crash()
	if status := named("e", "4").post(); status != 503 {
		t.Errorf("a restart is a way around the limits: %d", status)
	}
	r.cancel("1", "a")
	testwait.Until(t, "room", func() bool { return named("f", "1").post() == 200 })
}

func TestGatewayBoundsTheRate(t *testing.T) {
	_, r := confGateway(t, func(cfg *gateway.Config) {
		cfg.Rate = 5
		at := time.Now()
		cfg.Now = func() time.Time { return at }
	})
	statuses := map[int]int{}
	for range 12 {
		statuses[r.call("list_files", `{}`).post()]++
	}
	if statuses[200] != 5 || statuses[503] != 7 {
		t.Errorf("%v", statuses)
	}
}

// Without records nothing is acknowledged, asked, or taken for an answer.
func TestGatewayWithoutRecords(t *testing.T) {
	h, r := confGateway(t)
	c, q := r.asked()
	h.disk.die(0)
	if status := r.call("list_files", `{}`).post(); status != http.StatusServiceUnavailable {
		t.Errorf("invoke: %d", status)
	}
	if status := c.answer(q, 0); status != http.StatusServiceUnavailable {
		t.Errorf("answer: %d", status)
	}
	status, body := r.cancel(c.in.GroupID, c.in.ID)
	confAcknowledged(t, "cancel", status, body)
	if status, _ := r.tell("/tool_call_status", map[string]any{
		"thread_id":    c.in.GroupID,
		"tool_call_id": c.in.ID,
	}); status != http.StatusServiceUnavailable {
		t.Errorf("status: %d", status)
	}

	h.restart()
	c.picks(q, 0)
	c.result()
}

// A grant whose thread closes between the answer and the run does not
// outlive it.
func TestGatewayGrantsOfClosingThreads(t *testing.T) {
	var r *confRuntime
	var closing atomic.Bool
	disk := &confDisk{Records: rap.NewMemory(), left: -1}
	disk.writes = func(room string) {
		if strings.HasSuffix(room, "/grants") && closing.CompareAndSwap(false, true) {
			r.closeThread("thread-1")
		}
	}
	r = newConfRuntime(t, "alpha")
	h := confGatewayOf(t, []*confRuntime{r}, confOffer, func(cfg *gateway.Config) { cfg.Records = disk })
	c, q := r.asked()
	c.picks(q, q.index(t, "session"))
	c.fails()
	testwait.Until(t, "the end of the grant", func() bool {
		grants, err := h.gateway.Grants(t.Context())
		return err == nil && len(grants) == 0
	})
	if !closing.Load() {
		t.Error("no grant was made")
	}
	h.ran("write_file", 0)
}
