package approval_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// countingPolicy denies more than 1,000 EUR an hour over two tools, one of which asks. trade asks two of
// risk after 100 in a day. purge is denied after two failures, drift after a denial, visit in the third
// request of a session, and vault unless something succeeded.
const countingPolicy = `schema_version: "1.1.0"
policy_ref: acme.tests.desk
description: For tests.
rules:
  - id: cap
    match: {targets: [quote, pay]}
    when:
      history: [{of: {targets: [quote, pay]}, within: 1h, by: [agent], sum: {of: amount, gt: 1000}, currency: code}]
    deny: No more than a thousand an hour.
  - id: budget
    match: {targets: [trade]}
    when: {history: [{since: day, zone: UTC, sum: {of: amount, gt: 100}}]}
    approval: true
    require: {stages: [{group: risk, people: 2}], grants: {bounds: [{path: amount, kind: at_most}]}}
  - id: trouble
    match: {targets: [purge]}
    when: {history: [{state: failed, within: 1h, count: {gte: 2}}]}
    deny: It failed twice.
  - id: refused
    match: {targets: [drift]}
    when: {history: [{state: denied, within: 1h, exists: true}]}
    deny: People said no.
  - {id: ask-drift, match: {targets: [drift]}, approval: true}
  - id: often
    match: {targets: [visit]}
    when: {history: [{state: asked, within: 1h, by: [session], count: {gt: 2}}]}
    deny: Too many questions.
  - {id: ask-visit, match: {targets: [visit]}, approval: true}
  - id: proven
    match: {targets: [vault]}
    when: {history: [{of: {targets: ["pur*"]}, state: succeeded, within: 1h, exists: false}]}
    deny: Purge first.
`

func countingHarness(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.plans.set(t, countingPolicy)
	return h
}

// amount returns a call with an amount in EUR. n makes calls with one amount different.
func amount(name string, n, of int) *resolve.Call {
	return tool(name, fmt.Sprintf(`{"amount":%d,"code":"eur","n":%d,"secret":"s3cret"}`, of, n))
}

func (h *harness) opens(
	want resolve.Outcome, call *resolve.Call, change ...func(*approval.OpenInput),
) *approval.Opened {
	h.t.Helper()
	out := h.open(call, change...)
	if out.Outcome != want {
		h.t.Fatalf("%s %s: got %s (%s), want %s", call.Target(), call.Args, out.Outcome, out.Decision.Message, want)
	}
	return out
}

func keyed(key string) func(*approval.OpenInput) {
	return func(in *approval.OpenInput) { in.Key = key }
}

// TestRunsCountTogether: what ran, what people approved and this call count, and a reservation ends with
// its permit.
func TestRunsCountTogether(t *testing.T) {
	h := countingHarness(t)
	h.opens(resolve.Allow, amount("quote", 1, 400))
	first, _ := h.approved(amount("pay", 1, 500), nil) // 900 with the reservation
	h.opens(resolve.Deny, amount("quote", 2, 101))
	h.opens(resolve.Allow, tool("quote", `{"amount":101,"code":"USD"}`)) // another currency
	h.opens(resolve.Allow, amount("quote", 2, 100))
	h.opens(resolve.Ask, amount("pay", 1, 500)) // the same call does not count twice
	if d := h.opens(resolve.Deny, amount("quote", 3, 1)).Decision; d.Reasons[0].Matchers[0].History.String() !=
		"1000 EUR in 1h, this call 1" {
		t.Errorf("the figures are %v", d.Reasons[0].Matchers[0].History)
	}
	if _, err := h.consume(first, amount("pay", 1, 500), "k"); err != nil {
		t.Fatal(err)
	}
	h.opens(resolve.Deny, amount("quote", 3, 1))

	h.pass(59 * time.Minute)
	h.opens(resolve.Deny, amount("quote", 3, 1))
	h.pass(time.Minute)
	second, _ := h.approved(amount("pay", 2, 1000), nil)
	h.opens(resolve.Deny, amount("quote", 3, 1))
	_, err := h.s.Cancel(context.Background(), "t", second.ID, "runner", "")
	must(t, err)
	third, _ := h.approved(amount("pay", 3, 1000), nil)
	h.pass(15 * time.Minute) // the permit expires, before a worker has noticed it
	h.opens(resolve.Allow, amount("quote", 3, 1))
	h.tick(1)
	h.is(third.ID, approval.Expired, approval.ByPermitAge)
	fourth, _ := h.approved(amount("pay", 4, 999), nil)
	h.vote(fourth, "bob", approval.Deny, approval.VoteRevoked)
	h.opens(resolve.Allow, amount("quote", 4, 999))
	h.history()
}

