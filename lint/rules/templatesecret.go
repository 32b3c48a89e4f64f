package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/lint"
)

// templateSecret reports messages that show a variable whose name sounds like a secret.
func templateSecret(p *lint.Pass) {
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

// secret returns the segment of a variable's path that sounds like a secret, or "".
func secret(name string) string {
	for _, segment := range strings.Split(name, ".") {
		if sounds(strings.Map(fold, segment)) {
			return segment
		}
	}
	return ""
}

// fold removes case and separators, so that clientSecret, client_secret and CLIENT-SECRET are
// one name.
func fold(r rune) rune {
	if r == '_' || r == '-' {
		return -1
	}
	return unicode.ToLower(r)
}

// sounds reports whether a name ends like the name of a secret: client_secret does,
// secret_count doesn't.
func sounds(name string) bool {
	return name == "token" || name == "pin" ||
		slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(name, end) })
}

var endings = strings.Fields("password passwd passphrase secret secretkey apikey privatekey accesskey accesstoken " +
	"authtoken bearertoken refreshtoken sessiontoken credential credentials cvv cvc ssn")
