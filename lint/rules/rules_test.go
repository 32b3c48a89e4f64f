package rules

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/linttest"
)

func TestEveryFolderIsListed(t *testing.T) {
	var folders, listed []string
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	for _, r := range All() {
		listed = append(listed, folder(r.ID))
	}
	slices.Sort(listed)
	if !slices.Equal(folders, listed) {
		t.Errorf("folders %v\nlisted  %v", folders, listed)
	}
}

func folder(id string) string { return strings.ReplaceAll(id, "-", "") }

func TestIDs(t *testing.T) {
	if !slices.IsSortedFunc(All(), func(a, b lint.Rule) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("All is not sorted by id")
	}
	seen := map[string]bool{}
	for _, info := range lint.Infos(All()) {
		if seen[info.ID] {
			t.Errorf("the id %q is used twice", info.ID)
		}
		seen[info.ID] = true
	}

	for _, r := range All() {
		if r.Replaces != "" && !seen[r.Replaces] {
			t.Errorf("%s replaces %q, which is no rule", r.ID, r.Replaces)
		}
	}
}

// One mistake is one finding: a sample that shows what a rule reports
// is reported by no other, and one that shows how to do it well by
// none.
func TestSamplesMeetOneRule(t *testing.T) {
	for _, r := range All() {
		fsys := os.DirFS(folder(r.ID))
		all := lint.New(All(), linttest.Options(t, fsys))
		samples, err := linttest.Samples(fsys)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			for _, f := range s.Lint(fsys, all).Findings {
				if f.Rule != r.ID || !s.Bad {
					t.Errorf("%s/%s:%d: %s [%s]", folder(r.ID), s.Name, f.Range.Start.Line, f.Message, f.Rule)
				}
			}
		}
	}
}
