package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// check applies the rules of the standard that a JSON Schema can't see
// (docs/design/001-semantics.md).
func (r *reader) check(a *Agent) {
	r.aliases(&a.ActionSpace)
	if !a.Cut["execution_policy"] {
		r.policyID(&a.Policy)
	}
	if a.Cut["action_space"] {
		return // what an execution policy refers to may be cut
	}
	c := references{
		reader: r,
		agent:  a,
		remote: map[string]diag.Range{},
	}
	for _, local := range a.ActionSpace.LocalAgents {
		c.locals.add(local.Alias, local.AliasRange)
	}
	for _, remote := range a.ActionSpace.RemoteAgents {
		c.remote[remote.Alias] = remote.AliasRange
	}
	c.policy(&a.Policy)
}

// version compares schema_version with 1.0, the one we know: another
// major is refused, a newer minor is read as far as we know it, the
// patch says nothing.
func (r *reader) version(n *yamldoc.Node) {
	parts := strings.Split(text(n), ".")
	if len(parts) != 3 || strings.Trim(text(n), "0123456789.") != "" {
		return // the JSON Schema reports it
	}
	switch major, minor := strings.TrimLeft(parts[0], "0"), strings.TrimLeft(parts[1], "0"); {
	case major != "1":
		r.add(diag.Finding{
			Rule:     ruleUnsupportedVersion,
			Severity: diag.Error,
			Stops:    true,
			Range:    n.Range,
			Message:  fmt.Sprintf("schema_version %s is of a major version that assent does not know", n.Text),
			Expected: `"1.0.0"`,
		})
	case minor != "":
		r.add(diag.Finding{
			Rule:     ruleNewerVersion,
			Severity: diag.Warning,
			Range:    n.Range,
			Message:  fmt.Sprintf("schema_version %s is newer than 1.0; what it adds is not read", n.Text),
			Expected: `"1.0.0", or an assent that knows the newer version`,
		})
	}
}

// named is an entry of the action space by its alias.
type named struct {
	alias string
	at    diag.Range
}

// aliases reports an alias that stands twice in one of the four lists.
func (r *reader) aliases(space *ActionSpace) {
	r.unique(
		"local_tools",
		collect(space.LocalTools, func(t LocalTool) named { return named{t.Alias, t.AliasRange} }),
	)
	r.unique(
		"mcp_servers",
		collect(space.MCPServers, func(s MCPServer) named { return named{s.Alias, s.AliasRange} }),
	)
	r.unique("local_agents", collect(space.LocalAgents, func(a LocalAgent) named {
		return named{a.Alias, a.AliasRange}
	}))
	r.unique("remote_agents", collect(space.RemoteAgents, func(a RemoteAgent) named {
		return named{a.Alias, a.AliasRange}
	}))
}

func collect[T, U any](entries []T, f func(T) U) []U {
	all := make([]U, len(entries))
	for i, e := range entries {
		all[i] = f(e)
	}
	return all
}

func (r *reader) unique(list string, entries []named) {
	first := make(map[string]diag.Range, len(entries))
	for _, e := range entries {
		earlier, seen := first[e.alias]
		if !seen {
			first[e.alias] = e.at
			continue
		}
		r.add(diag.Finding{
			Rule:     ruleDuplicateAlias,
			Severity: diag.Error,
			Stops:    true,
			Range:    e.at,
			Message: fmt.Sprintf(
				"alias %q stands twice in %s (first in line %d)",
				e.alias,
				list,
				earlier.Start.Line,
			),
			Expected: "an alias of its own for every entry of the list",
			Related:  []diag.Related{{Range: earlier, Message: "first used here"}},
		})
	}
}

// policyID reports an execution policy that is neither the standard's
// nor a vendor's.
func (r *reader) policyID(p *ExecutionPolicy) {
	if slices.Contains(standardPolicies(), p.ID) || isVendorID(p.ID) {
		return
	}
	r.add(diag.Finding{
		Rule:     ruleUnknownPolicy,
		Severity: diag.Warning,
		Range:    p.IDRange,
		Message:  fmt.Sprintf("%q is no execution policy of the standard, so its config is not checked", p.ID),
		Expected: strings.Join(standardPolicies(), ", ") + ", or x-<vendor>.<name>",
		Nearest:  diag.Suggest(p.ID, standardPolicies()),
	})
}

func standardPolicies() []string {
	return []string{PolicyReact, PolicySequential, PolicyParallel, PolicyLoop, PolicyBatch, PolicyConditional}
}

func isVendorID(id string) bool {
	vendor, name, ok := strings.Cut(strings.TrimPrefix(id, "x-"), ".")
	return ok && strings.HasPrefix(id, "x-") && vendor != "" && name != ""
}
