package lint_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy"
)

func TestStrict(t *testing.T) {
	const body = "metdata: {}\n"
	expect(t, "by default", said(agent(t, body, lint.Options{}).Findings), "5 warning unknown-field")
	expect(t, "strict", said(agent(t, body, lint.Options{Strict: true}).Findings), "5 error unknown-field")
}

func TestFilesThatDoNotLoad(t *testing.T) {
	w := lint.New(rules.All(), lint.Options{}).Worker()
	r := w.Agent("a.agf.yaml", []byte("{"), nil)
	expect(t, "agent", said(r.Findings), "1 error yaml-syntax")
	r = w.Policy("a.policy.yaml", []byte("name: x\n"))
	expect(t, "policy", said(r.Findings), "1 error not-a-policy")
	if r.File != "a.policy.yaml" || r.Findings[0].File != "a.policy.yaml" {
		t.Errorf("got %q, %q", r.File, r.Findings[0].File)
	}
}

func TestContentOf(t *testing.T) {
	for src, want := range map[string]lint.Content{
		"policy_ref: a\nrules: []\n":            lint.PolicyContent,
		"policy_ref: a\nmetadata: {}\n":         lint.PolicyContent,
		"people: []\n":                          lint.PeopleContent,
		"groups: {}\nschema_version: x\n":       lint.PeopleContent,
		"people: []\nmetadata: {}\n":            lint.AgentContent,
		"execution_policy: {}\npolicy_ref: a\n": lint.AgentContent,
		head:                                    lint.AgentContent,
		"{":                                     lint.AgentContent,
		"[]":                                    lint.AgentContent,
		"":                                      lint.AgentContent,
	} {
		if got := lint.ContentOf([]byte(src)); got != want {
			t.Errorf("%q: got %v", src, got)
		}
	}
}

// TestRecognise checks broken texts and files with several documents too. Nested keys and comments
// must have no effect.
func TestRecognise(t *testing.T) {
	for src, want := range map[string]lint.Content{
		"a: 1\n---\npolicy_ref: a\n":            lint.PolicyContent,
		"---\npeople: []\n---\npolicy_ref: a\n": lint.PeopleContent,
		"policy_ref: a\nrules: [\n":             lint.PolicyContent,
		"\"execution_policy\" :\n  {\n":         lint.AgentContent,
	} {
		if got, known := lint.Recognise([]byte(src)); got != want || !known {
			t.Errorf("%q: got %v, %v", src, got, known)
		}
	}

	for _, src := range []string{
		"",
		"services: {}\n",
		"a: {execution_policy: 1}\n",
		"# execution_policy: 1\na: 1\n",
		"a: [\n# policy_ref: x\n",
		strings.Repeat("---\na: 1\n", 100) + "---\npolicy_ref: a\n",
	} {
		if _, known := lint.Recognise([]byte(src)); known {
			t.Errorf("%q is recognised", src)
		}
	}
}

func TestWorkersRememberNothing(t *testing.T) {
	w := lint.New(rules.All(), lint.Options{}).Worker()
	const body = "action_space: {mcp_servers: [{alias: crm, allowed_tools: []}]}\n"
	for range 2 {
		expect(t, "twice", said(w.Agent("a.agf.yaml", []byte(head+body), nil).Findings), "5 warning empty-allow-list")
	}
}

func TestReferences(t *testing.T) {
	pol, findings := policy.Parse(
		"p.policy.yaml",
		[]byte(
			"schema_version: \"1.0.0\"\npolicy_ref: acme.trades-v2\nagents: {ids: [trader]}\nrules: [{id: all, "+
				"approval: true}]\n",
		),
	)
	if pol == nil {
		t.Fatal(findings)
	}
	set, _ := policy.NewSet(pol)
	const body = "constraints:\n  governance_policies:\n    - policy_ref: acme.trades-v2\n    - policy_ref: " +
		"acme.trades-v1\n    - {policy_ref: other, required: false}\n"
	expect(t, "no registry", said(agent(t, body, lint.Options{}).Findings))
	r := agent(t, body, lint.Options{Registry: set})
	expect(
		t,
		"registry",
		said(r.Findings),
		"7 info policy-selector-overridden",
		"8 error policy-unresolved",
		"9 warning policy-advisory-missing",
	)
	if r.Findings[1].Nearest != "acme.trades-v2" || r.Findings[1].Range.Start != (diag.Position{Line: 8, Column: 19}) {
		t.Errorf("got %+v", r.Findings[1])
	}
}

// files is a folder of agents, each with the sub-agents that it names.
func files(links map[string][]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, sources := range links {
		var b strings.Builder
		b.WriteString(head)
		if len(sources) > 0 {
			b.WriteString("action_space:\n  local_agents:\n")
		}
		for i, s := range sources {
			b.WriteString("    - alias: sub" + string(rune('a'+i)) + "\n      source: " + s + "\n")
		}
		fsys[name] = &fstest.MapFile{Data: []byte(b.String())}
	}

	return fsys
}

