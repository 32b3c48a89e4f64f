package main

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// TestATenantNamesToolsThatTellKeysApart: the configuration of a tenant applies to the plans of its
// own agents only.
func TestATenantNamesToolsThatTellKeysApart(t *testing.T) {
	agents := t.TempDir()
	const text = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Looks.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Look., model: any}}
action_space: {local_tools: [{alias: grep}]}
`
	testfiles.Write(t, filepath.Join(agents, "desk.agf.yaml"), text)
	all, err := loadTenants(config.Serve{Tenants: []config.Tenant{
		{Name: "acme", Agents: []string{agents}, CaseSensitive: []string{"tool grep"}},
		{Name: "beta", Agents: []string{agents}},
	}}, slog.New(slog.DiscardHandler))
	must.Do(t, err)
	for tenant, want := range map[string]resolve.Outcome{"acme": resolve.Allow, "beta": resolve.Deny} {
		compiled, err := all.Plan(t.Context(), tenant, "desk")
		must.Do(t, err)
		call := &resolve.Call{Kind: resolve.Tool, Tool: "grep", Args: []byte(`{"i":1,"I":2}`)}
		if got := compiled.Plan.Decide(call); got.Outcome != want {
			t.Errorf("%s: %v", tenant, got)
		}
	}
}
