package examples_test

import (
	"bytes"
	"io/fs"
	"os"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// TestTravelRules decides recorded calls by the rules of the travel agent, which is an example of
// the module agent. Each rule asks in some of them.
func TestTravelRules(t *testing.T) {
	const (
		module   = "../agent"
		travel   = module + "/examples/travel"
		policies = "examples/travel/policies"
	)
	repo := os.DirFS(module)
	graph, findings := schema.LoadGraph(repo, "examples/travel/travel.agf.yaml")
	clean(t, findings)
	set, findings := policy.LoadFS(must.Get(fs.Sub(repo, policies))(t), policies)
	clean(t, findings)
	e := example{name: "travel", dir: module + "/examples", graph: graph, set: set}
	decisions := record(t, e.compile(t, graph.Root.Agent, resolve.Options{}), travel+"/calls.jsonl")
	all := rules(t, e)
	if len(all) != 2 || len(silent(all, nil)) != 2 {
		t.Errorf("%d rules, want 2", len(all))
	}
	for _, r := range silent(all, decisions) {
		t.Errorf("%s:%d: no recorded call is asked or denied by this rule", r.file, r.line)
	}
	if !bytes.Contains(bytes.Join(lines(t, travel+"/decisions.jsonl"), nil), []byte(`"within":"1h"`)) {
		t.Error("no recorded decision has the policy's deadline")
	}
}
