package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

func TestPagesAreFresh(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "rules")
	want := pages()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("%v: run `go run ./lint/gen` at the top of the repository", err)
	}
	for _, f := range files {
		if _, ok := want[f.Name()]; !ok {
			t.Errorf("docs/rules/%s is of no rule: run `go run ./lint/gen`", f.Name())
		}
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("docs/rules/%s is stale: run `go run ./lint/gen`", name)
		}
	}
}

// untested are the rules whose examples one file can't show, with the reason.
func untested() map[string]string {
	return map[string]string{
		"agent-id-repeated":        "needs a second agent",
		"server-under-other-alias": "needs a second agent",
		"similar-tool-unmet":       "needs a policy of its own",

		"sub-agent-cycle": "needs a second file that leads back",
		"condition-shape": "the JSON Schema of agents and policies reports it first",
	}
}

// The examples are executed: what a page shows as reported is reported,
// and what it shows as good is not.
func TestExamples(t *testing.T) {
	for _, a := range areas() {
		for _, r := range a.Rules {
			if r.Bad != "" {
				reported := len(exampleOf(a.Name, r, r.Bad).lint(r.ID)) > 0
				if _, known := untested()[r.ID]; reported == known {
					t.Errorf("%s: the bad example: reported %v, exempt from this test %v", r.ID, reported, known)
				}
			}

			if found := exampleOf(a.Name, r, r.Good).lint(r.ID); r.Good != "" && len(found) > 0 {
				t.Errorf("%s: the good example is reported: %s", r.ID, found[0].Message)
			}
		}
	}
}

// Whatever a file of this repository is reported for has a page.
func TestEveryFindingHasAPage(t *testing.T) {
	all, w := pages(), lint.New(rules.All(), lint.Options{Registry: shelf()}).Worker()
	files, ids := 0, map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".yaml") {
			return err
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files++
		for _, r := range []diag.Report{w.Agent(file, src, nil), w.Policy(file, src)} {
			for _, f := range r.Findings {
				ids[f.Rule] = true
				if all[f.Rule+".md"] == "" {
					t.Errorf("%s:%d: no page for %s", file, f.Range.Start.Line, f.Rule)
				}
			}
		}

		return nil
	})
	if err != nil || files < 100 || len(ids) < 50 {
		t.Errorf("%d files with findings of %d rules, %v", files, len(ids), err)
	}
}

func TestWriteRemovesStalePages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "docs")
	for _, pages := range []map[string]string{{"a.md": "a", "b.md": "b"}, {"b.md": "new"}} {
		must.Do(t, write(dir, pages))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || !slices.Equal(files, []string{filepath.Join(dir, "b.md")}) {
		t.Errorf("got %v, %v", files, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "b.md")); err != nil || string(text) != "new" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := write(filepath.Join(dir, "b.md"), nil); err == nil || !strings.Contains(err.Error(), "make the folder") {
		t.Errorf("got %v", err)
	}
}

func TestOperatorsAreListed(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for file, language := range listings() {
		text, err := os.ReadFile(file)
		if err != nil || list(string(text), language) != string(text) {
			t.Errorf("%s is stale, %v: run `make generate`", file, err)
		}
		if stale := strings.Replace(string(text), "not_in", "nor_in", 1); list(stale, language) != string(text) {
			t.Errorf("%s does not list the operators where they are looked for", file)
		}
	}
}

func TestWriteListingsFindsEveryFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := writeListings(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

// TestEveryDescriptionIsOfARule: a page that no package lists would be
// read by nobody.
func TestEveryDescriptionIsOfARule(t *testing.T) {
	all, described := pages(), 0
	for _, pattern := range []string{"*/rules/*.md", "*/*/rules/*.md", "lint/rules/*/rule.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		must.Do(t, err)
		for _, file := range files {
			if strings.HasPrefix(file, filepath.Join("..", "..", "docs")) {
				continue
			}
			text, err := os.ReadFile(file)
			must.Do(t, err)
			described++
			id := diag.Page(string(text)).ID
			if _, ok := all[id+".md"]; !ok || !strings.HasSuffix(file, "rule.md") && filepath.Base(file) != id+".md" {
				t.Errorf("%s describes %s, which is no rule or another one", file, id)
			}
		}
	}

	if described < 100 {
		t.Errorf("only %d descriptions were found", described)
	}
}
