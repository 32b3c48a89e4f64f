package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testtier"
)

// quietLines run in the workspace with the delivered files, unless the product asks.
const quietLines = `ls -la
cat src/a.go
grep -rn foo src
git status
git diff HEAD~1 --stat
git log --oneline -5
go test ./...
cd src && go test ./...
timeout 60 go test ./...
npm test -- --watch=false
uv run pytest
for f in a b; do echo $f; done
rg -g '*.go' foo
sed -n 1,5p src/a.go
make test
find . -name '*.go'
wc -l src/a.go
jq . package.json
go vet ./... 2>&1 | tail -5
pwd && ls src`

// loudLines ask, whatever the product says. The first are those that ran in the products when the files
// listed programs by their names alone.
const loudLines = `cd .git && git log -1 --format='[core]%n fsmonitor=touch PWNED;' --output=config && cd - && git status
git log -1 --format='touch X' --output=Makefile
git diff --output settings.json
git diff --outpu=x
git diff --no-index --output=x a b
git diff --ext-diff
git diff -Ofoo
git log -1 --format='tformat:{"disableAllHooks":true}' --output .claude/settings.local.json
cd && cat .ssh/id_rsa
cd && cat .netrc
cd; cat .aws/credentials
cd - && ls
cd '' && ls
cd -P && cat .netrc
cd && cd .claude && git diff --no-index --output=settings.json agents agents
cd docs/bare && git status
cat .env
cat .git/config
cat /etc/passwd
cat link/key
cat <<< $HOME
echo x > .claude/settings.json
echo x > .codex/config.toml
echo x > .gemini/settings.json
echo x > .cursor/hooks.json
cat hook.db
cat daily/mcp.token
rm -rf src
curl https://example.com
npm install evil
npx evil
python -c 'x'
PATH=/tmp ls
eval "$X"
find . -exec ls "$x;" -exec rm -rf y \;
git push
sudo ls
ln -s / x/y && cat x/y/etc/passwd`

