package shellfacts

import "testing"

// TestOptionsThatDoMoreThanRead checks that a listed program with one of these options counts as
// unlisted, and also with an unknown option.
func TestOptionsThatDoMoreThanRead(t *testing.T) {
	all := []string{"git", "sort", "sed", "awk", "rg", "fd", "date", "tree", "jq", "uniq", "xxd", "less", "cat",
		"./t.sh", "/bin/ls", "go", "npm", "yarn", "pnpm", "vitest", "npx", "bunx", "uvx", "python", "pytest",
		"make test",
		"make lint", "sha256sum", "tar", "ssh", "cd"}
	project := &Workspace{Root: "/w", Installed: []string{"tsc", "jest"}}
	for listed, lines := range map[bool][]string{
		true: {
			"git diff --stat HEAD", "git diff --cached -U 3 -- a", "git log --oneline -5 -n 3",
			"git status -sb", "git log --format='%h %s' --since=1.day", "git show HEAD~1 --no-ext-diff",
			"git blame -L 1,5 a", "git branch -a", "git diff -w --word-diff=color", "sort -rn -k2 a",
			"sort --key=2 -t, a", "sed -n 1,5p a", "sed s/a/b/g a", "sed -E 's|a|b|' a", "awk '{print $1}' a",
			"awk -F: '{print $1}' a", "rg -n x", "rg --json x", "fd -e go", "date +%s", "tree -L 2",
			"jq -r .a x", "uniq -c a", "xxd a", "less a", "cat --anything a", "git --no-pager log -5",
			"git -P diff --compact-summary", "git log --oneline --not origin/main", "git log -1p",
			"git log -g -5", "git status --ignored=matching", "git log --pretty=tformat:%h",
			"git stash", "git stash -u", "git stash push -m 'a /x' -- a", "git stash pop --index stash@{1}",
			"git stash list", "git stash show -p", "git restore --staged a", "git commit -F -", "git -C /w status",
			"git -C /w --no-pager diff", "rg -g '*.go' x", "rg -g'!*.go' -g '*.{ts,tsx}' x src",
			"rg -g 'src/**/*.ts' x",
			"rg --glob=package.json x", "go test -cpuprofile x.prof ./a", "go tool cover -func=c.out", "npm test",
			"npm test --workspace a", "npm run t -- --watch=false", "yarn jest --ci", "pnpm exec jest a",
			"vitest run --shard=1/2",
			"npx tsc --noEmit", "npx --no-install eslint a", "bunx jest", "python -m unittest",
			"python -m unittest tests.a -v",
			"python -m unittest discover -s a -p 'test_*.py'", "pytest tests/a.py", "pytest a/test_b.py::c d",
			"pytest --ignore=x -k 'a and b'", "make -j4 test lint", "make -k test", "sha256sum a", "tar -tzf a.tgz",
			"ssh -T host ls",
			"cd sub && go test ./...", "cd /w/sub/pkg && npm test", "cd sub && pytest && make test", "cd sub; npx tsc",
		},
		false: {
			"git diff --output .env", "git diff --outp=.env", "git log -1 --format=%s --output .git/config",
			"git", "git diff --no-index a b", "git diff --ext-diff", "git log --textconv -p",
			"git log --ext -p", "git diff -Ox", "git log --format='%h %G?'", "git log --show-signature",
			"git -C x log", "git -c a=b log", "git --git-dir=x log", "git grep --open-files-in-pager=evil x",
			"git grep -Oevil x", "git blame --contents x a", "git fetch --upload-pack=x", "git fetch --upl=x",
			"git cat-file --textconv HEAD:a", "git diff $X", "sort -o a a", "sort -ro a a",
			"sort --output=a a", "sort --compress-program=evil a", "sort --comp evil a", "sort -T x a",
			"sed -i s/a/b/ a", "sed -n -i p a", "sed s/a/b/w a", "sed 's/a/b/w x' a", "sed s/a/b/e a",
			"sed 1e a", "sed 'w x' a", "sed -f x a", "sed --in-place s/a/b/ a", "sed 1,5p -i a", "sed -n $X a",
			"awk 'BEGIN{system(\"evil\")}'", "awk '{print > \"x\"}' a", "awk '{print | \"evil\"}' a",
			"awk -f x a", "awk '@load \"x\"'", "awk 'BEGIN{\"evil\"|getline}'", "rg --pre evil x",
			"rg --pre=evil x", "rg -z x", "rg -nz x", "fd -x evil", "fd --exec evil", "fd --exe evil",
			"date -s x", "tree -o x", "jq -f x a", "uniq a b", "uniq -c a b", "xxd -r a b", "less -o x a",
			"less --log-file=x a", "git log -L -- --output=victim", "git diff -S -- --output=victim a b",
			"git diff --src-prefix -- --output=x a b", "git diff -- --output", "git grep -e -- -Oevil",
			"git log --pretty=mine", "git log --diff-merges=remerge", "git --no-pager diff --output=x",
			"git --no-pager -c a=b log", "git archive -o x HEAD", "git rebase -x evil HEAD",
			"awk -F -- -f prog.awk f", "tree -P -- -o x", "tree -R -H .", "uniq -- in -x", "uniq in -- -x",
			"xxd in -x", "xxd -- in -x", "fd -l", "less --lesskey-src=k f", "less --Log-file=x",
			"less '+!evil' f", "date 112820002026", "cd sub && ./t.sh",
			"git stash drop", "git stash clear", "git stash branch x", "git stash -p", "git stash -a",
			"git stash show --output=x",
			"git stash push --pathspec-from-file=x", "git restore a", "git restore --staged -W a",
			"git restore --staged --source=x -W a",
			"git commit -F x", "git commit -F - -F x", "git -C sub status", "git -C .. status",
			"git -C /w -C sub status",
			"git -C /w -c a=b log", "rg -g .env x", "rg -g '*.env' x", "rg -ng .env x", "rg -g '{.env,*.go}' x",
			"rg -g '*' x",
			"rg -g", "rg -g '.aws/*.go' x", "rg -g secrets.yaml x", "go test -o x", "go test -c ./a", "go tool evil",
			"go tool cover -html=x -o y", "npm test -- --workspace evil.ts", "npm exec jest", "npm x evil",
			"npm init evil",
			"yarn dlx evil", "yarn eslint -c evil.js", "pnpm exec evil", "pnpm create evil",
			"vitest --workspace evil.ts",
			"npx eslint a", "npx evil", "npx -y jest", "bunx evil", "bunx eslint", "uvx ruff",
			"python -m unittest evil",
			"python -m unittest evil/a.py", "python -m unittest discover -p 'evil*.py'", "python -m unittest -x",
			"pytest evil.py",
			"pytest src/evil.py::a", "make -j4 deploy", "make -C x test", "make -f x test", "sha256sum -c a",
			"sha256sum --ch a",
			"tar -xf a", "tar --to-command=evil -tf a", "tar tf a --rmt-command=evil", "ssh -o ProxyCommand=evil host",
			"cd sub && git status", "cd node_modules/a && npm test", "cd .hidden && npm test",
			"cd testdata && go test", "cd ../x && go test",
			"cd sub && cd - && go test", "cd $X && go test", "cd /w2 && go test", "cd -P sub && go test",
			"cd 'a b' && go test",
		},
	} {
		for _, line := range lines {
			if got := Of(line, Options{Listed: all, Workspace: project}); (got.Unlisted.Known &&
				got.Unlisted.Text == "") != listed {
				t.Errorf("%s: unlisted %+v, %s", line, got.Unlisted, got.Why)
			}
		}
	}
}
