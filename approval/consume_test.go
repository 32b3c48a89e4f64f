package approval_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// TestConsumeAtOnce: of 64 workers with one permit, exactly one may run the call (threat 10).
func TestConsumeAtOnce(t *testing.T) {
	h := newHarness(t)
	r, _ := h.approved(tool("pay", `{}`), nil)
	errs, wg := make([]error, 64), sync.WaitGroup{}
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = h.consume(r, tool("pay", `{}`), approval.NewKey())
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, approval.ErrConsumed):
			t.Error(err)
		}
	}

	if won != 1 {
		t.Errorf("%d of 64 may run it", won)
	}
	h.history()
}

func TestConsumeAgain(t *testing.T) {
	h := newHarness(t)
	r, _ := h.approved(tool("pay", `{}`), nil)
	first, err := h.consume(r, tool("pay", `{}`), "mine")
	if err != nil || first.State != approval.Consumed {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, err := h.consume(r, tool("pay", `{}`), "mine")
	if err != nil || again.Version != first.Version || again.Permit.Key != "mine" {
		t.Errorf("the same attempt got %+v, %v", again, err)
	}
	_, err = h.consume(r, tool("pay", `{}`), "another")
	h.fails(err, approval.ErrConsumed)
	_, err = h.s.Consume(context.Background(), approval.ConsumeInput{
		Tenant: "t",
		ID:     r.ID,
		Asker:  approval.Asker{Token: "thief"},
		Call:   tool("pay", `{}`),
		Key:    "mine",
	})
	h.fails(err, approval.ErrNotFound)
	h.happened("request_opened", "vote_counted", "request_approved", "permit_consumed", "consume_refused")
}

// otherCalls returns changes that turn a call with a definition and hints into another call.
func otherCalls() map[string]func(*resolve.Call) {
	return map[string]func(*resolve.Call){
		"tool":          func(c *resolve.Call) { c.Tool = "trade" },
		"principal":     func(c *resolve.Call) { c.Principal = "ann" },
		"session":       func(c *resolve.Call) { c.Session = "s2" },
		"no session":    func(c *resolve.Call) { c.Session = "" },
		"definition":    func(c *resolve.Call) { c.ToolDefinition = "sha256:abd" },
		"no definition": func(c *resolve.Call) { c.ToolDefinition = "" },
		"hint":          func(c *resolve.Call) { c.Annotations = map[string]bool{"readOnlyHint": true} },
		"no hints":      func(c *resolve.Call) { c.Annotations = nil },
		"parent":        func(c *resolve.Call) { c.ParentInput = []byte(`{}`) },
		"no arguments":  func(c *resolve.Call) { c.Args = nil },
		"remote":        func(c *resolve.Call) { c.Remote = resolve.RemoteYes },
	}
}

// TestConsumeAnotherCall: a call that differs in any part from the approved one is another call.
func TestConsumeAnotherCall(t *testing.T) {
	h := newHarness(t)
	const args = `{"amount":100,"to":"x"}`
	call := tool("pay", args)
	call.ToolDefinition, call.Annotations = "sha256:abc", map[string]bool{"readOnlyHint": false}
	r, _ := h.approved(call, nil)
	changes := otherCalls()
	for i := range args {
		if args[i] != '"' { // a changed byte: the text is mostly unreadable, and never the approved call
			changes["byte "+args[:i]] = func(c *resolve.Call) {
				c.Args = []byte(args[:i] + string(args[i]^1) + args[i+1:])
			}
		}
	}

	for name, change := range changes {
		other := *call
		change(&other)
		if _, err := h.consume(r, &other, "k"); !errors.Is(err, approval.ErrBinding) {
			t.Errorf("%s: got %v", name, err)
		}
	}

	for _, binding := range []string{"", "sha256:", r.Binding()[:20], r.Binding() + "0"} {
		_, err := h.s.Consume(context.Background(), approval.ConsumeInput{
			Tenant:  "t",
			ID:      r.ID,
			Asker:   approval.Asker{Token: "runner"},
			Binding: binding,
			Key:     "k",
		})
		h.fails(err, approval.ErrBinding)
	}

	_, err := h.consume(r, call, "")
	h.wrongField(err, "key")
	_, err = h.consume(r, &resolve.Call{Kind: resolve.Tool, Tool: "pay", Values: map[string]any{"a": 1}}, "k")
	h.wrongField(err, "call.args")
	got, err := h.s.Consume(context.Background(), approval.ConsumeInput{
		Tenant:  "t",
		ID:      r.ID,
		Asker:   approval.Asker{Token: "runner"},
		Binding: r.Binding(),
		Key:     "k",
	})
	if err != nil || got.State != approval.Consumed {
		t.Errorf("got %+v, %v", got, err)
	}
	h.history()
}

func TestConsumeTooEarlyOrTooLate(t *testing.T) {
	h := newHarness(t)
	pending := h.asked(tool("pay", `{}`))
	_, err := h.consume(pending, tool("pay", `{}`), "k")
	h.fails(err, approval.ErrPending)
	h.vote(pending, "eve", approval.Deny, approval.VoteDenied)
	_, err = h.consume(pending, tool("pay", `{}`), "k")
	h.fails(err, approval.ErrNotApproved)

	late, _ := h.approved(tool("pay", `{"n":2}`), nil)
	h.pass(15 * time.Minute)
	_, err = h.consume(late, tool("pay", `{"n":2}`), "k") // no worker has processed the expiry yet
	h.fails(err, approval.ErrNotApproved)
	h.is(late.ID, approval.Expired, approval.ByPermitAge)
	h.tick(0)
	h.history()
}

func TestConsumeUnderOtherRules(t *testing.T) {
	h := newHarness(t)
	r, _ := h.approved(tool("pay", `{}`), nil)
	h.plans.set(t, strings.Replace(policyFile, "within: 30m", "within: 29m", 1))
	_, err := h.consume(r, tool("pay", `{}`), "k")
	h.fails(err, approval.ErrStale)
	h.is(r.ID, approval.Expired, approval.ByPlanChange)
	h.plans.set(t, policyFile)
	_, err = h.consume(r, tool("pay", `{}`), "k") // restoring the old rules does not restore the approval
	h.fails(err, approval.ErrNotApproved)
	h.asked(tool("pay", `{}`))
	h.happened("request_opened", "vote_counted", "request_approved", "request_expired", "request_opened")
}

// TestLostStore: if the store fails in between, nothing may run, and its data is still there
// afterwards.
func TestLostStore(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	pending := h.asked(tool("trade", `{}`))
	approved, _ := h.approved(tool("pay", `{}`), &approval.GrantOffer{})
	must(t, h.store.Close())
	for name, try := range map[string]func() error{
		"open": func() error {
			_, err := h.tryOpen(tool("quote", `{}`))
			return err
		},
		"decide": func() error {
			_, err := h.s.Decide(ctx, "t", "desk", tool("quote", `{}`))
			return err
		},
		"vote": func() error {
			_, err := h.tryVote(pending, "ann", approval.Approve)
			return err
		},
		"edit": func() error {
			_, err := h.edit(pending, "ann", `{"n":1}`)
			return err
		},
		"consume": func() error {
			_, err := h.consume(approved, tool("pay", `{}`), "k")
			return err
		},
		"cancel": func() error {
			_, err := h.s.Cancel(ctx, "t", pending.ID, "runner", "")
			return err
		},
		"freeze": func() error { return h.s.Freeze(ctx, "t", "", "ann", "") },
		"tick": func() error {
			_, err := h.s.Tick(ctx)
			return err
		},
		"wait": func() error {
			_, err := h.wait(ctx, pending.ID, pending.Version, time.Minute)
			return err
		},
		"request": func() error {
			_, err := h.s.Request(ctx, "t", pending.ID)
			return err
		},
		"revoke": func() error {
			_, err := h.s.Revoke(ctx, "t", approved.GrantID, "ann", "")
			return err
		},
	} {
		if try() == nil {
			t.Errorf("%s worked without a store", name)
		}
	}

	h.store = nil
	h.start()
	h.vote(pending, "ann", approval.Approve, approval.VoteCounted)
	if _, err := h.consume(approved, tool("pay", `{}`), "k"); err != nil {
		t.Error(err)
	}
	h.history()
}
