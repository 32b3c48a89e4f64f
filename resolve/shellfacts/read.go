package shellfacts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// These are the limits of a line: its bytes, and the depth of lines within lines (sh -c).
const (
	mostBytes = 16 << 10
	mostDepth = 4
	mostOpen  = 500 // brackets: the parser's time grows with the square of their depth
)

// Of returns the facts of a line.
func Of(line string, opt Options) Facts {
	r := &reader{workspace: opt.Workspace, leavesStart: opt.Moved, changesDir: opt.Moved}
	r.entersOthersCode = opt.Moved && (opt.Workspace.Doubt() != "" || !opt.Workspace.isOwn(opt.Workspace.directory()))
	for _, entry := range opt.Listed {
		r.listed = append(r.listed, strings.Fields(entry))
	}
	r.line(line, 0)

	return r.facts()
}

// reader collects what a line does.
type reader struct {
	listed [][]string
	depth  int    // of the line that is read, in lines
	text   string // of that line

	why      string
	lost     bool // nothing is known
	unnamed  bool // the programs are not known
	unworded bool // the words are not known
	unread   bool // the files that are read
	unwrote  bool // the files that are written

	streams []string // of the line that are written to by name

	leavesStart      bool     // it changes to another directory than the root of the workspace and that of the call
	entersOthersCode bool     // it changes to a directory that may hold code of others
	changesDir       bool     // it changes to another directory than that of the call
	goes             []string // the directories of cd
	goesAnywhere     bool     // it changes to a directory that is not known
	here             []string // listed programs that depend on files in their directory
	runs             []string // of these, those that run the project's code wherever it is: test runners and linters

	variables map[string]word // of loops
	rounds    int             // of loops
	patterns  bool            // a variable may be a pattern

	programs, unlisted, commands, flags, paths, reads, writes, because []string

	gitStarts  []GitStart
	workspace  *Workspace
	files      []file
	searches   []*search
	makesLinks bool   // it may make a symbolic link
	relocates  bool   // it moves or copies directories, so that files have other paths later
	getsFiles  bool   // git brings files from elsewhere, which may be links
	shown      int    // how many files it names for programs that show or write them
	followed   int    // how many files it names for git and for programs that run the project's code
	unplaced   string // why the files of the line are not known; empty if they are
}

// doubt keeps the first reason why facts are unknown.
func (r *reader) doubt(at syntax.Node, why string) {
	if r.why == "" {
		r.why = r.explain(at, why)
	}
}

// misplace keeps the first reason why it is not known which files the
// line names.
func (r *reader) misplace(at syntax.Node, why string) {
	if r.unplaced == "" {
		r.unplaced = r.explain(at, why)
	}
}

// explain adds the text of a node and its position to a reason.
func (r *reader) explain(at syntax.Node, why string) string {
	if at == nil {
		return why
	}
	from, to := int(at.Pos().Offset()), int(at.End().Offset())
	if from < to && to <= len(r.text) {
		why += ": " + Excerpt(r.text[from:to])
	}

	return fmt.Sprintf("%s (at %s of the line)", why, at.Pos())
}

// mostExcerpt bounds the text of a line in a reason, in characters.
const mostExcerpt = 40

// Excerpt returns the beginning of a text, for a reason.
func Excerpt(text string) string {
	runes := []rune(oneLine(strings.ToValidUTF8(text, "?")))
	if len(runes) > mostExcerpt {
		return string(runes[:mostExcerpt]) + "…"
	}

	return string(runes)
}

// lose makes all facts unknown.
func (r *reader) lose(at syntax.Node, why string) {
	r.doubt(at, why)
	r.misplace(at, why)
	r.lost = true
}

func (r *reader) facts() Facts {
	if len(r.reads) > 0 || r.unread {
		// Opening a stream by its name opens the file behind it again, possibly for writing.
		r.writes = append(r.writes, r.streams...)
		r.paths = append(r.paths, r.streams...)
	}
	if r.entersOthersCode {
		r.here = append(r.here, r.runs...)
	}
	if r.leavesStart && len(r.here) > 0 {
		r.unnamed = true
		r.doubt(nil, "a program does what its directory says, and the line changes the directory")
		for _, name := range r.here {
			r.named(&r.unlisted, name)
			r.because = append(r.because, shown(name)+" after cd")
		}
	}
	slices.Sort(r.because)
	f := Facts{Why: r.why, WhyFiles: r.unplaced, Because: slices.Compact(r.because)}
	if r.lost {
		return f
	}
	r.placed(&f)
	if !r.unnamed {
		f.Programs = list(r.programs, " ")
	}
	f.Unlisted = list(r.unlisted, " ")
	if !r.unworded && !r.unnamed {
		f.Commands = Fact{Known: true, Text: strings.Join(r.commands, "\n")}
		f.Flags = list(r.flags, " ")
	}
	if !r.unworded && !r.unnamed && !r.unread && !r.unwrote {
		f.Paths = list(r.paths, "\n")
	}
	if !r.unnamed && !r.unread {
		f.Reads = list(r.reads, "\n")
	}
	if !r.unnamed && !r.unwrote {
		f.Writes = list(r.writes, "\n")
	}

	return f
}