// TestApprovalsAreCountedAgain: of two approvals that exceed a bound together, the first that is used is
// refused, which ends its reservation. A rule that asks only now makes the call ask again.
func TestApprovalsAreCountedAgain(t *testing.T) {
	h := countingHarness(t)
	one, two := h.asked(amount("pay", 1, 600)), h.asked(amount("pay", 2, 600))
	h.vote(one, "cy", approval.Approve, approval.VoteApproved)
	h.vote(two, "cy", approval.Approve, approval.VoteApproved)
	_, err := h.consume(one, amount("pay", 1, 600), "k")
	h.fails(err, approval.ErrStale)
	var counted *approval.CountedError
	if !errors.As(err, &counted) || counted.Decision.Outcome != resolve.Deny ||
		!strings.Contains(err.Error(), "rule cap") {
		t.Errorf("got %v", err)
	}
	h.is(one.ID, approval.Expired, approval.ByHistory)
	if _, err = h.consume(two, amount("pay", 2, 600), "k"); err != nil {
		t.Fatal(err)
	}

	// As the asker wants, people are asked about a trade that no rule asks about. Then a rule asks.
	trade := h.asked(amount("trade", 1, 60), func(in *approval.OpenInput) { in.Ask = "please" })
	h.vote(trade, "cy", approval.Approve, approval.VoteApproved)
	h.opens(resolve.Ask, amount("trade", 2, 60)) // 60 are reserved
	h.pass(time.Second)
	if _, err = h.consume(trade, amount("trade", 1, 60), "k"); err != nil {
		t.Fatal(err)
	}
	again := h.asked(amount("trade", 3, 40), func(in *approval.OpenInput) { in.Ask = "please" })
	other := h.asked(amount("trade", 4, 40), func(in *approval.OpenInput) { in.Ask = "please" })
	h.vote(again, "cy", approval.Approve, approval.VoteApproved)
	h.vote(other, "cy", approval.Approve, approval.VoteApproved)
	_, err = h.consume(again, amount("trade", 3, 40), "k")
	h.fails(err, approval.ErrStale)
	if !errors.As(err, &counted) || counted.Decision.Outcome != resolve.Ask {
		t.Errorf("got %v", err)
	}
	h.opens(resolve.Ask, amount("trade", 3, 40))
	h.history()
}

// TestARepeatedKeyIsOneRun: a caller that presents an allowed call again under its key runs it once, for as
// long as a permit could be used.
func TestARepeatedKeyIsOneRun(t *testing.T) {
	h := countingHarness(t)
	for range 3 {
		h.opens(resolve.Allow, amount("quote", 1, 600), keyed("a"))
	}
	h.opens(resolve.Allow, amount("quote", 1, 400), keyed("b"))
	h.opens(resolve.Deny, amount("quote", 1, 600), keyed("c"))
	h.opens(resolve.Allow, amount("quote", 1, 600), keyed("a"))
	must(t, h.s.Report(context.Background(), approval.ReportInput{
		Tenant: "t", Asker: runner(), Agent: "desk", Call: amount("quote", 1, 600), Report: approval.Returned,
		Opened: "a", Key: "r",
	}))
	h.opens(resolve.Deny, amount("quote", 1, 600), keyed("a")) // that run is over
	h.opens(resolve.Allow, amount("quote", 1, 400), keyed("b"))
	h.pass(15 * time.Minute)
	h.opens(resolve.Deny, amount("quote", 1, 400), keyed("b"))
	h.pass(time.Hour)
	h.opens(resolve.Allow, amount("quote", 1, 600), keyed("a"))
	h.opens(resolve.Deny, amount("quote", 2, 600), keyed("d"))

	must(t, h.s.Freeze(context.Background(), "t", "desk", "ann", "x"))
	h.opens(resolve.Deny, amount("quote", 1, 600), keyed("a"))
}

