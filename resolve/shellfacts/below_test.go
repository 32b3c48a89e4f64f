package shellfacts

import (
	"slices"
	"strings"
	"testing"
)

// TestSecretsBelowSearchedDirectories checks which files with secrets a search reads, in a workspace
// with .env, src/.env, src/key.pem and docs/secrets.yaml.
func TestSecretsBelowSearchedDirectories(t *testing.T) {
	w := &Workspace{Root: "/w", Secrets: []string{".env", "src/.env", "src/key.pem", "docs/secrets.yaml"}}
	const all = ".env\ndocs/secrets.yaml\nsrc/.env\nsrc/key.pem"
	for line, want := range map[string]string{
		"grep -rn x .":                                       all,
		"grep -r x":                                          all,
		"grep --recursive x ./":                              all,
		"grep -d recurse x":                                  all,
		"grep --directories=recurse x .":                     all,
		"grep -rne x":                                        all,
		"grep -r --weird x":                                  all,
		"grep -rn x /w":                                      all,
		"grep -rn x *":                                       all,
		"grep -rn x src":                                     "src/.env\nsrc/key.pem",
		"grep -rn x ./src docs/":                             "docs/secrets.yaml\nsrc/.env\nsrc/key.pem",
		"grep -rn x lib":                                     "",
		"grep -rn x sr":                                      "",
		"cd lib && grep -rn x src":                           all, // from whichever directory
		"grep -rn --include='*.go' x .":                      "",
		"grep -rn --include=*.go --include=*.p?m x .":        "src/key.pem",
		"grep -rn --include '*.y*ml' x .":                    "docs/secrets.yaml",
		"grep -rn --exclude='.env*' --exclude=*.pem x .":     "docs/secrets.yaml",
		"grep -rn --exclude-dir=src --exclude-dir=docs/ x .": ".env",
		"grep -n x a":                                        "",
		"rg x":                                               "docs/secrets.yaml\nsrc/key.pem",
		"rg x src":                                           "src/key.pem",
		"rg -g '*.go' x":                                     "",
		"rg -g '!docs' x":                                    "docs/secrets.yaml\nsrc/key.pem",
		"rg -g '*.pem' x .":                                  "src/key.pem",
		"git grep x":                                         "",
		"fd x":                                               "",
	} {
		f := Of(line, Options{Workspace: w})
		got := strings.Split(f.Sensitive.Text, "\n")
		got = slices.DeleteFunc(got, func(p string) bool { return strings.ContainsAny(p, "*?") }) // the pattern itself
		if !f.Sensitive.Known || strings.Join(got, "\n") != want {
			t.Errorf("%s: %+v, want %q: %s", line, f.Sensitive, want, f.WhyFiles)
		}
	}
	for line, sensitive := range map[string]bool{ // nobody looked for secrets
		"grep -rn x .": true, "grep -rn x": true, "grep -rn x /w": true, "grep -rn --include=*.go x .": false,
		"grep -rn x src": false, "rg x": false, "grep -rn --include='*' x .": true,
	} {
		if f := Of(line, Options{Workspace: &Workspace{Root: "/w"}}); (f.Sensitive.Text != "") != sensitive {
			t.Errorf("%s: %+v", line, f.Sensitive)
		}
	}
	for line, moved := range map[string]bool{"cd a; grep -r x b c; rg y": true, "grep -r x b c; diff .": false,
		"mv x y; grep -r x b c .": true} {
		got, m := Searches(line)
		if !slices.Equal(got, []string{"b", "c", "."}) || m != moved {
			t.Errorf("%s: %q %t", line, got, m)
		}
	}
}

// TestSearchingTools checks the paths and patterns of tools that search: several patterns may be in one
// text.
func TestSearchingTools(t *testing.T) {
	w := &Workspace{Root: "/w", Directory: "/w/sub", Secrets: []string{".env", "src/key.pem"}}
	for paths, want := range map[string]string{
		"":                       "", // the directory of the call has none
		"/w":                     ".env\nsrc/key.pem",
		"/w/src":                 "src/key.pem",
		"..":                     ".env\nsrc/key.pem",
		"/w|*.go":                "",
		"/w|*.go, *.ts":          "",
		"/w|*.{go,pem}":          "*.pem\nsrc/key.pem",
		"/w|*.go .env":           ".env",
		"/w|*.go,.env":           ".env",
		"/w|{*.go,.env}":         ".env",
		"/w|.e{n,x}v":            ".env",
		"/w|!*.pem":              ".env\nsrc/key.pem",
		"/w|src/**/*.{ts,tsx}":   "",
		"/w|" + deep("{a,b}", 9): "~",
	} {
		list := slices.DeleteFunc(strings.Split(paths, "|"), func(p string) bool { return p == "" })
		f := Paths(list, Use{Searches: true}, w)
		got := f.Sensitive.Text
		if strings.Contains(f.Outside.Text, "~") {
			got = "~"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", paths, got, want)
		}
	}
	if f := Paths([]string{"{.env,a}"}, Use{}, w); f.Sensitive.Text == "" {
		t.Error("braces hide a file with secrets")
	}
	if f := Paths([]string{"/w"}, Use{}, w); f.Sensitive.Text != "" {
		t.Errorf("a tool that does not search: %+v", f.Sensitive)
	}
	if f := Paths(nil, Use{Searches: true}, &Workspace{Root: "/w"}); f.Sensitive.Text != "." {
		t.Errorf("nobody looked for secrets: %+v", f.Sensitive)
	}
}

func deep(text string, n int) string { return strings.Repeat(text, n) }

// TestLinesThatMakeLinks checks that a path which may be behind a new link is not known.
func TestLinesThatMakeLinks(t *testing.T) {
	for line, known := range map[string]bool{
		"ln -s / x/y && cat x/y/etc/passwd": false, "ln -s a b": true, "ln -s a b && ls": true,
		"ln -s a b; go test ./c":                  false,
		"while true; do cat b/c; ln -s a b; done": false, "tar xf a; cat b": false, "git switch main && cat a": false,
		"git stash pop && cat a": false, "git stash pop && go test ./...": true, "git switch -c x && cat a": true,
		"git checkout -b x; cat a": true, "git checkout x; cat a": false, "git pull && git diff a": true,
		"git stash; cat a": true,
	} {
		f := Of(line, Options{Workspace: &Workspace{Root: "/w"}, Listed: []string{"go test", "git"}})
		if f.Outside.Known != known || f.Sensitive.Known != known {
			t.Errorf("%s: %+v", line, f)
		}
	}
}
