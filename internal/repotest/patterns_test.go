package repotest

import (
	"go/ast"
	"go/types"
	"slices"
	"testing"
)

// patternPackage is the package that limits and compiles patterns from outside.
const patternPackage = "internal/pattern"

// compilers returns the functions that make a program of a pattern's text.
func compilers() []string {
	return []string{
		"regexp.Compile",
		"regexp.MustCompile",
		"regexp.CompilePOSIX",
		"regexp.MustCompilePOSIX",
		"regexp.Match",
		"regexp.MatchString",
		"regexp.MatchReader",
		modulePath + "/" + patternPackage + ".Of",
	}
}

// checkPatterns complains about patterns that are not constants of the
// program. A pattern from outside can be short and take minutes and
// gigabytes, so pattern.Bounds and pattern.Foreign compile those.
func checkPatterns(packages []checked) []string {
	var out []string
	for _, c := range packages {
		if c.pkg.path == patternPackage {
			continue
		}
		for _, f := range c.pkg.files {
			constant := map[*ast.Ident]bool{}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if len(n.Args) > 0 && c.info.Types[n.Args[0]].Value != nil {
						constant[named(n.Fun)] = true
					}
				case *ast.Ident:
					fn, ok := c.info.Uses[n].(*types.Func)
					if ok && !constant[n] && slices.Contains(compilers(), fn.FullName()) {
						out = append(out, at(f.fset, n)+": "+fn.FullName()+" of something that is not a constant: use "+
							patternPackage+".Bounds or Foreign, which bound its program")
					}
				}

				return true
			})
		}
	}

	return out
}

// named returns the identifier of the function that an expression calls.
func named(fun ast.Expr) *ast.Ident {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun
	case *ast.SelectorExpr:
		return fun.Sel
	}

	return nil
}

func TestPatternsFromOutsideAreBounded(t *testing.T) {
	report(t, checkPatterns(must(t, typedRepository)))
}

func TestPatternCheckFails(t *testing.T) {
	for _, use := range []string{
		`func f(s string) { regexp.MustCompile(s) }`,
		`func f(s string) { regexp.Compile("^" + s) }`,
		`func f(s string) { regexp.MatchString(s, "") }`,
		`var f = regexp.CompilePOSIX`,
		`func f(s string) { g := (regexp.MustCompile); g("") }`,
	} {
		catches(t, checkPatterns([]checked{
			typedSample(t, "value", "package value\nimport \"regexp\"\n"+use),
		}), "not a constant")
	}
	report(t, checkPatterns([]checked{typedSample(t, "value", `package value
import "regexp"
const digits = "[0-9]"
var word = regexp.MustCompile("a" + digits)
func f(s string) bool { return regexp.MustCompile(digits).MatchString(s) }`)}))
	inside := `package pattern; import "regexp"; func f(s string) { regexp.MustCompile(s) }`
	report(t, checkPatterns([]checked{typedSample(t, patternPackage, inside)}))
}
