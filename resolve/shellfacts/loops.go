package shellfacts

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// mostRounds limits how often the bodies of loops are read.
const mostRounds = 200

// loopVariable matches the names of variables that loops may set. Shells and programs read other
// names, such as PATH, and zsh also path and status.
var loopVariable = lazily(`^([a-z]|d[0-9]|f[0-9]|file|files|dir|pkg|name|item|test|mod|module|svc|service|` +
	`branch|commit|num|url|app|arg|ext|line|word|script|target|example|fn)$`)

// loop reads a loop over words: its body once for each word. If the words are not known, the body is
// read once, with an unknown variable.
func (r *reader) loop(c *syntax.ForClause) {
	words, ok := c.Loop.(*syntax.WordIter)
	if c.Select || c.Braces || !ok || !loopVariable.MatchString(words.Name.Value) || !words.InPos.IsValid() {
		r.lose(c, "it changes variables or functions, or computes")
		return
	}
	var values []word
	for _, item := range words.Items {
		syntax.Walk(item, r.visit) // it may run commands
		v := r.read(item)
		if !v.known && !v.glob || v.known && !plain(v.text) {
			values = []word{{}}
			break
		}
		values = append(values, v)
	}
	before, had := r.variables[words.Name.Value]
	for _, v := range values {
		if r.rounds++; r.rounds > mostRounds {
			r.lose(c, "it has too many rounds")
		}
		if r.lost {
			return
		}
		r.set(words.Name.Value, v)
		for _, s := range c.Do {
			syntax.Walk(s, r.visit)
		}
	}
	delete(r.variables, words.Name.Value) // which of the words it has afterwards is not known
	if had {
		r.set(words.Name.Value, word{node: before.node})
	}
}

func (r *reader) set(name string, value word) {
	if r.variables == nil {
		r.variables = map[string]word{}
	}
	r.variables[name] = value
}

// variable returns the value of a variable that a loop has set. zsh reads more than the name if
// certain characters follow it.
func (r *reader) variable(parts []syntax.WordPart, i int) (word, bool) {
	p, ok := parts[i].(*syntax.ParamExp)
	if !ok || !simple(p) {
		return word{}, false
	}
	if next, bare := syntax.WordPart(nil), p.Short; bare && i+1 < len(parts) {
		next = parts[i+1]
		lit, ok := next.(*syntax.Lit)
		if !ok || strings.IndexByte("/.,-+ =@%", lit.Value[0]) < 0 {
			return word{}, false
		}
	}
	v, ok := r.variables[p.Param.Value]

	return v, ok && (v.known || v.glob)
}

// isVariable reports whether a part of a word is a variable in quotes, and nothing else that contains
// the characters of a pattern.
func (r *reader) isVariable(part syntax.WordPart) bool {
	q, ok := part.(*syntax.DblQuoted)
	return ok && !slices.ContainsFunc(q.Parts, func(p syntax.WordPart) bool {
		lit, is := p.(*syntax.Lit)
		return is && strings.ContainsAny(lit.Value, `*?[]\`)
	})
}

// documentOf returns the text of a word that is "$(cat <<'E' … E)": a here-document in a command that
// only prints it, as agents write messages of commits.
func documentOf(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	q, ok := w.Parts[0].(*syntax.DblQuoted)
	if !ok || q.Dollar || len(q.Parts) != 1 {
		return "", false
	}
	s, ok := q.Parts[0].(*syntax.CmdSubst)
	if !ok || !isDocument(s) {
		return "", false
	}

	return strings.TrimRight(document(s).Hdoc.Lit(), "\n"), true
}

// document returns the here-document of a substitution that has only cat and that, or nil.
func document(s *syntax.CmdSubst) *syntax.Redirect {
	if s.Backquotes || s.TempFile || s.ReplyVar || len(s.Stmts) != 1 || len(s.Last) > 0 {
		return nil
	}
	stmt := s.Stmts[0]
	c, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Background || stmt.Coprocess || stmt.Negated || len(c.Assigns) > 0 || len(c.Args) != 1 ||
		c.Args[0].Lit() != "cat" || len(stmt.Redirs) != 1 {
		return nil
	}

	return stmt.Redirs[0]
}

// isDocument reports whether every shell ends the here-document of a substitution at the same line.
// Some look for the end of the substitution first, and read quotes and brackets in the text for that.
func isDocument(s *syntax.CmdSubst) bool {
	d := document(s)
	if d == nil || d.Op != syntax.Hdoc || d.N != nil || d.Hdoc == nil || d.Hdoc.Lit() == "" && len(d.Hdoc.Parts) > 0 ||
		len(d.Word.Parts) != 1 {
		return false
	}
	end, ok := d.Word.Parts[0].(*syntax.SglQuoted)
	if !ok || end.Dollar || !delimiter.MatchString(end.Value) {
		return false
	}
	text := d.Hdoc.Lit()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, "\t "), end.Value) {
			return false // bash may end it there
		}
	}
	runs := strings.ContainsAny(text, "$`")

	return !strings.ContainsAny(text, "\"\\") && !(runs && strings.ContainsAny(text, ")'")) &&
		strings.Count(text, "`")%2 == 0
}

var delimiter = lazily(`^[A-Za-z_]+$`)

// timed reads a command behind time, which is a word of the language in bash and zsh, and a program in
// dash.
func (r *reader) timed(t *syntax.TimeClause) {
	first := t.Stmt
	for first != nil && !first.Negated {
		pipe, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || pipe.Op != syntax.Pipe {
			break
		}
		first = pipe.X
	}
	var c *syntax.CallExpr
	if first != nil && !first.Negated && !t.PosixFormat {
		c, _ = first.Cmd.(*syntax.CallExpr)
	}
	if c == nil || len(c.Args) == 0 || len(c.Assigns) > 0 || strings.HasPrefix(c.Args[0].Lit(), "-") {
		r.lose(t, "shells read time in different ways")
		return
	}
	words := []word{{text: "time", known: true, node: c.Args[0]}}
	for _, a := range c.Args {
		w := r.read(a)
		w.node = a
		words = append(words, w)
	}
	r.words(t, words)
	r.named(&r.programs, "time")
	if !r.isListed(words) {
		r.named(&r.unlisted, "time")
	}
}
