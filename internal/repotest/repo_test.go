package repotest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
)

// modulePath is the prefix of all our import paths.
const modulePath = "github.com/assent-dev/assent"

// top is the root of the repository, seen from this folder.
const top = "../.."

// modules lists the folders of the Go modules that these checks read. The module bench, those of
// the release and of a peer are small, and their own tests are enough.
func modules() []string { return []string{".", "agent"} }

// home returns the folder of the module that a package belongs to.
func home(path string) string {
	if path == "agent" || strings.HasPrefix(path, "agent/") {
		return "agent"
	}
	return "."
}

// pkg is one package of ours, by its path in the repository, such as
// "internal/yamldoc".
type pkg struct {
	path    string
	files   []file
	tests   []file // in-package and external tests
	imports []string
	// used are the imports of the tests too.
	used []string
}

// file is one parsed Go file.
type file struct {
	path  string // from the root of the repository
	lines int
	text  string
	ast   *ast.File
	fset  *token.FileSet
}

// at gives a place in the form file:line.
func at(fset *token.FileSet, n ast.Node) string {
	p := fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// listed is the part of the output of `go list -json` that is used.
type listed struct {
	ImportPath, Dir, Export            string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	Module                             *module
	ImportMap                          map[string]string
}

type module struct {
	Path, Dir      string
	Main, Indirect bool
}

// goList runs go list in the module of a folder.
func goList(folder string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = filepath.Join(top, folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s in %s: %w\n%s", strings.Join(args, " "), folder, err, stderr.String())
	}
	return out, nil
}

const listedFields = "ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"

// listAll runs go list -json in the module of a folder and reads what it prints.
func listAll[T any](folder, fields string, args ...string) ([]T, error) {
	out, err := goList(folder, append([]string{"-json=" + fields}, args...)...)
	if err != nil {
		return nil, err
	}
	return decode[T](out)
}

// decode reads the objects that go list prints one after the other.
func decode[T any](text []byte) ([]T, error) {
	var all []T
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var one T
		switch err := d.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("go list output: %w", err)
		}

		all = append(all, one)
	}
}

// repository is the whole repository, read once for all tests.
var repository = sync.OnceValues(readRepository)

func readRepository() ([]pkg, error) {
	var packages []pkg
	fset := token.NewFileSet()
	for _, folder := range modules() {
		all, err := listAll[listed](folder, listedFields, "./...")
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			p, err := readPackage(fset, l)
			if err != nil {
				return nil, err
			}
			packages = append(packages, p)
		}
	}
	return packages, nil
}

func readPackage(fset *token.FileSet, l listed) (pkg, error) {
	p := pkg{path: strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, modulePath), "/"), imports: l.Imports}
	p.used = slices.Concat(l.Imports, l.TestImports, l.XTestImports)
	var err error
	if p.files, err = parse(fset, p.path, l.Dir, l.GoFiles); err != nil {
		return p, err
	}
	p.tests, err = parse(fset, p.path, l.Dir, slices.Concat(l.TestGoFiles, l.XTestGoFiles))
	return p, err
}

func parse(fset *token.FileSet, folder, dir string, names []string) ([]file, error) {
	var files []file
	for _, name := range names {
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read source: %w", err)
		}
		f, err := parseFile(fset, folder+"/"+name, string(src))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}

	return files, nil
}

func parseFile(fset *token.FileSet, path, src string) (file, error) {
	tree, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, fmt.Errorf("parse: %w", err)
	}
	return file{path: path, lines: strings.Count(src, "\n"), text: src, ast: tree, fset: fset}, nil
}

// checked is a package with its types, from the same syntax trees.
type checked struct {
	pkg  pkg
	fset *token.FileSet
	info *types.Info
	typ  *types.Package
}

// typedRepository type-checks what readRepository has read, against
// compiled dependencies.
var typedRepository = sync.OnceValues(func() ([]checked, error) {
	packages, err := repository()
	if err != nil {
		return nil, err
	}
	exports := map[string]types.Importer{}
	for _, folder := range modules() {
		if exports[folder], err = compiled(folder, "./..."); err != nil {
			return nil, err
		}
	}
	var typed []checked
	for _, p := range packages {
		c, err := check(p, exports[home(p.path)])
		if err != nil {
			return nil, err
		}
		typed = append(typed, c)
	}

	return typed, nil
})

