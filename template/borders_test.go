package template

import (
	"regexp"
	"strings"
	"testing"
)

// Identifiers consist of ASCII letters, underscores, and digits after the first character.
func TestIdentifiersAreOfASCII(t *testing.T) {
	identifier := regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*$`)
	for c := range 256 {
		for _, name := range []string{
			string([]byte{byte(c)}),
			string([]byte{'a', byte(c)}),
			string([]byte{byte(c), 'a'}),
		} {
			if isIdentifier(name) != identifier.MatchString(name) {
				t.Errorf("%q is an identifier: %v", name, isIdentifier(name))
			}
		}
	}
}

// Every rule that a template can violate has a description.
func TestEveryRuleIsDescribed(t *testing.T) {
	described := map[string]bool{}
	for _, r := range Rules() {
		described[r.ID] = true
	}
	seen := map[string]bool{}
	for _, text := range []string{
		"",
		strings.Repeat("x", MaxLength+1),
		"{{#a}}",
		"{{{a}}}",
		"{{a",
		"{{}}",
		"{{a b}}",
		"\u202e",
	} {
		_, problems := Parse(text)
		for _, p := range problems {
			if seen[p.Code] = true; !described[p.Code] {
				t.Errorf("%.20q: %s is no rule", text, p.Code)
			}
		}
	}

	if len(seen) != len(described) {
		t.Errorf("seen %v, described %v", seen, described)
	}
}

func TestEscapeShowsWhatHides(t *testing.T) {
	if got := Escape("a\u202eb\x00"); got != `a\u{202e}b\u{0}` {
		t.Errorf("got %q", got)
	}
}
