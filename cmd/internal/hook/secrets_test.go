package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// TestSecretsOfAWorkspace checks which files below the directories of a search count as secrets.
func TestSecretsOfAWorkspace(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".env": "", "a.go": "", "src/token.go": "", "src/key.pem": "", "src/.aws/config": "", "secrets/a.txt": "",
		"node_modules/x/.env": "", ".claude/settings.json": "", "sub/.git/config": "url = https://ann:pw@example.com/x",
		".git/config": "url = https://example.com/x", ".git/hooks/token": "",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	w := &resolve.Workspace{Root: root, Directory: filepath.Join(root, "src")}
	all := []string{".env", "secrets/a.txt", "src/.aws/config", "src/key.pem", "sub/.git/config"}
	for _, tt := range []struct {
		tool, args string
		want       []string // nil: it is no search
	}{
		{"Grep", `{"pattern":"x","path":"` + root + `"}`, all},
		{"Grep", `{"pattern":"x"}`, []string{"src/.aws/config", "src/key.pem"}},
		{"Grep", `{"pattern":"x","path":".."}`, all},
		{"grep", `{"pattern":"x","paths":["` + root + `/secrets","` + root + `/none"]}`, []string{"secrets/a.txt"}},
		{"grep_search", `{"pattern":"x","dir_path":"/etc"}`, []string{}},
		{"Glob", `{"pattern":"**/*.go"}`, nil},
		{"Read", `{"file_path":".env"}`, nil},
		{"Bash", `{"command":"ls src"}`, nil},
		{"Bash", `{"command":"cd .. && grep -rn x sub"}`, all},
		{"Bash", `{"command":"grep -rn x ` + root + `/s*"}`, all},
		{"Bash", `{"command":"rg x ../secrets"}`, []string{"secrets/a.txt"}},
	} {
		e := &event{call: resolve.Call{Kind: resolve.Tool, Tool: tt.tool, Args: []byte(tt.args)}}
		w.Secrets = nil
		e.findSecrets(w, root)
		if got := w.Secrets; !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.args, got, tt.want)
		}
	}

	look := &secretsWalk{root: root, most: 3}
	must.Do(t, filepath.WalkDir(root, look.visit))
	if look.incomplete == "" {
		t.Errorf("a workspace with too many files: %+v", look)
	}
}

// TestInstalledPrograms checks which programs for npx count as installed: those in node_modules of the
// directory of the call, or of one above it in the workspace.
func TestInstalledPrograms(t *testing.T) {
	root := filepath.Join(t.TempDir(), "work")
	for _, name := range []string{
		"node_modules/.bin/tsc", "web/node_modules/.bin/jest", "lib/x", "../node_modules/.bin/evil",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
	}
	for _, tt := range []struct {
		directory, line string
		want            []string
	}{
		{"", "npx tsc --noEmit", []string{"tsc"}},
		{"web", "npx jest && npx tsc", []string{"jest", "tsc"}},
		{"web", "bunx 'jest'", []string{"jest"}},
		{"lib", "npx jest", nil},
		{"", "npx evil", nil},
		{"", "npx ../node_modules/.bin/evil", nil},
		{"", "npx web/node_modules/.bin/jest", nil},
		{"", "tsc", nil},
	} {
		e := &event{call: resolve.Call{Args: must.Get(json.Marshal(map[string]string{"command": tt.line}))(t)}}
		w := &resolve.Workspace{Root: root, Directory: filepath.Join(root, tt.directory)}
		if got := e.installed(w); !slices.Equal(got, tt.want) {
			t.Errorf("%q %s: %q, want %q", tt.directory, tt.line, got, tt.want)
		}
	}
}
