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

// Limits of lines. A tab counts as four columns.
const (
	widest   = 120
	tabWidth = 4
)

// generated reports whether a file is marked as generated.
func generated(f file) bool {
	return slices.ContainsFunc(f.ast.Comments, func(g *ast.CommentGroup) bool {
		return g.Pos() < f.ast.Package && strings.Contains(g.Text(), "DO NOT EDIT")
	})
}

// quoted returns the lines of strings that span several lines or fill a third of one. They are
// data, so their width is not limited.
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

// columns returns the width of a line on the screen.
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

// sources returns the files that people write.
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

// checkProse complains about lines of Markdown that are too long. Tables, code and lines with a
// long address are exempt.
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

// plainer maps words that only insiders understand to common ones.
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

// checkWords complains about comments and pages with words that only insiders understand.
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
			if strings.HasPrefix(path, "bench/") || strings.Contains(path, "examples/") {
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

func pages(t *testing.T) map[string]string {
	t.Helper()
	return must(t, func() (map[string]string, error) { return texts(".md") })
}

func TestLinesFit(t *testing.T) {
	report(t, checkWidth(must(t, repository)))
	report(t, checkProse(pages(t)))
}

func TestWordsArePlain(t *testing.T) { report(t, checkWords(plainer(), must(t, repository), pages(t))) }

func TestLineChecksFail(t *testing.T) {
	wide := sample(t, "value", "package value\n// "+strings.Repeat("x", widest))
	catches(t, checkWidth([]pkg{wide}), "value/sample.go:2: 123 columns")
	data := sample(t, "value", "package value\nconst text = `"+strings.Repeat("x", widest)+"\n`")
	report(t, checkWidth([]pkg{data}))
	catches(t, checkProse(map[string]string{"a.md": "a " + strings.Repeat("b", widest)}), "a.md:1: 122 columns")
	report(t, checkProse(map[string]string{"a.md": "```\na " + strings.Repeat("b", widest) + "\n```"}))

	private := sample(t, "value", "package value\n// f tells whether the house is on.\nfunc f() {}")
	catches(t, checkWords(map[string]string{"house": "service"}, []pkg{private}, nil), `"house": say service`)
	catches(t, checkWords(map[string]string{"house": "service"}, nil, map[string]string{"a.md": "The House"}), "a.md:1")
	report(t, checkWords(map[string]string{"floor": "layer"}, []pkg{private}, nil))
}
