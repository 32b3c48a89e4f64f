package shellfacts

import (
	"strings"
	"testing"
)

// TestLoopsAndDocuments checks the programs and files of loops, of here-documents in substitutions, and
// of commands behind time. Everything about the lines of the last list is unknown.
func TestLoopsAndDocuments(t *testing.T) {
	commit := func(text string) string { return "git commit -m \"$(cat <<'EOF'\n" + text + "\nEOF\n)\"" }
	for line, want := range map[string]string{ // commands; outside; sensitive
		"for f in a b; do cat $f; done":                        "cat a\ncat b;;",
		"for f in a b; do cat \"$f.go\" ${f}x $f/y; done":      "cat a.go ax a/y\ncat b.go bx b/y;;",
		"for f in .env; do cat $f; done":                       "cat .env;;.env",
		"for f in .e; do cat ${f}nv; done":                     "cat .env;;.env",
		"for f in ..; do cat $f/a; done":                       "cat ../a;../a;",
		"for f in -o; do sort $f a b; done":                    "sort -o a b;;",
		"for f in rm; do $f a; done":                           "rm a;;",
		"for f in a; do for g in b c; do cat $f$g; done; done": "unknown;unknown;unknown",
		"for f in a; do for g in b; do cat $f/$g; done; done":  "cat a/b;;",
		"for f in *.go; do cat \"$f\"; done":                   "unknown;;",
		"for f in .e*; do cat \"$f\"; done":                    "unknown;;.e*",
		"for f in /etc/*; do cat \"$f\"; done":                 "unknown;/etc/*;/etc/*",
		"for f in *.go; do cat $f; done":                       "unknown;unknown;unknown",
		"for i in {1..3}; do ls; done":                         "ls;;",
		"for i in $(seq 3); do ls; done":                       "seq 3\nls;;",
		"for i in $(seq 3); do ls $i; done":                    "unknown;unknown;unknown",
		"for f in a; do cat $f:h; done":                        "unknown;unknown;unknown",
		"for f in a; do cat $fé; done":                         "unknown;unknown;unknown",
		"for f in 'a b'; do cat $f; done":                      "unknown;unknown;unknown",
		"for f in a; do ls; done; cat $f":                      "unknown;unknown;unknown",
		"for f in a; do for f in b; do ls; done; cat $f; done": "unknown;unknown;unknown",
		"for f in a; do cat ${f:-b}; done":                     "unknown;unknown;unknown",
		"time cat a | ls":                                      "time cat a\ncat a\nls;;",
		"time cat a > ../b":                                    "time cat a\ncat a;../b;",
		commit("Fix the parser's end\n\n(It works.)"):          "git commit -m 'Fix the parser'\\''s end  (It works.)'\ncat;;",
		commit("Run `make test`"):                              "git commit -m 'Run `make test`'\ncat;;",
		"cat \"$(cat <<'E'\n.env\nE\n)\"":                      "cat .env\ncat;;.env",
	} {
		f := Of(line, Options{Listed: []string{"git commit"}, Workspace: &Workspace{Root: "/w"}})
		got := ""
		for i, fact := range []Fact{f.Commands, f.Outside, f.Sensitive} {
			text := fact.Text
			if !fact.Known {
				text = "unknown"
			}
			got += []string{"", ";", ";"}[i] + text
		}
		if got != want {
			t.Errorf("%s: %q, want %q: %s; %s", line, got, want, f.Why, f.WhyFiles)
		}
	}
	for _, line := range []string{
		"for PATH in a; do ls; done", "for path in a; do ls; done", "for status in a; do ls; done",
		"for f; do ls; done",
		"select f in a; do ls; done", "for ((;;)); do ls; done", "for f in a; { ls; }", "for f in a; do f=b; done",
		"for f in a; do eval $f; done", "for f in sh; do $f x; done", "for f in a; do $(echo rm) $f; done",
		"for a in " + strings.Repeat("x ", mostRounds+1) + "; do ls; done", "for f in a; do cat $f[1]; done",
		"time -p ls", "time { ls; }", "time -o a ls", "time ! ls", "time CI=1 ls", "time",
		commit("$(rm a) )"), commit("`rm a` )"), commit("`rm a`'s"), commit("`"), commit("a\nEOF b)"),
		commit(" EOF b)"), commit(`"; rm a; "`),
		commit(`a\`), commit("it's") + " && echo ') \"; rm a; #'", "git commit -m \"$(cat <<EOF\na\nEOF\n)\"",
		"git commit -m \"$(cat <<'E F'\na\nE F\n)\"", "git commit -m \"$(cat <<-'E'\na\nE\n)\"",
		"git commit -m $(cat <<'E'\na\nE\n)", "git commit -m \"x$(cat <<'E'\na\nE\n)\"",
		"git commit -m \"$(cat a <<'E'\na\nE\n)\"",
		"git commit -m \"$(cat <<'E' > a\na\nE\n)\"", "git commit -m \"$(sh <<'E'\na\nE\n)\"",
		"git commit -m \"$(cat <<'E'; ls\na\nE\n)\"",
		"git commit -m `cat <<'E'\na\nE\n`", "cat <(cat <<'E'\na\nE\n)", "git commit -m \"$(X=1 cat <<'E'\na\nE\n)\"",
	} {
		if f := Of(line, Options{Listed: []string{"ls", "cat", "git"}}); f.Programs.Known && f.Unlisted.Text == "" {
			t.Errorf("%q: %+v", line, f)
		}
	}
}

// TestWrappersRunTheirCommands checks the commands that wrappers run, and the words by which it is not
// known what they run.
func TestWrappersRunTheirCommands(t *testing.T) {
	for line, want := range map[string]string{
		"timeout -k 5 60 rm a":          "rm timeout",
		"timeout --signal=KILL 60 rm a": "rm timeout",
		"env CI=1 NO_COLOR=1 rm a":      "env rm",
		"uv run rm a":                   "rm uv",
		"uv run --frozen -q rm a":       "rm uv",
		"poetry run rm a":               "poetry rm",
		"nice -n 5 rm a":                "nice rm",
		"timeout -x 60 rm a":            "",
		"timeout -k":                    "",
		"timeout --signal 60 rm a":      "",
		"env PATH=x rm a":               "",
		"env CI=/x rm a":                "",
		"env -i rm a":                   "",
		"uv run --with x rm a":          "",
		"uv run":                        "",
		"uv pip install x":              "",
		"poetry run $X":                 "",
	} {
		if f := Of(line, Options{}); f.Programs.Text != want {
			t.Errorf("%s: %q, want %q", line, f.Programs.Text, want)
		}
	}
}
