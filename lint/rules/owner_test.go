package rules

import (
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
)

// TestOwnersNamesInGrants: targets and arguments that no agent and no tool has are reported, if the
// tool is known.
func TestOwnersNamesInGrants(t *testing.T) {
	list, err := catalog.Parse("tools.json", []byte(`{"server":"db","tools":[{"name":"run","inputSchema":{"type":"object",
		"properties":{"query":{"type":"string"},"note":{"type":"string"}},"additionalProperties":false}}]}`))
	must.Do(t, err)
	const agent = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space: {mcp_servers: [{alias: db, allowed_tools: [run]}]}
`
	for text, want := range map[string]string{
		"grants: [{target: mcp_tool db/run, ignored: [note]}]":        "",
		"grants: [{target: mcp_tool db/run, ignored: [notes]}]":       "note",
		"grants: [{target: mcp_tool db/rum, ignored: [note]}]":        "mcp_tool db/run",
		"grants: [{target: mcp_tool db/run, ignored: [description]}]": "none",
	} {
		for _, known := range []lint.Catalogs{{list}, nil} {
			l := lint.New(All(), lint.Options{
				Catalogs: known,
				Fleet:    lint.NewFleet([]*lint.Subject{lint.NewSubject("a.agf.yaml", []byte(agent), nil, known)}),
			})
			found, got := l.Owner("decisions.yaml", []byte(text)).Findings, ""
			for _, f := range found {
				if got = f.Nearest; got == "" {
					got = "none"
				}
			}
			expected := want
			if known == nil && want != "mcp_tool db/run" {
				expected = ""
			}
			if got != expected {
				t.Errorf("%s, tools known: %v: got %q, want %q: %v", text, known != nil, got, want, found)
			}
		}
	}
}
