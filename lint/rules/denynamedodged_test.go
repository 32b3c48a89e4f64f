package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

// TestDenialsByNameNeedAList: on a server without an allow-list, a tool can be called without
// approval under another spelling of its name, unless the agent or a policy asks about it.
func TestDenialsByNameNeedAList(t *testing.T) {
	const agent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space: {mcp_servers: [{alias: db%s}]}
`
	file := func(i int, rule string) policy.File {
		text := fmt.Appendf(
			nil,
			"schema_version: \"1.0.0\"\npolicy_ref: acme.p%d\napplies: implicit\nrules: [%s]\n",
			i,
			rule,
		)
		return policy.File{Name: fmt.Sprintf("p%d.policy.yaml", i), Text: text}
	}
	const denied = `{id: never, match: {targets: [%s]}, deny: "No."}`
	for _, tt := range []struct {
		server   string
		policies []string
		want     string
	}{
		{"", []string{fmt.Sprintf(denied, `"drop_*"`)}, `denies "drop_x" here, and lets "DROP_X" through`},
		{"", []string{fmt.Sprintf(denied, `"*drop*"`)}, `denies "xdropx" here, and lets "XDROPX" through`},
		{"", []string{fmt.Sprintf(denied, `DROP`)}, `denies "DROP" here, and lets "drop" through`},
		{"", []string{fmt.Sprintf(denied, `drop, DROP`)}, ""},
		{"", []string{fmt.Sprintf(denied, `"*"`)}, ""},
		{"", []string{fmt.Sprintf(denied, `"123"`)}, ""},
		{", approval: true", []string{fmt.Sprintf(denied, `"drop_*"`)}, ""},
		{", allowed_tools: [count]", []string{fmt.Sprintf(denied, `"drop_*"`)}, ""},
		{"", []string{fmt.Sprintf(denied, `"drop_*"`), "{id: asks, match: {kinds: [mcp_tool]}, approval: true}"}, ""},
		{"", []string{`{id: never, match: {targets: ["drop_*"], servers: [other]}, deny: "No."}`}, ""},
		{"", []string{`{id: never, match: {kinds: [tool], targets: ["drop_*"]}, deny: "No."}`}, ""},
		{"", []string{`{id: asks, match: {targets: ["drop_*"]}, approval: true}`}, ""}, // not a denial
	} {
		var files []policy.File
		for i, rule := range tt.policies {
			files = append(files, file(i, rule))
		}
		set, findings := policy.LoadFiles(files, ".")
		if set.Err() != nil {
			t.Fatal(findings)
		}
		report := lint.New([]lint.Rule{{Agent: denyNameDodged, NeedsPolicies: true}}, lint.Options{Registry: set}).
			Worker().
			Agent("a.agf.yaml", fmt.Appendf(nil, agent, tt.server), nil)
		got := ""
		for _, f := range report.Findings {
			got += f.Message
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%q under %q: %q, want %q", tt.server, tt.policies, got, tt.want)
		}
	}
}