// productCalls are calls of a product's other tools: those before "|" are quiet, those after it loud. A
// question of the product to its user stays its own, so it is quiet. W is the workspace.
func productCalls() map[string]string {
	return map[string]string{
		"claude-code": `Read {"file_path":"W/src/a.go"}
Grep {"pattern":"x","path":"src"}
Glob {"pattern":"src/*.go"}
Write {"file_path":"src/b.go","content":"x"}
Edit {"file_path":"src/a.go","old_string":"a","new_string":"b"}
TodoWrite {"todos":[]}
|
Read {"file_path":"/etc/passwd"}
Read {"file_path":"../x"}
Read {"file_path":"link/key"}
Read {"file_path":".env"}
Read {"file_path":"~/.ssh/id_rsa"}
Grep {"pattern":"x"}
Grep {"pattern":"x","path":"/etc"}
Grep {"pattern":"x","path":"src","glob":"*.go .env"}
Glob {"pattern":"/etc/*"}
Write {"file_path":".claude/settings.json","content":"x"}
Write {"file_path":"/tmp/x","content":"x"}
Edit {"file_path":".git/config","old_string":"a","new_string":"b"}
Skill {"skill":"deploy"}
ExitPlanMode {"plan":"x"}
EnterPlanMode {}
WebFetch {"url":"https://example.com"}
WebSearch {"query":"x"}
Bash {"command":"ls","dangerouslyDisableSandbox":true}
Bash {"command":"ls","env":{"PATH":"/tmp"}}
mcp__fs__write {"path":"a"}`,
		"codex": `view_image {"path":"W/src/a.png"}
apply_patch {"command":"*** Begin Patch\n*** Add File: src/b.go\n+x\n*** End Patch"}
Bash {"command":"ls","workdir":"W/src"}
update_plan {"plan":[]}
|
view_image {"path":"/etc/a.png"}
apply_patch {"command":"*** Begin Patch\n*** Add File: /etc/x\n+x\n*** End Patch"}
apply_patch {"command":"*** Begin Patch\n*** Update File: .codex/config.toml\n+x\n*** End Patch"}
apply_patch {"command":"*** Begin Patch\n*** Update File: a\n*** Move to: .git/hooks/x\n*** End Patch"}
Bash {"command":"cat id_rsa","workdir":"/root/.ssh"}
Bash {"command":"ls","workdir":"/"}
Bash {"command":"ls","sandbox_permissions":"require_escalated"}
Bash {"command":"ls","with_escalated_permissions":true}
request_permissions {"x":1}
request_user_input {"questions":[]}
spawn_agent {"prompt":"x","mode":"full"}
web_search {"query":"x"}
mcp__fs__write {"path":"a"}
other_tool {}
apply_patch {"command":"*** Begin Patch\n*** Delete File: .env\n*** End Patch"}
apply_patch {"command":"*** Begin Patch\n*** Add File: .mcp.json\n+x\n*** End Patch"}
Bash {"command":"cat a","workdir":"../x"}
Bash {"command":"git status","workdir":"docs/bare"}
Bash {"command":"ls","env":{"A":"b"}}`,
		"copilot": `view {"path":"W/src/a.go"}
grep {"pattern":"x","path":"src"}
glob {"pattern":"src/*.go"}
create {"path":"src/b.go","file_text":"x"}
edit {"path":"src/a.go","old_str":"a","new_str":"b"}
task {"prompt":"x","mode":"full"}
ask_user {"question":"x"}
|
view {"path":"/etc/shadow"}
view {"path":"../x"}
view {"path":"link/key"}
view {"path":".env"}
grep {"pattern":"x","paths":["src","/etc"]}
grep {"pattern":"x"}
glob {"pattern":"/etc/*"}
create {"path":".github/hooks/assent.json","file_text":"x"}
create {"path":"/tmp/x","file_text":"x"}
create {"path":".copilot/config","file_text":"x"}
edit {"path":".git/config","old_str":"a","new_str":"b"}
exit_plan_mode {"plan":"x"}
skill {"skill":"x"}
web_fetch {"url":"https://example.com"}
other_tool {}`,
		"cursor": `Read {"path":"W/src/a.go"}
Grep {"pattern":"x","path":"src"}
Glob {"glob_pattern":"src/*.go"}
Write {"path":"src/b.go","contents":"x"}
Shell {"command":"ls","working_directory":"W/src"}
Task {"prompt":"x","mode":"full"}
|
Read {"path":"/etc/shadow"}
Read {"path":"../x"}
Read {"path":"link/key"}
Read {"target_file":".env"}
Grep {"pattern":"x"}
Grep {"pattern":"x","path":"/etc"}
Write {"path":".cursor/hooks.json","contents":"x"}
Write {"path":"/tmp/x","contents":"x"}
Shell {"command":"cat id_rsa","working_directory":"/root/.ssh"}
Shell {"command":"ls","required_permissions":["all"]}
Shell {"command":"git status","working_directory":"docs/bare"}
AskQuestion {"x":1}
SwitchMode {"x":1}
CreatePlan {"x":1}
WebSearch {"query":"x"}
other_tool {}`,
		"gemini": `read_file {"file_path":"W/src/a.go"}
grep_search {"pattern":"x","dir_path":"src"}
glob {"pattern":"src/*.go"}
write_file {"file_path":"src/b.go","content":"x"}
run_shell_command {"command":"ls","dir_path":"src"}
ask_user {"x":1}
|
read_file {"file_path":"/etc/shadow"}
read_file {"absolute_path":"../x"}
read_file {"file_path":"link/key"}
read_many_files {"include":["src/*.go","../../etc/*"]}
read_many_files {"include":["{.env,a}"]}
grep_search {"pattern":"x"}
grep_search {"pattern":"x","dir_path":"/etc"}
write_file {"file_path":".gemini/settings.json","content":"x"}
write_file {"file_path":"/tmp/x","content":"x"}
replace {"file_path":".git/config","old_string":"a","new_string":"b"}
run_shell_command {"command":"cat id_rsa","dir_path":"/root/.ssh"}
run_shell_command {"command":"ls","additional_permissions":{"x":1}}
exit_plan_mode {"plan":"x"}
enter_plan_mode {}
activate_skill {"name":"x"}
web_fetch {"prompt":"x"}
google_web_search {"query":"x"}
other_tool {}`,
	}
}

