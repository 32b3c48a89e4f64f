package rules

import (
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/resolve"
)

const hinted = `{"server":"db","tools":[
	{"name":"delete_preview","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
	{"name":"list_rows","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}]}`

// TestHintsOfTrustedServers: the hint that a tool is harmless is believed only from a trusted
// server. The hint that it is destructive is always believed.
func TestHintsOfTrustedServers(t *testing.T) {
	list, err := catalog.Parse("tools.json", []byte(hinted))
	must.Do(t, err)
	const head = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  mcp_servers:
`
	for space, rule := range map[string]string{
		"    - alias: db\n": "destructive-without-gate",
		"    - alias: db\n      approval: true\n      allowed_tools:\n" +
			"        - {name: delete_preview, approval: false}\n" +
			"        - {name: list_rows, approval: false}\n": "destructive-exempted",
	} {
		for _, tt := range []struct {
			trusted []string
			want    int
		}{
			{nil, 2},
			{[]string{"other"}, 2},
			{[]string{"d*"}, 1},
		} {
			opt := lint.Options{
				Catalogs: lint.Catalogs{list},
				Owner:    resolve.Options{TrustedServers: tt.trusted},
			}
			found := lint.New(All(), opt).Worker().Agent("a.agf.yaml", []byte(head+space), nil).Findings
			n := 0
			for _, f := range found {
				if f.Rule == rule {
					n++
				}
			}
			if n != tt.want {
				t.Errorf("%s, %v trusted: %d findings, want %d: %v", rule, tt.trusted, n, tt.want, found)
			}
		}
	}
}
