package clients

import (
	"slices"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/internal/pattern"
)

// secretWords returns words in names whose values may be secret.
func secretWords() []string {
	return strings.Fields("token tokens secret secrets password passwd passphrase pass pwd key keys apikey auth " +
		"authorization bearer credential credentials creds cred pat cookie session jwt otp pin dsn signature webhook " +
		"connection header headers env")
}

// isSecretName reports whether the value of an option, a variable or a
// field may be secret, by its name.
func isSecretName(name string) bool {
	name = strings.ToLower(camel().ReplaceAllString(name, "${1}_${2}"))
	words := strings.FieldsFunc(name, func(c rune) bool { return !unicode.IsLetter(c) })
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains(secretWords(), word) || slices.ContainsFunc(
			[]string{"token", "secret", "passw", "apikey", "credential"},
			func(part string) bool { return strings.Contains(word, part) },
		)
	})
}

var (
	camel      = pattern.Of(`([a-z0-9])([A-Z])`)
	option     = pattern.Of(`^(?:--?|/)([A-Za-z][\w.-]*)(?:([=:])(.*))?$`)
	assignment = pattern.Of(`^([A-Za-z_][\w.-]*)\s*[=:]\s*(.+)$`)
	userInfo   = pattern.Of(`://[^/\s"'@]+@`)
	// Tokens of well-known services, and random strings.
	tokenShape = pattern.Of(`^(?:sk|pk|rk|gh[a-z]|github_pat|glpat|xox[a-z]|xapp|ntn|figd|lin_api|hf|npm|pypi|` +
		`dop_v1|shpat|AKIA|ASIA|AIza|ya29|eyJ|SG|secret|key|pat|tok)[-_.A-Za-z0-9]*[-_.A-Za-z0-9]{12}$`)
	randomShape = pattern.Of(`^[A-Za-z0-9_+=-]{20,}$`)
)

// isSecretText reports whether a text looks like a secret.
func isSecretText(text string) bool {
	digits := strings.ContainsAny(text, "0123456789")
	letters := strings.ContainsFunc(text, unicode.IsLetter)
	return userInfo().MatchString(text) || tokenShape().MatchString(text) && digits ||
		randomShape().MatchString(text) && digits && letters
}

// secretArgs reports, for each argument of a program, whether it may be a secret: the value of an
// option or of a variable with a secret name, or a text that looks like one.
func secretArgs(args []string) []bool {
	out := make([]bool, len(args))
	for i, arg := range args {
		out[i] = out[i] || isSecretText(arg)
		named := option().FindStringSubmatch(arg)
		short := arg == "-H" || arg == "-e" || arg == "-u" || arg == "-p" || arg == "-k" || arg == "-t"
		switch pair := assignment().FindStringSubmatch(arg); {
		case named != nil && named[2] != "":
			out[i] = out[i] || isSecretName(named[1]) || isSecretText(named[3])
		case (named != nil && isSecretName(named[1]) || short) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			out[i+1] = true
		case pair != nil:
			out[i] = out[i] || isSecretName(pair[1]) || isSecretText(pair[2])
		}
	}
	return out
}

// address matches an address in a text, with the parts that may be secret: user and password, path
// and query.
var address = pattern.Of(`(://)([^/?"'\s]*)([^?"'\s]*)(\?[^"'\s]*)?`)

// withoutQueries hides the parts of addresses that may be secret.
func withoutQueries(text string) string {
	return address().ReplaceAllStringFunc(text, func(found string) string {
		part := address().FindStringSubmatch(found)
		host := part[2]
		if at := strings.LastIndex(host, "@"); at >= 0 {
			host = "***" + host[at:]
		}
		path := strings.Split(part[3], "/")
		for i := range path {
			if isSecretText(path[i]) {
				path[i] = "***"
			}
		}
		query := ""
		if part[4] != "" {
			query = "?***"
		}
		return "://" + host + strings.Join(path, "/") + query
	})
}
