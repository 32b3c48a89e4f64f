package people

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/assent-dev/assent/internal/safetext"
)

const (
	maxName = 400 // bytes of one name
	oidc    = "oidc"
)

// Key is what two spellings of one name share. A name with a scheme
// ("slack:U012345", "oidc:issuer|subject") is an identifier that its
// issuer may tell apart by case, so only the scheme's own case is
// dropped. Mail addresses and plain names are compared in NFC and
// without case: no mail provider gives "Alice@" and "alice@" to two
// people, and taking two spellings for one human errs on the side that
// refuses (nobody approves a call of their own under another spelling).
func Key(name string) string {
	if scheme, rest := split(name); scheme != "" {
		return scheme + ":" + rest
	}
	return strings.Map(lower, norm.NFC.String(name))
}

// lower drops case, but never turns a letter outside ASCII into one of
// ASCII: "İ" is no "i", or two mailboxes would be one.
func lower(r rune) rune {
	if l := unicode.ToLower(r); r < utf8.RuneSelf || l >= utf8.RuneSelf {
		return l
	}
	return r
}

// split takes a scheme off a name, "" when it has none.
func split(name string) (scheme, rest string) {
	scheme, rest, ok := strings.Cut(name, ":")
	if !ok || scheme == "" ||
		strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return "", name
	}
	return strings.ToLower(scheme), rest
}

// Subject is the name of whom an identity provider knows by a subject.
func Subject(issuer, subject string) string { return oidc + ":" + issuer + "|" + subject }

// reserved are names by which software calls those whom it doesn't
// know, or itself.
func reserved() []string {
	return []string{"anonymous", "nobody", "none", "null", "nil", "system", "undefined", "unknown"}
}

// IdentityProblem says what is wrong with a name of a human and what
// would be right, "" when nothing is. Such a name is refused in a file
// and resolves to nobody.
func IdentityProblem(name string) (message, expected string) {
	if message, expected = TextProblem(name); message != "" {
		return message, expected
	}
	scheme, rest := split(name)
	switch {
	case slices.Contains(reserved(), Key(name)):
		return "this name stands for nobody in particular", "a name that one human has"
	case scheme == oidc && !isSubject(rest):
		return "this is no subject of an identity provider", `"oidc:https://idp.example|subject", the issuer as the ` +
			`provider writes it`
	case scheme != "" && (rest == "" || strings.Contains(rest, " ")):
		return "nothing usable follows " + scheme + ":", `an id, such as "slack:U012345"`
	case scheme == "" && strings.Contains(name, "@") && !isMail(name):
		return "this is no mail address", `one such as "alice@example.com", or a name without @`
	}

	return "", ""
}

// TextProblem says what is wrong with a text that people read: a name,
// a group.
func TextProblem(text string) (message, expected string) {
	if len(text) > maxName {
		return "the text is too long", "at most 400 bytes"
	}

	return NameProblem(text)
}

// isSubject checks what follows "oidc:".
func isSubject(s string) bool {
	issuer, subject, ok := strings.Cut(s, "|")
	if !ok || subject == "" {
		return false
	}
	u, err := url.Parse(issuer)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && u.RawQuery == "" &&
		u.Fragment == ""
}

// IsMail reports whether a name is a mail address as an identity
// provider may tell it.
func IsMail(name string) bool {
	scheme, _ := split(name)

	return scheme == "" && isMail(name) && norm.NFC.IsNormalString(name)
}

// isMail is about form only: two sides of one @, without spaces.
func isMail(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	return local != "" && domain != "" && !strings.ContainsAny(domain, "@") &&
		!strings.ContainsAny(s, " ,;<>\"()")
}

// NameProblem says why no human, group or account can have a name, and
// what would be right; "" when one could. Such a name is refused
// wherever it comes from: a name that looks like another one would let
// people pass for somebody else, or for nobody.
func NameProblem(name string) (message, expected string) {
	switch {
	case strings.TrimSpace(name) == "":
		return "the text is empty", "a name"
	case safetext.Printable(name) != name:
		return "the text has characters that can't be seen: " + safetext.Printable(
			name,
		), "the same without them"
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, oddSpace):
		return "the text has spaces at an end, or ones that are no plain spaces", "the same without them"
	case norm.NFKC.String(name) != norm.NFC.String(name):
		return "the text has letters that only look like plain ones", norm.NFKC.String(name)
	case mixesAlphabets(name):
		return "the text has a word with letters of two alphabets that look alike", "letters of one alphabet in each word"
	}

	return "", ""
}

func oddSpace(r rune) bool { return r != ' ' && unicode.IsSpace(r) }

// mixesAlphabets reports whether a word has letters of two alphabets
// that share their shapes.
func mixesAlphabets(text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r)
	}) {
		if len(safetext.Alphabets(word)) > 1 {
			return true
		}
	}

	return false
}
