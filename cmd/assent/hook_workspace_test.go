package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testtier"
)

// profileFiles are the flags of a hook with the delivered files.
func profileFiles(t *testing.T, product string) []string {
	t.Helper()
	dir := must.Get(filepath.Abs("../../examples/coding-agent/daily"))(t)
	return []string{
		"--agent-file", filepath.Join(dir, product+".agf.yaml"),
		"--decisions", filepath.Join(dir, "decisions.yaml"),
		"--store", filepath.Join(t.TempDir(), "hook.db"), "--wait", "0s",
	}
}

// TestHookKnowsTheWorkspace: what the files of a machine say about a call
// that its words don't: links, and repositories within the workspace.
func TestHookKnowsTheWorkspace(t *testing.T) {
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	work := filepath.Join(root, "work")
	for _, dir := range []string{"work/src", "work/bare/objects", "work/bare/refs", "work/nested/.git", "work/.git",
		"out", "work/conf", "work/lib/deep", "work/node_modules/.bin"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for _, file := range []string{"work/bare/HEAD", "work/src/a.go", "out/key", "work/conf/.env",
		"work/node_modules/.bin/tsc", "work/node_modules/.env"} {
		must.Do(t, os.WriteFile(filepath.Join(root, file), nil, 0o600))
	}
	for from, to := range map[string]string{
		"work/link": "../out", "work/src/k.go": "../../out/key", "work/src/in.go": "a.go", "other": "work",
		"work/src/gone": "../../nowhere", "work/lib/l": "../../out", "work/lib/deep/l": "../../../out",
	} {
		must.Do(t, os.Symlink(to, filepath.Join(root, from)))
	}
	flags := profileFiles(t, "claude-code")
	id := 0
	says := func(dir, tool, args string, env ...string) string {
		id++
		doc := hookDocs()["claude-code"](toolCall{tool, args, "t" + strconv.Itoa(id)})
		doc = strings.Replace(doc, `"/w"`, strconv.Quote(dir), 1)
		if dir == "" {
			doc = strings.Replace(doc, `"cwd":"",`, "", 1)
		}
		cmd := exec.Command("assent", append([]string{"hook", "claude-code"}, flags...)...)
		cmd.Env = append(os.Environ(), append(env, "HOME="+root)...)
		cmd.Stdin = strings.NewReader(doc)
		return hookSays(t, "claude-code", ends(t, cmd).out).word
	}
	for _, tt := range []struct{ dir, tool, args, want string }{
		{work, "Read", `{"file_path":"src/a.go"}`, ""},
		{work, "Read", fmt.Sprintf(`{"file_path":%q}`, work+"/src/in.go"), ""},
		{work, "Read", `{"file_path":"src/k.go"}`, "deny"},
		{work, "Read", `{"file_path":"src/gone"}`, "deny"},
		{work, "Read", `{"file_path":"link/key"}`, "deny"},
		{work, "Read", `{"file_path":"link/new"}`, "deny"},
		{work, "Grep", `{"pattern":"x","path":"link"}`, "deny"},
		{work, "Bash", `{"command":"cat src/a.go"}`, ""},
		{work, "Bash", `{"command":"cat src/*.go"}`, "deny"},
		{work, "Bash", `{"command":"cat < src/k.go"}`, "deny"},
		{work, "Bash", `{"command":"cd src && cat k.go"}`, "deny"},
		{work, "Bash", `{"command":"cd link && ls"}`, "deny"},
		{work, "Bash", `{"command":"cd lib && cd deep && cat l/key"}`, "deny"},
		{work, "Bash", `{"command":"mv lib x && cat x/l/key"}`, "deny"},
		{work, "Bash", `{"command":"cp -r lib x && cd x && cat deep/l/key"}`, "deny"},
		{work, "Bash", `{"command":"for d in lib; do cat $d/l/key; done"}`, "deny"},
		{work, "Bash", `{"command":"mv src/in.go src/b.go && cat src/b.go"}`, ""},
		{work, "Grep", `{"pattern":"x","path":"src"}`, ""},
		{work, "Grep", `{"pattern":"x"}`, "deny"},
		{work, "Grep", `{"pattern":"x","path":"conf"}`, "deny"},
		{work, "Grep", `{"pattern":"x","path":"conf","glob":"*.go"}`, ""},
		{work, "Grep", `{"pattern":"x","path":"conf","glob":"*.go .e*"}`, "deny"},
		{work + "/src", "Grep", `{"pattern":"x"}`, ""},
		{work, "Glob", `{"pattern":"conf/*.go"}`, ""},
		{work, "Bash", `{"command":"grep -rn x src"}`, ""},
		{work, "Bash", `{"command":"grep -rn x ."}`, "deny"},
		{work, "Bash", `{"command":"grep -rn --include='*.go' x ."}`, ""},
		{work, "Bash", `{"command":"grep -rn --exclude-dir=conf x ."}`, ""},
		{work, "Bash", `{"command":"rg x"}`, ""},
		{work, "Bash", `{"command":"npx tsc --noEmit"}`, ""},
		{work, "Bash", `{"command":"npx eslint src"}`, "deny"},
		{work, "Bash", `{"command":"git status"}`, ""},
		{work + "/src", "Bash", `{"command":"git status"}`, ""},
		{work + "/bare", "Bash", `{"command":"git status"}`, "deny"},
		{work + "/bare", "Bash", `{"command":"ls"}`, ""},
		{work + "/nested", "Bash", `{"command":"git status"}`, "deny"},
		{work + "/link", "Bash", `{"command":"ls"}`, "deny"},
		{root + "/out", "Bash", `{"command":"ls"}`, "deny"},
	} {
		want := tt.want
		if want == "" {
			want = noOpinion().word
		}
		if got := says(tt.dir, tt.tool, tt.args, "CLAUDE_PROJECT_DIR="+work); got != want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	for _, dir := range []string{"", "/", "work", root + "/other", root + "/nowhere", work + "/src/a.go"} {
		if got := says(dir, "Bash", `{"command":"ls"}`, "CLAUDE_PROJECT_DIR="); got != "deny" {
			t.Errorf("in %q: %s", dir, got)
		}
	}
}

// TestHookAsksAboutSettings of the products and of assent, though the
// rules let everything run.
func TestHookAsksAboutSettings(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	work := filepath.Join(dir, "work")
	must.Do(t, os.MkdirAll(work, 0o700))
	agent := filepath.Join(dir, "all.agf.yaml")
	must.Do(t, os.WriteFile(agent, []byte(`schema_version: "1.0.0"
metadata: {id: a, name: A, version: "1.0.0", description: d}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: x, model: any}}
action_space: {local_tools: [{alias: run}, {alias: write}]}
`), 0o600))
	own := map[string]string{
		"claude-code": ".claude/settings.local.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json",
		"copilot": ".copilot/hooks/assent.json", "cursor": ".cursor/hooks.json",
	}
	id := 0
	for product, doc := range hookDocs() {
		says := func(tool, args string) string {
			id++
			cmd := exec.Command("assent", "hook", product, "--agent-file", agent, "--wait", "0s")
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/config")
			cmd.Stdin = strings.NewReader(strings.Replace(doc(toolCall{tool, args, "t" + strconv.Itoa(id)}), "/w",
				work, 1))
			return hookSays(t, product, ends(t, cmd).out).word
		}
		file := own[product]
		if file == "" {
			t.Errorf("%s is missing from the list of settings", product)
			continue
		}
		folder, name := filepath.Split(file)
		for _, args := range []string{
			file, "~/" + file, folder + "*", "./x/../" + file, dir + "/" + file, agent, "../all.agf.yaml",
			dir + "/hook.db", "~", "../",
			dir + "/config/assent/token", ".github/hooks/a.json",
		} {
			if !testtier.Row(product, "write", strings.ReplaceAll(args, dir, "DIR")) {
				continue
			}
			if got := says("write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, args)); got != "deny" {
				t.Errorf("%s writes %s: %s", product, args, got)
			}
		}
		for _, line := range []string{
			"echo x > " + file, "cat '" + file + "'", "cd " + folder + " && cat " + name,
			`c"a"t ` + folder[:3] + `''` + folder[3:] + name,
			"cat " + folder[:3] + "*/" + name, "rm -rf ~",
			"x=" + file + "; cat $x", "bash -c 'cat " + file + "'", "cat ../*.yaml",
		} {
			if !testtier.Row(product, "run", line) {
				continue
			}
			if got := says("run", fmt.Sprintf(`{"command":%q}`, line)); got != "deny" {
				t.Errorf("%s runs %s: %s", product, line, got)
			}
		}
		for tool, args := range map[string]string{
			"run":   `{"command":"ls . src && grep -r x ."}`,
			"write": fmt.Sprintf(`{"file_path":"a.md","content":%q}`, file),
		} {
			if got := says(tool, args); got != noOpinion().word {
				t.Errorf("%s %s %s: %s", product, tool, args, got)
			}
		}
	}
}
