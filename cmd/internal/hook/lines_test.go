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
	inside := "."
	git := func(line string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"},
			strings.Fields(line)...)...)
		cmd.Dir = filepath.Join(root, inside)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %s %s", line, err, out)
		}
	}
	for _, name := range []string{
		"src/a.go", "src/b_test.go", "lib/x.go", "vendor/x/x_test.go", "testdata/x/x_test.go", ".husky/a.py",
		"app/a.py",
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
	write("agents/claude-code.agf.yaml", "x")
	write("agents/x.db", "x")
	write("nested/a", "x")
	inside = "nested" // a repository in the repository, in which the branch same is another one
	git("init -q -b main")
	git("add a")
	git("commit -q -m one")
	git("checkout -q -b same")
	write("nested/.claude/settings.json", "{}")
	git("add -f .claude")
	git("commit -q -m two")
	git("checkout -q main")
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
// rules for daily work. What follows the arrow in a row is a part of the reason: the word that made the
// line ask.
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
			line, word, _ := strings.Cut(line, " => ")
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
			because := []string{strings.TrimPrefix(touched, root)}
			if brings {
				because = append(because, "files that git writes")
			}
			for _, r := range d.Reasons {
				because = append(because, r.Detail)
			}
			asks := d.Outcome != resolve.Allow || touched != "" || brings
			if asks != group.asks || !strings.Contains(strings.Join(because, "\n"), word) {
				t.Errorf("%s: asks %t because of %q, expected %q", line, asks, because, word)
			}
		}
	}
}

