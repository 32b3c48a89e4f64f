package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// How lines read. A tab counts as four columns.
const (
	widest        = 120
	tabWidth      = 4
	mostVariables = 2 // of one assignment that is no call
	longStep      = 4 // lines of a block; a longer one is followed by a blank line
)

// The shape of the tree as a whole. Lines are those with code on them,
// nodes are those of the syntax tree.
const (
	medianFunction     = 10  // lines
	nodesPerLine       = 6.0 // of product code
	nodesPerTestLine   = 6.5
	commentsPerHundred = 10.0 // lines of product code
)

// generated reports whether a file says that a program wrote it.
func generated(f file) bool {
	return slices.ContainsFunc(f.ast.Comments, func(g *ast.CommentGroup) bool {
		return g.Pos() < f.ast.Package && strings.Contains(g.Text(), "DO NOT EDIT")
	})
}

// quoted returns the lines of texts that go over several lines, or fill
// a third of one: they
// are data, and end where their reader wants.
func quoted(f file) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		text, ok := n.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			return true
		}
		first := f.fset.Position(text.Pos()).Line
		last := f.fset.Position(text.End()).Line
		for line := first; (last > first || len(text.Value) > widest/3) && line <= last; line++ {
			lines[line] = true
		}
		return true
	})
	for _, g := range f.ast.Comments {
		if !strings.Contains(g.Text(), "utput:\n") { // of an example
			continue
		}
		for line := f.fset.Position(g.Pos()).Line; line <= f.fset.Position(g.End()).Line; line++ {
			lines[line] = true
		}
	}

	return lines
}

// columns is how wide a line is on the screen.
func columns(line string) int {
	return len([]rune(strings.ReplaceAll(line, "\t", strings.Repeat(" ", tabWidth))))
}

// checkWidth complains about lines of Go that are too wide.
func checkWidth(packages []pkg) []string {
	var out []string
	for _, f := range sources(packages) {
		data := quoted(f)
		for i, line := range strings.Split(f.text, "\n") {
			if wide := columns(line); wide > widest && !data[i+1] {
				out = append(out, fmt.Sprintf("%s:%d: %d columns, at most %d", f.path, i+1, wide, widest))
			}
		}
	}

	return out
}

// sources are the files that people write.
func sources(packages []pkg) []file {
	var out []file
	for _, p := range packages {
		for _, f := range slices.Concat(p.files, p.tests) {
			if !generated(f) {
				out = append(out, f)
			}
		}
	}

	return out
}

// checkProse complains about lines of Markdown that are too wide.
// Tables, code and lines with a long address end where they must.
func checkProse(pages map[string]string) []string {
	var out []string
	for path, text := range pages {
		code := false
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			prose := !code && !strings.HasPrefix(strings.TrimSpace(line), "|")
			if prose && columns(line) > widest && strings.Contains(strings.TrimSpace(line), " ") {
				out = append(out, fmt.Sprintf("%s:%d: %d columns, at most %d", path, i+1, columns(line), widest))
			}
		}
	}

	return out
}

// checkAssignments complains about statements that set many variables
// at once.
func checkAssignments(packages []pkg) []string {
	var out []string
	for _, f := range sources(packages) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			set, ok := n.(*ast.AssignStmt)
			if ok && len(set.Lhs) > mostVariables && len(set.Lhs) == len(set.Rhs) {
				out = append(out, fmt.Sprintf("%s: sets %d variables: one step a line", at(f.fset, set), len(set.Lhs)))
			}
			return true
		})
	}

	return out
}

// checkSteps complains about long blocks whose end nothing marks.
func checkSteps(packages []pkg) []string {
	var out []string
	for _, f := range sources(packages) {
		line := func(p token.Pos) int { return f.fset.Position(p).Line }
		ast.Inspect(f.ast, func(n ast.Node) bool {
			steps := statements(n)
			for i := 1; i < len(steps); i++ {
				before, next := steps[i-1], steps[i]
				long := line(before.End())-line(before.Pos()) > longStep
				if long && isBlock(before) && line(next.Pos()) == line(before.End())+1 {
					out = append(out, at(f.fset, next)+": a blank line goes between a long block and the next step")
				}
			}

			return true
		})
	}

	return out
}

// statements are those that stand one below the other in a node.
func statements(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}

	return nil
}

func isBlock(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		return true
	}
	return false
}

// plainer gives, for words that mean nothing to a stranger, those that do.
func plainer() map[string]string {
	return map[string]string{
		"house":         "package, service or repository",
		"rooms":         "namespaces",
		"floors?":       "layer",
		"rungs?":        "scheduled action",
		"ladders?":      "scheduled actions",
		"tells whether": "reports whether",
		"tell whether":  "report whether",
	}
}

// checkWords complains about comments and pages with words that only we
// understand.
func checkWords(words map[string]string, packages []pkg, pages map[string]string) []string {
	var out []string
	for word, better := range words {
		wanted := regexp.MustCompile(`(?i)\b` + word + `\b`)
		for _, f := range sources(packages) {
			for _, g := range f.ast.Comments {
				if found := wanted.FindString(g.Text()); found != "" {
					out = append(out, fmt.Sprintf("%s: %q: say %s", at(f.fset, g), found, better))
				}
			}
		}

		for path, text := range pages {
			if strings.HasPrefix(path, "bench/") || strings.HasPrefix(path, "examples/") {
				continue // which have other things to speak of
			}

			for i, line := range strings.Split(text, "\n") {
				if found := wanted.FindString(line); found != "" {
					out = append(out, fmt.Sprintf("%s:%d: %q: say %s", path, i+1, found, better))
				}
			}
		}
	}

	return out
}

