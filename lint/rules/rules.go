// Package rules lists the authoring rules, each of which is a folder
// below it: the rule, its page, its test, and samples of files that it
// reports and does not report. The folder's name is the rule's id
// without hyphens. CONTRIBUTING.md says how to add one. Pages beside
// the folders are those of package lint itself.
package rules

import (
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
)

// All returns every authoring rule, sorted by id.
func All() []lint.Rule {
	return []lint.Rule{
		aliascollision.Rule(),
		allowlistglob.Rule(),
		approvalmisplaced.Rule(),
		argumentkey.Rule(),
		casedodged.Rule(),
		childdropsapproval.Rule(),
		classificationnearmiss.Rule(),
		conditionimplied.Rule(),
		conditionmixedkinds.Rule(),
		conditionunsatisfiable.Rule(),
		conditionvacuous.Rule(),
		delegationkey.Rule(),
		denynamedodged.Rule(),
		dottedkey.Rule(),
		emptyallowlist.Rule(),
		emptymatcher.Rule(),
		groupwithoutargsmatch.Rule(),
		hostdodged.Rule(),
		idleexemption.Rule(),
		indexkey.Rule(),
		looserthanblanket.Rule(),
		policygroupunknown.Rule(),
		policymeetsnothing.Rule(),
		policyrefrepeated.Rule(),
		policystageunfillable.Rule(),
		promptvariable.Rule(),
		reservedalias.Rule(),
		routeunreachable.Rule(),
		templatehidestested.Rule(),
		templatesecret.Rule(),
		templatevariable.Rule(),
		tightenonlyoff.Rule(),
		toollistedtwice.Rule(),
		undeclaredinput.Rule(),
	}
}
