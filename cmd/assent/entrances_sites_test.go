package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
)

// approvalPath is the package whose inputs contain who asks and who answers.
const approvalPath = "github.com/assent-dev/assent/approval"

// noEntrances lists the places that create such an input without being an entrance, each with the
// reason.
func noEntrances() map[string]string {
	return map[string]string{
		"approval.(*Requester).asker":              "reads who asked from the request",
		"approval.(*Request).askers":               "reads who asked from the request",
		"approval.among":                           "compares an asker with those of a request",
		"rap/runtime.(*Runtime).As":                "compares an asker with none",
		"rap/runtime.(*Runtime).openRecords":       "compares an asker with none",
		"rap/runtime.Upstream":                     "reads what the server behind a gateway offers, and calls nothing",
		"cmd/internal/rapcall.rapCaller":           "calls a tool without a service: whoever types answers",
		"internal/assenttest.(*Assent).Vote":       "answers in tests: only they import it",
		"internal/assenttest.(*Assent).Edit":       "answers in tests: only they import it",
		"rap/internal/raptest.Asker":               "asks in tests: only they import it",
		"store/storetest.(*spender).asker":         "asks in tests: only they import it",
		"store/storetest.(*spender).open":          "asks in tests: only they import it",
		"store/storetest.(*spender).pay":           "answers in tests: only they import it",
		"server.requestOps.report":                 "tells what became of a call: it asks nobody, and nothing runs by it",
		"cmd/assent.(*hookDesk).Report":            "tells what became of a call: it asks nobody, and nothing runs by it",
		"agent/examples/files.(*app).startRuntime": "an example without a service: the user at the terminal answers",
		"agent/examples/flight.people":             "picks the client of a token: the service asks in the name of whom that token is",
	}
}

// inputNames returns the types of package approval by which people ask or answer: the parameters of
// the service's methods that contain an asker or a person, and the function that creates the asker
// of an administrative act.
func inputNames() []string {
	asker := reflect.TypeFor[approval.Asker]()
	names := []string{asker.Name(), "AdministrationAsker"}
	for method := range reflect.TypeFor[*approval.Service]().Methods() {
		for in := range method.Type.Ins() {
			for in.Kind() == reflect.Pointer {
				in = in.Elem()
			}
			if in.Kind() != reflect.Struct || in.PkgPath() != asker.PkgPath() {
				continue
			}
			_, asks := in.FieldByName("Asker")
			_, answers := in.FieldByName("Person")
			if asks || answers {
				names = append(names, in.Name())
			}
		}
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// siteFinder finds where a file creates values of some types of package approval: by a literal,
// new, var, a conversion, a type parameter, a named result or a type alias. Parameters don't count,
// because their values were created elsewhere.
type siteFinder struct {
	names []string
	local string // what the file calls package approval; "" inside of it, or where its names need none
	found []string
}

// sites returns the functions of a file in a folder that make such values,
// by their package's path and name.
func sites(folder, src string, names []string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), folder, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	finder := siteFinder{names: names}
	if !finder.imports(f) && folder != "approval" {
		return nil, nil
	}
	for _, d := range f.Decls {
		if finder.makes(d) {
			finder.found = append(finder.found, folder+"."+declared(d))
		}
	}

	return finder.found, nil
}

// imports reads what the file calls package approval, and reports
// whether it imports it.
func (s *siteFinder) imports(f *ast.File) bool {
	for _, i := range f.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err != nil || path != approvalPath {
			continue
		}
		s.local = "approval"
		if i.Name != nil {
			s.local = strings.Trim(i.Name.Name, ".")
		}
		return true
	}

	return false
}

// declared returns the name of a declaration.
func declared(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "(at the top)"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	on := f.Recv.List[0].Type
	star, pointer := on.(*ast.StarExpr)
	if pointer {
		on = star.X
	}
	if generic, ok := on.(*ast.IndexExpr); ok {
		on = generic.X
	}
	name := fmt.Sprint(on)
	if pointer {
		name = "(*" + name + ")"
	}

	return name + "." + f.Name.Name
}

