package plans_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/plans"
)

// agent returns the text of an agent with one tool, act, and the given sub-agents.
func agent(id, gate string, children ...string) string {
	text := "schema_version: \"1.0.0\"\nmetadata: {id: " + id +
		", name: N, version: \"1\", description: D, labels: {owner: \"olga, , ben\"}}\n" +
		"interface: {input: {type: object}, output: {type: object}}\naction_space:\n  local_tools:\n    - {alias: " +
		"act, description: Acts." + gate + "}\n"
	if len(children) > 0 {
		text += "  local_agents:\n"
	}
	for i, c := range children {
		text += fmt.Sprintf("    - {alias: a%d, source: %s}\n", i, c)
	}
	return text + "execution_policy: {id: agf.react, config: {instructions: I, model: m}}\n"
}

const policyText = "schema_version: \"1.0.0\"\npolicy_ref: p\napplies: implicit\nrules:\n  - {id: r, match: " +
	"{targets: [act]}, deny: \"No.\"}\n"

// write writes files to a new directory, and returns its path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, files)
	return dir
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func load(t *testing.T, cfg plans.Config) *plans.Plans {
	t.Helper()
	p, err := plans.Load(cfg)
	must(t, err)
	return p
}

// outcome returns the decision about act, or the error.
func outcome(p *plans.Plans, id string) string {
	c, err := p.Plan(context.Background(), "any", id)
	if err != nil {
		return "error: " + err.Error()
	}
	return c.Plan.Decide(&resolve.Call{Kind: resolve.Tool, Tool: "act"}).Outcome.String()
}

func TestPlan(t *testing.T) {
	dir := write(t, map[string]string{
		"a.agf.yaml":      agent("a", ""),
		"deep/b.agf.yaml": agent("b", ", approval: true"),
		"notes.yaml":      "x",
	})
	p := load(t, plans.Config{Agents: []string{dir}})
	if got := p.Agents(); !slices.Equal(got, []string{"a", "b"}) || len(p.Problems()) > 0 {
		t.Errorf("got %v, %v", got, p.Problems())
	}
	if outcome(p, "a") != "allow" || outcome(p, "b") != "ask" {
		t.Errorf("got %s, %s", outcome(p, "a"), outcome(p, "b"))
	}
	c, err := p.Plan(t.Context(), "t", "a")
	if err != nil || !slices.Equal(c.Owners, []string{"olga", "ben"}) || c.Agent != (approval.Agent{
		ID:          "a",
		Version:     "1",
		Name:        "N",
		Description: "D",
	}) {
		t.Errorf("got %+v, %v", c, err)
	}

	if _, err := p.Plan(t.Context(), "t", "c"); !errors.Is(err, approval.ErrUnknownAgent) {
		t.Errorf("got %v", err)
	}
	file := load(t, plans.Config{Agents: []string{filepath.Join(dir, "deep", "b.agf.yaml")}})
	if got := file.Agents(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %v", got)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", "")})
	set, _ := policy.NewSet()
	for name, cfg := range map[string]plans.Config{
		"nothing":                 {},
		"an empty directory":      {Agents: []string{t.TempDir()}},
		"no such path":            {Agents: []string{filepath.Join(dir, "x")}},
		"two sources of policies": {Agents: []string{dir}, Policies: []string{dir}, Registry: set},
	} {
		if _, err := plans.Load(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParentsHoldTheirChildren(t *testing.T) {
	dir := write(t, map[string]string{
		"root.agf.yaml":       agent("root", "", "./mid.agf.yaml"),
		"mid.agf.yaml":        agent("mid", "", "sub/leaf.agent.yaml"),
		"sub/leaf.agent.yaml": agent("leaf", ""),
		"other.agf.yaml":      agent("other", ", approval: true", "sub/leaf.agent.yaml"),
		"loop.agf.yaml":       agent("loop", "", "loop2.agf.yaml"),
		"loop2.agf.yaml":      agent("loop2", ", approval: true", "loop.agf.yaml"),
	})
	p := load(t, plans.Config{Agents: []string{dir}})
	for id, want := range map[string]string{
		"root":  "allow",
		"mid":   "allow",
		"leaf":  "ask",
		"other": "ask",
		"loop":  "ask",
		"loop2": "ask",
	} {
		if got := outcome(p, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

func TestABrokenFileStopsItsAgentOnly(t *testing.T) {
	broken := strings.Replace(agent("a", "", "child.agf.yaml"), "alias: act", "alias: [act]", 1)
	dir := write(t, map[string]string{
		"a.agf.yaml":       broken,
		"child.agf.yaml":   agent("child", ""),
		"b.agf.yaml":       agent("b", ""),
		"garbage.agf.yaml": "a: [",
		"parent.agf.yaml":  agent("parent", "", "a.agf.yaml"),
		"lost.agf.yaml":    agent("lost", "", "nowhere.agf.yaml"),
		"twin1.agf.yaml":   agent("twin", ""),
		"twin2.agf.yaml":   agent("twin", ", approval: true"),
	})
	p := load(t, plans.Config{Agents: []string{dir}})
	if got := p.Agents(); !slices.Equal(got, []string{"b", "parent"}) {
		t.Errorf("got %v", got)
	}
	for id, want := range map[string]string{
		"a":     "a.agf.yaml:6:",
		"child": "a.agf.yaml delegates to it and can't be used",
		"lost":  "nowhere.agf.yaml",
		"twin":  "the id twin is also that of",
		"zed":   "garbage.agf.yaml",
	} {
		if got := outcome(p, id); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}

	var unusable *plans.UnusableError
	if _, err := p.Plan(t.Context(), "t", "a"); !errors.As(err, &unusable) || unusable.Agent != "a" {
		t.Errorf("got %v", err)
	}
	if !slices.ContainsFunc(p.Problems(), func(p plans.Problem) bool {
		return filepath.Base(p.File) == "garbage.agf.yaml" && !p.Kept
	}) {
		t.Errorf("got %v", p.Problems())
	}
}

// remote is a registry that changes, like policyhttp's.
type remote struct {
	*policy.Set
	lost error
}

func (r *remote) Snapshot() *policy.Set { return r.Set }
func (r *remote) Err() error            { return r.lost }

func TestRegistryThatChanges(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", "")})
	empty, _ := policy.NewSet()
	r := &remote{Set: empty}
	p := load(t, plans.Config{Agents: []string{dir}, Registry: r})
	if got := outcome(p, "a"); got != "allow" {
		t.Errorf("got %s", got)
	}
	full, _ := policy.LoadFS(os.DirFS(write(t, map[string]string{"p.policy.yaml": policyText})), "p")
	if r.Set = full; !p.Reload() || outcome(p, "a") != "deny" {
		t.Errorf("got %s", outcome(p, "a"))
	}
	if r.lost = errors.New("too old"); !p.Reload() || !strings.Contains(outcome(p, "a"), "too old") {
		t.Errorf("got %s", outcome(p, "a"))
	}
}

func TestRun(t *testing.T) {
	dir := write(t, map[string]string{"a.agf.yaml": agent("a", "")})
	synctest.Test(t, func(t *testing.T) {
		p := load(t, plans.Config{Agents: []string{dir}, Poll: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		put(t, dir, map[string]string{"a.agf.yaml": agent("a", ", approval: true")})
		<-time.After(1500 * time.Millisecond) // of the bubble
		synctest.Wait()
		if got := outcome(p, "a"); got != "ask" {
			t.Errorf("got %s", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
