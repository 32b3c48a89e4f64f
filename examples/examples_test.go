// Package examples_test decides the recorded calls of the examples with the engine itself.
package examples_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// names lists the examples. Each one is a folder.
func names() []string { return []string{"trading-desk", "platform-operator", "customer-support"} }

// trusted lists the servers whose annotations the runtime of an example believes.
func trusted(name string) []string {
	if name == "platform-operator" {
		return []string{"metrics", "database"}
	}

	return nil
}

// example is one compiled folder. File names in findings and decisions are relative to the root
// of the repository, as in the output of `assent decide --agent
// examples/trading-desk/agent.agf.yaml`.
type example struct {
	name  string
	dir   string // of the examples
	graph *schema.Graph
	set   *policy.Set
	plan  *resolve.Plan
}

// load reads an example and fails the test on any finding, because people copy from the
// examples.
func load(t *testing.T, name string) example {
	t.Helper()
	repo := os.DirFS("..")
	graph, findings := schema.LoadGraph(repo, "examples/"+name+"/agent.agf.yaml")
	clean(t, findings)
	folder := "examples/" + name + "/policies"
	policies, err := fs.Sub(repo, folder)
	if err != nil {
		t.Fatal(err)
	}
	set, findings := policy.LoadFS(policies, folder)
	clean(t, findings)
	e := example{name: name, dir: ".", graph: graph, set: set}
	e.plan = e.compile(t, graph.Root.Agent, resolve.Options{TrustedServers: trusted(name)})
	return e
}

func (e example) compile(t *testing.T, agent *schema.Agent, opt resolve.Options) *resolve.Plan {
	t.Helper()
	plan, err := resolve.Compile(agent, e.set, opt)
	if err != nil {
		t.Fatal(err)
	}
	clean(t, plan.Findings())
	return plan
}

func clean(t *testing.T, findings []diag.Finding) {
	t.Helper()
	for _, f := range findings {
		t.Errorf("%s:%d:%d: %s [%s]", f.File, f.Range.Start.Line, f.Range.Start.Column, f.Message, f.Rule)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// lines reads the lines of a file.
func lines(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		out = append(out, bytes.Clone(s.Bytes()))
	}
	return out
}

// decide decides one JSON call. If the call is allowed, it adds the binding, as `assent decide`
// does.
func decide(t *testing.T, plan *resolve.Plan, line []byte) resolve.Decision {
	t.Helper()
	call, err := resolve.ParseCall(line, value.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	d := plan.Decide(call)
	if d.Outcome == resolve.Allow {
		if d.Binding, err = plan.Bind(call); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// record decides every line of a file of calls, and compares the decisions with the recorded
// ones.
func record(t *testing.T, plan *resolve.Plan, calls string) []resolve.Decision {
	t.Helper()
	var got bytes.Buffer
	var decisions []resolve.Decision
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	for _, line := range lines(t, calls) {
		d := decide(t, plan, line)
		if err := enc.Encode(d); err != nil {
			t.Fatal(err)
		}
		decisions = append(decisions, d)
	}

	recorded := strings.Replace(calls, "calls.jsonl", "decisions.jsonl", 1)
	if golden.Update() {
		if err := os.WriteFile(recorded, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(
		t,
		recorded,
		lines(t, recorded),
		bytes.Split(bytes.TrimSuffix(got.Bytes(), []byte("\n")), []byte("\n")),
	)
	return decisions
}

func compare(t *testing.T, golden string, want, got [][]byte) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf(
			"%s has %d decisions for %d calls: run `make update` and read the difference",
			golden,
			len(want),
			len(got),
		)
		return
	}

	for i := range want {
		for _, d := range differences(t, want[i], got[i]) {
			t.Errorf("%s:%d: %s", golden, i+1, d)
		}
	}
}

// differences names the fields in which two decisions differ.
func differences(t *testing.T, want, got []byte) []string {
	t.Helper()
	var w, g map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(want, &w), json.Unmarshal(got, &g)); err != nil {
		t.Fatal(err)
	}
	fields := maps.Clone(w)
	maps.Copy(fields, g)
	var out []string
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if !bytes.Equal(w[f], g[f]) {
			out = append(out, fmt.Sprintf("%s\n got %s\nwant %s", f, g[f], w[f]))
		}
	}
	return out
}

// TestDecisions decides the calls of every example. It also decides those of its sub-agents, as
// the example's agent runs them.
func TestDecisions(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			e := load(t, name)
			decisions := record(t, e.plan, name+"/calls.jsonl")
			for _, child := range e.graph.Root.Children {
				calls := name + "/agents/" + child.Alias + ".calls.jsonl"
				if len(child.To.Agent.ActionSpace.LocalTools) == 0 {
					continue // it has no calls
				}
				plan := e.compile(t, child.To.Agent, resolve.Options{Parent: e.plan, AgentAlias: child.Alias})
				decisions = append(decisions, record(t, plan, calls)...)
			}

			all := rules(t, e)
			if quiet := silent(all, nil); len(quiet) != len(all) || len(all) < 8 {
				t.Errorf("without decisions %d of %d rules are silent, want all", len(quiet), len(all))
			}
			for _, r := range silent(all, decisions) {
				t.Errorf("%s:%d: no recorded call is asked or denied by this rule", r.file, r.line)
			}
		})
	}
}

// silent returns the rules that give no reason in any of the decisions.
func silent(rules []place, decisions []resolve.Decision) []place {
	heard := map[place]bool{}
	for _, d := range decisions {
		for _, r := range d.Reasons {
			heard[place{path.Clean(r.File), r.Line}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r place) bool { return heard[r] })
}

type place struct {
	file string
	line int
}

// rules lists the places of all policy rules, and of all approvals that can ask.
func rules(t *testing.T, e example) []place {
	t.Helper()
	var out []place
	for _, m := range e.graph.Members {
		for _, a := range asking(&m.Agent.ActionSpace) {
			out = append(out, place{m.Path, a.Range.Start.Line})
		}
	}
	files, err := filepath.Glob(path.Join(e.dir, e.name, "policies", "*.policy.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("policies of %s: %d, %v", e.name, len(files), err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		file = path.Join("examples", e.name, "policies", filepath.Base(file))
		pol, findings := policy.Parse(file, src)
		clean(t, findings)
		for _, r := range pol.Rules {
			out = append(out, place{file, r.Range.Start.Line})
		}
	}

	return out
}

func asking(space *schema.ActionSpace) []*schema.Approval {
	var all []*schema.Approval
	add := func(a *schema.Approval) {
		if a != nil && a.Form != schema.Never {
			all = append(all, a)
		}
	}
	listed := func(refs *[]schema.ToolRef) {
		if refs != nil {
			for _, r := range *refs {
				add(r.Approval)
			}
		}
	}
	for _, x := range space.LocalTools {
		add(x.Approval)
	}
	for _, x := range space.MCPServers {
		add(x.Approval)
		listed(x.AllowedTools)
	}
	for _, x := range space.LocalAgents {
		add(x.Approval)
	}
	for _, x := range space.RemoteAgents {
		add(x.Approval)
		listed(x.AllowedSkills)
	}
	return all
}
