package resolve_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

const hinted = `schema_version: "1.0.0"
metadata: {id: a, name: A, version: "1", description: d}
interface: {input: {type: object}, output: {type: object}}
action_space: {local_tools: [{alias: pay, approval: true}, {alias: note}], mcp_servers: [{alias: files}]}
execution_policy: {id: agf.react, config: {instructions: x, model: any}}
`

const hintPolicy = `schema_version: "1.0.0"
policy_ref: p
applies: implicit
rules: [{id: destroys, match: {annotations: {destructiveHint: true}}, approval: true}]
`

// TestHintsAreBelievedWhereEveryAgentOnTheWayTrusts checks that a server's hints exempt a call from
// a rule only if the agent and all agents that delegate to it trust the server, and that the
// trusted servers are part of the plan's version.
func TestHintsAreBelievedWhereEveryAgentOnTheWayTrusts(t *testing.T) {
	trusting := resolve.Options{TrustedServers: []string{"fi*"}}
	beside := func(parent *resolve.Plan) resolve.Options {
		return resolve.Options{TrustedServers: trusting.TrustedServers, Parent: parent}
	}
	call := &resolve.Call{
		Kind:        resolve.MCPTool,
		Server:      "files",
		Tool:        "rm",
		Annotations: map[string]bool{"destructiveHint": false},
	}
	versions := map[string]bool{}
	for name, c := range map[string]struct {
		opt  resolve.Options
		want resolve.Outcome
	}{
		"nobody trusts":          {resolve.Options{}, resolve.Ask},
		"the agent trusts":       {trusting, resolve.Allow},
		"another server":         {resolve.Options{TrustedServers: []string{"db"}}, resolve.Ask},
		"the parent trusts, too": {beside(plan(t, trusting, hinted, hintPolicy)), resolve.Allow},
		"the parent does not":    {beside(plan(t, resolve.Options{}, hinted, hintPolicy)), resolve.Ask},
	} {
		p := plan(t, c.opt, hinted, hintPolicy)
		if got := p.Decide(call); got.Outcome != c.want {
			t.Errorf("%s: %v", name, got)
		}
		versions[p.Version()] = true
	}

	if len(versions) != 5 {
		t.Errorf("%d versions of 5 plans", len(versions))
	}
}

// TestNothingVariesWhereTheAgentAsks joins a policy that names the arguments that may vary under a
// standing approval with the agent's own rule, which can't. Then none may vary.
func TestNothingVariesWhereTheAgentAsks(t *testing.T) {
	const bounding = `schema_version: "1.0.0"
policy_ref: p
applies: implicit
rules: [{id: r, approval: true, require: {grants: {bounds: [{path: amount, kind: at_most}], max_uses: 3}}}]
`
	p := plan(t, resolve.Options{}, hinted, bounding)
	for tool, want := range map[string]int{"pay": 0, "note": 1} {
		got := p.Decide(&resolve.Call{Kind: resolve.Tool, Tool: tool, Args: []byte(`{"amount":1}`)}).Require
		if got == nil || len(got.Grants.Bounds) != want || got.Grants.MaxUses != 3 {
			t.Errorf("%s: %+v", tool, got)
		}
	}
}

// TestTargetsAreNamedWhole checks that CaseSensitive names targets in the form of calls.
func TestTargetsAreNamedWhole(t *testing.T) {
	for _, good := range []string{"tool pay", "mcp_tool broker/sell/all", "skill payments/refund", "delegation clerk"} {
		if err := resolve.CheckTarget(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"",
		"pay",
		"tool ",
		"tool",
		"mcp_tool sell",
		"mcp_tool /sell",
		"mcp_tool broker/",
		"gate pay",
	} {
		if err := resolve.CheckTarget(bad); err == nil || !strings.Contains(err.Error(), "expected one such as") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A call of no known kind has no target, and is bound all the same: who
// asks about it can tell it from another.
func TestCallsOfNoKindAreBound(t *testing.T) {
	p := plan(t, resolve.Options{}, hinted)
	one, err := p.Bind(&resolve.Call{Kind: "gate", Args: []byte(`{"a":1}`)})
	other, otherErr := p.Bind(&resolve.Call{Kind: "gate", Args: []byte(`{"a":2}`)})
	if err != nil || otherErr != nil || one == other {
		t.Errorf("%s %v, %s %v", one, err, other, otherErr)
	}
	if _, err := p.Bind(&resolve.Call{Kind: "gate", Args: []byte(`{"a":1,"A":2}`)}); err == nil {
		t.Error("keys that differ in case alone are bound")
	}
}
