package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checkDocs complains unless every package has exactly one doc comment,
// which begins as godoc wants it.
func checkDocs(packages []pkg) []string {
	var out []string
	for _, p := range packages {
		var docs []string
		for _, f := range p.files {
			if f.ast.Doc != nil {
				docs = append(docs, f.ast.Doc.Text())
			}
		}
		switch {
		case len(p.files) == 0: // tests only, such as examples
		case len(docs) != 1:
			out = append(out, fmt.Sprintf("package %s has %d doc comments, want exactly one", p.path, len(docs)))
		case !strings.HasPrefix(docs[0], "Package "+p.files[0].ast.Name.Name+" ") &&
			!strings.HasPrefix(docs[0], "Command "):
			out = append(out, fmt.Sprintf("the doc comment of package %s does not begin with its name", p.path))
		}
	}

	return out
}

// checkInit complains about functions that run before main, because their order is hidden and tests
// can't skip them.
func checkInit(packages []pkg) []string {
	var out []string
	for _, p := range packages {
		for _, f := range slices.Concat(p.files, p.tests) {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					out = append(out, at(f.fset, fn)+": func init: build what is needed where it is needed")
				}
			}
		}
	}

	return out
}

// keptState lists the package-level variables that may change, each with the reason.
func keptState() map[string]string {
	return map[string]string{
		"value.anything":            "the Shape that reads nothing; its address is handed out, but a Shape is immutable",
		"internal/testbin.programs": "what this process has built already; tests of one package share it",
	}
}

// checkState complains about package-level variables that can change. Tables that are never written
// to, sentinel errors, compiled patterns, embedded files and sync.OnceValue are allowed; an
// exported table, a lock or a cache is not.
func checkState(kept map[string]string, packages []checked) []string {
	var out []string
	excused := maps.Clone(kept)
	for _, c := range packages {
		written := writes(c)
		for _, name := range c.typ.Scope().Names() {
			v, ok := c.typ.Scope().Lookup(name).(*types.Var)
			if !ok {
				continue
			}
			full := c.pkg.path + "." + name
			if delete(excused, full); kept[full] != "" {
				continue
			}
			if why := changes(v, written); why != "" {
				p := c.fset.Position(v.Pos())
				out = append(out, fmt.Sprintf("%s:%d: package variable %s %s", p.Filename, p.Line, name, why))
			}
		}
	}

	for name := range excused {
		out = append(out, fmt.Sprintf("keptState() excuses %s, which is not there", name))
	}
	return out
}

// changes returns how a package-level variable can change. It returns an empty string if it can't.
func changes(v *types.Var, written map[types.Object]bool) string {
	switch {
	case written[v]:
		return "is written to, or its address is taken"
	case v.Exported() && !isError(v.Type()):
		return "is exported, so any package can write to it"
	case guards(v.Type()):
		return "holds state (" + v.Type().String() + ")"
	default:
		return ""
	}
}

// guards reports whether a type is mutable by purpose: locks, caches, pools, channels.
func guards(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if _, ok := t.Underlying().(*types.Chan); ok {
		return true
	}
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	from := named.Obj().Pkg().Path()
	return from == "sync" || from == "sync/atomic"
}

func isError(t types.Type) bool {
	return types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// writes collects the package-level variables that some function of the
// package assigns to, counts up, or takes the address of.
func writes(c checked) map[types.Object]bool {
	written := map[types.Object]bool{}
	mark := func(e ast.Expr) {
		if id := root(e); id != nil {
			if v, ok := c.info.Uses[id].(*types.Var); ok && v.Parent() == c.typ.Scope() {
				written[v] = true
			}
		}
	}
	for _, f := range c.pkg.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					mark(l)
				}
			case *ast.IncDecStmt:
				mark(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					mark(n.X)
				}
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.Ident); ok &&
					(fn.Name == "delete" || fn.Name == "clear" || fn.Name == "copy") {
					mark(n.Args[0])
				}
			}

			return true
		})
	}

	return written
}