// shape is what a set of files comes to.
type shape struct {
	lines, comments, code, nodes int
	functions                    []int // lines of each, blank ones aside
}

// measure adds a file.
func (s *shape) measure(f file) {
	comments := commentLines(f)
	for i, line := range strings.Split(strings.TrimSuffix(f.text, "\n"), "\n") {
		s.lines++
		switch {
		case strings.TrimSpace(line) == "":
		case comments[i+1]:
			s.comments++
		default:
			s.code++
		}
	}

	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.CommentGroup, *ast.Comment:
			return false
		case *ast.FuncDecl:
			s.functions = append(s.functions, filled(f, n))
		}

		s.nodes++
		return true
	})
}

// filled counts the lines of a function that are not blank.
func filled(f file, n *ast.FuncDecl) int {
	first := f.fset.Position(n.Pos()).Line
	last := f.fset.Position(n.End()).Line
	lines := strings.Split(f.text, "\n")[first-1 : last]
	return len(slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" }))
}

// commentLines are the lines with nothing but a comment.
func commentLines(f file) map[int]bool {
	text := strings.Split(f.text, "\n")
	lines := map[int]bool{}
	for _, g := range f.ast.Comments {
		first := f.fset.Position(g.Pos())
		if strings.TrimSpace(text[first.Line-1][:first.Column-1]) != "" {
			first.Line++
		}
		for line := first.Line; line <= f.fset.Position(g.End()).Line; line++ {
			lines[line] = true
		}
	}

	return lines
}

// checkShape complains when code is denser, or less explained, than the
// numbers above.
func checkShape(packages []pkg) []string {
	var product, tests shape
	for _, f := range sources(packages) {
		if isTest(f) {
			tests.measure(f)
		} else {
			product.measure(f)
		}
	}

	var out []string
	want := func(what string, got float64, holds bool) {
		if !holds {
			out = append(out, fmt.Sprintf("%s: %.2f", what, got))
		}
	}
	dense := float64(product.nodes) / float64(max(product.code, 1))
	want("syntax nodes a line of product code", dense, dense <= nodesPerLine)
	dense = float64(tests.nodes) / float64(max(tests.code, 1))
	want("syntax nodes a line of tests", dense, dense <= nodesPerTestLine)
	explained := 100 * float64(product.comments) / float64(max(product.lines, 1))
	want("comment lines in a hundred of product code", explained, explained >= commentsPerHundred)
	middle := median(product.functions)
	want("lines of the median function", float64(middle), middle <= medianFunction)
	return out
}

// isTest reports whether a file holds tests, or helps them.
func isTest(f file) bool {
	return strings.HasSuffix(f.path, "_test.go") || slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"testing"`
	})
}

func median(numbers []int) int {
	if len(numbers) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(numbers))[len(numbers)/2]
}

func pages(t *testing.T) map[string]string {
	t.Helper()
	return must(t, func() (map[string]string, error) { return texts(".md") })
}

func TestLinesFit(t *testing.T) {
	report(t, checkWidth(must(t, repository)))
	report(t, checkProse(pages(t)))
}

func TestOneStepALine(t *testing.T) {
	report(t, checkAssignments(must(t, repository)))
	report(t, checkSteps(must(t, repository)))
}

func TestWordsArePlain(t *testing.T) { report(t, checkWords(plainer(), must(t, repository), pages(t))) }

func TestShape(t *testing.T) { report(t, checkShape(must(t, repository))) }

func TestLineChecksFail(t *testing.T) {
	wide := sample(t, "value", "package value\n// "+strings.Repeat("x", widest))
	catches(t, checkWidth([]pkg{wide}), "value/sample.go:2: 123 columns")
	data := sample(t, "value", "package value\nconst text = `"+strings.Repeat("x", widest)+"\n`")
	report(t, checkWidth([]pkg{data}))
	catches(t, checkProse(map[string]string{"a.md": "a " + strings.Repeat("b", widest)}), "a.md:1: 122 columns")
	report(t, checkProse(map[string]string{"a.md": "```\na " + strings.Repeat("b", widest) + "\n```"}))

	many := sample(t, "value", "package value\nfunc f() { a, b, c := 1, 2, 3; a, b, c = f() }")
	catches(t, checkAssignments([]pkg{many}), "value/sample.go:2: sets 3 variables")
	close := sample(t, "value", "package value\nfunc f() {\n\tfor {\n\t\ta()\n\t\ta()\n\t\ta()\n\t\ta()\n\t}\n\ta()\n}")
	catches(t, checkSteps([]pkg{close}), "value/sample.go:9: a blank line")

	private := sample(t, "value", "package value\n// f tells whether the house is on.\nfunc f() {}")
	catches(t, checkWords(map[string]string{"house": "service"}, []pkg{private}, nil), `"house": say service`)
	catches(t, checkWords(map[string]string{"house": "service"}, nil, map[string]string{"a.md": "The House"}), "a.md:1")
	report(t, checkWords(map[string]string{"floor": "layer"}, []pkg{private}, nil))
}

func TestShapeCheckFails(t *testing.T) {
	long := "package value\n// f does.\nfunc f() {" + strings.Repeat("\n\ta := 1", medianFunction-2) + "\n}"
	catches(t, checkShape([]pkg{sample(t, "value", long)}), "comment lines in a hundred of product code: 8")
	dense := sampleTest(t, "value", "package value\nvar a = []int{"+strings.Repeat("1, ", 20)+"}")
	dense.tests[0].path = "value/sample_test.go"
	got := checkShape([]pkg{dense})
	if !slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, "line of tests") }) {
		t.Errorf("a dense test passes: %q", got)
	}
}