const linesThatAsk = `# a search that starts elsewhere
cd web && grep -rn TOKEN config => env/.gemini/.env
cd lib && rg TOKEN deep => lib/deep/server.key
Bash {"command":"grep -rn TOKEN config","workdir":"web"} => env/.gemini/.env
Bash {"command":"rg TOKEN deep","workdir":"lib"} => lib/deep/server.key
# the name of the program in quotes, and an empty pattern
gr'e'p -rn TOKEN web => web/config/.env
"r"g TOKEN lib => lib/deep/server.key
command grep -rn TOKEN web => web/config/.env
Grep {"pattern":"","path":"web"} => web/config/.env
Grep {"path":"web"} => web/config/.env
Grep {"pattern":"","path":"secret-things"} => secret-things
# --exclude is for files, --exclude-dir for directories, the last one counts, and values are no options
grep -rn --exclude=config TOKEN web => web/config/.env
grep -rn --exclude-dir=.env TOKEN web => may hold secrets or settings: .env
grep -rn --exclude='[!.]*' TOKEN web => outside the workspace: [!.]*
grep -rn --exclude='.env' --include='.env' TOKEN web => may hold secrets or settings: .env
grep -rn --exclude-dir=deep --include='*.key' --exclude=x TOKEN lib => may hold secrets or settings: *.key
grep -rn -e --include=*.go -e TOKEN web => web/config/.env
grep -rn TOKEN -- --include=*.go web => env/.gemini/.env
grep -rn --include='[!x]env' TOKEN web => [!x]env
grep -rn --include='\.env' TOKEN web => may hold secrets or settings: \.env
grep -rn --include='.e\nv' TOKEN web => web/config/.env
rg -g '\.env' TOKEN web => not listed: rg with -g
grep -rn --exclude='\.env' TOKEN web => may hold secrets or settings: \.env
rg -e -g*.go lib => not listed: rg with a word that may be an option
# commands of git that write files of another commit
git switch -c x evil => files that git writes
git switch evil => files that git writes
git switch below => files that git writes
git stash pop stash@{1} => files that git writes
git stash apply stash@{2} => files that git writes
git stash pop stash@{9} => files that git writes
git checkout -b x evil => files that git writes
git checkout -qb x evil => files that git writes
git stash pop stash@{0} && grep -rn TOKEN src => the line may make a link, and names files that may be behind it
git switch same && grep -rn x src => the line may make a link, and names files that may be behind it
git switch same && cat src/a.go => the line may make a link, and names files that may be behind it
git worktree add ../x => not listed: git worktree
git worktree add w evil => not listed: git worktree
git restore --source evil . => files that git writes
git reset --hard evil => files that git writes
git cherry-pick evil => files that git writes
git switch $X => files that git writes
git -c x=y switch evil => files that git writes
g'i't switch evil => files that git writes
# directories that a line moves before it reads them
mv web b && grep -rn TOKEN b => lib/deep/server.key
cp -r web b && rg TOKEN b => lib/deep/server.key
cp -a lib b; grep -rn TOKEN b => lib/deep/server.key
mv lib/deep/ src/d && grep -rn --exclude-dir=deep TOKEN src => lib/deep/server.key
# links within the workspace
grep -rn TOKEN links/web => links/web/.env
grep -rn TOKEN links/* => links/*
Grep {"pattern":"x","path":"links/web"} => links/web/.env
cat links/notes.txt => links/notes.txt
head links/n*.txt => links/n*.txt
Read {"file_path":"links/notes.txt"} => links/notes.txt
cp src/a.go links/hooks/pre-commit => links/hooks/pre-commit
Write {"file_path":"links/set/settings.json","content":"x"} => links/set/settings.json
cd links && cat notes.txt => notes.txt
cp -r links x && cat x/notes.txt => x/notes.txt
mv links l && cat l/notes.txt => l/notes.txt
diff -y links src => links/notes.txt
# options in bundles, and options that read a file
rg -.n TOKEN => not listed: rg with -.n
rg -n. TOKEN => not listed: rg with -n.
rg -l.i TOKEN => not listed: rg with -l.i
tree --fromfile web/config/.env => not listed: tree with --fromfile
tree --fromtabfile web/config/.env => not listed: tree with --fromtabfile
tree --gitfile=web/config/.env => not listed: tree with --gitfile
wc --files0-from=web/config/.env => not listed: wc with --files0-from
wc --files0 web/config/.env => not listed: wc with --files0
du --files0-from web/config/.env => not listed: du with --files0-from
sort --files0-from=web/config/.env => not listed: sort with --files0-from
grep -f web/config/.env src/a.go => web/config/.env
rg -f web/config/.env src => kind/.ignore includes hidden files in se
rg -fweb/config/.env src => not listed: rg with -fweb/config/.env
git add --pathspec-from-file=web/config/.env => not listed: git add with --pathspec-from-file
git rm --pathspec-from-file web/config/.env => not listed: git rm
diff --from-file=web/config/.env src/a.go => web/config/.env
diff web web/config => web/config/.env
diff web/config lib => web/config/.env
date -f web/config/.env => not listed: date with these words
date --fi=web/config/.env => not listed: date with --fi
file -f web/config/.env => not listed: file with -f
find -files0-from web/config/.env => not listed: find with -files0-from
# files that a program writes
cp -vt .husky app/a.py => .husky
cp -vft .husky app/a.py => .husky
cp --targ .husky app/a.py => .husky
cp -vt.husky app/a.py => not listed: cp with -vt.husky
mv -vt.husky app/a.py => .husky
go build --o .husky/x ./src => .husky/x
go build --o=.husky/x ./src => .husky/x
go test -o .husky/x ./src => not listed: go test with -o
go test -c ./src => not listed: go test with -c
go test -exec x ./src => not listed: go test with -exec
go test --exec=x ./src => not listed: go test with --exec
go test -toolexec x ./src => not listed: go test with -toolexec
go test -cpuprofile .husky/x ./src => .husky/x
go test --cpuprofile=.husky/x ./src => .husky/x
go test --trace .husky/x ./src => not listed: go test with --trace
ruff format .husky/a.py => .husky/a.py
ruff check --fix .husky/a.py => .husky/a.py
uv run ruff format .husky/a.py => .husky/a.py
black .husky/a.py => .husky/a.py
isort .husky/a.py => .husky/a.py
isort -q .husky/a.py => .husky/a.py
python -m black .husky/a.py => not listed: python
eslint --fix .husky/a.js => not listed: eslint runs code in .husky/a.js
npx eslint --fix .husky/a.js => not listed: npx runs code in .husky/a.js
prettier --write .husky/a.js => not listed: prettier runs code in .husky/a.js
npx prettier -w .husky/a.js => not listed: npx runs code in .husky/a.js
pnpm exec prettier --write .husky/a.js => not listed: pnpm runs code in .husky/a.js
gofmt -w .husky/a.go => .husky/a.go
gofmt --w .husky/a.go => not listed: gofmt with --w
goimports -w .husky/a.go => .husky/a.go
cargo fmt -- .husky/a.rs => not listed: cargo runs code in .husky/a.rs
rustfmt .husky/a.rs => .husky/a.rs
npm run lint -- --fix .husky/a.js => not listed: npm runs code in .husky/a.js
# code of others that a test runner is told to run
pytest vendor/x => not listed: pytest runs code in vendor/x
pytest vendor => not listed: pytest runs code in vendor
pytest ./vendor/x/test_a.py::test_b => not listed: pytest runs code in ./vendor/x/test_a.py
uv run pytest vendor/x => not listed: pytest runs code in vendor/x
python -m pytest vendor/x => not listed: python runs code in vendor/x
python -m unittest discover -s vendor/x => not listed: python runs code in vendor/x
python -m unittest vendor.x.test_a => not listed: python runs code in vendor.x.test_a
python -m unittest discover -svendor/x => not listed: python with -m
go test ./testdata/... => not listed: go runs code in ./testdata/...
go test ./vendor/x => not listed: go runs code in ./vendor/x
go test -v -run TestX ./testdata/x => not listed: go runs code in ./testdata/x
go test example.com/evil/x => not listed: go runs code in example.com/evil/x
go test all => not listed: go runs code in all
pytest --rootdir vendor/x => not listed: pytest with --rootdir
pytest --rootdir=vendor/x => not listed: pytest with --rootdir
pytest -c vendor/x/pytest.ini => not listed: pytest with -c
pytest --ignore=tests vendor/x => not listed: pytest runs code in vendor/x
npx jest vendor/x => not listed: npx runs code in vendor/x
npx vitest run src => not listed: npx may download vitest
npm test -- vendor/x/a.test.js => not listed: npm runs code in vendor/x/a.test.js
npm test -w vendor/x => not listed: npm runs code in vendor/x
npm test --workspace=vendor/x => not listed: npm runs code in --workspace=vendor/x
eslint vendor/x => not listed: eslint runs code in vendor/x
# secrets deep in directories, of git and of products
grep -rn TOKEN web/config/deep => web/config/deep/.aws/sub/config
grep -rn TOKEN secret-things => secret-things
grep -rn TOKEN part => part/.git/modules/m/config
grep -rn TOKEN other => other/.git/worktrees/w/config.worktree
grep -rn TOKEN third => third/.git/logs/HEAD
grep -rn TOKEN set => set/.cursor/mcp.json
grep -rn TOKEN env => env/.gemini/.env
Grep {"pattern":"x","path":"set"} => set/.cursor/mcp.json
rg TOKEN kind => kind/.ignore includes hidden files in se
rg TOKEN kind/sub => .ignore includes hidden files in searche
# files of assent
cat agents/hook.db-wal => hook.db-wal
cat agents/hook.db-shm => hook.db-shm
cp agents/hook.db-journal x => hook.db-journal
cat agents/x.db-wal => x.db-wal
cat agents/x.db => x.db
rm -r agents => claude-code.agf.yaml
mv agents b => claude-code.agf.yaml
mv ag* b => claude-code.agf.yaml
chmod 000 agents => claude-code.agf.yaml
chmod -R 777 . => claude-code.agf.yaml
mkdir -p .git/hooks => .git/hooks
cd agents && cat x.db => x.db
cd agents && cat x.* => x.db
cd agents; sed -n 1p ./claude-code.agf.yaml => claude-code.agf.yaml
cd src && cd ../agents && cat x.db-wal => x.db-wal
cd src/../agents && cat x.db => x.db
Bash {"command":"cat x.db","workdir":"agents"} => x.db
Bash {"command":"cat x.db","workdir":["agents"]} => x.db
cd $X && cat x.db => x.db
# a repository in another directory
cd nested && git switch same => files that git writes
(cd nested; git switch same) => files that git writes
git switch same; cd nested && git switch same => files that git writes
pushd nested && git switch same => files that git writes
cd gone && git switch same => files that git writes
cd $X && git switch same => files that git writes
cd nested && git stash pop => files that git writes
Bash {"command":"git switch same","workdir":"nested"} => files that git writes
`

const linesThatRun = `cd agents && ls
cd agents && cat readme.md
cd src && cat x.db
grep -rn TOKEN src
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
