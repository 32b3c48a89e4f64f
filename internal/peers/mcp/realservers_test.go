//go:build peers

package mcp_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
)

// realAgent calls servers of others.
var realAgent = mcptest.ClerkOf(`    - alias: files
      server_ref: files
      description: Files.
      allowed_tools: [read_text_file, {name: write_file, approval: true}]
    - alias: git
      server_ref: git
      description: A repository.
      allowed_tools: [git_status, git_add, git_log, {name: git_commit, approval: true}]
    - {alias: every, server_ref: every, description: Everything by a pipe.}
    - {alias: web, server_ref: web, description: Everything by HTTP.}
    - {alias: old, server_ref: old, description: Everything by the transport of 2024-11-05.}
`)

// realConfig has the servers of others: their programs, a directory, and
// the addresses of those that are reached by HTTP.
const realConfig = `agent: clerk.agf.yaml
callers: {name: desk, hold: 1s}
upstream:
  - {alias: files, command: %[1]s/mcp-server-filesystem, args: [%[3]s/files]}
  - alias: git
    command: %[2]s/mcp-server-git
    args: [--repository, %[3]s/repo]
    env: {GIT_AUTHOR_NAME: d, GIT_AUTHOR_EMAIL: d@example.com, GIT_COMMITTER_NAME: d, GIT_COMMITTER_EMAIL: d@example.com}
  - {alias: every, command: %[1]s/mcp-server-everything, args: [stdio]}
  - {alias: web, url: "http://%[4]s/mcp", networks: [127.0.0.0/8, "::1/128"]}
  - {alias: old, url: "http://%[5]s/sse", networks: [127.0.0.0/8, "::1/128"]}
`

// everything starts server-everything with one of its transports, and
// returns its address.
func everything(t *testing.T, transport string) string {
	t.Helper()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	start(t, []string{"PORT=" + port}, programs(t)+"/mcp-server-everything", transport)
	address := "localhost:" + port
	testwait.Until(t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return address
}

// programs returns the directory of the npm programs.
func programs(t *testing.T) string {
	t.Helper()
	return filepath.Join(installed(t), "node_modules", ".bin")
}

// realPlace has a gateway before the servers of others.
func realPlace(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, map[string]string{
		"clerk.agf.yaml": realAgent,
		"files/q3.txt":   "42 sold",
		"repo/a.txt":     "one\n",
	})
	p.write("gateway.yaml", fmt.Sprintf(
		realConfig,
		programs(t),
		os.Getenv("ASSENT_MCP_PYTHON"),
		p.dir,
		everything(t, "streamableHttp"),
		everything(t, "sse"),
	))
	run(t, "git", "-C", p.at("repo"), "init", "--quiet")
	return p
}

func TestServersOfOthersAreAskedAbout(t *testing.T) {
	t.Parallel()
	p := realPlace(t)
	c := p.gateway(t)
	listed := c.ask("tools/list", "{}")
	for _, name := range []string{"files__write_file", "git__git_commit", "every__echo", "web__get-sum"} {
		expect(t, listed, `"name":"`+name+`"`)
	}
	for _, name := range []string{"files__move_file", "git__git_reset"} {
		if strings.Contains(listed, `"`+name+`"`) {
			t.Errorf("%s is listed, and the agent's file doesn't allow it", name)
		}
	}

	expect(t, c.call("files__read_text_file", "path", p.at("files/q3.txt")), "42 sold")
	expect(t, c.call("every__echo", "message", "hi"), "Echo: hi")
	expect(t, c.call("web__get-sum", "a", 2, "b", 3), "5")
	expect(t, c.call("old__echo", "message", "hi"), "Echo: hi")
	expect(t, c.call("files__move_file", "source", p.at("files/q3.txt"), "destination", p.at("files/x")), "Not run.")
	in := p.inbox(t)
	t.Run("files", func(t *testing.T) { filesAreWrittenOnce(t, p, in) })
	t.Run("git", func(t *testing.T) { commitsAreMadeOnce(t, p, in) })
}

// twice makes a call that asks, has it approved, and makes it again; then
// it makes another one, which is denied.
func twice(t *testing.T, p *place, in inbox, call func(c *client, name string) string) {
	t.Helper()
	c := p.gateway(t) // its own connection: the other test waits meanwhile
	pending := call(c, "yes")
	in.answers(t, "approve", pending)
	slowly(t, "what was approved runs", func() bool {
		return !strings.Contains(call(c, "yes"), "Not run yet. This call was approved")
	})

	pending = call(c, "no")
	in.answers(t, "deny", pending)
	slowly(t, "the denial is told", func() bool {
		return strings.Contains(call(c, "no"), "denied this call: not this one.")
	})
}

func filesAreWrittenOnce(t *testing.T, p *place, in inbox) {
	t.Parallel()
	twice(t, p, in, func(c *client, name string) string {
		return c.call("files__write_file", "path", p.at("files/"+name), "content", name+"\n")
	})
	if got := p.text("files/yes"); got != "yes\n" {
		t.Errorf("the file has %q", got)
	}
	if entries, _ := os.ReadDir(p.at("files")); len(entries) != 2 {
		t.Errorf("there are %v", entries)
	}
}

func commitsAreMadeOnce(t *testing.T, p *place, in inbox) {
	t.Parallel()
	repo := p.at("repo")
	c := p.gateway(t)
	expect(t, c.call("git__git_status", "repo_path", repo), "a.txt")
	expect(t, c.call("git__git_add", "repo_path", repo, "files", []string{"a.txt"}), "staged")
	twice(t, p, in, func(c *client, name string) string {
		return c.call("git__git_commit", "repo_path", repo, "message", name)
	})
	commits := strings.Fields(string(run(t, "git", "-C", repo, "log", "--format=%s")))
	if !slices.Equal(commits, []string{"yes"}) {
		t.Errorf("the repository has the commits %q", commits)
	}
	expect(t, c.call("git__git_log", "repo_path", repo), "yes")
}
