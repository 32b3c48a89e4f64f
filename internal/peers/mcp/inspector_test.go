//go:build peers

package mcp_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

const inspectorConfig = `agent: clerk.agf.yaml
listen: 127.0.0.1:0
callers: {name: desk, hold: 1s, token_file: desk.token}
upstream: {alias: files, command: %[1]s/mcp-server-filesystem, args: [%[2]s/files]}
`

// inspected calls a tool, and expects the exit code of the inspector: 5
// is what it has for a result with isError.
func inspected(t *testing.T, p *place, to []string, tool, file string, code int) string {
	t.Helper()
	out, got := inspect(t, p, to, tool, file)
	if got != code {
		t.Errorf("%s %s: exit %d, expected %d\n%s", tool, file, got, code, out)
	}
	return out
}

// inspect calls a tool by the inspector's command line.
func inspect(t *testing.T, p *place, to []string, tool, file string) (text string, code int) {
	t.Helper()
	args := must.Get(json.Marshal(map[string]string{"path": p.at(file), "content": "new\n"}))(t)
	command := append([]string{"--cli"}, to...)
	command = append(command, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", string(args))
	c := exec.CommandContext(t.Context(), programs(t)+"/mcp-inspector", command...)
	c.Dir = p.dir
	c.Env = append(c.Environ(), "MCP_INSPECTOR_SECRET_STORE=memory")
	c.Stderr = t.Output()
	out, _ := c.Output() // its code says it
	return string(out), c.ProcessState.ExitCode()
}

// listening starts the gateway of a place by HTTP, and returns how the
// inspector reaches it.
func listening(t *testing.T, p *place, era string) []string {
	t.Helper()
	_, told := start(t, nil, assent(), "mcp", "gateway", "--config", p.at("http.yaml"))
	at := testwait.Value(t, "the gateway listens", func() (string, bool) {
		m := regexp.MustCompile(`http://[0-9.:]+/mcp`).FindString(told.String())
		return m, m != ""
	})
	return []string{at, "--transport", "http", "--header", "Authorization: Bearer secret", "--protocol-era", era}
}

func inspectorPlace(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, map[string]string{
		"clerk.agf.yaml": realAgent,
		"desk.token":     "secret\n",
		"files/q3.txt":   "42 sold",
	})
	config := fmt.Sprintf(inspectorConfig, programs(t), p.dir)
	p.write("http.yaml", config)
	p.write("gateway.yaml", regexp.MustCompile(`(?m)^listen.*\n|, token_file: desk.token`).ReplaceAllString(config, ""))
	p.write("client.json", fmt.Sprintf(
		`{"mcpServers":{"assent":{"command":%q,"args":["mcp","gateway","--config",%q]}}}`,
		assent(), p.at("gateway.yaml"),
	))
	return p
}

func TestInspectorTellsErrors(t *testing.T) {
	t.Parallel()
	p := inspectorPlace(t)
	in := p.inbox(t)
	ways := map[string][]string{
		"stdio": {"--config", p.at("client.json"), "--server", "assent"},
		"http":  listening(t, p, "legacy"),
	}
	for way, to := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			expect(t, inspected(t, p, to, "read_text_file", "files/q3.txt", 0), "42 sold")
			inspected(t, p, to, "move_file", "files/q3.txt", 5)
			pending := inspected(t, p, to, "write_file", "files/"+way, 5)
			in.answers(t, "approve", pending)
			slowly(t, "it runs", func() bool {
				_, code := inspect(t, p, to, "write_file", "files/"+way)
				return code == 0 && p.text("files/"+way) == "new\n"
			})
		})
	}
}

// TestInspectorFollowsTasks: in the newer era it declares that it can,
// and waits for people as long as it takes.
func TestInspectorFollowsTasks(t *testing.T) {
	t.Parallel()
	p := inspectorPlace(t)
	in := p.inbox(t)
	to := listening(t, p, "modern")
	expect(t, inspected(t, p, to, "read_text_file", "files/q3.txt", 0), "42 sold")
	for verdict, code := range map[string]int{"approve": 0, "deny": 5} {
		t.Run(verdict, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				inspected(t, p, to, "write_file", "files/"+verdict, code)
			}()
			in.decides(t, verdict, in.waiting(t, verdict))
			<-ended
			if got := p.text("files/" + verdict); (got == "new\n") != (code == 0) {
				t.Errorf("the file has %q", got)
			}
		})
	}
}
