package shellfacts

import "testing"

// TestOptionsThatDoMoreThanRead checks that a listed program with one of these options counts as
// unlisted, and also with an unknown option.
func TestOptionsThatDoMoreThanRead(t *testing.T) {
	all := []string{"git", "sort", "sed", "awk", "rg", "fd", "date", "tree", "jq", "uniq", "xxd", "less", "cat",
		"./t.sh", "/bin/ls"}
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
		},
	} {
		for _, line := range lines {
			if got := Of(line, Options{Listed: all}); (got.Unlisted.Known && got.Unlisted.Text == "") != listed {
				t.Errorf("%s: unlisted %+v, %s", line, got.Unlisted, got.Why)
			}
		}
	}
}
