package yamldoc

import (
	"embed"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// Ids of the rules of this package.
const (
	ruleSyntax       = "yaml-syntax"
	ruleEncoding     = "yaml-encoding"
	ruleCharacter    = "yaml-character"
	ruleHidden       = "yaml-hidden-character"
	ruleEmpty        = "yaml-empty"
	ruleTooLarge     = "yaml-too-large"
	ruleTooDeep      = "yaml-too-deep"
	ruleDocuments    = "yaml-documents"
	ruleVersion      = "yaml-version"
	ruleDuplicateKey = "yaml-duplicate-key"
	ruleKey          = "yaml-key"
	ruleMergeKey     = "yaml-merge-key"
	ruleTag          = "yaml-tag"
	ruleAlias        = "yaml-alias"
	ruleNumber       = "yaml-number"
	ruleBool11       = "yaml-11-bool"
	ruleNumber11     = "yaml-11-number"
	ruleDate11       = "yaml-11-date"
	ruleSpecial      = "yaml-11-special"
)

//go:embed rules/*.md
var pages embed.FS

// Rules describes every rule that Parse may report, in the order of their ids.
func Rules() []diag.RuleInfo {
	infos := diag.Pages(pages,
		ruleBool11,
		ruleDate11,
		ruleNumber11,
		ruleSpecial,
		ruleAlias,
		ruleCharacter,
		ruleDocuments,
		ruleDuplicateKey,
		ruleEmpty,
		ruleEncoding,
		ruleHidden,
		ruleKey,
		ruleMergeKey,
		ruleNumber,
		ruleSyntax,
		ruleTag,
		ruleTooDeep,
		ruleTooLarge,
		ruleVersion,
	)
	for i := range infos {
		// The page has an escape for the character, which must not occur in any source file.
		infos[i].Bad = strings.ReplaceAll(infos[i].Bad, `\u202e`, "\u202e")
	}
	return infos
}