// visit lints one file of a folder under the name that a caller shows.
func visit(fsys fstest.MapFS, name string) []diag.Finding {
	w := lint.New(rules.All(), lint.Options{}).Worker()
	return w.Agent("shown/"+name, fsys[name].Data, &lint.Files{FS: fsys, Path: name}).Findings
}

func TestMissingSubAgentIsToldOnce(t *testing.T) {
	fsys := files(map[string][]string{"a.agf.yaml": {"b.agf.yaml"}, "b.agf.yaml": {"c.agf.yaml", "../d.agf.yaml"}})
	expect(t, "a", said(visit(fsys, "a.agf.yaml")))
	found := visit(fsys, "b.agf.yaml")
	expect(t, "b", said(found), "8 error missing-sub-agent", "10 error sub-agent-outside")
	if found[0].File != "shown/b.agf.yaml" {
		t.Errorf("the finding is in %q", found[0].File)
	}
}

func TestFindingsInsideSubAgentsAreTheirOwn(t *testing.T) {
	fsys := files(map[string][]string{"a.agf.yaml": {"b.agf.yaml"}, "b.agf.yaml": nil})
	fsys["b.agf.yaml"].Data = append(
		fsys["b.agf.yaml"].Data,
		"metdata: {}\nconstraints: {limits: {max_delegation_depth: 0}}\naction_space: {local_agents: [{alias: c, "+
			"source: c, source_type: db}]}\n"...)
	expect(t, "a", said(visit(fsys, "a.agf.yaml")))
	expect(t, "b", said(visit(fsys, "b.agf.yaml")), "5 warning unknown-field", "6 warning delegation-depth")
}

func TestCycles(t *testing.T) {
	fsys := files(map[string][]string{
		"a.agf.yaml":    {"b.agf.yaml"},
		"b.agf.yaml":    {"c.agf.yaml"},
		"c.agf.yaml":    {"d.agf.yaml", "a.agf.yaml"},
		"d.agf.yaml":    nil,
		"top.agf.yaml":  {"a.agf.yaml"},
		"self.agf.yaml": {"self.agf.yaml"},
	})
	for name, want := range map[string][]string{
		"a.agf.yaml":    {"8 error sub-agent-cycle"},
		"b.agf.yaml":    {"8 error sub-agent-cycle"},
		"c.agf.yaml":    {"10 error sub-agent-cycle"},
		"d.agf.yaml":    nil,
		"top.agf.yaml":  nil,
		"self.agf.yaml": {"8 error sub-agent-cycle"},
	} {
		expect(t, name, said(visit(fsys, name)), want...)
	}

	found := visit(fsys, "b.agf.yaml")
	if want := "the agents delegate in a circle: b.agf.yaml → c.agf.yaml → a.agf.yaml → b.agf.yaml"; found[0].Message != want {
		t.Errorf("got %q", found[0].Message)
	}
}

func TestChainsTooDeep(t *testing.T) {
	links := map[string][]string{}
	name := func(i int) string { return "f" + string(rune('a'+i)) + ".agf.yaml" }
	for i := range 18 {
		links[name(i)] = []string{name(i + 1)}
	}
	links[name(18)] = nil
	fsys := files(links)
	found := visit(fsys, name(0))
	expect(t, "the top", said(found), "6 error sub-agents-too-deep")
	if len(found[0].Related) != 1 || found[0].Related[0].File != "shown/"+name(16) {
		t.Errorf("got %+v", found[0].Related)
	}
	expect(t, "low enough", said(visit(fsys, name(2))))
}

func TestDelegationDepthIsTheAgentsOwn(t *testing.T) {
	fsys := files(map[string][]string{"a.agf.yaml": {"b.agf.yaml"}, "b.agf.yaml": nil})
	fsys["a.agf.yaml"].Data = append(fsys["a.agf.yaml"].Data, "constraints: {limits: {max_delegation_depth: 0}}\n"...)
	expect(t, "a", said(visit(fsys, "a.agf.yaml")), "9 warning delegation-depth")
}

func TestNamesThatAreNoPaths(t *testing.T) {
	fsys := files(map[string][]string{"a.agf.yaml": {"b.agf.yaml"}})
	w := lint.New(rules.All(), lint.Options{}).Worker()
	r := w.Agent("<stdin>", fsys["a.agf.yaml"].Data, &lint.Files{FS: fsys, Path: "a.agf.yaml"})
	expect(t, "stdin", said(r.Findings), "8 error missing-sub-agent")
	if r.Findings[0].File != "<stdin>" {
		t.Errorf("got %q", r.Findings[0].File)
	}
}
