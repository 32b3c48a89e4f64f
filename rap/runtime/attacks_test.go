package runtime

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/store"
)

// rtStrict asks about an operation that rtAgent allows.
var rtStrict = strings.Replace(rtAgent, "{alias: read}", "{alias: read, approval: true}", 1)

// If the tool sends a question while people are asked before a second attempt, it has the call:
// the call is not sent again, and the approval request is withdrawn.
func TestHeardWhileAsking(t *testing.T) {
	w := newRTWorld(t)
	w.tool.On("/run", func(rw http.ResponseWriter, _ *http.Request, _ int) {
		w.sets(func() { w.plan = rtPlan(t, rtStrict) })
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	w.invoke("1", "read", `{}`)
	approval := w.asked(1)
	w.shows("1", approval)
	w.accepts("1", w.choice("1", "secret"))
	question := w.asked(2)
	w.shows("1", question)
	w.until("the approval is withdrawn", func() bool { return w.desk.Of(approval).Held.State == hold.Cancelled })
	w.desk.Hold(hold.Held{Ref: approval, State: hold.Approved})
	w.desk.Says(question, hold.Answer{State: hold.Chosen, Selected: 0, By: "ann"})
	w.tool.waits("/answers/secret", 1)
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// An approval that was used is valid for the rules it was given under, also if the call has to
// be sent again.
func TestAsksAgainUnderOtherRules(t *testing.T) {
	w := newRTWorld(t)
	w.sets(func() { w.plan = rtPlan(t, rtStrict) })
	changed := rtPlan(t, strings.Replace(rtStrict, `version: "1.0.0", desc`, `version: "1.0.1", desc`, 1))
	w.tool.On("/run", func(rw http.ResponseWriter, _ *http.Request, _ int) {
		w.sets(func() { w.plan = changed })
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	w.invoke("1", "read", `{}`)
	w.desk.Hold(hold.Held{Ref: w.asked(1), State: hold.Approved})
	w.shows("1", w.asked(2))
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// Refused questions are recorded only a limited number of times, so that a tool can't fill the
// ledger, which is never pruned.
func TestRecordsFewRefusals(t *testing.T) {
	w := newRTWorld(t)
	w.sent("1")
	bad := w.choice("1", "secret")
	bad.ResponseURL = "https://elsewhere.example/secret"
	for range 100 {
		if code := w.calls("1", bad); code != http.StatusBadRequest {
			t.Fatalf("answered with %d", code)
		}
	}
	if n := w.recorded("rap_choice_refused"); n == 0 || n > 50 {
		t.Errorf("%d refusals in the ledger", n)
	}
}

// hangsUp is a store that calls hangUp during writes of events.
type hangsUp struct {
	store.Records
	hangUp func()
}

func (s *hangsUp) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	n, err := s.Records.PutRecord(ctx, r)
	if strings.HasSuffix(r.Namespace, "/events") && s.hangUp != nil {
		s.hangUp()
	}
	return n, err
}

// If a tool disconnects while its event is being stored, no event stays that is not counted
// against the limits.
func TestKeepsEventsWhole(t *testing.T) {
	records := &hangsUp{}
	w := newRTWorld(t, func(c *Config) { records.Records, c.Records = c.Records, records })
	w.sent("1")
	result := rtResult("1", "on it")
	result.Subscription = true
	w.accepts("1", result)
	event := string((&wire.Event{GroupID: "t", ToolCallID: "1", Text: "news"}).Append(nil))
	ctx, cancel := context.WithCancel(t.Context())
	records.hangUp = cancel
	req := httptest.NewRequestWithContext(
		ctx,
		http.MethodPost,
		"/callbacks/"+w.kept("1").Part.Token,
		strings.NewReader(event),
	)
	req.Header.Set("Content-Type", "application/json")
	w.r.ServeHTTP(httptest.NewRecorder(), req)
	kept, err := w.mine.Events(t.Context(), "t", 0)
	if counted := w.kept("1").Part.Events; err != nil || len(kept) != 1 || len(counted) != 1 {
		t.Errorf("%d events kept and %d counted: %v", len(kept), len(counted), err)
	}
}

// The number of a tool server's callbacks in memory is limited, and other servers are not
// affected.
func TestHoldsFewBodies(t *testing.T) {
	other := newRTTool(t)
	other.Offers(raptest.Manifest(other.URL+"/run", "wipe2"))
	w := newRTWorld(t, func(c *Config) {
		c.Servers = append(c.Servers, Server{Name: "other", Peer: peer.Config{URL: other.URL}})
	})
	w.sets(func() {
		w.plan = rtPlan(t, strings.Replace(rtAgent, "- {alias: wipe}", "- {alias: wipe2}", 1))
	})
	w.sent("1")
	w.invoke("2", "wipe2", `{}`)
	w.is("2", CallPending)
	reads, end := raptest.Floods(t, w.r, "/callbacks/"+w.kept("1").Part.Token, "")
	w.until("bodies are read", func() bool { return reads.Load() >= maxBodies })
	w.accepts("2", rtResult("2", "done"))
	if n := reads.Load(); n > maxBodies {
		t.Errorf("%d bodies at once", n)
	}
	end()
}

// A tool server that hangs does not delay calls of other servers.
func TestGoesOnBesideOneThatHangs(t *testing.T) {
	away := newRTTool(t)
	away.Answers(toolsetPath, http.StatusServiceUnavailable)
	w := newRTWorld(t, func(c *Config) {
		c.Servers = append(c.Servers, Server{Name: "away", Peer: peer.Config{URL: away.URL, Timeout: time.Minute}})
	})
	w.sent("1")
	away.Hangs(toolsetPath)
	w.pass(2 * retryAfter)
	for _, id := range []string{"2", "3"} {
		if _, err := w.mine.Invoke(t.Context(), rtInvocation(id, "read", `{}`)); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		w.is(id, CallPending)
	}

	away.waits(toolsetPath, 2)
}
