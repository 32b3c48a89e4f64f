package mcp_test

import "testing"

// TestTheServiceCountsCallsOfAGateway: a call that a rule counts is decided by the service, which knows what ran
// through other doors and before a restart.
func TestTheServiceCountsCallsOfAGateway(t *testing.T) {
	t.Parallel()
	const counted = `schema_version: "1.1.0"
policy_ref: acme.one
rules:
  - id: few
    match: {targets: [write_file]}
    when: {history: [{of: {targets: [write_file]}, within: 1h, count: {gt: 2}}]}
    deny: Two files an hour.
`
	r := newRowOf(t, open, counted, script("legacy"), nil)
	c := r.connect(t)
	for range 2 {
		c.expect(c.call("write_file", `{"path":"a"}`), "done")
	}
	r.ran(2)
	answer := c.call("write_file", `{"path":"a"}`)
	c.expect(answer, "Not run.")
	c.expect(answer, "Two files an hour.")
	c.expect(c.call("read_file", `{}`), "done")
	r.ran(3)
}
