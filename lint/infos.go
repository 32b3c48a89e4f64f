package lint

import (
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

// Areas lists every rule that a run can report: what makes a file valid, bottom up, then the authoring rules, then what is
// said about comments and configuration.
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

// Infos is the rules of all Areas in one list.
func Infos(rules []Rule) []diag.RuleInfo {
	var all []diag.RuleInfo
	for _, a := range Areas(rules) {
		all = append(all, a.Rules...)
	}
	return all
}

// Sample is a file of a rule's folder without the `# want "…"` comments that its test reads.
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
)

func ownRules() []diag.RuleInfo {
	return []diag.RuleInfo{
		{
			ID: suppressionInvalid, Title: "Suppression comment that has no effect", Severity: diag.Error,
			Why: "A suppression names the rules it silences and gives a reason after `--`. One that is malformed, names an unknown rule, " +
				"or names one that can't be silenced does nothing, which its author should know. Findings that stop the load can't be silenced.",
			Bad:  "# agf-validate: ignore condition-vacuous\n",
			Good: "# agf-validate: ignore condition-vacuous -- every trade asks until the pilot ends\n",
			Spec: "docs/contracts/agf-validate.md",
		},
		{
			ID: suppressionUnused, Title: "Suppression comment that silences nothing", Severity: diag.Info,
			Why:  "The finding that it silenced is gone, or stands on another line. Delete the comment, so that it can't hide the next one, or move it.",
			Bad:  "name: Clerk # agf-validate: ignore condition-vacuous -- was needed once\n",
			Good: "name: Clerk\n",
			Spec: "docs/contracts/agf-validate.md",
		},
		{
			ID: configInvalid, Title: "Configuration that can't be used", Severity: diag.Error,
			Why: "`--config` names a YAML file of one mapping, `rules`, from rule ids to `off`, `info`, `warning` or `error`. A rule that is " +
				"misspelt there would stay as it is without a word, so the whole configuration is refused.",
			Bad:  "rules:\n  condition-vacous: off\n",
			Good: "rules:\n  condition-vacuous: off\n  unknown-field: error\n",
			Spec: "docs/contracts/agf-validate.md",
		},
	}
}
