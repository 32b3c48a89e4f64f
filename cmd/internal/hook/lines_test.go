package hook

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// project makes a workspace with files, links and a repository with branches and a stash.
func project(t *testing.T) string {
	t.Helper()
	root := filepath.Join(must.Get(filepath.EvalSymlinks(t.TempDir()))(t), "work")
	write := func(name, text string) {
		at := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(at), 0o700))
		must.Do(t, os.WriteFile(at, []byte(text), 0o600))
	}
	git := func(line string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"},
			strings.Fields(line)...)...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %s %s", line, err, out)
		}
	}
	for _, name := range []string{
		"src/a.go", "src/b_test.go", "lib/x.go", "vendor/x/x_test.go", "testdata/x/x_test.go", ".husky/a.py",
		"app/a.py", "agents/claude-code.agf.yaml",
		"clean/a.go", "web/a.ts", "node_modules/.bin/tsc", "node_modules/x/.env",
		"node_modules/.bin/eslint", "node_modules/.bin/prettier", "node_modules/.bin/jest",
		"web/node_modules/.bin/vitest",
	} {
		write(name, "package x\n")
	}
	write(".gitignore", "/secret-things/\n.env\n*.key\nlinks/\nnode_modules/\n!.env.example\n")
	git("init -q -b main")
	git("add .gitignore src lib clean app")
	git("commit -q -m one")
	git("branch same")
	git("checkout -q -b evil")
	write(".claude/settings.json", "{}")
	git("add -f .claude")
	git("commit -q -m two")
	git("checkout -q -b below main") // settings in a folder, where a product may be started, in another case
	write("app/.Claude/settings.json", "{}")
	git("add -f app")
	git("commit -q -m three")
	git("checkout -q main")
	write("app/.mcp.json", "{}")
	git("add -f app/.mcp.json")
	git("stash -q")
	write("lib/.cursor/hooks.json", "{}")
	git("stash -q -u")
	write("src/a.go", "package y\n")
	git("stash -q")
	for _, name := range []string{
		"web/config/.env", "web/config/deep/.aws/sub/config", "secret-things/prod/a.txt", "lib/deep/server.key",
	} {
		write(name, "TOKEN=1\n")
	}
	write("part/.git/modules/m/config", "url = https://ann:pw@example.com/x\n")
	write("other/.git/worktrees/w/config.worktree", "token = x\n")
	write("third/.git/logs/HEAD", "clone: from https://ann:pw@example.com/x\n")
	write("set/.cursor/mcp.json", `{"headers":{"Authorization":"Bearer abcdefgh"}}`)
	write("env/.gemini/.env", "KEY=1\n")
	write("quiet/.claude/settings.json", `{"model":"x","maxTokens":5}`)
	write("plain/.git/config", "url = https://example.com/x\n")
	write("kind/.ignore", "!.env\n")
	write("kind/sub/a.txt", "x")
	for from, to := range map[string]string{
		"links/web": "../web/config", "links/notes.txt": "../web/config/.env", "links/a.go": "../src/a.go",
		"links/hooks": "../.husky", "links/set": "../.claude",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(root, from)), 0o700))
		must.Do(t, os.Symlink(to, filepath.Join(root, from)))
	}

	return root
}

// dailyPlan compiles the delivered file for Claude Code in the daily profile.
func dailyPlan(t *testing.T) *resolve.Plan {
	t.Helper()
	read := func(name string) []byte {
		return must.Get(os.ReadFile(filepath.Join("../../../examples/coding-agent/daily", name)))(t)
	}
	decisions, findings := resolve.ParseConfig("decisions.yaml", read("decisions.yaml"))
	if decisions == nil {
		t.Fatal(findings)
	}
	agent, findings := schema.Parse("agent", read("claude-code.agf.yaml"))
	if agent == nil {
		t.Fatal(findings)
	}

	return must.Get(resolve.Compile(agent, nil, decisions.Options()))(t)
}

