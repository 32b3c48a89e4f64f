package rules

import (
	"fmt"
	"testing"

	"github.com/assent-dev/assent/lint"
)

// TestLooserThanBlanketCountsEntriesOfOneToolTogether: if a tool is listed twice, the strictest
// entry counts, and the tool is reported once.
func TestLooserThanBlanketCountsEntriesOfOneToolTogether(t *testing.T) {
	const agent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space: {mcp_servers: [{alias: db, approval: {condition: {args_match: {n: {gt: 10}}}}, allowed_tools: [%s]}]}
`
	above := func(test string) string {
		return "{name: wipe, approval: {condition: {args_match: {n: " + test + "}}}}"
	}
	for list, want := range map[string]int{
		above("{gt: 20}"):                                        1,
		above("{gt: 20}") + ", wipe":                             0,
		above("{gt: 20}") + ", {name: wipe, approval: true}":     0,
		above("{gt: 20}") + ", {name: wipe, approval: false}":    1,
		above("{gt: 20}") + ", " + above("{gt: 10, lte: 20}"):    0,
		above("{gt: 20}") + ", " + above("{gt: 10, lt: 20}"):     1,
		above("{gt: 20}") + ", {name: other, approval: true}":    1,
		above("{gt: 20}") + ", " + above("{gt: 30}") + ", other": 1,
	} {
		report := lint.New([]lint.Rule{{Agent: looserThanBlanket}}, lint.Options{}).
			Worker().
			Agent("a.agf.yaml", fmt.Appendf(nil, agent, list), nil)
		if len(report.Findings) != want {
			t.Errorf("%s: %d findings: %v", list, len(report.Findings), report.Findings)
		}
	}
}
