package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// repository is a checkout in which GitHub's action or GitLab's job runs.
type repository struct {
	t    *testing.T
	dir  string
	temp string
	base string
}

const committedDesk = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space:
  local_tools:
    - alias: pay
      approval: {condition: {args_match: {amount: {gt: 10}}}}
`

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir(), temp: t.TempDir()}
	r.git("init", "-q")
	r.write("agents/desk.agf.yaml", committedDesk)
	r.commit("desk: begin")
	r.base = strings.TrimSpace(r.git("rev-parse", "HEAD"))
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	must.Do(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(r.t, os.WriteFile(path, []byte(text), 0o600))
}

func (r *repository) commit(message string) {
	r.git("add", "-A")
	r.git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", message)
}

// run runs a script with an environment of its own, and returns its exit
// code and what it printed.
func (r *repository) run(script string, env ...string) (code int, out string) {
	r.t.Helper()
	cmd := exec.Command("bash", "-e", "-c", script)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

func (r *repository) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.temp, name))
	must.Do(r.t, err)
	return string(text)
}

// program returns the path of this test binary under the name agf-validate.
func (r *repository) program() string {
	r.t.Helper()
	self, err := os.Executable()
	must.Do(r.t, err)
	path := filepath.Join(r.temp, "agf-validate")
	if err := os.Symlink(self, path); err != nil && !os.IsExist(err) {
		r.t.Fatal(err)
	}
	return path
}

// comments is the part of GitHub's API that keeps comments.
type comments struct {
	bodies []string
	writes int
}

func (c *comments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var in struct{ Body string }
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &in)
	switch r.Method + " " + r.URL.Path {
	case "GET /repos/acme/desk/issues/7/comments":
		var list []map[string]any
		for i, body := range c.bodies {
			list = append(list, map[string]any{"id": i, "body": body})
		}
		_ = json.NewEncoder(w).Encode(append([]map[string]any{}, list...))
	case "POST /repos/acme/desk/issues/7/comments":
		c.bodies = append(c.bodies, in.Body)
		c.writes++
	case "PATCH /repos/acme/desk/issues/comments/1":
		c.bodies[1] = in.Body
		c.writes++
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestGitHubActionTellsWhatAChangeAsks: the action writes one comment that it keeps up to date, a
// summary, annotations and SARIF. A change that asks less fails.
func TestGitHubActionTellsWhatAChangeAsks(t *testing.T) {
	r := newRepository(t)
	api := &comments{bodies: []string{"a person's"}}
	server := httptest.NewServer(api)
	defer server.Close()
	script, err := filepath.Abs("../../integrations/github/check.sh")
	must.Do(t, err)
	env := []string{
		"AGF_VALIDATE=" + r.program(),
		"AGF_PATHS=agents",
		"AGF_BASE=" + r.base,
		"AGF_TOKEN=secret",
		"AGF_PULL_REQUEST=7",
		"RUNNER_TEMP=" + r.temp,
		"GITHUB_OUTPUT=" + filepath.Join(r.temp, "output"),
		"GITHUB_STEP_SUMMARY=" + filepath.Join(r.temp, "summary"),
		"GITHUB_API_URL=" + server.URL,
		"GITHUB_REPOSITORY=acme/desk",
	}

	if code, out := r.run(script, env...); code != 0 || api.writes > 0 {
		t.Fatalf("nothing has changed: exit %d, %d comments\n%s", code, api.writes, out)
	}

	r.write("agents/desk.agf.yaml", strings.Replace(committedDesk, "gt: 10", "gt: 20", 1))
	r.commit("desk: ask less")
	code, out := r.run(script, env...)
	if code != 1 || len(api.bodies) != 2 || !strings.Contains(api.bodies[1], "10 &#60; amount ≤ 20") {
		t.Fatalf("exit %d, comments %q\n%s", code, api.bodies, out)
	}
	if !strings.Contains(r.read("summary"), "Posture: loosens") ||
		!strings.Contains(r.read("agf-validate.sarif"), `"2.1.0"`) {
		t.Errorf("summary %q", r.read("summary"))
	}
	if code, out := r.run(script, append(env, "AGF_ALLOW_LOOSENING=true")...); code != 0 {
		t.Errorf("allowed: exit %d\n%s", code, out)
	}

	r.write("agents/desk.agf.yaml", strings.Replace(committedDesk, "alias: pay", "alias: pay\n      aproval: true", 1))
	r.commit("desk: misspell")
	code, out = r.run(script, append(env, "AGF_ARGUMENTS=--fail-on warning --strict")...)
	if code != 1 || len(api.bodies) != 2 || !strings.Contains(out, "::error file=agents/desk.agf.yaml,line=8") {
		t.Errorf("exit %d, %d comments\n%s", code, len(api.bodies), out)
	}
	if !strings.Contains(api.bodies[1], "tightens") { // the misspelt gate asks
		t.Errorf("the comment is not kept up to date: %s", api.bodies[1])
	}
}

// TestGitHubActionWithoutRightsStillChecks: the comment is left out, with a warning. Inputs are not
// executed as code.
func TestGitHubActionWithoutRightsStillChecks(t *testing.T) {
	r := newRepository(t)
	r.write("agents/desk.agf.yaml", strings.Replace(committedDesk, "gt: 10", "gt: 5", 1))
	r.commit("desk: ask more")
	server := httptest.NewServer(&comments{})
	defer server.Close()
	script, err := filepath.Abs("../../integrations/github/check.sh")
	must.Do(t, err)
	code, out := r.run(
		script,
		"AGF_VALIDATE="+r.program(),
		"AGF_PATHS=agents $(touch${IFS}"+r.temp+"/run)",
		"AGF_BASE="+r.base,
		"AGF_TOKEN=wrong",
		"AGF_PULL_REQUEST=7",
		"RUNNER_TEMP="+r.temp,
		"GITHUB_OUTPUT="+filepath.Join(r.temp, "output"),
		"GITHUB_STEP_SUMMARY="+filepath.Join(r.temp, "summary"),
		"GITHUB_API_URL="+server.URL,
		"GITHUB_REPOSITORY=acme/desk",
	)
	if code != 2 || !strings.Contains(out, "::warning::the comment could not be written") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(r.temp, "run")); err == nil {
		t.Error("an input was run")
	}
}

// TestGitHubActionIsWhole: the files that the steps run exist, and every input that the script
// reads is passed to it.
func TestGitHubActionIsWhole(t *testing.T) {
	action := readYAML(t, "../../integrations/github/action.yml")
	script, err := os.ReadFile("../../integrations/github/check.sh")
	must.Do(t, err)
	var env *yamldoc.Node
	for _, step := range action.Get("runs").Get("steps").Items {
		if step.Get("id") != nil {
			env = step.Get("env")
		}
	}
	if env == nil {
		t.Fatal("no step has an environment")
	}
	for _, f := range env.Fields {
		if !strings.Contains(string(script), f.Key.Text) {
			t.Errorf("%s is handed over and not read", f.Key.Text)
		}
	}
	for _, f := range action.Get("inputs").Fields {
		if !strings.Contains(fmt.Sprint(env.Any()), "inputs."+f.Key.Text+" ") {
			t.Errorf("the input %s is not handed over", f.Key.Text)
		}
	}
}

func readYAML(t *testing.T, path string) *yamldoc.Node {
	t.Helper()
	src, err := os.ReadFile(path)
	must.Do(t, err)
	doc, findings := yamldoc.Parse(path, src, yamldoc.Limits{})
	if doc == nil {
		t.Fatal(findings)
	}
	return doc.Root
}

// TestGitLabJobRuns the script of the template as GitLab does, line by
// line in one shell.
func TestGitLabJobRuns(t *testing.T) {
	r := newRepository(t)
	r.write("agents/desk.agf.yaml", strings.Replace(committedDesk, "gt: 10", "gt: 20\n      aproval: true", 1))
	r.commit("desk: ask less")
	job := readYAML(t, "../../integrations/gitlab/agf-validate.yml").Get("agf-validate")
	var lines []string
	for _, line := range job.Get("script").Items {
		if !strings.HasPrefix(line.Text, "go install") {
			lines = append(lines, line.Text)
		}
	}
	code, out := r.run(
		strings.Join(lines, "\n"),
		"PATH="+filepath.Dir(r.program())+":"+os.Getenv("PATH"),
		"AGF_PATHS=agents",
		"AGF_ARGUMENTS=--fail-on warning",
		"AGF_ALLOW_LOOSENING=false",
		"CI_MERGE_REQUEST_DIFF_BASE_SHA="+r.base,
	)
	if code == 0 {
		t.Errorf("exit %d\n%s", code, out)
	}
	report, err := os.ReadFile(filepath.Join(r.dir, "gl-code-quality-report.json"))
	var found []map[string]any
	if err != nil || json.Unmarshal(report, &found) != nil || len(found) == 0 {
		t.Errorf("the report: %v\n%s", err, report)
	}
}

// TestHooksNameTheFiles: pre-commit passes the files that agf-validate checks.
func TestHooksNameTheFiles(t *testing.T) {
	for _, hook := range readYAML(t, "../../.pre-commit-hooks.yaml").Items {
		count := `printf '%s\n' a.agf.yaml b/c.policy.yml x.agf.json values.yaml | grep -cE "$1"`
		out, err := exec.Command("bash", "-c", count, "-", hook.Get("files").Text).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "3" {
			t.Errorf("%s meets %s of the files, %v", hook.Get("id").Text, out, err)
		}
	}
}
