//go:build peers

package mcp_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/mcptest"
)

// TestSignInAtAServerOfOthers: the server and its authorization server are those of the official
// Python SDK. Its tokens live for two seconds, so they are renewed.
func TestSignInAtAServerOfOthers(t *testing.T) {
	t.Parallel()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	python := filepath.Join(os.Getenv("ASSENT_MCP_PYTHON"), "python")
	out, _ := start(t, nil, python, "signin.py", port)
	said := &testwait.Buffer{}
	go func() { _, _ = io.Copy(said, out) }() // until the server ends
	slowly(t, "the server listens", func() bool {
		resp, err := http.Get("http://127.0.0.1:" + port + "/.well-known/oauth-authorization-server")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})

	p := newPlace(t, map[string]string{
		"clerk.agf.yaml": mcptest.ClerkOf("    - {alias: notes, description: Notes.}\n"),
		"gateway.yaml": "agent: clerk.agf.yaml\ncallers: {name: desk, hold: 1s}\n" +
			"upstream: {alias: notes, url: \"http://127.0.0.1:" + port + "/mcp\"}\n",
	})
	c := p.gateway(t)
	expect(t, c.call("count"), "requires a sign-in")
	expect(t, c.ask("tools/list", "{}"), `"assent__sign_in_notes"`)
	link, _ := start(t, nil, assent(), "mcp", "sign-in", "notes", "--config", p.at("gateway.yaml"), "--json")
	lines := bufio.NewScanner(link)
	var begun struct{ Link string }
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &begun) != nil {
		t.Fatalf("it printed %q", lines.Text())
	}
	resp := must.Get(http.Get(begun.Link))(t)
	page := must.Get(io.ReadAll(resp.Body))(t)
	_ = resp.Body.Close()
	expect(t, string(page), "Signed in.")
	if !lines.Scan() || !strings.Contains(lines.Text(), `"renews":true`) {
		t.Errorf("it printed %q", lines.Text())
	}
	testwait.Until(t, "its tool is listed", func() bool {
		return strings.Contains(c.ask("tools/list", "{}"), `"name":"count"`)
	})
	testwait.Until(t, "the token is renewed", func() bool {
		expect(t, c.call("count"), "42 notes")
		return strings.Count(said.String(), "renewed") > 2
	})
}