// root returns the variable that an expression such as table[i].field starts from.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// checkWrapping complains about calls of fmt.Errorf that print an error
// instead of wrapping it with %w.
func checkWrapping(packages []checked) []string {
	var out []string
	for _, c := range packages {
		for _, f := range c.pkg.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && printsError(c.info, call) {
					out = append(out, at(f.fset, call)+": fmt.Errorf prints an error: wrap it with %w")
				}
				return true
			})
		}
	}

	return out
}

// verbs finds the verbs of a format; flags, width and precision taken
// from arguments (*) are not used in this repository.
var verbs = regexp.MustCompile(`%[-+# 0-9.\[\]]*([a-zA-Z%])`)

func printsError(info *types.Info, call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 {
		return false
	}
	callee, ok := info.Uses[fun.Sel].(*types.Func)
	if !ok || callee.FullName() != "fmt.Errorf" || info.Types[call.Args[0]].Value == nil {
		return false
	}
	arg := 1
	for _, v := range verbs.FindAllStringSubmatch(info.Types[call.Args[0]].Value.ExactString(), -1) {
		if v[1] == "%" {
			continue
		}
		if arg < len(call.Args) && v[1] != "w" && v[1] != "T" && isError(info.Types[call.Args[arg]].Type) {
			return true
		}
		arg++
	}

	return false
}

// checkTests complains about tests that sleep or may be skipped, because a test that may not run
// protects nothing.
func checkTests(packages []pkg) []string {
	var out []string
	for _, p := range packages {
		for _, f := range p.tests {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				fun, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				on, _ := fun.X.(*ast.Ident)
				switch {
				case on != nil && on.Name == "time" && fun.Sel.Name == "Sleep":
					const better = "wait for what you wait for, or use testing/synctest"
					out = append(out, at(f.fset, call)+": tests don't sleep: "+better)
				case on != nil && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, fun.Sel.Name):
					out = append(out, at(f.fset, call)+": tests don't skip: a gate that may not run is none")
				}

				return true
			})
		}
	}

	return out
}

// marks are written in two parts so that this file does not find itself.
var marks = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// checkMarks complains about notes of work left undone.
func checkMarks(files map[string]string) []string {
	var out []string
	for path, text := range files {
		for i, line := range strings.Split(text, "\n") {
			if m := marks.FindString(line); m != "" {
				out = append(out, fmt.Sprintf("%s:%d: %s: do it, or write an issue", path, i+1, m))
			}
		}
	}

	return out
}

// Longer files need a reason.
const (
	longFile = 600
	longTest = 750
)

// longFiles gives the reason for each file that is longer.
func longFiles() map[string]string {
	return map[string]string{"server/openapi/types.gen.go": "made from openapi.yaml"}
}

// checkLength complains about long files without a reason, and about
// reasons without a long file.
func checkLength(reasons map[string]string, packages []pkg) []string {
	var out []string
	long := map[string]bool{}
	for _, p := range packages {
		for _, f := range slices.Concat(p.files, p.tests) {
			limit := longFile
			if strings.HasSuffix(f.path, "_test.go") {
				limit = longTest
			}
			if f.lines <= limit {
				continue
			}
			long[f.path] = true
			if reasons[f.path] == "" {
				out = append(
					out,
					fmt.Sprintf("%s has %d lines: split it, or give the reason in longFiles()", f.path, f.lines),
				)
			}
		}
	}

	for path := range reasons {
		if !long[path] {
			out = append(out, fmt.Sprintf("longFiles() excuses %s, which is not long", path))
		}
	}
	return out
}

func TestPackageDocs(t *testing.T) { report(t, checkDocs(must(t, repository))) }

func TestNoInit(t *testing.T) { report(t, checkInit(must(t, repository))) }

func TestNoPackageState(t *testing.T) { report(t, checkState(keptState(), must(t, typedRepository))) }

func TestErrorsAreWrapped(t *testing.T) { report(t, checkWrapping(must(t, typedRepository))) }

func TestNoSleepNoSkip(t *testing.T) { report(t, checkTests(must(t, repository))) }

func TestNothingLeftUndone(t *testing.T) {
	report(t, checkMarks(must(t, func() (map[string]string, error) {
		return texts(".go", ".sh", "Makefile", ".ci/run", ".md", ".yaml")
	})))
}

func TestFileLength(t *testing.T) { report(t, checkLength(longFiles(), must(t, repository))) }

