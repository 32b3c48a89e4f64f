package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/upstream"
)

// TestSignInTools: a server that requires a sign-in has one tool, whose name fits the limit, in each
// era. What the server says about scopes can't change the command.
func TestSignInTools(t *testing.T) {
	t.Parallel()
	lacks := &upstream.ScopeError{Scope: "a:b $(x) ;id --config=/x c/d 'q " + strings.Repeat("y", 101)}
	l := newLister(func(context.Context) error { return fmt.Errorf("%w: %w", upstream.ErrNotSent, lacks) })
	w := newWorld(t, func(cfg *mcp.Config) {
		cfg.Servers[0].Upstream = l
		cfg.Servers[0].SignIn = "sign-in-here"
		cfg.Naming = catalog.Naming{Limit: 16}
		cfg.WaitTool = true
	})
	c := w.connect(t)
	list := c.say(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	if !strings.Contains(list, `"assent__s_`) || !strings.Contains(list, "Sign in first") {
		t.Error(list)
	}
	c.no(list, "read_file")
	name := list[strings.Index(list, "assent__s_"):][:16]
	const want = "Not run. The server files requires a sign-in, because the token of the last one lacks a scope. " +
		"A person has to run `sign-in-here --scope a:b --scope c/d` in a terminal"
	c.expect(c.call(name, `{}`), want)
	c.expect(c.call("read_file", `{}`), want)
	l.from(nil)
	c.expect(c.call(name, `{}`), "Signed in: the tools of files are listed now.")
	c.expect(c.call("read_file", `{}`), "done 1")
	c.no(c.say(`{"jsonrpc":"2.0","id":6,"method":"tools/list"}`), name)
}
