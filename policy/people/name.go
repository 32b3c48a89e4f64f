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

// Key returns the comparison form of a name; two spellings of one name have the same key. A name
// with a scheme ("slack:U012345", "oidc:issuer|subject") is an identifier that its issuer may treat
// as case-sensitive, so only the scheme is lower-cased. Email addresses and plain names are
// compared in NFC and case-insensitively: no email provider gives "Alice@" and "alice@" to two
// people, and treating two spellings as one person is the safe error, because it prevents people
// from approving their own calls under another spelling.
func Key(name string) string {
	if scheme, rest := split(name); scheme != "" {
		return scheme + ":" + rest
	}
	return strings.Map(lower, norm.NFC.String(name))
}

// lower converts a letter to lower case, but never changes a letter outside ASCII into an ASCII
// letter: "İ" must not become "i", because two mailboxes would become one.
func lower(r rune) rune {
	if l := unicode.ToLower(r); r < utf8.RuneSelf || l >= utf8.RuneSelf {
		return l
	}
	return r
}

// split returns the scheme of a name, or an empty string if it has none, and the rest.
func split(name string) (scheme, rest string) {
	scheme, rest, ok := strings.Cut(name, ":")
	if !ok || scheme == "" ||
		strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return "", name
	}
	return strings.ToLower(scheme), rest
}

// Subject returns the name of a person with this subject at an identity provider.
func Subject(issuer, subject string) string { return oidc + ":" + issuer + "|" + subject }

// reserved returns names that software uses for unknown users or for itself.
func reserved() []string {
	return []string{"anonymous", "nobody", "none", "null", "nil", "system", "undefined", "unknown"}
}

// IdentityProblem returns what is wrong with the name of a human, and what is expected. It returns
// empty strings if the name is valid. An invalid name is refused in a file, and matches no person.
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

// TextProblem returns what is wrong with a text that people read, such as a name or a group, and
// what is expected.
func TextProblem(text string) (message, expected string) {
	if len(text) > maxName {
		return "the text is too long", "at most 400 bytes"
	}

	return NameProblem(text)
}

// isSubject checks the part after "oidc:".
func isSubject(s string) bool {
	issuer, subject, ok := strings.Cut(s, "|")
	if !ok || subject == "" {
		return false
	}
	u, err := url.Parse(issuer)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && u.RawQuery == "" &&
		u.Fragment == ""
}

// IsMail reports whether a name is an email address as an identity provider may send it.
func IsMail(name string) bool {
	scheme, _ := split(name)

	return scheme == "" && isMail(name) && norm.NFC.IsNormalString(name)
}

// isMail checks only the form: text on both sides of one @, without spaces.
func isMail(s string) bool {
	local, domain, _ := strings.Cut(s, "@")
	return local != "" && domain != "" && !strings.ContainsAny(domain, "@") &&
		!strings.ContainsAny(s, " ,;<>\"()")
}

// NameProblem returns why a name can't be the name of a human, group or account, and what is
// expected. It returns empty strings if the name is valid. Invalid names are refused from any
// source, because a name that looks like another one could let people impersonate someone.
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

// mixesAlphabets reports whether a word contains letters of two alphabets with similar shapes.
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
