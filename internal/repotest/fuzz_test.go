package repotest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parserName matches the names of functions that read foreign input.
var parserName = regexp.MustCompile(`^(Parse|Read|Decode)([A-Z]|$)`)

// notForeign gives the reason for each function that is named like a parser but needs no fuzz
// target.
func notForeign() map[string]string {
	return map[string]string{
		"diag.ParseSeverity":              "compares with three words",
		"approval/ledger.ParseSigner":     "reads the server's own key",
		"approval/ledger.ParsePublished":  "reads the server's own key",
		"cmd/internal/term.ReadFile":      "reads the bytes and does not look at them",
		"cmd/internal/term.ReadDecisions": "passes each line to resolve.ParseCall",
		"internal/yamldoc.ReadDocument":   "is Parse with the limits of a document",
	}
}

// checkFuzz complains about functions that read foreign input (bytes, a
// reader, or the text of a Parse function) and that no fuzz target calls.
func checkFuzz(reasons map[string]string, packages []pkg) []string {
	fuzzed := map[string]bool{}
	for _, p := range packages {
		for _, f := range p.tests {
			for name := range calledByTargets(p, f) {
				fuzzed[name] = true
			}
		}
	}

	var out []string
	seen := map[string]bool{}
	for _, p := range packages {
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !readsForeignInput(fn) || isTest(f) {
					continue
				}
				name := p.path + "." + fn.Name.Name
				seen[name] = true
				if fuzzed[name] == (reasons[name] != "") {
					out = append(out, fmt.Sprintf("%s: %s needs a fuzz target, or a reason in notForeign() if it has none",
						at(f.fset, fn), name))
				}
			}
		}
	}
	for name := range reasons {
		if !seen[name] {
			out = append(out, fmt.Sprintf("notForeign() excuses %s, which is not there", name))
		}
	}

	return out
}

func readsForeignInput(fn *ast.FuncDecl) bool {
	if fn.Recv != nil || !parserName.MatchString(fn.Name.Name) {
		return false
	}
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		switch t := p.Type.(type) {
		case *ast.ArrayType:
			element, ok := t.Elt.(*ast.Ident)
			return ok && element.Name == "byte"
		case *ast.SelectorExpr:
			from, ok := t.X.(*ast.Ident)
			return ok && from.Name == "io" && t.Sel.Name == "Reader"
		case *ast.Ident:
			return t.Name == "string" && strings.HasPrefix(fn.Name.Name, "Parse")
		}
		return false
	})
}

// calledByTargets returns what the files with fuzz targets call, as
// "folder.Name". Helpers of a target count, because they are in its file.
func calledByTargets(p pkg, f file) map[string]bool {
	called := map[string]bool{}
	if !slices.ContainsFunc(f.ast.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz")
	}) {
		return called
	}

	folders := map[string]string{}
	for _, spec := range f.ast.Imports {
		folder, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), modulePath+"/")
		if !ours {
			continue
		}
		name := folder[strings.LastIndex(folder, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		folders[name] = folder
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			called[p.path+"."+n.Name] = true
		case *ast.SelectorExpr:
			if from, ok := n.X.(*ast.Ident); ok && folders[from.Name] != "" {
				called[folders[from.Name]+"."+n.Sel.Name] = true
			}
		}
		return true
	})
	return called
}

// isTest reports whether a file helps tests.
func isTest(f file) bool {
	return slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
}

func TestParsersAreFuzzed(t *testing.T) { report(t, checkFuzz(notForeign(), must(t, repository))) }

func TestFuzzCheckFails(t *testing.T) {
	bytes := sample(t, "value", "package value\nfunc Parse(text []byte) {}\nfunc ReadName(path string) {}\nfunc parse(b []byte) {}")
	catches(t, checkFuzz(nil, []pkg{bytes}), "value/sample.go:2: value.Parse needs a fuzz target")
	reader := sample(t, "value", "package value\nimport \"io\"\nfunc ReadAll(r io.Reader) {}")
	catches(t, checkFuzz(nil, []pkg{reader}), "value/sample.go:3: value.ReadAll needs a fuzz target")

	target := sampleTest(t, "resolve", "package resolve\nimport \""+modulePath+"/value\"\n"+
		"func FuzzParse(f *testing.F) { value.Parse(nil) }")
	report(t, checkFuzz(nil, []pkg{bytes, target}))
	plain := sampleTest(t, "value", "package value\nfunc TestReadAll() { ReadAll(nil) }")
	catches(t, checkFuzz(nil, []pkg{reader, plain}), "value.ReadAll")

	report(t, checkFuzz(map[string]string{"value.ReadAll": "because"}, []pkg{reader}))
	catches(t, checkFuzz(map[string]string{"value.Gone": "because"}, []pkg{bytes, target}), "excuses value.Gone")
	catches(t, checkFuzz(map[string]string{"value.Parse": "because"}, []pkg{bytes, target}), "value.Parse")
}
