package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
)

const guideFile = "../../docs/guides/ci.md"

// guideBlock returns the block of the guide that contains a text.
func guideBlock(t *testing.T, holds string) string {
	t.Helper()
	guide := string(must.Get(os.ReadFile(guideFile))(t))
	for _, block := range strings.Split(guide, "```yaml\n")[1:] {
		if block, _, _ := strings.Cut(block, "```"); strings.Contains(block, holds) {
			return block
		}
	}
	t.Fatalf("%s has no block with %q", guideFile, holds)
	return ""
}

// guided returns a repository with the settings of the guide, and tools.
func guided(t *testing.T) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir(), temp: t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.write(".agf-validate.yaml", guideBlock(t, "paths: [agents, policies]")+"tools: [stripe=tools/stripe.json]\n")
	r.write("tools/stripe.json", `{"tools":[{"name":"refund","inputSchema":{"type":"object",`+
		`"properties":{"amount":{"type":"number"}},"required":["amount"]}}]}`)
	r.write("agents/desk.agf.yaml", `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Refunds}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Refund., model: any}}
constraints:
  governance_policies: [{policy_ref: acme.refunds}]
action_space:
  mcp_servers:
    - alias: stripe
      server_ref: mcp.stripe.com
      allowed_tools: [refund]
`)
	r.write("policies/refunds.policy.yaml", `schema_version: "1.0.0"
policy_ref: acme.refunds
rules:
  - id: large
    match: {kinds: [mcp_tool], targets: [refund]}
    approval: {condition: {args_match: {amount: {gt: 100}}}}
    require: {stages: [{group: risk}], within: 1h}
`)
	r.write("people.yaml", `schema_version: "1.0.0"
people:
  - {id: mara@example.com, groups: [risk]}
groups:
  risk: {}
`)
	r.write("decisions.yaml", "trusted_servers: []\n")
	r.write("tests/desk.test.yaml", `schema_version: "1.0.0"
agent: ../agents/desk.agf.yaml
policies: [../policies]
people: ../people.yaml
calls:
  - name: a large refund asks
    call: {kind: mcp_tool, server: stripe, tool: refund, args: {amount: 900}}
    expect: {outcome: ask}
`)
	r.commit("begin")
	r.base = strings.TrimSpace(r.git("rev-parse", "HEAD"))
	return r
}

func parseYAML(t *testing.T, text string) *yamldoc.Node {
	t.Helper()
	text = strings.Replace(text, "\non:", "\n\"on\":", 1) // GitHub's own key, which YAML 1.1 takes for true
	text, _ = strings.CutPrefix(text, "on: pull_request\n")
	doc, findings := yamldoc.Parse("recipe.yaml", []byte(text), yamldoc.Limits{})
	if doc == nil {
		t.Fatal(findings)
	}
	return doc.Root
}

// mistake is one change of a file of the repository.
type mistake struct {
	name, file, old, new string
	says                 string // of every integration
	compared             bool   // only a comparison with the base finds it
	unread               bool   // nothing can be compared, which is exit code 2
}

// mistakes returns one mistake of each kind. The first one changes nothing.
func mistakes() []mistake {
	return []mistake{
		{name: "clean", file: "people.yaml", old: "risk: {}", new: "risk: {}"},
		{
			name: "agent", file: "agents/desk.agf.yaml",
			old: "alias: stripe", new: "alias: stripe\n    - alias: stripe",
			says: `alias "stripe" stands twice`, unread: true,
		},
		{
			name: "policy", file: "policies/refunds.policy.yaml", old: "targets:", new: "tragets:",
			says: `unknown field "tragets"`, unread: true,
		},
		{
			name: "people", file: "people.yaml", old: "groups: [risk]", new: "groups: [riks]",
			says: `no group "riks"`, unread: true,
		},
		{
			name: "decisions", file: "decisions.yaml", old: "trusted_servers", new: "trusted_serverz",
			says: `unknown field "trusted_serverz"`, unread: true,
		},
		{
			name: "settings", file: ".agf-validate.yaml", old: "people:", new: "peple:",
			says: `unknown field "peple"`, unread: true,
		},
		{
			name: "test", file: "tests/desk.test.yaml",
			old: "outcome: ask", new: "outcome: allow", says: "a large refund asks",
		},
		{
			name: "threshold raised", file: "policies/refunds.policy.yaml", old: "gt: 100", new: "gt: 800",
			says: "loosens", compared: true,
		},
		{
			name: "decisions loosened", file: "decisions.yaml", old: "trusted_servers: []",
			new: "trusted_servers: [\"*\"]", says: "loosens", compared: true,
		},
	}
}

// make commits a mistake on top of the base.
func (m mistake) make(r *repository) {
	r.t.Helper()
	r.git("reset", "-q", "--hard", r.base)
	text := string(must.Get(os.ReadFile(filepath.Join(r.dir, m.file)))(r.t))
	if !strings.Contains(text, m.old) {
		r.t.Fatalf("%s does not hold %q", m.file, m.old)
	}
	r.write(m.file, strings.Replace(text, m.old, m.new, 1))
	r.git("add", "-A")
	r.git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--allow-empty", "-qm", m.name)
}

