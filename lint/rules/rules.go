// Package rules lists the authoring rules. Each rule has one Go file and one folder. The folder
// has the page of the rule, and samples of files that the rule does and doesn't report. The
// samples also test the rule. Folder and file are named after the rule's id, without hyphens.
// CONTRIBUTING.md explains how to add a rule. The pages outside of these folders belong to
// package lint itself.
package rules

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

//go:embed */rule.md */bad.*.yaml */good.*.yaml */tools.json
var files embed.FS

// All returns every authoring rule, sorted by id.
func All() []lint.Rule {
	checks := map[string]lint.Rule{
		"agent-id-repeated":      {Agent: agentIDRepeated, NeedsFleet: true},
		"alias-collision":        {Agent: aliasCollision},
		"allow-list-glob":        {Agent: allowListGlob},
		"argument-key":           {Agent: argumentKey, Policy: argumentKey},
		"argument-left-out":      {Agent: argumentLeftOut, Policy: argumentLeftOut, NeedsTools: true},
		"argument-not-taken":     {Agent: argumentNotTaken, Policy: redactsNothing, NeedsTools: true},
		"argument-type-clash":    {Agent: argumentTypeClash, Policy: argumentTypeClash, NeedsTools: true},
		"case-dodged":            {Agent: caseDodged, Policy: caseDodged},
		"catalog-without-server": {Agent: catalogWithoutServer, NeedsTools: true},
		"child-drops-approval":   {Agent: childDropsApproval, NeedsGraph: true},
		"classification-near-miss": {
			Agent:  classificationNearMissInAgent,
			Policy: classificationNearMissInPolicy,
		},
		"condition-implied":        {Agent: conditionImplied, Policy: conditionImplied},
		"condition-mixed-kinds":    {Policy: conditionMixedKinds},
		"condition-unsatisfiable":  {Agent: conditionUnsatisfiable, Policy: conditionUnsatisfiable},
		"condition-vacuous":        {Agent: conditionVacuous, Policy: conditionVacuous},
		"delegation-key":           {Agent: delegationKey, Policy: delegationKey},
		"deny-name-dodged":         {Agent: denyNameDodged, NeedsPolicies: true},
		"destructive-exempted":     {Agent: destructiveExempted},
		"destructive-without-gate": {Agent: destructiveWithoutGate, NeedsTools: true},
		"dotted-key":               {Agent: dottedKey},
		"empty-allow-list":         {Agent: emptyAllowList},
		"empty-matcher":            {Agent: emptyMatcher, Policy: emptyMatcher},
		"gate-out-of-bounds":       {Agent: gateOutOfBounds, Policy: gateOutOfBounds, NeedsTools: true},
		"group-without-args-match": {Agent: groupWithoutArgsMatch, Replaces: schema.UnknownField},
		"host-dodged":              {Agent: hostDodged, Policy: hostDodged},
		"idle-exemption":           {Agent: idleExemption},
		"index-key":                {Agent: indexKey, Policy: indexKey},
		"limits-not-enforced":      {Agent: limitsNotEnforced},
		"looser-than-blanket":      {Agent: looserThanBlanket},
		"pattern-unanchored":       {Agent: patternUnanchored, Policy: patternUnanchored},
		"policy-group-unknown":     {Policy: policyGroupUnknown, NeedsPeople: true},
		"policy-meets-nothing":     {Policy: policyMeetsNothing, NeedsFleet: true},
		"policy-ref-repeated":      {Agent: policyRefRepeated},
		"policy-stage-unfillable":  {Agent: approvalUnfillable, Policy: policyStageUnfillable, NeedsPeople: true},
		"prompt-variable":          {Agent: promptVariable},
		"reserved-alias":           {Agent: reservedAlias},
		"route-unreachable":        {Agent: routeUnreachable},
		"server-listed-twice":      {Agent: serverListedTwice},
		"server-under-other-alias": {Policy: serverUnderOtherAlias, NeedsFleet: true},
		"similar-tool-unmet":       {Agent: similarToolUnmet, NeedsPolicies: true},
		"template-hides-tested":    {Agent: templateHidesTested, Policy: templateHidesTested},
		"template-secret":          {Agent: templateSecret, Policy: templateSecret},
		"template-variable":        {Agent: templateVariable, Policy: templateVariable},
		"tighten-only-off":         {Agent: tightenOnlyOff},
		"tool-listed-twice":        {Agent: toolListedTwice},
		"tool-not-offered":         {Agent: toolNotOffered, NeedsTools: true},
		"undeclared-input":         {Agent: undeclaredInput},
		"value-not-declared":       {Agent: valueNotDeclared, Policy: valueNotDeclaredByAgents},
		"value-not-offered":        {Agent: valueNotOffered, Policy: valueNotOffered, NeedsTools: true},
	}
	var all []lint.Rule
	for _, id := range slices.Sorted(maps.Keys(checks)) {
		r := checks[id]
		r.RuleInfo = describe(strings.ReplaceAll(id, "-", ""))
		all = append(all, r)
	}
	return all
}

// describe reads the description of a rule from its folder: the page, and the first sample of
// each kind without the comments for tests.
func describe(folder string) diag.RuleInfo {
	info := diag.Page(text(folder + "/rule.md"))
	if names, _ := fs.Glob(files, folder+"/tools.json"); len(names) > 0 {
		info.Tools = text(names[0])
	}
	info.Bad, info.Good = lint.Sample(text(folder+"/bad.*.yaml")), lint.Sample(text(folder+"/good.*.yaml"))
	return info
}

// text returns the content of the first file that matches a pattern. It panics if there is
// none, which is a bug.
func text(pattern string) string {
	// The patterns are well-formed, and embedded files can always be read.
	names, _ := fs.Glob(files, pattern)
	content, _ := files.ReadFile(names[0])
	return string(content)
}