// compiled returns an importer of these packages and of all that they
// import, as the module of a folder sees them.
func compiled(folder string, packages ...string) (types.Importer, error) {
	all, err := listAll[listed](folder, "ImportPath,Export", append([]string{"-export", "-deps"}, packages...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	return importing(func(path string) string { return exports[path] }), nil
}

// importing returns an importer that reads each package once, from the
// file with its export data.
func importing(export func(path string) string) types.Importer {
	look := func(path string) (io.ReadCloser, error) { return os.Open(export(path)) }
	return importer.ForCompiler(token.NewFileSet(), "gc", look)
}

// typedTests type-checks the test files of the repository, and the
// packages of helpers, which import testing. The files of each result are
// only those: the code under test is checked with them, but not listed.
var typedTests = sync.OnceValues(func() ([]checked, error) {
	packages, err := repository()
	if err != nil {
		return nil, err
	}
	type names map[string]string
	exports, renamed := map[string]names{}, map[string]map[string]names{}
	shared := map[string]types.Importer{} // of packages whose tests replace no import
	for _, folder := range modules() {
		all, err := listAll[listed](folder, "ImportPath,Export,ImportMap", "-export", "-deps", "-test", "./...")
		if err != nil {
			return nil, err
		}
		exports[folder], renamed[folder] = names{}, map[string]names{}
		for _, l := range all {
			exports[folder][l.ImportPath], renamed[folder][l.ImportPath] = l.Export, l.ImportMap
		}
		shared[folder] = importing(func(path string) string { return exports[folder][path] })
	}

	var typed []checked
	add := func(p pkg, path string, files, report []file) error {
		if len(report) == 0 {
			return nil
		}
		full := strings.TrimSuffix(modulePath+"/"+p.path, "/")
		module := home(p.path)
		names := renamed[module][path+" ["+full+".test]"]
		imports := shared[module]
		if len(names) > 0 {
			imports = importing(func(path string) string { return exports[module][cmp.Or(names[path], path)] })
		}
		info, typ, err := typeCheck(path, files, imports)
		if err != nil {
			return err
		}
		typed = append(typed, checked{pkg: pkg{path: p.path, files: report}, fset: files[0].fset, info: info, typ: typ})
		return nil
	}
	for _, p := range packages {
		var inside, outside []file
		for _, f := range p.tests {
			if strings.HasSuffix(f.ast.Name.Name, "_test") {
				outside = append(outside, f)
			} else {
				inside = append(inside, f)
			}
		}
		report := inside
		if slices.Contains(p.imports, "testing") {
			report = slices.Concat(p.files, inside)
		}
		full := strings.TrimSuffix(modulePath+"/"+p.path, "/")
		if err := errors.Join(
			add(p, full, slices.Concat(p.files, inside), report),
			add(p, full+"_test", outside, outside),
		); err != nil {
			return nil, err
		}
	}

	return typed, nil
})

// check type-checks one package.
func check(p pkg, imports types.Importer) (checked, error) {
	info, typ, err := typeCheck(modulePath+"/"+p.path, p.files, imports)
	if err != nil {
		return checked{}, err
	}
	fset := token.NewFileSet()
	if len(p.files) > 0 {
		fset = p.files[0].fset
	}
	return checked{pkg: p, fset: fset, info: info, typ: typ}, nil
}

// typeCheck type-checks files as one package. export names the file with
// the export data of an import.
func typeCheck(path string, files []file, imports types.Importer) (*types.Info, *types.Package, error) {
	config := types.Config{Importer: imports}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	fset := token.NewFileSet()
	var trees []*ast.File
	for _, f := range files {
		fset, trees = f.fset, append(trees, f.ast)
	}
	typ, err := config.Check(path, fset, trees, info)
	if err != nil {
		return nil, nil, fmt.Errorf("type-check %s: %w", path, err)
	}
	return info, typ, nil
}

// texts returns the files of the repository with these endings.
func texts(endings ...string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, top+"/"))
		if d.IsDir() {
			hidden := path != top && strings.HasPrefix(d.Name(), ".") && rel != ".ci"
			made := rel == "bin" || rel == "dist"
			if hidden || made || slices.Contains([]string{"testdata", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}

		for _, e := range endings {
			if strings.HasSuffix(rel, e) {
				src, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				found[rel] = string(src)
			}
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walk the repository: %w", err)
	}
	return found, nil
}

// must returns the packages, or ends the test.
func must[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	v, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// report turns complaints into test failures.
func report(t *testing.T, complaints []string) {
	t.Helper()
	sort.Strings(complaints)
	for _, c := range complaints {
		t.Error(c)
	}
}

// catches tests a check: it must complain once, and mention what is wrong.
func catches(t *testing.T, complaints []string, what string) {
	t.Helper()
	if len(complaints) != 1 || !strings.Contains(complaints[0], what) {
		t.Errorf("want one complaint with %q, got %d: %s", what, len(complaints), strings.Join(complaints, "; "))
	}
}

// sample makes a package of one file from source, for counterexamples.
func sample(t *testing.T, path, src string) pkg {
	t.Helper()
	f, err := parseFile(token.NewFileSet(), path+"/sample.go", src)
	if err != nil {
		t.Fatal(err)
	}
	p := pkg{path: path, files: []file{f}}
	for _, i := range f.ast.Imports {
		p.imports = append(p.imports, strings.Trim(i.Path.Value, `"`))
	}
	p.used = p.imports
	return p
}

// sampleTest makes a package whose only file is a test.
func sampleTest(t *testing.T, path, src string) pkg {
	t.Helper()
	p := sample(t, path, src)
	p.tests, p.files = p.files, nil
	return p
}
