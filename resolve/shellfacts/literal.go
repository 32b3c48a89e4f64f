package shellfacts

import (
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Literal returns the words of a line that is one simple command whose words are plain text. It
// returns false for any other line: one with an operator, a redirection, an assignment, an
// expansion, a pattern or a comment, one that shells read differently, and one with a control
// character in a word.
func Literal(line string) ([]string, bool) {
	r := &reader{}
	if r.line(line, 0); r.lost || strings.ContainsAny(line, "$`") {
		return nil, false
	}
	file, err := parse(line)
	if err != nil || len(file.Stmts) != 1 || len(file.Last) > 0 {
		return nil, false
	}
	s := file.Stmts[0]
	if s.Negated || s.Background || s.Coprocess || s.Disown || s.Semicolon.IsValid() || len(s.Redirs) > 0 ||
		len(s.Comments) > 0 {
		return nil, false
	}
	command, simple := s.Cmd.(*syntax.CallExpr)
	if !simple || len(command.Assigns) > 0 {
		return nil, false
	}
	var words []string
	for _, arg := range command.Args {
		w := r.read(arg)
		if !w.known || w.glob || strings.ContainsFunc(w.text, unicode.IsControl) {
			return nil, false
		}
		words = append(words, w.text)
	}

	return words, len(words) > 0
}

// KnowsOptions reports whether there is a table of the options of a command that decides which of
// them count as harmless. For any other command an option may do anything.
func KnowsOptions(words []string) bool {
	if len(words) == 0 {
		return false
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	switch name := base(words[0]); name {
	case "git":
		return gitOptions[second] != nil
	case "go":
		return goFlags[second] != ""
	case "python", "python3":
		return second == "-m" && len(words) > 2 && checkOf(words[2]) != nil
	default:
		return checkOf(name) != nil
	}
}
