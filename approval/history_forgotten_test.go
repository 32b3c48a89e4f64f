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
