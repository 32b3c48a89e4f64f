package repotest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadmeRunbooks runs the commands of the runbooks, in the order of the page, in an empty directory.
func TestReadmeRunbooks(t *testing.T) {
	const page = "docs/guides/runbooks.md"
	bin := binaries(t)
	work := filepath.Join(t.TempDir(), "desk")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	file := tutorialBlock.FindStringSubmatch(readText(t, filepath.Join(top, page)))
	if file == nil || file[1] != "serve.yaml" {
		t.Fatal("the page does not begin with its configuration")
	}
	if err := os.WriteFile(filepath.Join(work, file[1]), []byte(file[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	runsAsShown(t, page, 15, func(command string) string {
		return shell(t, "cd "+work+" && export PATH="+bin+":$PATH && { "+command+"; } 2>&1")
	})
}
