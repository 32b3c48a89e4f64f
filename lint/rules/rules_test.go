package rules

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/linttest"
)

func TestEveryFolderIsListed(t *testing.T) {
	var folders, listed []string
	entries, err := os.ReadDir(".")
	must.Do(t, err)
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

// One mistake produces one finding. No other rule reports the bad sample of a rule, and no rule
// reports the good sample.
func TestSamples(t *testing.T) {
	for _, r := range All() {
		t.Run(r.ID, func(t *testing.T) { linttest.Run(t, os.DirFS(folder(r.ID)), r, All()...) })
	}
}
