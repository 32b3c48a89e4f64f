//go:build walks

package repotest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestWalks makes the change of every walk. A walk is a file *.txtar. The files of the archive are
// added. `addline FILE ANCHOR LINE` adds a line below the one that contains the anchor, and
// `replace FILE OLD NEW` replaces words everywhere.
func TestWalks(t *testing.T) {
	root, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Fields(
		must(t, func() (string, error) { return goEnv("GOCACHE", "GOMODCACHE", "GOTOOLCHAIN") }),
	)

	testscript.Run(t, testscript.Params{
		Dir:                 walks,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"addline": addLine, "replace": replaceText},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", settings[0])
			env.Setenv("GOMODCACHE", settings[1])
			env.Setenv("GOTOOLCHAIN", settings[2])
			// as `make build` does, so that copies share what was built in
			// other folders; CI vets and links with all symbols elsewhere
			env.Setenv("CGO_ENABLED", "0")
			env.Setenv("GOFLAGS", "-trimpath -vet=off -ldflags=-w")
			env.Setenv("GOPROXY", "off") // no change of these needs a module
			return copyRepository(root, env.WorkDir)
		},
	})
}

func TestAddLineNeedsItsAnchor(t *testing.T) {
	const text = "a {\n\tfirst,\n\tsecond,\n}\n"
	if got, err := insert(text, "first,", "new,"); err != nil || got != "a {\n\tfirst,\n\tnew,\n\tsecond,\n}\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, anchor := range []string{"third,", ","} {
		if got, err := insert(text, anchor, "new,"); err == nil {
			t.Errorf("%q: got %q", anchor, got)
		}
	}
}

var errAnchor = errors.New("the anchor is not in exactly one line")

func addLine(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: addline FILE ANCHOR LINE")
	}

	file := ts.MkAbs(args[0])
	text, err := insert(ts.ReadFile(file), args[1], args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(file, []byte(text), 0o600))
}

func replaceText(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}

	file := ts.MkAbs(args[0])
	text := ts.ReadFile(file)
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not say %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(file, []byte(strings.ReplaceAll(text, args[1], args[2])), 0o600))
}

// insert adds a line below the only line that contains the anchor, with the same indentation. It
// returns errAnchor if no line or more than one contains it.
func insert(text, anchor, line string) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	holds := func(l string) bool { return strings.Contains(l, anchor) }
	at := slices.IndexFunc(lines, holds)
	if at < 0 || slices.ContainsFunc(lines[at+1:], holds) {
		return "", errAnchor
	}

	indent := lines[at][:len(lines[at])-len(strings.TrimLeft(lines[at], " \t"))]
	return strings.Join(slices.Insert(lines, at+1, indent+line+"\n"), ""), nil
}

// copyRepository copies the files that are committed or will be. Files that the walk has already
// put there are kept.
func copyRepository(from, to string) error {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		return err
	}

	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file that may have been deleted meanwhile, and
// leaves one alone that is there.
func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if _, there := os.Stat(to); err != nil || there == nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// goEnv returns settings of the go command, a line each.
func goEnv(names ...string) (string, error) {
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	return string(out), err
}