// TestStatesAreCounted: outcomes that runtimes report, denials and requests count. An outcome without a run
// does not.
func TestStatesAreCounted(t *testing.T) {
	h := countingHarness(t)
	report := func(call *resolve.Call, what approval.Report, opened, key string) {
		t.Helper()
		must(t, h.s.Report(context.Background(), approval.ReportInput{
			Tenant: "t", Asker: runner(), Agent: "desk", Call: call, Report: what, Opened: opened, Key: key,
		}))
	}
	purge := tool("purge", `{"days":1}`)
	report(purge, approval.Failed, "", "r0") // nothing ran
	report(purge, approval.Failed, "", "r1")
	h.opens(resolve.Allow, purge, keyed("a"))
	report(purge, approval.Failed, "a", "r2")
	report(purge, approval.Failed, "a", "r3") // the same run
	report(purge, approval.Returned, "a", "r4")
	h.opens(resolve.Deny, tool("vault", `{}`))
	h.opens(resolve.Allow, purge, keyed("b"))
	report(purge, approval.Failed, "b", "r5")
	h.opens(resolve.Deny, purge, keyed("c"))
	h.pass(time.Hour)
	h.opens(resolve.Allow, purge, keyed("d"))
	report(purge, approval.Returned, "d", "r6")
	h.pass(time.Second)
	report(purge, approval.Failed, "d", "r7")
	h.opens(resolve.Allow, tool("vault", `{}`))

	drift := h.asked(tool("drift", `{"n":2}`))
	h.vote(drift, "cy", approval.Deny, approval.VoteDenied)
	h.opens(resolve.Deny, tool("drift", `{"n":3}`))

	h.asked(tool("visit", `{"n":1}`))
	h.asked(tool("visit", `{"n":2}`))
	h.opens(resolve.Ask, tool("visit", `{"n":2}`)) // it joins the request
	h.opens(resolve.Deny, tool("visit", `{"n":3}`))
	other := tool("visit", `{"n":3}`)
	other.Session = "s2"
	h.asked(other)
	h.history()
}

// TestWhatCallersSayOfThePast: the history and the moment that a call carries don't matter, and a test for which
// the call lacks a value is unknown.
func TestWhatCallersSayOfThePast(t *testing.T) {
	h := countingHarness(t)
	h.opens(resolve.Allow, amount("quote", 1, 1000))
	call := amount("quote", 2, 1)
	call.HistoryKnown, call.At = true, h.now().Add(24*time.Hour)
	h.opens(resolve.Deny, call)
	if d, err := h.s.Decide(context.Background(), "t", "desk", call); err != nil || d.Outcome != resolve.Deny {
		t.Errorf("got %v, %v", d, err)
	}
	h.opens(resolve.Deny, tool("quote", `{"amount":1}`))
	h.opens(resolve.Deny, tool("quote", `{"code":"EUR"}`))
	h.pass(time.Hour)
	if d, err := h.s.Decide(context.Background(), "t", "desk", call); err != nil || d.Outcome != resolve.Allow {
		t.Errorf("got %v, %v", d, err)
	}
	h.opens(resolve.Allow, call) // a decision alone leaves no trace
}

// TestTheClockOfAnotherReplica: calls that a replica recorded whose clock is ahead count now.
func TestTheClockOfAnotherReplica(t *testing.T) {
	h := countingHarness(t)
	h.opens(resolve.Allow, amount("quote", 1, 1000))
	behind := func() time.Time { return h.now().Add(-time.Minute) }
	h.s = approval.New(h.store, h.plans, h.people, behind, rand.Reader, h.cfg)
	h.opens(resolve.Deny, amount("quote", 2, 1))
}

