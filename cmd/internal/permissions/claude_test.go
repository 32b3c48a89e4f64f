package permissions

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// settings are the permissions of a settings.json.
type settings struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	Mode  string   `json:"defaultMode,omitempty"`
}

// use is a call of Claude Code: a tool and the argument that rules read.
type use struct{ tool, argument string }

func (u use) line() string {
	name := map[string]string{"Bash": "command", "WebFetch": "url"}[u.tool]
	if name == "" {
		name = pathOf(u.tool)
	}
	args, _ := json.Marshal(map[string]string{name: u.argument})
	if rest, isMCP := strings.CutPrefix(u.tool, "mcp__"); isMCP {
		server, tool, _ := strings.Cut(rest, "__")
		return `{"kind":"mcp_tool","server":"` + server + `","tool":"` + tool + `"}`
	}
	return `{"kind":"tool","tool":"` + u.tool + `","args":` + string(args) + `}`
}

// The interpreter of the settings, by Claude Code's documentation. Where that leaves a choice, it is the
// stricter reading: 0 allows, 1 asks, 2 denies.

func (s settings) decide(u use) int {
	matches := func(rules []string, certain bool) bool {
		return slices.ContainsFunc(rules, func(r string) bool { return ruleMatches(r, u, certain) })
	}
	switch {
	case matches(s.Deny, false):
		return 2
	case matches(s.Ask, false):
		return 1
	case u.tool == "Bash" && !strings.ContainsAny(u.argument, "$`<>(){}\\'\""):
		for _, part := range separators.Split(u.argument, -1) {
			part := use{"Bash", strings.TrimSpace(part)}
			if !slices.ContainsFunc(s.Allow, func(r string) bool { return ruleMatches(r, part, true) }) {
				return 1
			}
		}
		return 0
	case u.tool != "Bash" && matches(s.Allow, true), u.tool == "Bash" && slices.Contains(s.Allow, "Bash"):
		return 0
	}
	return 1
}

var (
	separators = regexp.MustCompile(`&&|\|\||[;|&\n]`)
	wrappers   = regexp.MustCompile(`^([A-Z_]+=\S* +|timeout +\d+ +|nice +|sudo +|time +)+`)
)

// ruleMatches reports whether a rule is about a call, for certain or possibly.
func ruleMatches(rule string, u use, certain bool) bool {
	tool, specifier, given := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	if strings.HasPrefix(tool, "mcp__") {
		return u.tool == tool || strings.HasPrefix(u.tool, tool+"__") ||
			strings.HasPrefix(tool, "mcp__") && policy.Glob(tool, u.tool)
	}
	family := func(of string, list ...string) bool { return !certain && tool == of && slices.Contains(list, u.tool) }
	switch {
	case tool != u.tool && !family("Read", "Grep", "Glob", "NotebookRead") &&
		!family("Edit", "Write", "MultiEdit", "NotebookEdit"):
		return false
	case !given || specifier == "*":
		return true
	case tool == "WebFetch":
		at, err := url.Parse(u.argument)
		return err == nil && "domain:"+strings.ToLower(at.Hostname()) == specifier
	case tool != "Bash":
		return fileMatches(specifier, u.argument)
	case certain:
		return commandMatches(specifier, u.argument, true)
	}
	return slices.ContainsFunc(separators.Split(u.argument, -1), func(part string) bool {
		part = strings.Join(strings.Fields(part), " ")
		inner := wrappers.ReplaceAllString(part, "")
		return commandMatches(specifier, part, false) || commandMatches(specifier, inner, false)
	})
}

func commandMatches(specifier, command string, certain bool) bool {
	if prefix, open := strings.CutSuffix(specifier, ":*"); open {
		return command == prefix || strings.HasPrefix(command, prefix+" ") ||
			!certain && strings.HasPrefix(command, prefix)
	}
	expression := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(specifier), `\*`, `.*`) + "$"
	return matchesText(expression, command)
}

// fileMatches matches a path like .gitignore, from /w/repo and the home /home/u.
func fileMatches(pattern, file string) bool {
	if !path.IsAbs(file) {
		file = path.Join("/w/repo", file)
	}
	file = path.Clean(file)
	base := "/w/repo"
	switch {
	case strings.HasPrefix(pattern, "//"):
		base, pattern = "", pattern[1:]
	case strings.HasPrefix(pattern, "~/"):
		base, pattern = "/home/u", pattern[1:]
	case strings.HasPrefix(pattern, "../"):
		base, pattern = "/w", pattern[2:]
	case strings.HasPrefix(pattern, "./"):
		pattern = pattern[1:]
	case !strings.Contains(strings.TrimSuffix(pattern, "/"), "/"):
		pattern = "/**/" + pattern
	case !strings.HasPrefix(pattern, "/"):
		pattern = "/" + pattern
	}
	expression := regexp.QuoteMeta(strings.TrimSuffix(pattern, "/"))
	for _, r := range [][2]string{
		{`\*\*/`, "\x00"}, {`\*\*`, "\x01"}, {`\*`, `[^/]*`}, {`\?`, `[^/]`}, {"\x00", `(.*/)?`}, {"\x01", `.*`},
	} {
		expression = strings.ReplaceAll(expression, r[0], r[1])
	}
	return matchesText("(?s)^"+regexp.QuoteMeta(base)+expression+"(/.*)?$", file)
}