// openness orders answers by how much they let through.
var openness = map[string]int{"deny": 0, "ask": 1, "allow": 2}

// TestHookIsNeverMoreOpen checks, with the delivered files and nobody who approves, that no call gets an
// answer that is more open than the product's own: whatever the product would do, it does that or less.
// Calls that may do harm are stopped although the product would run them.
func TestHookIsNeverMoreOpen(t *testing.T) {
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	work := filepath.Join(root, "work")
	for _, dir := range []string{"work/src", "work/docs/bare/objects", "work/docs/bare/refs", "work/.git", "out"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for _, file := range []string{"work/src/a.go", "work/.env", "work/docs/bare/HEAD", "out/key", "work/package.json"} {
		must.Do(t, os.WriteFile(filepath.Join(root, file), nil, 0o600))
	}
	must.Do(t, os.Symlink("../out", filepath.Join(work, "link")))
	t.Setenv("CLAUDE_PROJECT_DIR", work)
	t.Setenv("CURSOR_PROJECT_DIR", work)
	t.Setenv("GEMINI_PROJECT_DIR", work)

	shell := map[string]string{
		"claude-code": "Bash", "codex": "Bash", "copilot": "bash", "cursor": "Shell", "gemini": "run_shell_command",
	}
	for product, others := range productCalls() {
		var calls []toolCall
		quiet := 0
		add := func(lines string) {
			for line := range strings.Lines(lines) {
				args := fmt.Sprintf(`{"command":%s}`, strconv.Quote(strings.TrimSuffix(line, "\n")))
				calls = append(calls, toolCall{tool: shell[product], args: args})
			}
		}
		more := func(lines string) {
			for line := range strings.Lines(strings.TrimSpace(lines)) {
				tool, args, _ := strings.Cut(strings.TrimSpace(line), " ")
				calls = append(calls, toolCall{tool: tool, args: strings.ReplaceAll(args, `"W/`, `"`+work+"/")})
			}
		}
		first, second, _ := strings.Cut(others, "|\n")
		add(quietLines)
		more(first)
		quiet = len(calls)
		add(loudLines)
		more(second)
		if len(calls) < 80 {
			t.Errorf("%s: only %d calls", product, len(calls))
		}
		for _, profile := range []string{"daily", "careful"} {
			dir := filepath.Join(must.Get(filepath.Abs("../../examples/coding-agent"))(t), profile)
			for i, call := range calls {
				if profile == "careful" && i < quiet {
					continue // its own tests say which of them run
				}
				if !testtier.Row(profile, product, call.tool, strings.ReplaceAll(call.args, work, "W")) {
					continue
				}
				call.id = fmt.Sprint("t", i)
				doc := strings.Replace(hookDocs()[product](call), `"/w"`, strconv.Quote(work), 1)
				out, errOut, code := ran(doc, "hook", product, "--wait", "0s", "--agent-file",
					filepath.Join(dir, product+".agf.yaml"), "--decisions", filepath.Join(dir, "decisions.yaml"),
					"--store", filepath.Join(root, product+profile+".db"))
				if code != 0 && code != 2 {
					t.Fatalf("%s: exit %d: %s", product, code, errOut)
				}
				got := hookSays(t, product, out)
				if code == 2 {
					got.word = "deny"
				}
				for own, before := range openness {
					with, known := openness[got.word]
					if got == noOpinion() {
						with, known = before, true
					}
					if !known || with > before {
						t.Errorf("%s %s %s %s: %q where the product says %q", profile, product, call.tool, call.args, got, own)
					}
				}
				asks := got.word == "deny"
				if asks == (i < quiet) && got.args == "" {
					t.Errorf("%s %s %s %s: %+v", profile, product, call.tool, call.args, got)
				}
			}
		}
	}
}
