package approval_test

import (
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// countedHead begins a policy that counts past calls.
const countedHead = "schema_version: \"1.1.0\"\npolicy_ref: acme.tests.desk\ndescription: For tests.\nrules:\n"

// TestArgumentsThatWereNotKeptAreUnknown: a rule that reads an argument which no rule read when past
// calls were recorded counts them as unknown.
func TestArgumentsThatWereNotKeptAreUnknown(t *testing.T) {
	h := newHarness(t)
	h.plans.set(t, countedHead+`  - id: many
    match: {targets: [quote]}
    when: {history: [{within: 1h, count: {gt: 100}}]}
    deny: many
`)
	for range 5 {
		h.opens(resolve.Allow, tool("quote", `{"customer":"c"}`))
		h.pass(time.Second)
	}
	h.plans.set(t, countedHead+`  - id: many
    match: {targets: [quote]}
    when: {history: [{within: 1h, by: [args.customer], count: {gt: 2}}]}
    deny: many
`)
	h.opens(resolve.Deny, tool("quote", `{"customer":"c"}`))
}

// TestAKeyUnderAStandingApprovalCountsAgain: a key under which a standing approval let a call run is
// another run when that one can't be used any more.
func TestAKeyUnderAStandingApprovalCountsAgain(t *testing.T) {
	h := countingHarness(t)
	h.plans.set(t, countedHead+`  - id: budget
    match: {targets: [trade]}
    when: {history: [{within: 24h, count: {gt: 0}}]}
    approval: true
    require: {stages: [{group: risk, people: 1}]}
`)
	r := h.asked(amount("trade", 1, 60))
	h.vote(r, "ann", approval.Approve, approval.VoteApproved, func(in *approval.VoteInput) {
		in.Grant = &approval.GrantOffer{MaxUses: 50, MaxAge: 20 * time.Hour}
	})
	const runs = 5
	for range runs {
		h.opens(resolve.Allow, amount("trade", 1, 60), keyed("k"))
		h.pass(time.Hour)
	}
	all, err := h.store.Pasts(t.Context(), "t", approval.PastQuery{State: "ran", Limit: 100})
	must(t, err)
	recorded := 0
	for _, p := range all {
		if p.Ends == nil {
			recorded++
		}
	}
	if recorded != runs {
		t.Errorf("%d of %d runs are recorded", recorded, runs)
	}
}

// TestARunIsKeptWhileNoRuleCountsIt: a permit that is used while no rule counts the call is no
// reservation any more, so the run counts when a rule does again.
func TestARunIsKeptWhileNoRuleCountsIt(t *testing.T) {
	h := newHarness(t)
	counting := func(target string) string {
		return countedHead + `  - {id: ask, match: {targets: [pay]}, approval: true}
  - id: once
    match: {targets: [quote]}
    when: {history: [{of: {targets: [` + target + `]}, within: 1h, count: {gte: 1}}]}
    deny: once
`
	}
	h.plans.set(t, counting("pay"))
	call := amount("pay", 1, 5)
	first := h.asked(call)
	h.vote(first, "cy", approval.Approve, approval.VoteApproved)
	h.plans.set(t, counting("trade"))
	others := h.plans.Past("t")
	h.plans.set(t, counting("pay"))
	h.plans.counting = others // as if the file of another agent with the rule had been removed
	_, err := h.consume(first, call, "x")
	must(t, err)
	h.plans.counting = nil
	h.pass(16 * time.Minute) // longer than a permit
	h.opens(resolve.Deny, tool("quote", `{}`))
}

// TestAnOutcomeIsOfTheCallThatWasOpened: an identical call that waits for people does not get the
// outcome of the one that ran.
func TestAnOutcomeIsOfTheCallThatWasOpened(t *testing.T) {
	h := newHarness(t)
	h.plans.set(t, countedHead+`  - {id: ask, match: {targets: [pay]}, approval: true}
  - id: once
    match: {targets: [quote]}
    when: {history: [{of: {targets: [pay]}, state: succeeded, within: 1h, count: {gte: 1}}]}
    deny: once
`)
	call := amount("pay", 1, 5)
	first := h.asked(call, keyed("a"))
	h.vote(first, "cy", approval.Approve, approval.VoteApproved)
	_, err := h.consume(first, call, "x")
	must(t, err)
	h.pass(time.Second)
	h.asked(call, keyed("b"))
	must(t, h.s.Report(t.Context(), approval.ReportInput{
		Tenant: "t", Asker: runner(), Agent: "desk", Call: call, Report: approval.Returned, Opened: "a", Key: "r",
	}))
	h.opens(resolve.Deny, tool("quote", `{}`))
}