// makes reports whether a declaration makes a value of one of the types.
func (s *siteFinder) makes(d ast.Decl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			found = found || s.mentions(n.Type)
		case *ast.CallExpr:
			found = found || s.is(n.Fun) || isNew(n.Fun) && s.mentions(n.Args[0])
		case *ast.IndexExpr:
			found = found || s.mentions(n.Index)
		case *ast.IndexListExpr:
			found = found || slices.ContainsFunc(n.Indices, s.mentions)
		case *ast.ValueSpec:
			found = found || s.mentions(n.Type)
		case *ast.TypeSpec:
			found = found || s.is(n.Type)
		case *ast.FuncType:
			found = found || s.namesResult(n)
		}

		return !found
	})

	return found
}

// is reports whether an expression is the name of one of the types.
func (s *siteFinder) is(e ast.Expr) bool {
	name := ""
	switch x := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		if on, ok := x.X.(*ast.Ident); ok && s.local != "" && on.Name == s.local {
			name = x.Sel.Name
		}
	case *ast.Ident:
		if s.local == "" {
			name = x.Name
		}
	}

	return slices.Contains(s.names, name)
}

// mentions reports whether a type is, or is made of, one of the types.
func (s *siteFinder) mentions(typ ast.Expr) (found bool) {
	if typ == nil {
		return false
	}
	ast.Inspect(typ, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		found = found || ok && s.is(e)
		return !found
	})

	return found
}

func (s *siteFinder) namesResult(f *ast.FuncType) bool {
	named := func(r *ast.Field) bool { return len(r.Names) > 0 && s.mentions(r.Type) }

	return f.Results != nil && slices.ContainsFunc(f.Results.List, named)
}

func isNew(fun ast.Expr) bool {
	f, ok := fun.(*ast.Ident)

	return ok && (f.Name == "new" || f.Name == "make")
}

// allSites returns the sites of the repository, without tests.
func allSites(t *testing.T) []string {
	t.Helper()
	const top = "../.."
	var found []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != top):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}

		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(top, filepath.Dir(path))
		if err != nil {
			return err
		}
		more, err := sites(filepath.ToSlash(folder), string(src), inputNames())
		found = append(found, more...)
		return err
	})
	must.Do(t, err)

	return found
}

// walked returns the sites that the tests of the entrances cover.
func walked() []string {
	var out []string
	for _, way := range waysToAsk() {
		out = append(out, way.sites...)
	}
	for _, way := range waysToAnswer() {
		out = append(out, way.sites...)
	}
	for _, way := range waysToTake() {
		out = append(out, way.sites...)
	}

	return out
}

// unwalked returns complaints about sites that are not in the table, and about entries of the table
// that don't exist.
func unwalked(found, walked []string, excused map[string]string) []string {
	var out []string
	for _, site := range found {
		if excused[site] == "" && !slices.Contains(walked, site) {
			out = append(out, site+": this is an entrance that entrances_test.go doesn't walk: add a row")
		}
	}
	for _, site := range walked {
		if !slices.Contains(found, site) {
			out = append(out, site+": a row of entrances_test.go names it, and it makes no input of package approval")
		}
	}

	for site := range excused {
		if !slices.Contains(found, site) || slices.Contains(walked, site) {
			out = append(out, site+": noEntrances excuses it, and it needs no excuse")
		}
	}
	slices.Sort(out)

	return slices.Compact(out)
}

// TestEveryEntranceIsInTheTable: every function that creates an input with an asker or an answering
// person is covered by the tests of entrances_test.go.
func TestEveryEntranceIsInTheTable(t *testing.T) {
	for _, complaint := range unwalked(allSites(t), walked(), noEntrances()) {
		t.Error(complaint)
	}
}

