package repotest

import (
	"fmt"
	"go/ast"
	"testing"
)

// Larger types and functions need a reason.
const (
	mostMethods = 40
	longFunc    = 80 // lines
)

// largeTypes gives the reason for each type with more methods.
func largeTypes() map[string]string {
	return map[string]string{
		"agent.run":                     "the state of one run, with its steps in bound*.go",
		"agent/content.encoder":         "one method for each kind of content",
		"approval.Request":              "the record that every channel shows; most methods answer one question about it",
		"approval.Service":              "the API of the package: one method per operation",
		"client.Client":                 "the API of the package: one method per operation of the server",
		"resolve.Plan":                  "the API of the package, and the questions that checks ask about a plan",
		"store/internal/sqlstore.Store": "implements store.Store for every database",
	}
}

// longFuncs gives the reason for each longer function.
func longFuncs() map[string]string {
	return map[string]string{
		"cmd/internal/answer.ways":           "a table of subcommands",
		"cmd/internal/fileerrors.AtRunTimes": "a table of effects",
		"server.table":                       "the table of routes",
		"server.newMetrics":                  "a table of metrics",
		"server/openapi.rows":                "a table of meanings",
		"store/storetest.Keyed":              "a table of cases",
		"store/storetest.pasts":              "a table of rows and what is read of them",
		"store/storetest.Run":                "a table of suites",
		"store/storetest.Tampering":          "a table of cases",
	}
}

// checkMethods complains about types with more methods than a reader can survey, and about excused
// types that are small.
func checkMethods(excused map[string]string, packages []pkg) []string {
	var out []string
	large := map[string]bool{}
	for _, p := range packages {
		methods := map[string]int{}
		for _, fn := range functions(p) {
			if fn.Recv != nil {
				methods[p.path+"."+receiverOf(fn)]++
			}
		}
		for name, n := range methods {
			if n <= mostMethods {
				continue
			}
			large[name] = true
			if excused[name] == "" {
				out = append(out, fmt.Sprintf("%s has %d methods: split it, or give the reason in largeTypes()", name, n))
			}
		}
	}
	return append(out, unneeded(excused, large, "largeTypes()")...)
}

// checkFunctions complains about long functions, and about excused functions that are short.
func checkFunctions(excused map[string]string, packages []pkg) []string {
	var out []string
	long := map[string]bool{}
	for _, p := range packages {
		for _, f := range p.files {
			for _, fn := range functions(pkg{files: []file{f}}) {
				n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
				name := p.path + "." + fn.Name.Name
				if n <= longFunc || ast.IsGenerated(f.ast) {
					continue
				}
				long[name] = true
				if excused[name] == "" {
					out = append(out, fmt.Sprintf("%s: %s has %d lines: split it, or give the reason in longFuncs()",
						at(f.fset, fn), name, n))
				}
			}
		}
	}
	return append(out, unneeded(excused, long, "longFuncs()")...)
}

// unneeded complains about excuses for names that need none.
func unneeded(excused map[string]string, found map[string]bool, list string) []string {
	var out []string
	for name := range excused {
		if !found[name] {
			out = append(out, fmt.Sprintf("%s excuses %s, which needs no excuse", list, name))
		}
	}
	return out
}

// functions returns the functions and methods of a package without its tests.
func functions(p pkg) []*ast.FuncDecl {
	var out []*ast.FuncDecl
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				out = append(out, fn)
			}
		}
	}
	return out
}

// receiverOf returns the name of a method's type.
func receiverOf(fn *ast.FuncDecl) string {
	name := ""
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func TestTypesAreSmall(t *testing.T) { report(t, checkMethods(largeTypes(), must(t, repository))) }

func TestFunctionsAreShort(t *testing.T) { report(t, checkFunctions(longFuncs(), must(t, repository))) }

func TestSizeChecksFail(t *testing.T) {
	src := "package value\ntype T[P any] struct{}\n"
	for i := range mostMethods + 1 {
		src += fmt.Sprintf("func (t *T[P]) m%d() {}\n", i)
	}
	large := []pkg{sample(t, "value", src)}
	catches(t, checkMethods(nil, large), "value.T has 41 methods")
	report(t, checkMethods(map[string]string{"value.T": "because"}, large))
	catches(t, checkMethods(map[string]string{"value.T": "because"}, nil), "needs no excuse")

	src = "package value\nfunc f() {\n"
	for range longFunc - 1 {
		src += "\n"
	}
	long := []pkg{sample(t, "value", src+"}")}
	catches(t, checkFunctions(nil, long), "value.f has 81 lines")
	report(t, checkFunctions(map[string]string{"value.f": "because"}, long))
	catches(t, checkFunctions(map[string]string{"value.f": "because"}, nil), "needs no excuse")
}
