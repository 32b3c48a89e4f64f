package assenttest

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

const anyOfPeople = `schema_version: "1.0.0"
people:
  - {id: chief, groups: [cfo]}
  - {id: ann, groups: [finance]}
  - {id: ben, groups: [finance]}
  - {id: cy, groups: [finance, cfo]}
  - {id: eve, groups: [other]}
groups: {cfo: {description: A.}, finance: {description: B.}, other: {description: C.}}
`

// Each row is a requirement, and votes: a person, with the reason after a colon, and the outcome.
func TestAlternativesAndReasonsOfRequests(t *testing.T) {
	const alternatives = "any_of: [[{group: cfo}], [{group: finance, people: 2}]]"
	for _, test := range []struct{ require, votes string }{
		{alternatives, "chief=approved"},
		{alternatives, "ann=counted ben=approved"},
		{alternatives, "ann=counted eve=not_eligible cy=approved"},
		{"stages: [{group: finance}], " + alternatives, "chief=counted ann=approved"},
		{"stages: [{group: finance}], " + alternatives, "ann=counted ben=approved"},
		{"stages: [{group: cfo}], " + alternatives, "cy=approved"}, // the same group in both is the larger number
		{alternatives + ", reason: required", "chief=input chief:why=approved"},
		{"reason: {pattern: '^OPS-'}", "ann:because=input ann:OPS-1=approved"},
		{alternatives + ", escalate: [{after: 1m, to: other}]", "eve=not_eligible ann=counted later= eve=approved"},
	} {
		files := fstest.MapFS{
			"agents/desk.agf.yaml":   {Data: []byte(partAgent)},
			"policies/p.policy.yaml": {Data: []byte("schema_version: \"1.1.0\"\npolicy_ref: p\napplies: implicit\nrules:\n  - {id: a, approval: true, require: {within: 1h, " + test.require + "}}\n")},
			"people.yaml":            {Data: []byte(anyOfPeople)},
		}
		a := New(t, Config{Files: files})
		out, err := a.Service.Open(t.Context(), approval.OpenInput{
			Tenant: Tenant,
			Asker:  approval.Asker{Token: "runtime"},
			Agent:  "desk",
			Call:   &resolve.Call{Kind: resolve.Tool, Tool: "wire", Args: resolve.Raw(`{"amount":5}`)},
		})
		must(t, err)
		if !strings.Contains(test.require, "stages") && approval.Summarize(out.Request).Needed != 1 {
			t.Errorf("%s: %d needed", test.require, approval.Summarize(out.Request).Needed)
		}
		for _, vote := range strings.Fields(test.votes) {
			voter, want, _ := strings.Cut(vote, "=")
			person, reason, _ := strings.Cut(voter, ":")
			if person == "later" {
				a.Later(2 * 60e9)
				continue
			}
			say := func(in *approval.VoteInput) { in.Reason = reason }
			got, err := a.Vote(out.Request.ID, person, approval.Approve, say)
			if wrong, ok := errors.AsType[*approval.InputError](err); ok && wrong.Field == "reason" {
				got = "input"
			} else {
				must(t, err)
			}
			if string(got) != want {
				t.Errorf("%s: %s: %s, want %s", test.require, vote, got, want)
			}
		}
	}
}
