// Package golden compares what a test made with a file, and rewrites
// the file when the test runs with -update. Only tests import it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files and whatever else a test records")

// Update reports whether the test runs with -update.
func Update() bool { return *update }

// Equal fails the test when got differs from the file testdata/name.
func Equal(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if Update() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, -update rewrites it\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

// WholeLines returns a text with a newline at its end, unless it is empty. A block of a page needs it: without it the
// fence that ends the block would be on the last line of the output.
func WholeLines(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
