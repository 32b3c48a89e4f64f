package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// Servers that want a person to sign in have one tool each in the list, instead of their own tools.
// It runs nothing: its result is how to sign in, and whether somebody has.

// signInName begins the names of these tools, before the alias of the server.
const signInName = "sign_in_"

// signIns returns the servers that want a sign-in.
func (l *lister) signIns() (out []*Server) {
	_, failed := l.tools.last()
	for i := range l.cfg.Servers {
		s := &l.cfg.Servers[i]
		if s.SignIn != "" && errors.Is(failed[s.Alias], upstream.ErrSignIn) {
			out = append(out, s)
		}
	}
	return out
}

// signInView returns the definition of such a tool.
func (l *lister) signInView(s *Server) []byte {
	return written(func(w *jsonmsg.Writer) {
		w.Member("name", l.cfg.Naming.Own(signInName+s.Alias))
		w.Member("title", "Sign in to "+s.Alias+" first")
		w.Member("description", "Sign in first: the server "+s.Alias+" requires a person to sign in before its tools "+
			"can be listed. This tool runs nothing. It returns the sign-in command, or that the sign-in is complete.")
		w.Name("inputSchema").Raw([]byte(`{"type":"object","additionalProperties":false}`))
		w.Name("annotations").Raw([]byte(
			`{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`,
		))
	})
}

// signInTool returns the server of such a tool, or nil if a tool of that name doesn't exist.
func (l *lister) signInTool(name string) *Server {
	for i := range l.cfg.Servers {
		s := &l.cfg.Servers[i]
		if s.SignIn != "" && name == l.cfg.Naming.Own(signInName+s.Alias) {
			return s
		}
	}
	return nil
}

// callSignInTool answers a call of such a tool. It lists the server again, in case a person has signed
// in meanwhile.
func (l *lister) callSignInTool(
	ctx context.Context, r *server.Request, c *wire.Call, s *Server,
) (json.RawMessage, *wire.Error) {
	if _, bad := l.askedBy(ctx, r); bad != nil {
		return nil, bad
	}
	if c.Task != nil && !r.Modern {
		return nil, wire.Fail(wire.CodeMethodNotFound, "this tool can't be called as a task")
	}
	before := l.generation()
	listing, stop := context.WithTimeoutCause(ctx, l.cfg.ListPatience, errSlow)
	defer stop()
	if err := l.refresh(listing, s.Alias); err != nil && ctx.Err() != nil {
		return nil, wire.Fail(wire.CodeInternal, "the server can't be listed")
	}
	if l.generation() != before {
		l.announce(ctx, server.ToolsChanged)
	}
	if _, failed := l.tools.last(); failed[s.Alias] != nil {
		return l.say(r, notRun(textDown(s, failed[s.Alias])))
	}
	return l.say(r, &wire.Said{Text: "Signed in: the tools of " + s.Alias + " are listed now."})
}

// plainScope matches scopes that mean nothing else to a shell.
var plainScope = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$`)

// mostScopes limits how many scopes of a server are repeated.
const mostScopes = 10

// textSignIn returns the answer to calls of a server that requires a sign-in.
func textSignIn(s *Server, why error) string {
	text := "The server " + s.Alias + " requires a sign-in"
	command := s.SignIn
	if lacks, is := errors.AsType[*upstream.ScopeError](why); is {
		text += ", because the token of the last one lacks a scope"
		for i, scope := range strings.Fields(lacks.Scope) {
			if i < mostScopes && plainScope().MatchString(scope) {
				command += " --scope " + scope
			}
		}
	}
	if s.SignIn == "" {
		return text + ", and the gateway has no token that it accepts; its operators must set token_file or oauth."
	}
	return text + ". A person has to run `" + command + "` in a terminal on the machine of the gateway. Then call " +
		"again."
}