// TestLinesInARealWorkspace decides calls with what the hook finds in a workspace, and the delivered
// rules for daily work.
func TestLinesInARealWorkspace(t *testing.T) {
	root := project(t)
	plan := dailyPlan(t)
	f := flags{HookFlags: config.HookFlags{
		Agent: filepath.Join(root, "agents/claude-code.agf.yaml"), Store: filepath.Join(root, "agents/x.db"),
	}}
	for _, group := range []struct {
		asks bool
		text string
	}{{true, linesThatAsk}, {false, linesThatRun}} {
		for line := range strings.Lines(group.text) {
			line = strings.TrimSuffix(line, "\n")
			if line == "" || strings.HasPrefix(line, "# ") {
				continue
			}
			tool, args, isCall := strings.Cut(line, " {")
			if args = "{" + args; !isCall || strings.Contains(tool, " ") {
				tool, args = "Bash", string(must.Get(json.Marshal(map[string]string{"command": line}))(t))
			}
			e := &event{
				product: products()[0], cwd: root, root: root,
				call: resolve.Call{Kind: resolve.Tool, Tool: tool, Args: []byte(args)},
			}
			e.call.Workspace = e.workspace()
			d := plan.Decide(&e.call)
			touched, brings := e.touches(f), e.bringsSettings(t.Context())
			if asks := d.Outcome != resolve.Allow || touched != "" || brings; asks != group.asks {
				t.Errorf("%s: asks %t: %s %s %+v", line, asks, touched, d.Outcome, d.Reasons)
			}
		}
	}
}

const linesThatAsk = `# a search that starts elsewhere
cd web && grep -rn TOKEN config
cd lib && rg TOKEN deep
Bash {"command":"grep -rn TOKEN config","workdir":"web"}
Bash {"command":"rg TOKEN deep","workdir":"lib"}
# the name of the program in quotes, and an empty pattern
gr'e'p -rn TOKEN web
"r"g TOKEN lib
command grep -rn TOKEN web
Grep {"pattern":"","path":"web"}
Grep {"path":"web"}
Grep {"pattern":"","path":"secret-things"}
# --exclude is for files, --exclude-dir for directories, the last one counts, and values are no options
grep -rn --exclude=config TOKEN web
grep -rn --exclude-dir=.env TOKEN web
grep -rn --exclude='[!.]*' TOKEN web
grep -rn --exclude='.env' --include='.env' TOKEN web
grep -rn --exclude-dir=deep --include='*.key' --exclude=x TOKEN lib
grep -rn -e --include=*.go -e TOKEN web
grep -rn TOKEN -- --include=*.go web
grep -rn --include='[!x]env' TOKEN web
grep -rn --include='\.env' TOKEN web
grep -rn --include='.e\nv' TOKEN web
rg -g '\.env' TOKEN web
grep -rn --exclude='\.env' TOKEN web
rg -e -g*.go lib
# commands of git that write files of another commit
git switch -c x evil
git switch evil
git switch below
git stash pop stash@{1}
git stash apply stash@{2}
git stash pop stash@{9}
git checkout -b x evil
git checkout -qb x evil
git stash pop stash@{0} && grep -rn TOKEN src
git switch same && grep -rn x src
git switch same && cat src/a.go
git worktree add ../x
git worktree add w evil
git restore --source evil .
git reset --hard evil
git cherry-pick evil
git switch $X
git -c x=y switch evil
g'i't switch evil
# directories that a line moves before it reads them
mv web b && grep -rn TOKEN b
cp -r web b && rg TOKEN b
cp -a lib b; grep -rn TOKEN b
mv lib/deep/ src/d && grep -rn --exclude-dir=deep TOKEN src
# links within the workspace
grep -rn TOKEN links/web
grep -rn TOKEN links/*
Grep {"pattern":"x","path":"links/web"}
cat links/notes.txt
head links/n*.txt
Read {"file_path":"links/notes.txt"}
cp src/a.go links/hooks/pre-commit
Write {"file_path":"links/set/settings.json","content":"x"}
cd links && cat notes.txt
cp -r links x && cat x/notes.txt
mv links l && cat l/notes.txt
diff -y links src
# options in bundles, and options that read a file
rg -.n TOKEN
rg -n. TOKEN
rg -l.i TOKEN
tree --fromfile web/config/.env
tree --fromtabfile web/config/.env
tree --gitfile=web/config/.env
wc --files0-from=web/config/.env
wc --files0 web/config/.env
du --files0-from web/config/.env
sort --files0-from=web/config/.env
grep -f web/config/.env src/a.go
rg -f web/config/.env src
rg -fweb/config/.env src
git add --pathspec-from-file=web/config/.env
git rm --pathspec-from-file web/config/.env
diff --from-file=web/config/.env src/a.go
diff web web/config
diff web/config lib
date -f web/config/.env
date --fi=web/config/.env
file -f web/config/.env
find -files0-from web/config/.env
# files that a program writes
cp -vt .husky app/a.py
cp -vft .husky app/a.py
cp --targ .husky app/a.py
cp -vt.husky app/a.py
mv -vt.husky app/a.py
go build --o .husky/x ./src
go build --o=.husky/x ./src
go test -o .husky/x ./src
go test -c ./src
go test -exec x ./src
go test --exec=x ./src
go test -toolexec x ./src
go test -cpuprofile .husky/x ./src
go test --cpuprofile=.husky/x ./src
go test --trace .husky/x ./src
ruff format .husky/a.py
ruff check --fix .husky/a.py
uv run ruff format .husky/a.py
black .husky/a.py
isort .husky/a.py
isort -q .husky/a.py
python -m black .husky/a.py
eslint --fix .husky/a.js
npx eslint --fix .husky/a.js
prettier --write .husky/a.js
npx prettier -w .husky/a.js
pnpm exec prettier --write .husky/a.js
gofmt -w .husky/a.go
gofmt --w .husky/a.go
goimports -w .husky/a.go
cargo fmt -- .husky/a.rs
rustfmt .husky/a.rs
npm run lint -- --fix .husky/a.js
# code of others that a test runner is told to run
pytest vendor/x
pytest vendor
pytest ./vendor/x/test_a.py::test_b
uv run pytest vendor/x
python -m pytest vendor/x
python -m unittest discover -s vendor/x
python -m unittest vendor.x.test_a
python -m unittest discover -svendor/x
go test ./testdata/...
go test ./vendor/x
go test -v -run TestX ./testdata/x
go test example.com/evil/x
go test all
pytest --rootdir vendor/x
pytest --rootdir=vendor/x
pytest -c vendor/x/pytest.ini
pytest --ignore=tests vendor/x
npx jest vendor/x
npx vitest run src
npm test -- vendor/x/a.test.js
npm test -w vendor/x
npm test --workspace=vendor/x
eslint vendor/x
# secrets deep in directories, of git and of products
grep -rn TOKEN web/config/deep
grep -rn TOKEN secret-things
grep -rn TOKEN part
grep -rn TOKEN other
grep -rn TOKEN third
grep -rn TOKEN set
grep -rn TOKEN env
Grep {"pattern":"x","path":"set"}
rg TOKEN kind
rg TOKEN kind/sub
# files of assent
cat agents/hook.db-wal
cat agents/hook.db-shm
cp agents/hook.db-journal x
cat agents/x.db-wal
cat agents/x.db
rm -r agents
mv agents b
mv ag* b
chmod 000 agents
chmod -R 777 .
mkdir -p .git/hooks
`

