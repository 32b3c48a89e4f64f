package fileerrors

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"

	"github.com/assent-dev/assent/diag"
)

// Effect is the effect of an error of agf-validate on calls at run time.
type Effect string

// The effects.
const (
	Refuses Effect = "refuses" // the file does not load: the start fails, or its calls are denied
	Denies  Effect = "denies"  // the file loads, and calls are denied
	Asks    Effect = "asks"    // the file loads, and calls ask
	None    Effect = "none"    // the file loads, and calls are decided as it says
)

// AtRunTime is the effect of one rule, with an explanation.
type AtRunTime struct {
	Effect Effect
	How    string
}

// AtRunTimes maps every error-level rule of agf-validate to its effect at run time. A test fails if
// a rule is missing or no longer exists.
func AtRunTimes() map[string]AtRunTime {
	const (
		notYAML   = "readers of YAML disagree about it, or can't read it"
		shape     = "it breaks the standard's JSON Schema"
		must      = "it breaks a MUST rule of the standard"
		regex     = "a condition that can't be evaluated is none"
		links     = "an agent whose sub-agents can't be followed is refused by `serve`, hooks and gateways; `decide` reads no sub-agents"
		registry  = "policies are read all or nothing"
		text      = "the template is shown as it is written; whether the call asks does not depend on it"
		runs      = "it is about how the agent runs, which is not decided here"
		catalogue = "it is found with a tool catalogue, which says how a condition will come out; the condition " +
			"decides as it is written"
	)
	all := map[string]AtRunTime{
		"condition-shape": {Refuses, shape},
		"config-invalid": {Refuses, "decisions.yaml, people.yaml and settings are read whole or not " +
			"at all"},
		"duplicate-alias":            {Refuses, must},
		"invalid-value":              {Refuses, shape},
		"missing-field":              {Refuses, shape},
		"non-finite-number":          {Refuses, "it is no number that can be compared"},
		"operand-invalid":            {Refuses, shape},
		"policy-when":                {Refuses, shape},
		"policy-reason-pattern":      {Refuses, shape},
		"policy-time-window":         {Refuses, shape},
		"policy-history":             {Refuses, shape},
		"unknown-operator":           {Refuses, "an operator that is ignored would loosen its condition"},
		"unsupported-schema-version": {Refuses, "another major version may mean something else by every field"},
		"wrong-type":                 {Refuses, shape},

		"approval-misplaced":       {Asks, "every call of the entry asks with `approval_misspelt`; outside of an entry every call of the agent does, and below an unknown list those that the list names"},
		"renamed-field":            {Asks, "every call of the entry asks with `allow_list_misspelt`, unless the right list stands beside it"},
		"tool-list-unread":         {Asks, "every call of the entry asks with `allow_list_misspelt`"},
		"group-without-args-match": {Asks, "a group without tests holds for every call"},
		"argument-key": {Asks, "a key of the parent's input is unknown in a condition about " +
			"arguments, and unknown asks"},
		"delegation-key": {Asks, "a key that is no path is unknown in a condition about a delegation, " +
			"and unknown asks"},
		"tool-listed-twice": {Asks, "the strictest of the entries decides"},

		"policy-registry-unavailable": {Denies, "every call is denied, unless a last good copy is young enough"},
		"policy-unresolved":           {Denies, "a required policy is missing: every call is denied"},
		"timeout-approves": {Denies, "a request that nobody answers is denied, unless the owner " +
			"chose `approve_on_timeout`"},

		"argument-not-taken":     {None, catalogue},
		"argument-type-clash":    {None, catalogue},
		"catalog-without-server": {None, "it is about the arguments of agf-validate"},
		"condition-unsatisfiable": {None, "the condition is never true; it still asks if an argument is missing " +
			"or of another type"},
		"gate-out-of-bounds":   {None, catalogue},
		"policy-group-unknown": {None, "the call asks, and the request expires, since nobody is in the group"},
		"policy-ref-repeated":  {None, "the policy applies once; it is required if one of the references says so"},
		"policy-stage-unfillable": {None, "the call asks, and the request expires, since too few people are in " +
			"the group"},
		"suppression-invalid": {None, "comments silence what agf-validate reports, and nothing at run time"},
		"template-variable":   {None, "the variable is empty in the message and is named in `missing_variables`; the arguments are shown beside it"},
		"value-not-declared":  {None, "the interface of the agent says how a condition will come out; the condition decides as it is written"},
		"value-not-offered":   {None, catalogue},
	}
	add := func(a AtRunTime, ids ...string) {
		for _, id := range ids {
			all[id] = a
		}
	}
	add(AtRunTime{Refuses, notYAML}, "yaml-alias", "yaml-character", "yaml-documents", "yaml-duplicate-key",
		"yaml-empty",
		"yaml-encoding", "yaml-key", "yaml-merge-key", "yaml-number", "yaml-syntax", "yaml-tag", "yaml-too-deep",
		"yaml-too-large")
	add(AtRunTime{Refuses, regex}, "regex-invalid", "regex-not-re2", "regex-too-large")
	add(AtRunTime{Refuses, links}, "unreadable-file", "missing-sub-agent", "sub-agent-outside", "sub-agents-too-deep")
	add(AtRunTime{None, runs}, "unknown-agent", "invalid-path", "unknown-path-source", "stray-iteration",
		"batch-without-iteration", "output-of-idle-agent", "sub-agent-cycle")
	add(AtRunTime{None, text}, "template-unbalanced", "template-name", "template-too-long", "template-empty-tag",
		"template-logic")
	add(AtRunTime{Refuses, registry}, "not-a-policy", "policy-approval-false", "policy-bundle",
		"policy-deny-without-reason",
		"policy-duplicate-ref", "policy-duplicate-rule", "policy-duplicate-stage", "policy-duration",
		"policy-file-name",
		"policy-none-found", "policy-rule-without-effect", "policy-unreadable", "policy-unsupported-version")
	return all
}

// Page returns the text of docs/reference/errors-at-run-time.md.
func Page() string {
	var b strings.Builder
	b.WriteString(`# What errors of agf-validate do at run time

Made from ` + "`cmd/internal/fileerrors/effects.go`" + `; a test keeps it fresh.

` + "`serve`, `serve --check`, `decide`, `mcp gateway`, `rap gateway`, `hook`, `hook install` and `hook status`" + ` print
the errors of the files that they load: the place, what is wrong, what to do and the rule. With ` + "`--strict`" + ` they don't
start (exit code 2; a hook blocks the call). A comment in a file that silences a rule silences what agf-validate
reports, and never changes what calls do. A hook prints what reading its files found, and ` + "`hook status`" + ` all of it.

| effect | meaning |
|---|---|
| refuses | the file does not load. A start fails; a service that runs keeps its last good copy, or denies the calls |
| denies | the file loads, and calls are denied |
| asks | the file loads, and calls ask |
| none | the file loads, and calls are decided as it says |

Unknown fields are warnings in agents, since the format forbids to reject them. In policies, which are ours, they are
errors and refuse the file.

| rule | effect | how |
|---|---|---|
`)
	table := AtRunTimes()
	for _, area := range lint.Areas(rules.All()) {
		for _, r := range area.Rules {
			if r.Severity == diag.Error {
				fmt.Fprintf(&b, "| [%s](../rules/%s.md) | %s | %s "+
					"|\n", r.ID, r.ID, table[r.ID].Effect, table[r.ID].How)
			}
		}
	}
	return b.String()
}