// TestEntrancesAreFound: the functions that create an input are found for every way to create one.
// Functions that only pass one on are not.
func TestEntrancesAreFound(t *testing.T) {
	const head = "package p\nimport \"github.com/assent-dev/assent/approval\"\n"
	for src, want := range map[string]string{
		head + `func f() { g(approval.VoteInput{Person: "me"}) }`:                                 "p.f",
		head + `func (s *side) f() { g(&approval.OpenInput{}) }`:                                  "p.(*side).f",
		head + `func (s side[T]) f() { in := new(approval.EditInput); g(in) }`:                    "p.side.f",
		head + `func f() { var in approval.AskInput; g(in) }`:                                     "p.f",
		head + `func f() { var in []approval.AskInput; g(in) }`:                                   "p.f",
		head + `func f() (in approval.AskInput) { return }`:                                       "p.f",
		head + `func f() { g(decode[approval.VoteInput]()) }`:                                     "p.f",
		head + `func f() { g(approval.ConsumeInput(other{})) }`:                                   "p.f",
		head + `func f() { g([]approval.VoteInput{{Person: "me"}}) }`:                             "p.f",
		head + `func f() { g(func() approval.Asker { return approval.Asker{} }) }`:                "p.f",
		head + `func f() { g(approval.AdministrationAsker("t", "me")) }`:                          "p.f",
		head + `var in = approval.VoteInput{}`:                                                    "p.(at the top)",
		head + `type in = approval.VoteInput`:                                                     "p.(at the top)",
		head + `func f(in approval.VoteInput, more ...approval.Asker) { g(in) }`:                  "",
		head + `type votes interface { Vote(approval.VoteInput) (*approval.Voted, error) }`:       "",
		head + `func f() { g(approval.Request{}) }`:                                               "",
		"package p\nimport a \"" + approvalPath + `"; func f() { g(a.VoteInput{}) }`:              "p.f",
		"package p\nimport . \"" + approvalPath + `"; func f() { g(VoteInput{}) }`:                "p.f",
		"package p\nimport approval \"elsewhere/approval\"; func f() { g(approval.VoteInput{}) }": "",
	} {
		found, err := sites("p", src, inputNames())
		if got := strings.Join(found, " "); got != want || err != nil {
			t.Errorf("%s\ngot %q, %v, want %q", src, got, err, want)
		}
	}
}

// TestEntrancesThatNobodyWalksAreReported: so are rows and excuses for functions that don't exist.
func TestEntrancesThatNobodyWalksAreReported(t *testing.T) {
	excused := map[string]string{"b.g": "asks nothing"}
	for name, c := range map[string]struct {
		found, walked []string
		excused       map[string]string
		want          string
	}{
		"in order": {found: []string{"a.f", "b.g"}, walked: []string{"a.f", "a.f"}, excused: excused},
		"a new entrance": {
			found:   []string{"a.f", "b.g", "c.h"},
			walked:  []string{"a.f"},
			excused: excused,
			want:    "c.h: this is an entrance that entrances_test.go doesn't walk: add a row",
		},
		"a row without a site": {
			found:  []string{"a.f"},
			walked: []string{"a.f", "a.old"},
			want:   "a.old: a row of entrances_test.go names it, and it makes no input of package approval",
		},
		"an old excuse": {
			found:   []string{"a.f"},
			walked:  []string{"a.f"},
			excused: excused,
			want:    "b.g: noEntrances excuses it, and it needs no excuse",
		},
		"an excuse of what is walked": {
			found:   []string{"a.f", "b.g"},
			walked:  []string{"a.f", "b.g"},
			excused: excused,
			want:    "b.g: noEntrances excuses it, and it needs no excuse",
		},
	} {
		if got := strings.Join(unwalked(c.found, c.walked, c.excused), "\n"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestInputsAreKnown: the input types are determined from the service itself.
func TestInputsAreKnown(t *testing.T) {
	want := []string{
		"AdministrationAsker",
		"AskInput",
		"Asker",
		"ConsumeInput",
		"EditInput",
		"OpenInput",
		"ReportInput",
		"VoteInput",
	}
	if got := inputNames(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