const linesThatRun = `grep -rn TOKEN src
cd src && ls
grep -rn x clean/*.go
grep -rn --include='*.go' TOKEN .
grep -rn --exclude-dir=config TOKEN web
rg -g '*.go' x
rg -ln x src
Grep {"pattern":"x","path":"src"}
Grep {"pattern":"x","path":".","glob":"*.go"}
Glob {"pattern":"src/*.go"}
Read {"file_path":"links/a.go"}
cat links/a.go
grep -rn TOKEN quiet
grep -rn TOKEN plain
git switch same
git switch -c x same
git switch -c y
git checkout -b z
git stash
git stash pop
git stash pop && go test ./...
git status
mv src/a.go src/c.go
cp -r src b
cp -vt lib src/a.go
diff src/a.go lib/x.go
tree -L 2 src
wc -l src/a.go
go build -o bin/app ./src
go build -o dist/app ./src
go test -v -timeout 1.5m ./src/...
go test -coverprofile=c.out ./src
gofmt -w src/a.go
gofmt -l .
ruff format app
ruff check --fix app/a.py
black --check .husky/a.py
isort --check-only app
npx eslint --fix src
npm run build
pytest -q tests
pytest --ignore vendor tests
python -m unittest discover -s tests
go test ./...
npx tsc --noEmit
npm test -- src/a.test.ts
ls agents
cat agents/readme.md
cargo build
`
