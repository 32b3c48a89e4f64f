package editor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// place is one result of a request for references.
type place struct {
	URI   string
	Range struct{ Start, End struct{ Line, Character int } }
}

// edits are the edits of files, by URI.
type edits struct {
	Changes map[string][]struct {
		Range   struct{ Start, End struct{ Line, Character int } }
		NewText string
	}
}

// made applies the edits of one file, at most one per line.
func (e edits) made(uri, text string) string {
	lines := strings.Split(text, "\n")
	for _, one := range e.Changes[uri] {
		line := lines[one.Range.Start.Line]
		lines[one.Range.Start.Line] = line[:one.Range.Start.Character] + one.NewText + line[one.Range.End.Character:]
	}
	return strings.Join(lines, "\n")
}

// governed returns a policy for a tool, with the lists that a test needs.
func governed(match string) string {
	return "schema_version: \"1.0.0\"\npolicy_ref: acme.trades\nrules:\n  - id: all\n    approval: true\n    match: " +
		match + "\n"
}

// renames renames the tool of the desk under a policy.
func renames(c *client, pol string) (edits, error) {
	c.t.Helper()
	c.write("acme.policy.yaml", pol)
	c.tell("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri("acme.policy.yaml")}})
	c.opens("desk.agf.yaml", desk)
	var found edits
	params := c.at("desk.agf.yaml", desk, "pay\n", "newName", "send")
	err := c.conn.Call(c.t.Context(), "textDocument/rename", params, &found)
	return found, err
}

func TestRenameReachesPolicies(t *testing.T) {
	pol := governed("{targets: [other, pay, \"pay*\"]}")
	c := start(t)
	c.write("checker.agf.yaml", "a: 1\n")
	found, err := renames(c, pol)
	want := strings.Replace(pol, ", pay,", ", send,", 1)
	if got := found.made(c.uri("acme.policy.yaml"), pol); err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
	if got := found.made(c.uri("desk.agf.yaml"), desk); got != strings.Replace(desk, "alias: pay", "alias: send", 1) {
		t.Errorf("renamed:\n%s", got)
	}
}

// TestRenameLeavesOtherAgentsGuarded checks that the policy still names the alias of another agent,
// also if that agent's file can't be read.
func TestRenameLeavesOtherAgentsGuarded(t *testing.T) {
	pol := governed("{targets: [other, pay, \"pay*\"]}")
	for name, other := range map[string]string{
		"has it": strings.Replace(desk, "id: desk", "id: checker", 1),
		"may":    "execution_policy: {\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.write("checker.agf.yaml", other)
			found, err := renames(c, pol)
			want := strings.Replace(pol, ", pay,", ", pay, send,", 1)
			if got := found.made(c.uri("acme.policy.yaml"), pol); err != nil || got != want {
				t.Errorf("%v:\n%s", err, got)
			}
		})
	}

	c := start(t)
	found, err := renames(c, governed("\n      targets:\n        - pay"))
	if err == nil || !strings.Contains(err.Error(), "add the new name there first") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestRenameLeavesOtherPoliciesAlone checks policies that the agent does not name.
func TestRenameLeavesOtherPoliciesAlone(t *testing.T) {
	c := start(t)
	c.write("checker.agf.yaml", "a: 1\n")
	other := strings.Replace(governed("{targets: [pay]}"), "acme.trades", "acme.other", 1)
	if found, err := renames(c, other); err != nil || len(found.Changes) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	servers := governed("{servers: [pay]}") // a tool of the desk is no server
	if found, err := renames(c, servers); err != nil || len(found.Changes) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	implicit := strings.Replace(other, "rules:", "applies: implicit\nrules:", 1)
	if found, err := renames(c, implicit); err != nil || len(found.Changes) != 2 {
		t.Errorf("%v, %v", found, err)
	}
}

// tested returns a test file about the desk, or another agent.
func tested(agent string) string {
	return "schema_version: \"1.0.0\"\nagent: " + agent + `
calls:
  - {name: a, call: {kind: tool, tool: pay, args: {tool: pay}}, expect: {outcome: ask}}
  - {name: b, call: {kind: mcp_tool, server: pay, tool: pay}, expect: {outcome: ask}}
  - {name: c, call: '{"kind":"tool","tool":"pay"}', expect: {outcome: ask}}
never:
  - {tool: "pay", outcome: allow}
people_cases:
  - name: pay
    call:
      kind: tool
      tool: pay
`
}

func TestRenameReachesTests(t *testing.T) {
	c := start(t)
	c.write("desk.test.yaml", tested("desk.agf.yaml"))
	c.write("other.test.yaml", tested("other.agf.yaml"))
	found, err := renames(c, governed("{targets: [other]}"))
	want := strings.NewReplacer(
		"kind: tool, tool: pay,", "kind: tool, tool: send,",
		`{tool: "pay"`, "{tool: send",
		"      tool: pay", "      tool: send",
	).Replace(tested("desk.agf.yaml"))
	if got := found.made(c.uri("desk.test.yaml"), tested("desk.agf.yaml")); err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
	if len(found.Changes) != 2 {
		t.Errorf("changed %v", found.Changes)
	}

	var places []place
	c.call("textDocument/references", c.at("desk.agf.yaml", desk, "pay\n",
		"context", map[string]any{"includeDeclaration": false}), &places)
	if len(places) != 3 {
		t.Errorf("found %v", places)
	}
}

func TestReferences(t *testing.T) {
	c := start(t)
	c.write("acme.policy.yaml", governed("{targets: [checker]}"))
	c.tell("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri("acme.policy.yaml")}})
	c.opens("desk.agf.yaml", desk)
	for _, declared := range []bool{true, false} {
		var found []place
		c.call("textDocument/references", c.at("desk.agf.yaml", desk, "checker.output",
			"context", map[string]any{"includeDeclaration": declared}), &found)
		var got []string
		for _, p := range found {
			got = append(got, fmt.Sprint(p.URI[strings.LastIndex(p.URI, "/")+1:], " ", p.Range.Start.Line+1))
		}
		want := []string{
			"desk.agf.yaml 16", "desk.agf.yaml 22", "desk.agf.yaml 23", "desk.agf.yaml 25", "acme.policy.yaml 6",
		}
		if !declared {
			want = want[1:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %q", got)
		}
	}
}
