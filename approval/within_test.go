package approval_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

func within(d time.Duration) func(*approval.OpenInput) {
	return func(in *approval.OpenInput) { in.Within = d }
}

// TestTheAskersTimeOnlyTightens: an asker may wait for a shorter time than the rules allow, but
// can't extend it.
func TestTheAskersTimeOnlyTightens(t *testing.T) {
	h := newHarness(t)
	for i, c := range []struct {
		tool         string
		within, want time.Duration
	}{
		{"refund", 0, time.Hour},
		{"refund", time.Minute, time.Minute},
		{"refund", time.Hour, time.Hour},
		{"refund", 48 * time.Hour, time.Hour},
		{"pay", 0, 24 * time.Hour},
		{"pay", 10 * time.Minute, 10 * time.Minute},
		{"pay", 48 * time.Hour, 24 * time.Hour},
	} {
		r := h.asked(tool(c.tool, fmt.Sprintf(`{"amount":1,"n":%d}`, i)), within(c.within))
		if got := r.Deadline.Sub(r.Created); got != c.want || r.Within != c.want {
			t.Errorf("%s, within %s: open for %s, want %s", c.tool, c.within, got, c.want)
		}
	}

	_, err := h.tryOpen(tool("pay", `{}`), within(-time.Second))
	h.wrongField(err, "within")
	h.history()
}

// TestAShorterTimeIsNoConsent: a timeout approves only after the full time that the rules set.
func TestAShorterTimeIsNoConsent(t *testing.T) {
	h := newHarness(t)
	short := h.asked(tool("drift", `{"n":1}`), within(time.Minute))
	long := h.asked(tool("drift", `{"n":2}`), within(time.Hour))
	plain := h.asked(tool("drift", `{"n":3}`))
	h.pass(11 * time.Minute)
	h.tick(3)
	for r, want := range map[*approval.Request]approval.State{
		short: approval.Expired,
		long:  approval.Approved,
		plain: approval.Approved,
	} {
		if got := h.request(r.ID); got.State != want {
			t.Errorf("%s: %s by %s, want %s", r.Current().Call.Args, got.State, got.Cause, want)
		}
	}

	h.history()
}

// TestTheTimeIsNoPartOfTheCall: the same call with the same key is the same request for any waiting
// time; a shared request keeps its deadline.
func TestTheTimeIsNoPartOfTheCall(t *testing.T) {
	h := newHarness(t)
	first := h.asked(tool("pay", `{}`), key("k"), within(time.Hour))
	for _, later := range []time.Duration{59 * time.Minute, time.Second, 0} {
		out := h.open(tool("pay", `{}`), key("k"), within(later))
		if !out.Shared || out.Request.ID != first.ID || !out.Request.Deadline.Equal(first.Deadline) {
			t.Errorf("within %s: %+v", later, out)
		}
	}

	if out := h.open(tool("pay", `{}`), as("other", ""), within(time.Second)); !out.Shared ||
		!out.Request.Deadline.Equal(first.Deadline) {
		t.Errorf("another asker: %+v", out)
	}
}

// TestAskAnyway: an asker may have people asked about a call that the rules allow, and can't change
// any other decision.
func TestAskAnyway(t *testing.T) {
	const why = "the tool is another one than before"
	h := newHarness(t)
	anyway := func(in *approval.OpenInput) { in.Ask = why }
	r := h.asked(tool("quote", `{"n":1}`), anyway)
	d := r.Current().Decision
	if d.Message != why || len(d.Reasons) != 1 || d.Reasons[0].Source != approval.FromAsker || d.Binding == "" {
		t.Errorf("got %+v", d)
	}
	if g := r.Grounds(); len(g) != 1 || g[0].Rule != "whoever asks, though the rules allow the call" {
		t.Errorf("the grounds are %+v", g)
	}

	h.vote(r, "bob", approval.Approve, approval.VoteApproved)
	if _, err := h.consume(r, tool("quote", `{"n":1}`), "run"); err != nil {
		t.Error(err)
	}
	if out := h.open(tool("wire", `{}`), anyway); out.Outcome != resolve.Deny {
		t.Errorf("what the rules deny got %+v", out)
	}
	if r := h.asked(tool("pay", `{"n":1}`), anyway); r.Current().Decision.Message == why {
		t.Error("the rules' own message is lost")
	}
	_, err := h.tryOpen(tool("quote", `{}`), func(in *approval.OpenInput) { in.Ask = "a\nb" })
	h.wrongField(err, "ask")
}

// TestEditOfWhatIsAskedAnyway: people are asked about the edited call for the same reason.
func TestEditOfWhatIsAskedAnyway(t *testing.T) {
	h := newHarness(t)
	r := h.asked(tool("quote", `{"n":1}`), func(in *approval.OpenInput) { in.Ask = "look at it" })
	e, err := h.edit(r, "bob", `{"n":2}`)
	must(t, err)
	if e.Decision.Outcome != resolve.Ask || e.Decision.Message != "look at it" {
		t.Errorf("got %+v", e.Decision)
	}
}