var expressions sync.Map // compiled, by their text

func matchesText(expression, text string) bool {
	compiled, known := expressions.Load(expression)
	if !known {
		compiled, _ = expressions.LoadOrStore(expression, regexp.MustCompile(expression))
	}
	return compiled.(*regexp.Regexp).MatchString(text)
}

// common are rules as real settings have them.
var common = []string{
	"Bash", "Bash(npm run test:*)", "Bash(npm run lint)", "Bash(npm run build:*)",
	"Bash(git diff:*)", "Bash(git status)",
	"Bash(git log *)", "Bash(git push:*)", "Bash(git commit:*)", "Bash(rm:*)", "Bash(rm -rf:*)",
	"Bash(curl:*)", "Bash(ls *)",
	"Bash(go test ./...)", "Bash(go build:*)", "Bash(docker compose up:*)", "Bash(make *)",
	"Bash(* --force)", "Bash(sudo:*)",
	"Bash(find . -name:*)", "Bash(python3 -m pytest:*)", "Bash(echo \"hi\":*)", "Bash(cat:*)", "Bash(kubectl get:*)",
	"Read", "Read(./.env)", "Read(./.env.*)", "Read(./secrets/**)", "Read(~/.ssh/**)",
	"Read(//etc/**)", "Read(**/*.pem)",
	"Read(.env)", "Read(/config/keys.json)", "Read(../other/**)", "Read(src/**)",
	"Read(docs/[a-z]*.md)", "Grep", "Glob",
	"Edit", "Edit(src/**)", "Edit(/docs/**)", "Edit(package-lock.json)",
	"Edit(.github/workflows/*)", "Write", "MultiEdit",
	"Write(build/)", "WebFetch", "WebFetch(domain:github.com)", "WebFetch(domain:docs.python.org)", "WebSearch", "Task",
	"Task(reviewer)", "TodoWrite", "NotebookEdit", "mcp__github", "mcp__github__get_issue", "mcp__github__create_issue",
	"mcp__github__*", "mcp__db__query", "mcp__db__drop_*", "mcp__puppeteer__puppeteer_navigate", "Skill(pdf)",
}

// uses are calls at and next to the edges of these rules.
func uses() []use {
	var out []use
	for _, command := range []string{
		"npm run test", "npm run test -- --watch", "npm run test:e2e", "npm run tests",
		"npm run lint", "npm run lint --fix",
		"npm run build && rm -rf /", "git diff HEAD~1", "git diff", "git difftool", "git status",
		"git status -s", "git log -5",
		"git log", "git push origin main", "git push --force", "git  push", "git commit -m x",
		"git commit -m \"x y\"", "rm x",
		"rm -rf x", "rm -r -f x", "rmdir x", "ls -la", "ls", "lsof", "ls; rm x", "ls | xargs rm",
		"ls && git push", "ls\nrm x",
		"ls $(rm x)", "ls `rm x`", "ls > out", "curl example.com", "FOO=1 curl x", "timeout 5 rm x",
		"nice git push", "sudo ls",
		"go test ./...", "go test ./... -v", "go build ./cmd", "make all", "make", "make x --force",
		"python3 -m pytest -k a",
		"cat .env", "echo \"hi\" there", "kubectl get pods", "kubectl delete pods",
		"docker compose up -d", "npm run format",
		"find . -name x -delete", " ls -la", "ls -la ", "",
	} {
		out = append(out, use{"Bash", command})
	}
	files := []string{
		"/w/repo/.env", "/w/repo/.env.local", "/w/repo/env", "/w/repo/a/.env", "/w/repo/secrets/k",
		"/w/repo/x/../secrets/k",
		"/w/repo/secrets", "/w/repo//secrets/k", "/home/u/.ssh/id_rsa", "/etc/passwd", "/etc",
		"/w/repo/a/b.pem", "/w/repo/b.PEM",
		"/w/repo/config/keys.json", "/w/other/x", "/w/repo/src/a.go", "/w/repo/docs/a.md", "/w/repo/package-lock.json",
		"/w/repo/.github/workflows/ci.yml", "/w/repo/build/x", "src/a.go", "./.env",
		"/w/repo/./.env", "/w/repo/README.md",
	}
	tools := []string{"Read", "Grep", "Glob", "NotebookRead", "Edit", "Write", "MultiEdit", "NotebookEdit"}
	for _, tool := range tools {
		for _, file := range files {
			out = append(out, use{tool, file})
		}
	}
	for _, address := range []string{
		"https://github.com/x", "https://GitHub.com", "https://github.com.evil.example/", "https://api.github.com/",
		"https://u@github.com/", "http://docs.python.org/3/", "file:///etc/passwd", "github.com",
	} {
		out = append(out, use{"WebFetch", address})
	}
	for _, tool := range []string{
		"mcp__github__get_issue", "mcp__github__create_issue", "mcp__db__query", "mcp__db__drop_table", "mcp__other__x",
		"mcp__puppeteer__puppeteer_navigate", "WebSearch", "Task", "TodoWrite", "Skill", "KillShell", "Unheard",
	} {
		out = append(out, use{tool, "x"})
	}
	return out
}

