package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/policytest"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// testFlags are the flags of `agf-validate test`.
type testFlags struct {
	format     string
	onlyFailed bool
	update     bool
	coverage   bool
	least      int // percent; -1: whatever it is
	run        string
	tools      []string
}

func (v program) testCommand() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test PATH...",
		Short: "Run the tests of agents and policies: *.test.yaml",
		Long: "test runs test files (docs/contracts/tests.md): calls with the decision that is expected of them, " +
			"what must hold of all calls (never, always), and votes with what becomes of the request. PATH is a file, " +
			"or a directory to walk for *.test.yaml.\n" +
			"Exit code 0: all tests pass, 1: some fail, or less is covered than --min, 2: usage, or something could " +
			"not be read.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name test files, or directories to walk for *.test.yaml")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return v.test(f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(
		&f.format,
		"format",
		"text",
		"`FORMAT` of the output: "+strings.Join(policytest.Formats(), ", "),
	)
	flags.BoolVar(&f.onlyFailed, "only-failed", false, "leave out the tests that pass")
	flags.BoolVar(
		&f.update,
		"update",
		false,
		"rewrite what failing tests expect; read the difference before you commit it",
	)
	flags.BoolVar(&f.coverage, "coverage", false, "tell which parts of the rules no test tries")
	flags.IntVar(&f.least, "min", -1, "`PERCENT` of the goals of --coverage that must be met, else the exit code is 1")
	flags.StringVar(&f.run, "run", "", "run the tests alone whose names match this regular `EXPRESSION`")
	toolsFlag(flags, &f.tools, toolsOfTests)
	term.Offer(cmd, "format", policytest.Formats()...)

	return cmd
}

func (v program) test(f testFlags, paths []string) error {
	if !slices.Contains(policytest.Formats(), f.format) {
		return fmt.Errorf("--format: %q is none of %s", f.format, strings.Join(policytest.Formats(), ", "))
	}
	if f.least > 100 || f.least < -1 {
		return fmt.Errorf("--min: %d is no percentage, expected 0 to 100", f.least)
	}
	names, err := pattern.Bounds{Bytes: 8 << 10, Size: 10_000}.Compile(f.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}

	t := tester{
		program: v,
		flags:   f,
		picked:  names.MatchString,
		out:     policytest.Outcome{OnlyFailed: f.onlyFailed},
	}
	if f.coverage || f.least >= 0 {
		t.out.Coverage = &policytest.Coverage{}
	}
	if t.catalogs, err = v.offered(f.tools); err != nil {
		return err
	}
	files, unread := testFiles(paths)
	for _, err := range unread {
		t.unreadable("", err)
	}
	for _, file := range files {
		t.file(file)
	}
	if err := unheld(f.tools, t.catalogs, t.agents); err != nil {
		t.unreadable("", err)
	}

	return t.finish()
}

// tester runs test files one by one.
type tester struct {
	program
	flags  testFlags
	picked func(name string) bool
	out    policytest.Outcome
	unread bool
	// catalogs are the offered tools, and agents those of all files.
	catalogs lint.Catalogs
	agents   []*schema.Agent
}

func (t *tester) unreadable(file string, err error) {
	t.unread = true
	fmt.Fprintf(t.Err, "agf-validate: %s\n", term.ScrubLine(err.Error()))
	if file != "" {
		t.out.Reports = append(t.out.Reports, policytest.Report{File: file, Error: err.Error()})
	}
}

// read reads a test file and builds what it refers to. If something can't be used, it reports that
// and returns nil.
func (t *tester) read(name string) (*policytest.File, *policytest.World, *policytest.Built) {
	src, err := disk{}.Read(name)
	if err != nil {
		t.unreadable(name, err)
		return nil, nil, nil
	}
	file, findings := policytest.Parse(filepath.ToSlash(name), src)
	if len(findings) > 0 {
		term.PrintFindings(t.Err, findings, map[string][]byte{filepath.ToSlash(name): src})
	}
	if file == nil {
		t.unreadable(name, fmt.Errorf("the tests in %s can't be used", name))
		return nil, nil, nil
	}

	world, err := policytest.Load(file, disk{})
	if err != nil {
		t.unreadable(name, err)
		return nil, nil, nil
	}
	world.Catalogs = t.catalogs
	built, err := world.Build()
	if err != nil {
		t.unreadable(name, fmt.Errorf("%s: %w", name, err))
		return nil, nil, nil
	}
	t.agents = append(t.agents, built.Agents...)

	return file, world, built
}

func (t *tester) file(name string) {
	file, _, built := t.read(name)
	if file == nil {
		return
	}
	results := file.Run(built, t.picked)
	if t.out.Coverage != nil {
		t.out.Coverage.Observe(built, file, t.picked)
	}
	if t.flags.update {
		results = t.update(file, built, results)
	}
	t.out.Reports = append(t.out.Reports, policytest.Report{File: file.Path, Results: results})
}

