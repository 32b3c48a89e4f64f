package shellfacts

import (
	"strings"
	"testing"
)

// TestWhereFilesAre checks files in the workspace, outside, and in unknown places. The call is in
// /w/sub.
func TestWhereFilesAre(t *testing.T) {
	for line, want := range map[string]string{
		"cat a ../b /w/c ./d/../e":                  "",
		"cat a 2>/dev/null | head -5 >&2":           "",
		"cd /w && cat a":                            "",
		"cd .. && cat a":                            "..",
		"cd d && cat ../a":                          "../a",
		"cat ../../a":                               "../../a",
		"cd .. && cat ../a":                         "..\n../a",
		"cat /w2/a":                                 "/w2/a",
		"cat /w/../etc/passwd":                      "/w/../etc/passwd",
		"cat link/key < link/key":                   "link/key",
		"cd; cat a":                                 "~",
		"cd -- && ls":                               "~",
		"cat *.go src/*/a":                          "",
		"cat ../../*.go":                            "../../*.go",
		"cat .*/a":                                  ".*/a",
		"cat [.].":                                  "[.].",
		"cat ?*/a":                                  "",
		"cat ~/a":                                   "unknown",
		"cat $X":                                    "unknown",
		"cat <<< $HOME":                             "unknown",
		"cat <<E\n$HOME\nE":                         "unknown",
		"cat <<'E'\n$HOME\nE":                       "",
		"cat {a,b}":                                 "unknown",
		"x=/etc; cat a":                             "unknown",
		"cat a > ../../b":                           "../../b",
		"grep -rn /api/v1 a":                        "",
		"grep -rn -A 3 '\\.\\./x' a":                "",
		"grep -e /x /etc/passwd":                    "/etc/passwd",
		"grep /etc/passwd -e root":                  "/etc/passwd",
		"grep -T x /etc/passwd":                     "/etc/passwd",
		"grep -C x /etc/passwd":                     "/etc/passwd",
		"grep -f /etc/x a":                          "/etc/x",
		"grep --include=/x y a":                     "/x",
		"sed -n /a/,/b/p a":                         "",
		"sed -n 1p /etc/x":                          "/etc/x",
		"awk /a/ a":                                 "",
		"awk -f /x /y":                              "/x\n/y",
		"find . -name '*.go' -newer a":              "",
		"find . -newer /etc/passwd":                 "/etc/passwd",
		"find /etc -name x":                         "/etc",
		"find . -name '*.go' -exec grep -n x {} +":  "",
		"find /etc -exec cat {} +":                  "unknown",
		"find /etc -name '*.go' -exec cat {} +":     "/etc\n/etc/*.go",
		"find . .. -exec cat {} +":                  "unknown",
		"git show HEAD~1:a main..b HEAD^ @{u}.. ^x": "",
		"git commit -m 'a /x'":                      "",
		"dd if=/etc/x of=a":                         "/etc/x",
		"echo /x $?":                                "",
		"ls --x=/y -I/z -f..":                       "/y\n/z",
		"env ls /etc":                               "/etc",
		"bash -c 'cat /etc/x'":                      "/etc/x",
		"find . | xargs cat":                        "unknown",
		"CI=1 ls":                                   "",
	} {
		f := Of(line, Options{Workspace: &Workspace{Root: "/w", Directory: "/w/sub", Outside: []string{"link/key"}}})
		got := f.Outside.Text
		if !f.Outside.Known {
			got = "unknown"
		}
		if got != want || f.Outside.Known != (f.WhyFiles == "") {
			t.Errorf("%s: %q, want %q; %s", line, got, want, f.WhyFiles)
		}
	}
}

// TestWorkspacesThatAreNone checks invalid workspaces: the location of files is unknown, and the
// reason says why.
func TestWorkspacesThatAreNone(t *testing.T) {
	for why, w := range map[string]*Workspace{
		"the runtime named no workspace": nil,
		"it is a link":                   {Root: "/w", Unknown: "it is a link"},
		"the workspace is no directory below the root of the file system":   {Root: "/x/.."},
		"the workspace is no directory below the root of the file system ":  {Root: "w"},
		"the workspace is no directory below the root of the file system  ": {},
		"the directory of the call is no absolute path":                     {Root: "/w", Directory: "w"},
	} {
		why = strings.TrimSpace(why)
		if f := Of("ls a", Options{Workspace: w}); f.Outside.Known || f.WhyFiles != why || !f.Sensitive.Known {
			t.Errorf("%+v: %+v", w, f)
		}
		if f := Paths([]string{"a"}, Use{}, w); f.Outside.Known || f.Why != why {
			t.Errorf("%+v: %+v", w, f)
		}
	}
	if f := Of("ls", Options{Workspace: &Workspace{Root: "/w", Directory: "/v"}}); f.Outside.Text != "." {
		t.Errorf("a call outside: %+v", f.Outside)
	}
}

// TestSensitiveFiles checks which lines name sensitive files, also by globs, options and directories.
func TestSensitiveFiles(t *testing.T) {
	for sensitive, lines := range map[bool][]string{
		true: {
			"cat .env", "cat a/.ENV", "cat .env.local", "cat .e*", "cat .en?", "cat *", "cat a/*",
			"head certs/server.key",
			"cat .git/config", "git show HEAD:.env", "cat .ssh/id_rsa", "echo x > .git/hooks/a", "cat < .env",
			"cp .env a", "mv a .claude/settings.json", "cat .cursor/hooks.json", "cat config/secrets.yml", "cat secr*",
			"grep -rn password .", "grep -rin 'api_key'", "cat .npmrc", "echo x > .github/workflows/a.yml",
			"tee .vscode/settings.json", "sed -n 1p id_rsa", "cat app.env", "cat [.]env",
		},
		false: {
			"cat .env.example", "cat environment.go", "cat *.go", "ls", "ls -la .env *", "test -f .env",
			"cat .gitignore",
			"cat .github/workflows/a.yml", "grep -rn password src", "grep -rn password --include=*.go .",
			"cat tokens.go",
			"cat token.go", "cat secrets.ts", "find . -name '*.go' -exec cat {} +", "echo .env", "grep .env a",
			"jq . *.json",
			"cat .vscode/settings.json", "wc -l *",
		},
	} {
		for _, line := range lines {
			if f := Of(line, Options{}); !f.Sensitive.Known || (f.Sensitive.Text != "") != sensitive {
				t.Errorf("%s: %+v %s", line, f.Sensitive, f.WhyFiles)
			}
		}
	}
}

// TestOperandsThatAreWritten are among the files that a line writes.
func TestOperandsThatAreWritten(t *testing.T) {
	for line, want := range map[string]string{
		"touch a b": "a\nb", "cp a b c": "c", "cp -t a b": "a\nb", "mv a b": "a\nb", "uniq a b": "b", "uniq a": "",
		"dd if=a of=b": "b", "tee -a a": "a", "sed -i s/a/b/ a": "unknown", "sed -n 1p a": "", "gofmt -w a": "a",
		"gofmt -l a": "", "go test -coverprofile=a ./...": "a", "go build -o a .": "a", "ls a > b": "b",
		"mkdir -p a":         "a",
		"prettier --write a": "a", "prettier --check a": "", "touch $X": "unknown", "chmod +x a": "a",
	} {
		f := Of(line, Options{Listed: []string{"gofmt", "go", "prettier", "sed"}})
		got := f.Writes.Text
		if !f.Writes.Known {
			got = "unknown"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