// compiled returns the plan of an import.
func compiled(t *testing.T, in *Import) *resolve.Plan {
	t.Helper()
	agent, findings := schema.Parse("agent.agf.yaml", []byte(in.Agent))
	if agent == nil {
		t.Fatalf("%v\n%s", findings, in.Agent)
	}
	pol, findings := policy.Parse("p.policy.yaml", []byte(in.Policy))
	if pol == nil || len(findings) > 0 && len(pol.Rules) > 0 {
		t.Fatalf("%v\n%s", findings, in.Policy)
	}
	set, _ := policy.NewSet(pol)
	plan, err := resolve.Compile(agent, set, resolve.Options{})
	must.Do(t, err)
	return plan
}

// TestImportsAreNeverMoreOpen draws settings of common rules, and compares the import with an interpreter of
// the settings on every use.
func TestImportsAreNeverMoreOpen(t *testing.T) {
	all, kept, lost := uses(), 0, 0
	for seed := range uint64(60) {
		d := rand.New(rand.NewPCG(seed, 7))
		draw := func(most int) (out []string) {
			for range d.IntN(most + 1) {
				out = append(out, common[d.IntN(len(common))])
			}
			return out
		}
		s := settings{Allow: draw(12), Ask: draw(3), Deny: draw(4)}
		if d.IntN(3) == 0 {
			s.Mode = []string{"default", "acceptEdits", "bypassPermissions"}[d.IntN(3)]
		}
		src := must.Get(json.Marshal(map[string]any{"permissions": s}))(t)
		plan := compiled(t, must.Get(ClaudeCode(src))(t))
		for _, u := range all {
			c := must.Get(resolve.ParseCall([]byte(u.line()), value.Limits{}))(t)
			want, got := s.decide(u), map[resolve.Outcome]int{resolve.Ask: 1, resolve.Deny: 2}[plan.Decide(c).Outcome]
			switch {
			case got < want:
				t.Fatalf("seed %d: %s %q: %d, but the settings say %d\n%s", seed, u.tool, u.argument, got, want, src)
			case want == 0 && got == 0:
				kept++
			case want == 0:
				lost++
			}
		}
	}
	if kept < 2*lost {
		t.Errorf("of the calls that settings allow, %d are allowed and %d are not", kept, lost)
	}
}

// What is exact stays exact, and each part that is not is named.
func TestImportOfPlainSettings(t *testing.T) {
	in := must.Get(ClaudeCode([]byte(`{"$schema":"x","permissions":{"allow":["Bash(git diff:*)","Read(src/**)","mcp__db__query",
		"WebFetch(domain:github.com)"],"ask":["Bash(git push:*)"],"deny":["Read(./.env)","mcp__db__drop_*"],
		"additionalDirectories":["../x"],"defaultMode":"acceptEdits"}}`)))(t)
	plan := compiled(t, in)
	for u, want := range map[use]resolve.Outcome{
		{"Bash", "git diff HEAD"}: resolve.Allow, {"Bash", "git push"}: resolve.Ask, {"Bash", "ls"}: resolve.Ask,
		{"Read", "/w/.env"}: resolve.Deny, {"Read", "/w/env"}: resolve.Ask, {"mcp__db__query", ""}: resolve.Allow,
		{"mcp__db__other", ""}: resolve.Ask, {"mcp__db__drop_all", ""}: resolve.Deny, {"mcp__x__y", ""}: resolve.Deny,
		{"WebFetch", "https://github.com/a"}: resolve.Allow, {"WebFetch", "https://example.com"}: resolve.Ask,
	} {
		c := must.Get(resolve.ParseCall([]byte(u.line()), value.Limits{}))(t)
		if got := plan.Decide(c).Outcome; got != want {
			t.Errorf("%v: %s, want %s", u, got, want)
		}
	}
	losses := strings.Join(in.Losses, "\n")
	named := []string{`allow "Read(src/**)"`, "permissions.additionalDirectories", "permissions.defaultMode"}
	for _, want := range named {
		if !strings.Contains(losses, want) {
			t.Errorf("no loss names %s:\n%s", want, losses)
		}
	}
	for _, bad := range []string{
		`{`, `[]`, `{}`, `{"permissions":[]}`, `{"permissions":{"deny":"Bash"}}`, `{"permissions":{"deny":["Bash("]}}`,
		`{"permissions":{"ask":[1]}}`, `{"permissions":{"deny":[]},"permissions":{}}`, `{"permissions":{"deny":["*"]}}`,
	} {
		if _, err := ClaudeCode([]byte(bad)); err == nil {
			t.Errorf("%s is imported", bad)
		}
	}
}
