package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// TestEditsAreComparedWithTheLastCommit: an edit that is looser than the committed file is reported
// with an example call.
func TestEditsAreComparedWithTheLastCommit(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "desk.agf.yaml")
	const committed = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space:
  local_tools:
    - alias: pay
      approval: {condition: {args_match: {amount: {gt: 10}}}}
`
	must.Do(t, os.WriteFile(file, []byte(committed), 0o600))
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "desk: begin"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}

	looser := []byte(strings.Replace(committed, "gt: 10", "gt: 20", 1))
	found := comparison{}.drift(file, looser)
	const want = "asks for amount > 20; no longer for 10 < amount ≤ 20"
	if len(found) != 1 || !found[0].Loosens || !strings.Contains(found[0].Message, want) {
		t.Errorf("found %v", found)
	}
	if found := (comparison{}).drift(file, []byte(committed)); found != nil {
		t.Errorf("nothing has changed, and %v", found)
	}
	if found := (comparison{}).drift(filepath.Join(dir, "new.agf.yaml"), looser); found != nil {
		t.Errorf("a new file has %v", found)
	}
}