// line reads a line.
func (r *reader) line(text string, depth int) {
	if len(text) > mostBytes || depth > mostDepth {
		r.lose(nil, "it is too long, or has too many lines within lines")
		return
	}
	if strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "[") > mostOpen {
		r.lose(nil, "it holds too many brackets")
		return
	}
	if strings.ContainsAny(text, "\x00\r") {
		r.lose(nil, "it holds control characters")
		return
	}
	if strings.Contains(text, "\\\n") && strings.Contains(text, "#") {
		// The parser reads # after a continued word as a comment, and a comment that ends in a
		// backslash as a continued line.
		r.lose(nil, "it may hold a comment that shells end elsewhere")
		return
	}

	if continues(text) {
		// The parser reads "$\ ( as plain text if the line continues between the two, and ends a
		// here-document at other lines.
		r.lose(nil, "a line goes on within a word")
		return
	}

	if subscript.MatchString(text) {
		r.lose(nil, "zsh computes what stands in [ ] behind a variable, quotes or not")
		return
	}

	file, err := parse(text)
	if err != nil {
		r.lose(nil, "it can't be read as bash reads it")
		return
	}
	before, above := r.depth, r.text
	r.depth, r.text = depth, text
	syntax.Walk(file, r.visit)
	r.depth, r.text = before, above
}

// subscript matches text that zsh may read as an expansion with an index, while bash ends the
// expansion before it: $x[…], $12[…], $#x[…], $+x[…].
var subscript = lazily("\\$[^\\s\"'`\\\\(){}\\[\\]|&;<>/.,%]+\\[")

// continues reports whether a line is continued in a place other than after a blank. After a blank
// only words can follow.
func continues(text string) bool {
	for {
		before, behind, found := strings.Cut(text, "\\\n")
		switch {
		case !found:
			return false
		case before == "" || strings.IndexByte(" \t", before[len(before)-1]) < 0:
			return true
		}

		text = behind
	}
}

// parse reads a line as bash does. It returns an error if the parser panics.
func parse(text string) (file *syntax.File, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the parser failed: %v", broken)
		}
	}()

	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	return parser.Parse(strings.NewReader(text), "")
}

// visit inspects one node of a line. A node that is not named here runs nothing by itself, so only
// its parts are visited.
func (r *reader) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case nil, *syntax.File, *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause,
		*syntax.CaseClause, *syntax.CaseItem, *syntax.Word, *syntax.Lit, *syntax.DblQuoted,
		*syntax.Assign: // call looks at it
	case *syntax.CmdSubst:
		if holdsDocument(n) && !(isDocument(n) && r.isLastQuote(n)) {
			r.lose(n, "shells end a here-document in a substitution at other lines")
		}
	case *syntax.ProcSubst:
		if holdsDocument(n) {
			r.lose(n, "shells end a here-document in a substitution at other lines")
		}
	case *syntax.ForClause:
		r.loop(n)
		return false
	case *syntax.TimeClause:
		r.timed(n)
	case *syntax.SglQuoted:
		if n.Dollar && strings.Contains(n.Value, `\`) {
			r.lose(n, "a shell that doesn't know $'…' ends it elsewhere")
		}
	case *syntax.Stmt:
		if n.Coprocess || n.Disown || n.Cmd == nil {
			r.lose(n, "it is written for another shell, or has redirections alone")
		}
		if torn(n) {
			r.lose(n, "another shell reads words behind &> as a command")
		}
	case *syntax.Comment:
		if !r.comments(n) {
			r.lose(n, "shells may read a comment otherwise")
		}
	case *syntax.CallExpr:
		r.call(n)
	case *syntax.Redirect:
		r.redirect(n)
	case *syntax.ParamExp:
		if !simple(n) {
			r.lose(n, "an expansion may change variables or run something")
		}
	default:
		r.lose(n, "it changes variables or functions, or computes")
	}

	return !r.lost
}

// comments reports whether every shell reads a comment in the same place as the parser: after a
// blank or an operator.
func (r *reader) comments(c *syntax.Comment) bool {
	at := int(c.Hash.Offset())
	return at <= len(r.text) && (at == 0 || strings.IndexByte(" \t\n;&|(", r.text[at-1]) >= 0)
}

// isLastQuote reports whether the text of a here-document has no quote, or no quote follows the word
// that it is in: a shell that pairs quotes within the substitution would read what follows otherwise.
func (r *reader) isLastQuote(s *syntax.CmdSubst) bool {
	end := min(int(s.End().Offset())+1, len(r.text)) // and the quote of the word
	return !strings.Contains(document(s).Hdoc.Lit(), "'") || !strings.ContainsAny(r.text[end:], "'\"`")
}