// recipe runs one integration on a repository, and returns its exit code and all output that people
// see.
type recipe struct {
	compares bool
	run      func(r *repository) (int, string)
}

func githubAction(r *repository) (int, string) {
	api := &comments{bodies: []string{"a person's"}}
	server := httptest.NewServer(api)
	defer server.Close()
	for _, name := range []string{"output", "summary"} {
		must.Do(r.t, os.WriteFile(filepath.Join(r.temp, name), nil, 0o600))
	}
	inputs := readYAML(r.t, "../../integrations/github/action.yml").Get("inputs")
	var given []string // as the workflow of the guide says
	for _, step := range parseYAML(r.t, guideBlock(r.t, "integrations/github@")).
		Get("jobs").Get("agents").Get("steps").Items {
		if uses := step.Get("uses"); uses != nil && strings.Contains(uses.Text, "integrations/github@") {
			for _, name := range []string{"paths", "arguments"} {
				value := inputs.Get(name).Get("default").Text
				if n := step.Get("with").Get(name); n != nil {
					value = n.Text
				}
				given = append(given, "AGF_"+strings.ToUpper(name)+"="+value)
			}
		}
	}
	if len(given) != 2 {
		r.t.Fatal("the guide does not use the action")
	}
	script := must.Get(filepath.Abs("../../integrations/github/check.sh"))(r.t)
	code, out := r.run(script, append(given, "AGF_VALIDATE="+r.program(), "AGF_BASE="+r.base,
		"AGF_TOKEN=secret", "AGF_PULL_REQUEST=7", "RUNNER_TEMP="+r.temp,
		"GITHUB_OUTPUT="+filepath.Join(r.temp, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(r.temp, "summary"),
		"GITHUB_API_URL="+server.URL, "GITHUB_REPOSITORY=acme/desk")...)
	if code != 0 && !strings.Contains(out, "::error") {
		r.t.Errorf("exit %d without an annotation:\n%s", code, out)
	}
	return code, out + r.read("summary")
}

func gitlabJob(r *repository) (int, string) {
	job := readYAML(r.t, "../../integrations/gitlab/agf-validate.yml").Get("agf-validate")
	env := []string{
		"PATH=" + filepath.Dir(r.program()) + ":" + os.Getenv("PATH"), "CI_MERGE_REQUEST_DIFF_BASE_SHA=" + r.base,
	}
	for _, f := range job.Get("variables").Fields {
		env = append(env, f.Key.Text+"="+f.Value.Text)
	}
	var lines []string
	for _, line := range job.Get("script").Items {
		if !strings.HasPrefix(line.Text, "go install") {
			lines = append(lines, line.Text)
		}
	}
	return r.run(strings.Join(lines, "\n"), env...)
}

func startedWorkflow(r *repository) (int, string) {
	text := strings.NewReplacer("FLAGS", (&starter{}).flags(), "VERSION", term.Version).Replace(startWorkflow)
	var lines []string
	for _, step := range parseYAML(r.t, text).Get("jobs").Get("check").Get("steps").Items {
		if run := step.Get("run"); run != nil && !strings.HasPrefix(run.Text, "go install") {
			lines = append(lines, run.Text)
		}
	}
	if len(lines) != 2 {
		r.t.Fatalf("the workflow runs %q", lines)
	}
	return r.run(strings.Join(lines, "\n"), "PATH="+filepath.Dir(r.program())+":"+os.Getenv("PATH"))
}

// preCommit is pre-commit of PyPI, with the configuration of the guide.
// Its hooks come from a repository that holds their definition and their
// entry, which has built the program before.
func preCommit(t *testing.T) func(r *repository) (int, string) {
	t.Helper()
	venv := filepath.Join(must.Get(os.UserCacheDir())(t), "assent-pre-commit-4.7.0")
	program := filepath.Join(venv, "bin", "pre-commit")
	if _, err := os.Stat(program); err != nil {
		for _, args := range [][]string{
			{"python3", "-m", "venv", venv},
			{filepath.Join(venv, "bin", "pip"), "install", "-q", "pre-commit==4.7.0"},
		} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
	}

	const entry = "integrations/pre-commit/agf-validate"
	source := &repository{t: t, dir: t.TempDir(), temp: t.TempDir()}
	build := must.Get(filepath.Abs("../../"+entry))(t) + " --version"
	if code, out := source.run(build, "AGF_BIN="+source.temp); code != 0 {
		t.Fatalf("build: %s", out)
	}
	source.git("init", "-q")
	for _, name := range []string{".pre-commit-hooks.yaml", entry} {
		source.write(name, string(must.Get(os.ReadFile("../../"+name))(t)))
	}
	must.Do(t, os.Chmod(filepath.Join(source.dir, entry), 0o700))
	source.commit("hooks")
	source.git("tag", "v"+term.Version)
	config := guideBlock(t, "rev: v"+term.Version)
	config = strings.Replace(config, "https://github.com/assent-dev/assent", source.dir, 1)
	home := t.TempDir()
	return func(r *repository) (int, string) {
		r.write(".pre-commit-config.yaml", config)
		r.git("add", "-A")
		return r.run(program+" run --all-files --color never", "AGF_BIN="+source.temp, "PRE_COMMIT_HOME="+home)
	}
}

// TestRecipesOfTheGuideWork: each runs on a repository with the guide's
// own settings, clean and with one mistake of each kind.
func TestRecipesOfTheGuideWork(t *testing.T) {
	for name, recipe := range map[string]recipe{
		"github":     {true, githubAction},
		"gitlab":     {true, gitlabJob},
		"init":       {false, startedWorkflow},
		"pre-commit": {false, preCommit(t)},
	} {
		t.Run(name, func(t *testing.T) {
			r := guided(t)
			for _, m := range mistakes() {
				m.make(r)
				code, out := recipe.run(r)
				fails := m.says != "" && (recipe.compares || !m.compared)
				want := 0
				switch {
				case fails && recipe.compares && m.unread:
					want = 2
				case fails:
					want = 1
				}
				if fails && (code != want || !strings.Contains(out, m.says)) || !fails && code != 0 {
					t.Errorf("%s: exit %d, expected %d with %q\n%s", m.name, code, want, m.says, out)
				}
				if strings.Contains(out, "could not be compared") && m.says == "" {
					t.Errorf("%s: %s", m.name, out)
				}
			}
		})
	}
}

// TestBrokenFilesAreFindingsInEveryFormat: people, configuration and
// settings with errors are findings with a place, and other files are
// checked.
func TestBrokenFilesAreFindingsInEveryFormat(t *testing.T) {
	r := guided(t)
	for _, m := range mistakes() {
		if m.name != "people" && m.name != "decisions" && m.name != "settings" {
			continue
		}
		m.make(r)
		policy := filepath.Join(r.dir, "policies/refunds.policy.yaml")
		text := string(must.Get(os.ReadFile(policy))(t))
		must.Do(t, os.WriteFile(policy, []byte(strings.Replace(text, "targets", "tragets", 1)), 0o600))
		for format, place := range map[string]string{
			"text": m.file + ":", "json": `"` + m.file + `"`, "github": "::error file=" + m.file + ",line=",
			"sarif": `"` + m.file + `"`, "junit": m.file, "gitlab": `"` + m.file + `"`,
		} {
			code, out := r.run(r.program() + " --format " + format + " 2>/dev/null")
			words := strings.NewReplacer(`\"`, `"`, "&#34;", `"`, "&quot;", `"`).Replace(out)
			if code != 1 || !strings.Contains(out, place) || !strings.Contains(words, m.says) ||
				!strings.Contains(words, "tragets") {
				t.Errorf("%s, %s: exit %d\n%s", m.name, format, code, out)
			}
			if err := wellFormed(format, out); err != nil {
				t.Errorf("%s, %s: %v\n%s", m.name, format, err, out)
			}
		}
	}
}

func wellFormed(format, out string) error {
	switch format {
	case "sarif", "gitlab":
		if !json.Valid([]byte(out)) {
			return errors.New("no JSON")
		}
	case "junit":
		return xml.Unmarshal([]byte(out), new(struct{}))
	}
	return nil
}

// TestRecipesNameNoMovingRevision: the content of `@main` or `@latest` may change after it was
// reviewed.
func TestRecipesNameNoMovingRevision(t *testing.T) {
	moving := regexp.MustCompile(`@(main|master|latest|HEAD)\b|\brev: *['"]?(main|master|HEAD)\b|` +
		`_VERSION: *['"]?(latest|main)\b|/assent/(main|master)/|\bref: *['"]?(main|master)\b`)
	for _, bad := range []string{
		"uses: a/b@main", "rev: main", "go install x@latest", "AGF_VERSION: latest",
		"https://raw.githubusercontent.com/assent-dev/assent/main/x.yml",
	} {
		if !moving.MatchString(bad) {
			t.Errorf("%q is not found", bad)
		}
	}
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md", "integrations",
		".pre-commit-hooks.yaml", "cmd/agf-validate/start.go", "deploy", "examples", "agent/examples",
		":!examples/coding-agent/testdata")
	list.Dir = "../.."
	read := 0
	for name := range strings.SplitSeq(strings.Trim(string(must.Get(list.Output())(t)), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			continue // deleted meanwhile
		}
		read++
		for i, line := range strings.Split(string(text), "\n") {
			if moving.MatchString(line) {
				t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
	if read < 50 {
		t.Errorf("only %d files were read", read)
	}
	for _, file := range []string{guideFile, "../../integrations/gitlab/agf-validate.yml"} {
		text := string(must.Get(os.ReadFile(file))(t))
		for _, found := range regexp.MustCompile(`(?:github@|rev: |AGF_VERSION: |/assent/)(v[\d.]+\d)`).
			FindAllStringSubmatch(text, -1) {
			if found[1] != "v"+term.Version {
				t.Errorf("%s names %s, and this is v%s", file, found[1], term.Version)
			}
		}
	}
}
