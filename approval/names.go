package approval

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/assent-dev/assent/internal/safetext"
)

// NameProblem says why no human, group or account can have a name, and what would
// be right; "" when one could. Such a name is refused wherever it comes from: a
// name that looks like another one would let people pass for somebody else, or for
// nobody.
func NameProblem(name string) (message, expected string) {
	switch {
	case strings.TrimSpace(name) == "":
		return "the text is empty", "a name"
	case safetext.Printable(name) != name:
		return "the text has characters that can't be seen: " + safetext.Printable(name), "the same without them"
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

// mixesAlphabets reports whether a word has letters of two alphabets that share
// their shapes.
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

// checkPrincipal refuses a principal that nobody can be called.
func checkPrincipal(name string) error {
	if name == "" {
		return nil
	}
	if err := checkName("call.principal", name); err != nil {
		return err
	}
	if message, expected := NameProblem(name); message != "" {
		return &InputError{"call.principal", expected + ": " + message}
	}

	return nil
}