// holdsDocument reports whether a here-document begins in a part of a line. Within $(…), bash ends
// one at any line that begins with its delimiter and contains a bracket, and runs the text between
// the two.
func holdsDocument(part syntax.Node) bool {
	found := false
	syntax.Walk(part, func(n syntax.Node) bool {
		d, ok := n.(*syntax.Redirect)
		found = found || ok && d.Hdoc != nil
		return !found
	})

	return found
}

// torn reports whether words follow &>. A shell that supports only POSIX reads it as & and >, and
// runs these words.
func torn(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return false
	}
	last := c.Args[len(c.Args)-1].Pos()
	return slices.ContainsFunc(s.Redirs, func(d *syntax.Redirect) bool {
		return (d.Op == syntax.RdrAll || d.Op == syntax.AppAll) && last.After(d.OpPos)
	})
}

// simple reports whether an expansion is just the value of a variable. Other expansions set
// variables, or run values as programs.
func simple(p *syntax.ParamExp) bool {
	if p.Param == nil {
		return false
	}
	bare := &syntax.ParamExp{Dollar: p.Dollar, Rbrace: p.Rbrace, Short: p.Short, Param: p.Param}

	return reflect.DeepEqual(p, bare) // other fields that come with a later parser too
}

// call looks at a simple command.
func (r *reader) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		if len(c.Args) == 0 || !r.harmlessAssignment(a) {
			r.lose(a, "it sets a variable, which may change what runs")
			return
		}
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		words[i] = r.read(w)
		words[i].node = w
	}
	r.command(c, words)
}

// redirect looks at a redirection.
func (r *reader) redirect(d *syntax.Redirect) {
	if d.N != nil && (len(d.N.Value) != 1 || strings.Trim(d.N.Value, "0123456789") != "") {
		r.lose(d, "a redirection sets a variable, or is a word to other shells")
		return
	}
	if strings.HasPrefix(d.Word.Lit(), "!") {
		r.lose(d, "zsh reads ! as part of a redirection")
		return
	}
	target := r.read(d.Word)
	switch d.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if !target.known {
			r.lose(d, "shells may end a here-document elsewhere: its end is no plain text")
		}
		if d.Hdoc != nil && slices.ContainsFunc(d.Hdoc.Parts, isExpansion) {
			r.unworded = true
			r.doubt(d, "a here-document holds more than plain text")
			r.misplace(d, "a here-document holds more than plain text")
		}
	case syntax.WordHdoc:
		if !target.known {
			r.unworded = true
			r.doubt(d, "a here-string is no plain text")
			r.misplace(d, "a here-string is no plain text")
		}
	case syntax.RdrIn:
		r.opens(d, target, true, false)
	case syntax.RdrInOut:
		r.opens(d, target, true, true)
	case syntax.DplIn:
		if !target.known || !isDescriptor(target.text) {
			r.unread = true
			r.doubt(d, "a redirection's source is not known")
			r.misplace(d, "a redirection's source is not known")
		}
	case syntax.DplOut:
		switch {
		case !target.known || !plain(target.text):
			r.lose(d, "bash expands the file behind >& twice, quotes or not")
		case !isDescriptor(target.text):
			r.opens(d, target, false, true)
		}
	case syntax.RdrAll, syntax.AppAll:
		if at := int(d.OpPos.Offset()); at > 0 && strings.IndexByte("0123456789", r.text[at-1]) >= 0 {
			r.lose(d, "shells take a digit before &> for a word, or for its number")
			return
		}
		r.opens(d, target, false, true)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob:
		r.opens(d, target, false, true)
	default:
		r.lose(d, "it is written for another shell")
	}
}

// isExpansion reports whether a part of a here-document is not plain text.
func isExpansion(part syntax.WordPart) bool {
	_, ok := part.(*syntax.Lit)
	return !ok
}

// isDescriptor reports whether the target of >& is a file descriptor and not a file. zsh reads 1-
// as a file.
func isDescriptor(target string) bool {
	return target == "-" || strings.Trim(target, "0123456789") == ""
}

// opens records a file of a redirection.
func (r *reader) opens(at syntax.Node, target word, reads, writes bool) {
	if !target.known {
		r.unread, r.unwrote = r.unread || reads, r.unwrote || writes
		r.doubt(at, "a redirection's file is no plain text")
		r.misplace(at, "a redirection's file is no plain text")
		return
	}
	switch {
	case target.text == "/dev/null", target.text == "/dev/stdin" && !writes:
		return
	case (target.text == "/dev/stdout" || target.text == "/dev/stderr") && !reads:
		r.streams = append(r.streams, target.text)
		return
	}
	name := oneLine(target.text)
	r.files = append(r.files, file{path: target.text, written: writes})
	r.paths = append(r.paths, name)
	if reads {
		r.reads = append(r.reads, name)
	}
	if writes {
		r.writes = append(r.writes, name)
	}
}
