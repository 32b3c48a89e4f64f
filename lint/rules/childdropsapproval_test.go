package rules

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/linttest"
)

// file writes an agent with an action space.
func file(space string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(`schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Files invoices.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space: {` + space + "}\n")}
}

// dropped lists the rule's messages about top.agf.yaml, one per line.
func dropped(t *testing.T, fsys fstest.MapFS) string {
	t.Helper()
	top := linttest.Sample{Name: "top.agf.yaml", Text: string(fsys["top.agf.yaml"].Data)}
	var said []string
	rule := lint.Rule{RuleInfo: diag.RuleInfo{ID: "child-drops-approval"}, NeedsGraph: true, Agent: childDropsApproval}
	for _, f := range top.Lint(fsys, lint.New([]lint.Rule{rule}, lint.Options{})).Findings {
		if f.Rule == "child-drops-approval" {
			said = append(said, strings.ReplaceAll(f.Message, "behind this sub-agent ", ""))
		}
	}
	return strings.Join(said, "\n")
}

const child = ", local_agents: [{alias: child, source: child.agf.yaml}]"

// TestEveryToolOfTheSubAgentIsCompared: the rule doesn't stop at the first tool that the demand
// meets. The same is true of skills, of servers that one file lists under two aliases, and of
// tools that only a sub-agent further down has.
func TestEveryToolOfTheSubAgentIsCompared(t *testing.T) {
	server := func(rest string) string { return "mcp_servers: [{alias: db, " + rest + "}]" }
	for name, tt := range map[string]struct{ top, child, grandchild, want string }{
		"the second tool": {
			top:   server("approval: true"),
			child: server("allowed_tools: [{name: count, approval: true}, drop_table, {name: wipe, approval: false}]"),
			want: "MCP tool \"drop_table\" is called without the approval demanded here\nMCP tool \"wipe\" is " +
				"called without the approval demanded here",
		},
		"all of them ask": {
			top:   server("approval: true"),
			child: server("allowed_tools: [{name: count, approval: true}, {name: drop_table, approval: true}]"),
		},
		"another alias of the server": {
			top:   "mcp_servers: [{alias: db, server_ref: x, approval: true}]",
			child: "mcp_servers: [{alias: a, server_ref: x, approval: true}, {alias: b, server_ref: x}]",
			want:  `MCP tool "x" is called without the approval demanded here`,
		},
		"every skill": {
			top:   "remote_agents: [{alias: bank, allowed_skills: [{id: pay, approval: true}]}]",
			child: "remote_agents: [{alias: bank}]",
			want:  `skill "pay" is called without the approval demanded here`,
		},
		"further down": {
			top: server("approval: true"), child: server("allowed_tools: [{name: count, approval: true}]") +
				", local_agents: [{alias: low, source: low.agf.yaml}]",
			grandchild: server("allowed_tools: [count, drop_table]"), // the child makes the demand for count
			want:       `MCP tool "drop_table" is called without the approval demanded here`,
		},
	} {
		fsys := fstest.MapFS{"top.agf.yaml": file(tt.top + child), "child.agf.yaml": file(tt.child)}
		if tt.grandchild != "" {
			fsys["low.agf.yaml"] = file(tt.grandchild)
		}
		if got := dropped(t, fsys); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// TestChildDropsApprovalCountsEntriesOfOneToolTogether: if a tool is listed twice, the
// strictest entry counts.
func TestChildDropsApprovalCountsEntriesOfOneToolTogether(t *testing.T) {
	const top = "mcp_servers: [{alias: db, approval: {condition: {args_match: {n: {gt: 10}}}}}]"
	for list, want := range map[string]string{
		"{name: wipe, approval: false}, {name: wipe, approval: true}": "",
		"{name: wipe, approval: true}, wipe":                          "",
		"{name: wipe, approval: {condition: {args_match: {n: {gt: 20}}}}}, {name: wipe, approval: {condition: " +
			"{args_match: {n: {lte: 20, gt: 10}}}}}": "",
		"{name: wipe, approval: {condition: {args_match: {n: {gt: 20}}}}}, {name: wipe, approval: {condition: " +
			"{args_match: {n: {lt: 20, gt: 10}}}}}": `MCP tool "wipe" is called without the approval demanded here, ` +
			`for example {"n":20}`,
		"{name: wipe, approval: false}, wipe": `MCP tool "wipe" is called without the approval demanded here`,
	} {
		fsys := fstest.MapFS{
			"top.agf.yaml":   file(top + child),
			"child.agf.yaml": file("mcp_servers: [{alias: db, allowed_tools: [" + list + "]}]"),
		}
		if got := dropped(t, fsys); got != want {
			t.Errorf("%s: got %q, want %q", list, got, want)
		}
	}
}