func TestSourceChecksFail(t *testing.T) {
	catches(t, checkDocs([]pkg{sample(t, "value", `package value`)}), "0 doc comments")
	catches(t, checkDocs([]pkg{sample(t, "value", "// Values.\npackage value")}), "does not begin with its name")
	twice := sample(t, "value", "// Package value is.\npackage value")
	twice.files = append(twice.files, twice.files...)
	catches(t, checkDocs([]pkg{twice}), "2 doc comments")
	catches(t, checkInit([]pkg{sample(t, "value", "package value\nfunc init() {}")}), "value/sample.go:2: func init")
	catches(t, checkTests([]pkg{sampleTest(t, "value", "package value\nfunc f() { time.Sl"+"eep(1) }")}), "don't sleep")
	catches(t, checkTests([]pkg{sampleTest(t, "value", "package value\nfunc f() { t.Sk"+"ipf(\"\") }")}), "don't skip")
	catches(t, checkMarks(map[string]string{"a.go": "x\n// TO" + "DO: later"}), "a.go:2: TO"+"DO")
	long := sample(t, "value", "package value"+strings.Repeat("\n", longFile+1))
	catches(t, checkLength(nil, []pkg{long}), "601 lines")
	catches(t, checkLength(map[string]string{"b.go": "because"}, nil), "which is not long")
	report(t, checkLength(map[string]string{"value/sample.go": "because"}, []pkg{long}))
}

func TestStateCheckFails(t *testing.T) {
	for src, what := range map[string]string{
		`var n int; func f() { n++ }`:                                   "n is written to",
		`var table = [2]int{1, 2}; func f() { table[0] = 3 }`:           "table is written to",
		`var m = map[string]int{}; func f() { delete(m, "") }`:          "m is written to",
		`var n int; func f() *int { return &n }`:                        "n is written to",
		`var Table = [2]int{1, 2}`:                                      "is exported",
		`import "sync"; var mu sync.Mutex; func f() { mu.Lock() }`:      "holds state (sync.Mutex)",
		`import "sync"; var cache = &sync.Map{}`:                        "holds state (*sync.Map)",
		`var c = make(chan int)`:                                        "holds state (chan int)",
		`var t struct{ n int }; func f() { t.n, _ = 1, 2 }`:             "t is written to",
		`import "sync/atomic"; var n atomic.Int64; var m = 1 + len("")`: "holds state (sync/atomic.Int64)",
	} {
		catches(t, checkState(nil, []checked{typedSample(t, "value", "package value; "+src)}), what)
	}

	fine := `package value
import ("errors"; "regexp"; "sync")
var ErrGone = errors.New("gone")
var names = [...]string{"a", "b"}
var pattern = regexp.MustCompile("a")
var once = sync.OnceValue(func() int { return 1 })
func f() (n int) { names := []string{""}; names[0] = ""; n = once(); return n }`
	report(t, checkState(nil, []checked{typedSample(t, "value", fine)}))
	kept := typedSample(t, "value", `package value; var n int; func f() { n++ }`)
	report(t, checkState(map[string]string{"value.n": "because"}, []checked{kept}))
	catches(
		t,
		checkState(map[string]string{"value.n": "because", "value.m": "because"}, []checked{kept}),
		"excuses value.m",
	)
}

func TestWrappingCheckFails(t *testing.T) {
	for _, format := range []string{`"read: %v", err`, `"%d of %+v", 1, err`, `"%s", own`, `"100%% %q", err`} {
		catches(
			t,
			checkWrapping([]checked{typedSample(t, "value", errorSource(format))}),
			"sample.go:5: fmt.Errorf prints an error",
		)
	}

	for _, format := range []string{`"read: %w", err`, `"%d%% of %v: %w", 1, name, err`, `"%T", err`, `"nothing"`} {
		report(t, checkWrapping([]checked{typedSample(t, "value", errorSource(format))}))
	}
}

func errorSource(args string) string {
	return "package value\nimport \"fmt\"\ntype mine struct{}\nfunc (*mine) Error() string { return \"\" }\n" +
		"func f(err error, own *mine, name string) error { _, _, _ = err, own, name; return fmt.Errorf(" + args + ") }"
}