// update rewrites a file with the actual results as its expectations, and returns the results of
// the new file. A file that can't be updated is left unchanged.
func (t *tester) update(
	file *policytest.File, built *policytest.Built, results []policytest.Result,
) []policytest.Result {
	updated, left, err := file.Update(built, results)
	if err == nil && string(updated) != string(file.Text) {
		err = replace(filepath.FromSlash(file.Path), updated)
	}
	if err != nil {
		t.unread = true
		fmt.Fprintf(t.Err, "agf-validate: %s: %s\n", term.ScrubLine(file.Path), term.ScrubLine(err.Error()))
		return results
	}
	if left > 0 {
		fmt.Fprintf(
			t.Err,
			"agf-validate: %s: %s: a comment stands inside, or only you can say (never, always, votes)\n",
			term.ScrubLine(file.Path),
			leftAsItIs(left),
		)
	}

	if next, _ := policytest.Parse(file.Path, updated); next != nil {
		return next.Run(built, t.picked)
	}

	return results
}

func leftAsItIs(n int) string {
	if n == 1 {
		return "1 expectation is left as it is"
	}

	return fmt.Sprintf("%d expectations are left as they are", n)
}

// replace replaces a file atomically.
func replace(name string, text []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".agf-validate-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}

	return nil
}

func (t *tester) finish() error {
	if err := t.out.Write(t.Out, t.flags.format); err != nil {
		return err
	}
	tests, failed := t.out.Count()
	switch {
	case t.unread:
		return term.Exit(term.ExitFailure)
	case tests == 0:
		return errors.New("no test was run: none is called so")
	case failed > 0:
		return term.Exit(term.ExitFindings)
	}

	if c := t.out.Coverage; c != nil && t.flags.least >= 0 {
		if met, all := c.Finish(); policytest.Percent(met, all) < t.flags.least {
			return term.ExitWith(
				term.ExitFindings,
				fmt.Errorf("coverage is %d%%, less than --min %d%%", policytest.Percent(met, all), t.flags.least),
			)
		}
	}

	return nil
}

// disk reads the files that tests refer to.
type disk struct{}

// Read reads a file of limited size. The name - is not standard input here.
func (disk) Read(path string) ([]byte, error) {
	if path == "-" {
		path = "./-"
	}

	return term.ReadFile(filepath.FromSlash(path), nil)
}

// Policies lists the policies of a directory.
func (disk) Policies(dir string) ([]policy.File, []diag.Finding) {
	return policy.ReadFS(os.DirFS(filepath.FromSlash(dir)), dir)
}

// Agents returns an agent's file, or those of a directory and below it.
func (disk) Agents(path string) ([]policy.File, error) {
	var out []policy.File
	for _, in := range walk([]string{filepath.FromSlash(path)}, nil) {
		if in.err == nil && in.src == nil {
			in.src, in.err = term.ReadFile(in.path, nil)
		}
		if in.err != nil {
			return nil, in.err
		}
		if in.kind == agentKind {
			out = append(out, policy.File{Name: filepath.ToSlash(in.path), Text: in.src})
		}
	}
	return out, nil
}

// testFiles lists the test files of paths: files as given, and files in directories whose names are
// those of tests. The order is that of paths, and each file is listed once.
func testFiles(paths []string) (files []string, unread []error) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[key(name)] {
			seen[key(name)] = true
			files = append(files, name)
		}
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			unread = append(unread, err)
		case !info.IsDir():
			add(p)
		default:
			before := len(files)
			unread = append(unread, walkTests(p, add)...)
			if len(files) == before && len(unread) == 0 {
				unread = append(unread, fmt.Errorf("%s: no *%s is here, so nothing was tested", p, policytest.Suffix))
			}
		}
	}

	return files, unread
}

func walkTests(dir string, add func(string)) (unread []error) {
	// The separator makes the walk enter a directory that is given as a link. The callback never
	// returns an error: files that can't be read are reported, and the rest is tested.
	_ = filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			unread = append(unread, err)
		case !d.IsDir() && isTest(path):
			add(path)
		}

		return nil
	})

	return unread
}

// isTest reports whether the name of a file is that of a test, or close to it. If the walk skipped
// trades.test.yml, rules would look tested that are not. Names that other tools use too, such as
// trades_test.yaml and trades.tests.yaml, count if the file names an agent and tests.
func isTest(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	ext := filepath.Ext(name)
	if ext != ".yaml" && ext != ".yml" && ext != ".json" {
		return false
	}
	base := strings.TrimSuffix(name, ext)
	if strings.HasSuffix(base, ".test") {
		return true
	}
	base = strings.TrimSuffix(base, "s")
	if base != "test" && !strings.HasSuffix(base, ".test") && !strings.HasSuffix(base, "_test") &&
		!strings.HasSuffix(base, "-test") {
		return false
	}
	src, err := term.ReadFile(path, nil)
	if err != nil {
		return false
	}
	doc, _ := yamldoc.Parse(path, src, yamldoc.Limits{})
	has := func(key string) bool { return doc != nil && doc.Root.Get(key) != nil }

	return has("agent") && slices.ContainsFunc([]string{"calls", "never", "always", "people_cases"}, has)
}