// TestTheHistoryAfterARestore: after a restore it is not known what ran before it.
func TestTheHistoryAfterARestore(t *testing.T) {
	h := countingHarness(t)
	if _, err := h.s.Void(context.Background(), "t", "operator", nil); err != nil {
		t.Fatal(err)
	}
	h.opens(resolve.Deny, amount("quote", 1, 1))
	h.pass(time.Hour)
	h.opens(resolve.Allow, amount("quote", 1, 1))
}

// TestOnlyTestedArgumentsAreKept: of the arguments of a call that ran, the store keeps those that rules read.
func TestOnlyTestedArgumentsAreKept(t *testing.T) {
	h := countingHarness(t)
	h.opens(resolve.Allow, amount("quote", 1, 10))
	h.opens(resolve.Allow, tool("glance", `{}`)) // no rule counts it
	all, err := h.store.Pasts(context.Background(), "t", approval.PastQuery{State: "ran", Limit: 10})
	must(t, err)
	if len(all) != 1 || string(all[0].Call.Args) != `{"amount":10,"code":"eur"}` || all[0].Call.Tool != "quote" {
		t.Fatalf("got %+v", all)
	}
	if want := h.now().Add(25 * time.Hour); all[0].Until.Before(want) {
		t.Errorf("it may be deleted at %s", all[0].Until)
	}
}

// TestHistoryAgainstAnOracle compares random runs with a list of what counts.
func TestHistoryAgainstAnOracle(t *testing.T) {
	t.Parallel()
	h := countingHarness(t)
	rapid.Check(t, func(rt *rapid.T) {
		h.pass(24 * time.Hour) // nothing of the last check counts
		type run struct {
			request     *approval.Request
			call        *resolve.Call
			amount      int
			at, expires time.Time // expires is zero once it ran
		}
		var runs []*run
		used := func(except *run) (sum int) {
			for _, r := range runs {
				live := r.expires.IsZero() || h.now().Before(r.expires)
				if r != except && live && r.at.After(h.now().Add(-time.Hour)) {
					sum += r.amount
				}
			}
			return sum
		}
		drop := func(r *run) {
			for i := range runs {
				if runs[i] == r {
					runs = append(runs[:i], runs[i+1:]...)
					return
				}
			}
		}
		for i := range rapid.IntRange(1, 15).Draw(rt, "steps") {
			n := rapid.IntRange(1, 700).Draw(rt, "amount")
			fits := used(nil)+n <= 1000
			var reserved *run
			for _, r := range runs {
				if !r.expires.IsZero() && h.now().Before(r.expires) {
					reserved = r
				}
			}
			steps := []string{"quote", "pay", "use", "cancel", "pass", "tick"}
			switch step := rapid.SampledFrom(steps).Draw(rt, "step"); {
			case step == "quote":
				want := resolve.Deny
				if fits {
					want = resolve.Allow
					runs = append(runs, &run{amount: n, at: h.now()})
				}
				h.opens(want, amount("quote", i, n))
			case step == "pay" && !fits:
				h.opens(resolve.Deny, amount("pay", i, n))
			case step == "pay":
				call := amount("pay", i, n)
				r, _ := h.approved(call, nil)
				runs = append(runs, &run{r, call, n, h.now(), r.Permit.Expires})
			case step == "use" && reserved != nil:
				others := used(reserved)
				_, err := h.consume(reserved.request, reserved.call, "k")
				stale := errors.Is(err, approval.ErrStale)
				if stale != (others+reserved.amount > 1000) || !stale && err != nil {
					rt.Fatalf("%d with %d others: %v", reserved.amount, others, err)
				}
				if err != nil {
					drop(reserved)
					continue
				}
				reserved.expires, reserved.at = time.Time{}, h.now()
			case step == "cancel" && reserved != nil:
				_, err := h.s.Cancel(context.Background(), "t", reserved.request.ID, "runner", "")
				must(t, err)
				drop(reserved)
			case step == "pass":
				h.pass(time.Duration(rapid.IntRange(1, 40).Draw(rt, "minutes")) * time.Minute)
			case step == "tick":
				if _, err := h.s.Tick(context.Background()); err != nil {
					rt.Fatal(err)
				}
			}
		}
	})
}
