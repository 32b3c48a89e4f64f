package examples_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// shells are the tools of coding agents that run command lines.
func shells() map[string]string {
	return map[string]string{
		"claude-code": "Bash", "codex": "Bash", "copilot": "bash", "cursor": "Shell",
		"gemini": "run_shell_command",
	}
}

// codingAgent compiles the file of a product in a profile.
func codingAgent(t *testing.T, profile, product string) *resolve.Plan {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("coding-agent", profile, name))
		must.Do(t, err)
		return text
	}
	config, findings := resolve.ParseConfig("decisions.yaml", read("decisions.yaml"))
	if config == nil {
		t.Fatal(findings)
	}
	agent, findings := schema.Parse(product, read(product+".agf.yaml"))
	if agent == nil {
		t.Fatal(findings)
	}
	p, err := resolve.Compile(agent, nil, config.Options())
	must.Do(t, err)

	return p
}

// asks are the lines of a file that a plan asks about, with the reasons.
func asks(t *testing.T, p *resolve.Plan, tool string, lines []string) (out []string) {
	t.Helper()
	for _, line := range lines {
		args, err := json.Marshal(map[string]string{"command": line})
		must.Do(t, err)
		d := p.Decide(&resolve.Call{
			Kind: resolve.Tool, Tool: tool, Args: args, Workspace: &resolve.Workspace{
				Root: "/work/app", Secrets: []string{},
				Installed: []string{"tsc", "eslint", "prettier", "jest", "vitest"},
			},
		})
		if d.Outcome != resolve.Allow {
			_, why, _ := strings.Cut(d.Reasons[0].Detail, "; of command: ")
			out = append(out, "`"+strings.ReplaceAll(line, "|", "\\|")+"` | "+strings.ReplaceAll(why, "|", "\\|"))
		}
	}

	return out
}

func linesOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("coding-agent", "testdata", name))
	must.Do(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "# ") })
}

// TestLinesOfCodingAgents: with the files of every product no dangerous
// line runs, and few everyday lines ask. docs/reference/coding-agents.md
// has the table, and the everyday lines that ask.
func TestLinesOfCodingAgents(t *testing.T) {
	everyday, dangerous := linesOf(t, "everyday.txt"), linesOf(t, "dangerous.txt")
	if len(everyday) < 150 || len(dangerous) < 150 {
		t.Fatalf("%d and %d lines", len(everyday), len(dangerous))
	}
	var table, rest strings.Builder
	for _, profile := range []string{"daily", "careful"} {
		most := map[string]int{"daily": 15, "careful": 35}[profile]
		for _, product := range []string{"claude-code", "codex", "copilot", "cursor", "gemini"} {
			p, tool := codingAgent(t, profile, product), shells()[product]
			asked, stopped := asks(t, p, tool, everyday), asks(t, p, tool, dangerous)
			if len(asked)*100 > most*len(everyday) {
				t.Errorf("%s %s: %d of %d everyday lines ask:\n%s", profile, product, len(asked), len(everyday),
					strings.Join(asked, "\n"))
			}
			for _, line := range dangerous {
				if !slices.ContainsFunc(stopped, func(s string) bool {
					return strings.HasPrefix(s, "`"+strings.ReplaceAll(line, "|", "\\|")+"`")
				}) {
					t.Errorf("%s %s: runs %s", profile, product, line)
				}
			}
			fmt.Fprintf(&table, "| `%s` | %s | %d of %d (%d %%) | %d of %d |\n", profile, product, len(asked),
				len(everyday),
				(len(asked)*100+len(everyday)/2)/len(everyday), len(dangerous)-len(stopped), len(dangerous))
			if product == "claude-code" {
				fmt.Fprintf(&rest, "\n### %s\n\n| line | because |\n|---|---|\n| %s |\n", profile,
					strings.Join(asked, " |\n| "))
			}
		}
	}
	golden.Equal(t, "../../docs/reference/coding-agents.md",
		fmt.Sprintf(codingAgentsPage, table.String(), rest.String()))
}

const codingAgentsPage = `# What the files for coding agents ask about

A test (TestLinesOfCodingAgents of package examples) decides the lines of examples/coding-agent/testdata with the
delivered files ([guide](../guides/coding-agents.md)), as calls in the workspace /work/app, and keeps this page. The
workspace has no files with secrets, and its programs for npx are installed.

| profile | product | everyday lines that ask | dangerous lines that run |
|---|---|--:|--:|
%s
## Everyday lines that ask
%s`
