package shellfacts

import (
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command, as the program gets it.
type word struct {
	text  string
	known bool // the shell changes nothing in it
	// glob is set if the word is a pattern that the shell replaces by file names, so that its value
	// is not known. text is the pattern.
	glob bool
	node syntax.Node
}

// read reads a word, whose parts are plain text or in quotes.
func (r *reader) read(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	if w.Lit() == "{}" {
		return word{text: "{}", known: true} // without other text it is literal
	}
	if text, ok := documentOf(w); ok {
		return word{text: text, known: true}
	}
	var b strings.Builder
	for i := range w.Parts {
		text, ok := r.partText(w.Parts, i)
		if !ok {
			return r.readGlob(w)
		}
		b.WriteString(text)
	}

	return word{text: b.String(), known: true}
}

// readGlob reads a word that has *, ? or [ ] outside quotes, and nothing else that a shell expands.
// A variable of a loop over a pattern counts as that pattern, if it is in quotes.
func (r *reader) readGlob(w *syntax.Word) word {
	r.patterns = true
	defer func() { r.patterns = false }()
	var b strings.Builder
	for i, part := range w.Parts {
		lit, bare := part.(*syntax.Lit)
		text, ok := "", false
		switch {
		case !bare:
			text, ok = r.partText(w.Parts, i)
			ok = ok && (!strings.ContainsAny(text, "*?[]") || r.isVariable(part))
		case strings.IndexFunc(lit.Value, func(c rune) bool {
			return !plainRune(c) && !strings.ContainsRune("*?[]!", c)
		}) < 0 && !strings.Contains(lit.Value, "***") && (i > 0 || lit.Value[0] != '='):
			text, ok = lit.Value, true
		}
		if !ok {
			return word{}
		}
		b.WriteString(text)
	}

	return word{text: b.String(), glob: true}
}

// partText returns the text of one part of a word.
func (r *reader) partText(parts []syntax.WordPart, i int) (string, bool) {
	switch part := parts[i].(type) {
	case *syntax.Lit:
		return bareText(part.Value, i == 0)
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar
	case *syntax.DblQuoted:
		return r.quotedText(part)
	case *syntax.ParamExp:
		if isExitStatus(part) {
			return exitStatus, true
		}
		v, ok := r.variable(parts, i)
		return v.text, ok && v.known // without quotes the names that a pattern matches are split
	}

	return "", false
}

// exitStatus is $?, which is always a number. It is kept as the text in the line.
const exitStatus = "$?"

func isExitStatus(part syntax.WordPart) bool {
	p, ok := part.(*syntax.ParamExp)
	return ok && simple(p) && p.Param.Value == "?"
}

// bareText reads text without quotes. Other shells expand more than bash does; text that any shell
// expands is unknown.
func bareText(text string, first bool) (string, bool) {
	if text == "[" || text == "]" {
		return text, true // the command, and its end
	}
	var b strings.Builder
	escaped := false
	closing := -1 // where a pair of braces ends that no shell expands
	for i, c := range text {
		switch {
		case !escaped && first && i > 0 && isRevision(text, i):
			if c == '{' {
				closing = i + strings.IndexByte(text[i:], '}')
			}
		case !escaped && i == closing:
		case escaped && c == '\n':
			escaped = false // the line goes on
			continue
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
			continue
		case c == '^' && first:
		case !plainRune(c), c == '=' && first && i == 0:
			return "", false
		}

		b.WriteRune(c)
	}

	return b.String(), !escaped
}

// isRevision reports whether a character within a word, as in git's names of commits, is plain text
// to every shell: HEAD~1, HEAD^, @{u}. Shells expand a tilde at the start of a word and after what
// looks like an assignment, and braces that contain a comma or two dots.
func isRevision(text string, i int) bool {
	switch text[i] {
	case '~':
		return !strings.ContainsAny(text[:i], "=:")
	case '^':
		return true
	case '{':
		within, _, closed := strings.Cut(text[i+1:], "}")
		return closed && within != "" && strings.IndexFunc(within, func(c rune) bool {
			return !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
		}) < 0
	}

	return false
}

// quotedText reads text in double quotes, in which a backslash escapes only a few characters. Only
// interactive shells expand history.
func (r *reader) quotedText(q *syntax.DblQuoted) (string, bool) {
	if q.Dollar {
		return "", false
	}
	var b strings.Builder
	for i, part := range q.Parts {
		if isExitStatus(part) {
			b.WriteString(exitStatus)
			continue
		}
		if v, ok := r.variable(q.Parts, i); ok && (v.known || r.patterns) {
			b.WriteString(v.text)
			continue
		}
		lit, ok := part.(*syntax.Lit)
		if !ok || expands(lit.Value, i == len(q.Parts)-1) {
			return "", false
		}
		b.WriteString(unescaped(lit.Value))
	}

	return b.String(), true
}

// expands reports whether a shell may find an expansion in text that is plain to bash: zsh expands
// "$~x" and "$+x". A $ at the end is plain text.
func expands(text string, last bool) bool {
	bare := strings.NewReplacer(`\\`, "", `\$`, "").Replace(text)
	i := strings.IndexByte(bare, '$')

	return i >= 0 && (!last || i < len(bare)-1)
}

func unescaped(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, `\`)
		b.WriteString(before)
		switch {
		case !found:
			return b.String()
		case after == "" || !strings.ContainsRune("$`\"\\\n", rune(after[0])):
			b.WriteByte('\\')
			text = after
		default:
			if after[0] != '\n' {
				b.WriteByte(after[0])
			}
			text = after[1:]
		}
	}
}

// plainRune reports whether no shell reads anything in a character.
func plainRune(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		strings.ContainsRune("_./:@%+,=-", c) || c > unicode.MaxASCII && unicode.IsLetter(c)
}

// plain reports whether a word needs no quotes.
func plain(w string) bool {
	return w != "" && strings.IndexFunc(w, func(c rune) bool { return !plainRune(c) }) < 0
}

// shown returns a word in the form of Commands.
func shown(w string) string {
	if plain(w) {
		return w
	}
	return "'" + strings.ReplaceAll(oneLine(w), "'", `'\''`) + "'"
}

// oneLine replaces line ends and invisible characters by spaces.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, text)
}
