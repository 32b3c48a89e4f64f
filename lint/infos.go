package lint

import (
	"embed"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/template"
)

// Area is a group of rules that belong together.
type Area struct {
	Name  string
	Rules []diag.RuleInfo
}

// Areas lists every rule that a run can report: what makes a file
// valid, bottom up, then the authoring rules, then what is said about
// comments and configuration.
func Areas(rules []Rule) []Area {
	authoring := make([]diag.RuleInfo, len(rules))
	for i := range rules {
		authoring[i] = rules[i].RuleInfo
	}
	return []Area{
		{"YAML", yamldoc.Rules()},
		{"Agents", schema.Rules()},
		{"Conditions", condition.Rules()},
		{"Message templates", template.Rules()},
		{"Policies", policy.Rules()},
		{"Policies of an agent", resolve.Rules()},
		{"Authoring", authoring},
		{"Suppressions and configuration", ownRules()},
	}
}

// Infos returns the rules of all Areas in one list.
func Infos(rules []Rule) []diag.RuleInfo {
	var all []diag.RuleInfo
	for _, a := range Areas(rules) {
		all = append(all, a.Rules...)
	}
	return all
}

// Sample returns a file of a rule's folder without the `# want "…"` comments
// that its test reads.
func Sample(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if before, _, ok := strings.Cut(line, " # want \""); ok {
			lines[i] = strings.TrimRight(before, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// Rule ids of this package.
const (
	suppressionInvalid = "suppression-invalid"
	suppressionUnused  = "suppression-unused"
	configInvalid      = "config-invalid"
	ownedAgentUnknown  = "owned-agent-unknown"
	ownerNamesNothing  = "owner-names-nothing"
)

//go:embed rules/suppression-*.md rules/config-invalid.md rules/own*.md
var pages embed.FS

func ownRules() []diag.RuleInfo {
	return diag.Pages(pages, suppressionInvalid, suppressionUnused, configInvalid, ownedAgentUnknown, ownerNamesNothing)
}
