package main

import (
	"testing"

	"github.com/assent-dev/assent/lint/posture"
)

// TestDiffIsWordedForReviewers: fields are described in words, lists of people show only changes,
// and the most dangerous change comes first.
func TestDiffIsWordedForReviewers(t *testing.T) {
	for want, c := range map[string]posture.Change{
		"loosens: standing approvals: forbidden → as the service is set": {
			Effect: posture.Loosens, Aspect: "grants", From: `"forbid"`, To: "none",
		},
		"loosens: who approves: 2 of risk → any one approver": {
			Aspect: "stages", From: "2 of risk", To: "any one approver",
		},
		"loosens: by when: 1h → no deadline":            {Aspect: "within", From: "1h", To: "no deadline"},
		"loosens: if nobody answers: denied → approved": {Aspect: "on_timeout", From: "deny", To: "approve"},
		"loosens: if nobody answers: others are called in → as the service is set": {
			Aspect: "on_timeout", From: "escalate", To: "nothing said",
		},
		"loosens: called in later: cfo after 30m, sre after 1h to look → none": {
			Aspect: "escalate", From: `[{"after":"30m","to":"cfo"},{"after":"1h","to":"sre","may":"look"}]`, To: "none",
		},
		"loosens: people: group risk: added carol: removed bob": {
			Aspect: "people", From: "group risk: alice, bob", To: "group risk: alice, carol",
		},
		"loosens: people: group risk: alice, bob → group sre: alice": {
			Aspect: "people", From: "group risk: alice, bob", To: "group sre: alice",
		},
		"loosens: people: group risk: alice → group risk: alice": {
			Aspect: "people", From: "group risk: alice", To: "group risk: alice",
		},
		"loosens: trusted_servers: none → *": {Aspect: "trusted_servers", From: "none", To: "*"},
	} {
		c.Effect = posture.Loosens
		if got := sentence(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	change := func(agent, aspect, to string, e posture.Effect) posture.Change {
		return posture.Change{AgentID: agent, Aspect: aspect, To: to, Effect: e}
	}
	order := ""
	report := posture.NewReport([]posture.Change{
		change("a", "message", "", posture.Changes), change("a", "outcome", "ask", posture.Tightens),
		change("b", "stages", "", posture.Undecided), change("b", "stages", "", posture.Loosens),
		change("a", "outcome", "allow", posture.Loosens), change("b", "people", "", posture.Loosens),
	})
	for _, row := range rows(report) {
		for _, d := range row.details {
			order += d.AgentID + ":" + d.Aspect + " "
		}
	}
	if want := "b:people b:stages b:stages a:message a:outcome a:outcome "; order != want {
		t.Errorf("order: %s, want %s", order, want)
	}

	for text, want := range map[string]string{
		"on_missing of al@example.com": "on_missing of al@example.com",
		"@team _em_ a_":                "&#64;team &#95;em&#95; a&#95;",
	} {
		if got := cellText(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
