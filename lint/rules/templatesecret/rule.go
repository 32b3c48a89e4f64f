// Package templatesecret reports messages that show what sounds like a
// secret.
package templatesecret

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/lint"
)

//go:embed rule.md
var page string

//go:embed bad.agf.yaml
var bad string

//go:embed good.agf.yaml
var good string

// Rule returns the rule.
func Rule() lint.Rule {
	return lint.Rule{
		RuleInfo: lint.Describe(page, bad, good),
		Agent:    check,
		Policy:   check,
	}
}

func check(p *lint.Pass) {
	for _, s := range p.Sites() {
		if s.Approval.Template == nil {
			continue
		}
		t := s.Approval.Template
		for _, ref := range t.Parsed.Refs() {
			if segment := secret(ref.Name); segment != "" {
				p.Report(
					t.Node.At(ref.Offset, ref.Length),
					fmt.Sprintf("the message shows {{%s}}, and %q sounds like a secret", ref.Name, segment),
					lint.Expected("a message without it"),
				)
			}
		}
	}
}

// secret returns the segment of a variable's path that sounds like a
// secret, "" when none does.
func secret(name string) string {
	for _, segment := range strings.Split(name, ".") {
		if sounds(strings.Map(fold, segment)) {
			return segment
		}
	}
	return ""
}

// fold takes case and separators away: clientSecret, client_secret and
// CLIENT-SECRET are one name.
func fold(r rune) rune {
	if r == '_' || r == '-' {
		return -1
	}
	return unicode.ToLower(r)
}

// sounds reports whether a name ends like one of a secret:
// client_secret, but not secret_count.
func sounds(name string) bool {
	for _, end := range [...]string{
		"password",
		"passwd",
		"passphrase",
		"secret",
		"secretkey",
		"apikey",
		"privatekey",
		"accesskey",
		"accesstoken",
		"authtoken",
		"bearertoken",
		"refreshtoken",
		"sessiontoken",
		"credential",
		"credentials",
		"cvv",
		"cvc",
		"ssn",
	} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}

	return name == "token" || name == "pin"
}
