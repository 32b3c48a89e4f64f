// Package rules lists the authoring rules, each of which is a folder
// below it: the rule, its page, and samples of files that it reports and
// does not report, which test it. The folder's name is the rule's id
// without hyphens. CONTRIBUTING.md says how to add one. Pages beside
// the folders are those of package lint itself.
package rules

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules/aliascollision"
	"github.com/assent-dev/assent/lint/rules/allowlistglob"
	"github.com/assent-dev/assent/lint/rules/approvalmisplaced"
	"github.com/assent-dev/assent/lint/rules/argumentkey"
	"github.com/assent-dev/assent/lint/rules/casedodged"
	"github.com/assent-dev/assent/lint/rules/childdropsapproval"
	"github.com/assent-dev/assent/lint/rules/classificationnearmiss"
	"github.com/assent-dev/assent/lint/rules/conditionimplied"
	"github.com/assent-dev/assent/lint/rules/conditionmixedkinds"
	"github.com/assent-dev/assent/lint/rules/conditionunsatisfiable"
	"github.com/assent-dev/assent/lint/rules/conditionvacuous"
	"github.com/assent-dev/assent/lint/rules/delegationkey"
	"github.com/assent-dev/assent/lint/rules/denynamedodged"
	"github.com/assent-dev/assent/lint/rules/dottedkey"
	"github.com/assent-dev/assent/lint/rules/emptyallowlist"
	"github.com/assent-dev/assent/lint/rules/emptymatcher"
	"github.com/assent-dev/assent/lint/rules/groupwithoutargsmatch"
	"github.com/assent-dev/assent/lint/rules/hostdodged"
	"github.com/assent-dev/assent/lint/rules/idleexemption"
	"github.com/assent-dev/assent/lint/rules/indexkey"
	"github.com/assent-dev/assent/lint/rules/looserthanblanket"
	"github.com/assent-dev/assent/lint/rules/policygroupunknown"
	"github.com/assent-dev/assent/lint/rules/policymeetsnothing"
	"github.com/assent-dev/assent/lint/rules/policyrefrepeated"
	"github.com/assent-dev/assent/lint/rules/policystageunfillable"
	"github.com/assent-dev/assent/lint/rules/promptvariable"
	"github.com/assent-dev/assent/lint/rules/reservedalias"
	"github.com/assent-dev/assent/lint/rules/routeunreachable"
	"github.com/assent-dev/assent/lint/rules/templatehidestested"
	"github.com/assent-dev/assent/lint/rules/templatesecret"
	"github.com/assent-dev/assent/lint/rules/templatevariable"
	"github.com/assent-dev/assent/lint/rules/tightenonlyoff"
	"github.com/assent-dev/assent/lint/rules/toollistedtwice"
	"github.com/assent-dev/assent/lint/rules/undeclaredinput"
	"github.com/assent-dev/assent/schema"
)

//go:embed */rule.md */bad.*.yaml */good.*.yaml
var files embed.FS

// All returns every authoring rule, sorted by id.
func All() []lint.Rule {
	checks := map[string]lint.Rule{
		"alias-collision":      {Agent: aliascollision.Check},
		"allow-list-glob":      {Agent: allowlistglob.Check},
		"approval-misplaced":   {Agent: approvalmisplaced.Check, Replaces: schema.UnknownField},
		"argument-key":         {Agent: argumentkey.Check, Policy: argumentkey.Check},
		"case-dodged":          {Agent: casedodged.Check, Policy: casedodged.Check},
		"child-drops-approval": {Agent: childdropsapproval.Check, NeedsGraph: true},
		"classification-near-miss": {
			Agent:  classificationnearmiss.CheckAgent,
			Policy: classificationnearmiss.CheckPolicy,
		},
		"condition-implied":        {Agent: conditionimplied.Check, Policy: conditionimplied.Check},
		"condition-mixed-kinds":    {Policy: conditionmixedkinds.Check},
		"condition-unsatisfiable":  {Agent: conditionunsatisfiable.Check, Policy: conditionunsatisfiable.Check},
		"condition-vacuous":        {Agent: conditionvacuous.Check, Policy: conditionvacuous.Check},
		"delegation-key":           {Agent: delegationkey.Check, Policy: delegationkey.Check},
		"deny-name-dodged":         {Agent: denynamedodged.Check, NeedsPolicies: true},
		"dotted-key":               {Agent: dottedkey.Check},
		"empty-allow-list":         {Agent: emptyallowlist.Check},
		"empty-matcher":            {Agent: emptymatcher.Check, Policy: emptymatcher.Check},
		"group-without-args-match": {Agent: groupwithoutargsmatch.Check, Replaces: schema.UnknownField},
		"host-dodged":              {Agent: hostdodged.Check, Policy: hostdodged.Check},
		"idle-exemption":           {Agent: idleexemption.Check},
		"index-key":                {Agent: indexkey.Check, Policy: indexkey.Check},
		"looser-than-blanket":      {Agent: looserthanblanket.Check},
		"policy-group-unknown":     {Policy: policygroupunknown.Check, NeedsPeople: true},
		"policy-meets-nothing":     {Policy: policymeetsnothing.Check, NeedsFleet: true},
		"policy-ref-repeated":      {Agent: policyrefrepeated.Check},
		"policy-stage-unfillable":  {Policy: policystageunfillable.Check, NeedsPeople: true},
		"prompt-variable":          {Agent: promptvariable.Check},
		"reserved-alias":           {Agent: reservedalias.Check},
		"route-unreachable":        {Agent: routeunreachable.Check},
		"template-hides-tested":    {Agent: templatehidestested.Check, Policy: templatehidestested.Check},
		"template-secret":          {Agent: templatesecret.Check, Policy: templatesecret.Check},
		"template-variable":        {Agent: templatevariable.Check, Policy: templatevariable.Check},
		"tighten-only-off":         {Agent: tightenonlyoff.Check},
		"tool-listed-twice":        {Agent: toollistedtwice.Check},
		"undeclared-input":         {Agent: undeclaredinput.Check},
	}
	var all []lint.Rule
	for _, id := range slices.Sorted(maps.Keys(checks)) {
		r := checks[id]
		r.RuleInfo = describe(strings.ReplaceAll(id, "-", ""))
		all = append(all, r)
	}
	return all
}

// describe reads what a folder says of its rule: the page, and the
// first sample of each kind without the comments that tests read.
func describe(folder string) diag.RuleInfo {
	info := diag.Page(text(folder + "/rule.md"))
	info.Bad, info.Good = lint.Sample(text(folder+"/bad.*.yaml")), lint.Sample(text(folder+"/good.*.yaml"))
	return info
}

// text is the one file that a pattern meets. It panics when there is
// none, which is a mistake in the program.
func text(pattern string) string {
	// The patterns are well-formed, and what is embedded can be read.
	names, _ := fs.Glob(files, pattern)
	content, _ := files.ReadFile(names[0])
	return string(content)
}
