package policytest

import (
	"strings"
	"testing"
)

// TestSilence checks that a request without an answer is approved only if both the policy and the
// runtime's owner allow it.
func TestSilence(t *testing.T) {
	const policy = "schema_version: \"1.0.0\"\npolicy_ref: acme.trades\nrules:\n" +
		"  - {id: r, match: {targets: [trade]}, approval: true, require: {within: 30m, on_timeout: approve}}\n"
	for _, c := range []struct {
		decisions, until, want string
	}{
		{"approve_on_timeout: true", "29m59s", pending},
		{"approve_on_timeout: true", "30m", approved},
		{"approve_on_timeout: false", "30m", expired},
	} {
		files := testWorld(t, "policies/trades.policy.yaml", policy, "d.yaml", c.decisions+"\n")
		f, b := prepared(t, "x.test.yaml", []byte(`schema_version: "1.0.0"
agent: desk.agf.yaml
policies: [policies]
decisions: d.yaml
people: people.yaml
people_cases:
  - name: silence
    call: {kind: tool, tool: trade}
    until: `+c.until+`
    expect: {outcome: `+c.want+`}
`), files)
		if r := f.Run(b, every)[0]; !r.Passed() {
			t.Errorf("%s until %s: %+v", c.decisions, c.until, r.Failures)
		}
	}
}

// TestWhatTimeDid checks that a failure names the deadlines that passed.
func TestWhatTimeDid(t *testing.T) {
	f, b := prepared(t, "failing"+Suffix, read(t, "failing"+Suffix), testWorld(t))
	results := f.Run(b, func(name string) bool { return name == "too late" })
	got := strings.Join(results[0].Failures[0].Rules, "\n")
	for _, want := range []string{
		"nobody decided within 30m: on_timeout: escalate, so leads, watch have 30m more",
		"nobody decided within 1h: it expired",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nexpected %s", got, want)
		}
	}
}

// A vote without the reason that the rules require is refused, and one alternative is enough.
func TestReasonsOfVotes(t *testing.T) {
	const policy = "schema_version: \"1.1.0\"\npolicy_ref: acme.trades\nrules:\n" +
		"  - {id: r, match: {targets: [trade]}, approval: true, require: {any_of: [[{group: risk, people: 2}], [{group: leads}]], " +
		"reason: {pattern: OPS}}}\n"
	files := testWorld(t, "policies/trades.policy.yaml", policy)
	f, b := prepared(t, "x.test.yaml", []byte(`schema_version: "1.0.0"
agent: desk.agf.yaml
policies: [policies]
people: people.yaml
people_cases:
  - name: reason
    call: {kind: tool, tool: trade}
    votes:
      - {person: cy, vote: approve, refused: the reason that the rules require is missing}
      - {person: cy, vote: approve, reason: OPS-1}
    expect: {outcome: approved}
`), files)
	if r := f.Run(b, every)[0]; !r.Passed() {
		t.Errorf("%+v", r.Failures)
	}
}
