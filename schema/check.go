package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// check applies the rules of the standard that a JSON Schema can't express
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

// version compares schema_version with 1.0, the supported version. Another major version is
// refused, a newer minor version is read as far as it is known, and the patch version is ignored.
func (r *reader) version(root *yamldoc.Node) {
	n := root.Get("schema_version")
	if strings.Trim(text(n), "0123456789.") != "" {
		return // the JSON Schema reports it
	}
	form := yamldoc.Form{Unsupported: ruleUnsupportedVersion, Newer: ruleNewerVersion}
	for _, f := range form.Version(root) {
		if f.Rule == ruleNewerVersion {
			f.Message = fmt.Sprintf("schema_version %s is newer than 1.0; what it adds is not read", n.Text)
		}

		r.add(f)
	}
}

// aliases reports an alias that occurs twice in one of the four lists.
func (r *reader) aliases(space *ActionSpace) {
	for _, list := range space.Lists() {
		first := make(map[string]diag.Range, len(list.Entries))
		for _, e := range list.Entries {
			earlier, seen := first[e.Alias]
			if !seen {
				first[e.Alias] = e.AliasRange
				continue
			}
			f := yamldoc.Stop(
				ruleDuplicateAlias,
				e.AliasRange,
				fmt.Sprintf(
					"alias %q stands twice in %s (first in line %d)",
					e.Alias,
					list.Key,
					earlier.Start.Line,
				),
				"an alias of its own for every entry of the list",
			)
			f.Related = []diag.Related{{Range: earlier, Message: "first used here"}}
			r.add(f)
		}
	}
}

// policyID reports an execution policy that is neither the standard's
// nor a vendor's.
func (r *reader) policyID(p *ExecutionPolicy) {
	if slices.Contains(standardPolicies(), p.ID) || isVendorID(p.ID) {
		return
	}
	f := yamldoc.Warn(
		ruleUnknownPolicy,
		p.IDRange,
		fmt.Sprintf("%q is no execution policy of the standard, so its config is not checked", p.ID),
		strings.Join(standardPolicies(), ", ")+", or x-<vendor>.<name>",
	)
	f.Nearest = diag.Suggest(p.ID, standardPolicies())
	r.add(f)
}

func standardPolicies() []string {
	return []string{
		PolicyReact,
		PolicySequential,
		PolicyParallel,
		PolicyLoop,
		PolicyBatch,
		PolicyConditional,
	}
}

func isVendorID(id string) bool {
	vendor, name, ok := strings.Cut(strings.TrimPrefix(id, "x-"), ".")
	return ok && strings.HasPrefix(id, "x-") && vendor != "" && name != ""
}
