package mcp

import (
	"errors"
	"maps"
	"slices"

	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/resolve"
)

// withhold takes a tool off the list whose server isn't there, or that
// the agent's file doesn't allow at all.
func withhold(plan *resolve.Plan, s *Server, v *catalog.Verdict, down error) {
	switch {
	case down != nil:
		v.State, v.Reason = catalog.Withheld, textDown(s.Alias, down)
	case len(s.Include) > 0 && !slices.Contains(s.Include, v.Tool.Name), slices.Contains(s.Exclude, v.Tool.Name):
		v.State, v.Reason = catalog.Withheld, "The gateway's configuration leaves out this tool."
	case undeclared(plan, s.Alias, v.Tool.Name):
		v.State, v.Reason = catalog.Withheld, "The agent's file doesn't allow this tool."
	}
}

// textDown is for calls of a server whose tools are not known now.
func textDown(alias string, why error) string {
	if errors.Is(why, errPins) {
		return "Nobody can say which definitions of the tools of " + alias + " were accepted; its operators must look at it."
	}
	if errors.Is(why, errNotYet) {
		return "The server " + alias + " has not listed its tools yet."
	}
	if errors.Is(why, upstream.ErrSignIn) {
		return "The server " + alias + " wants a sign-in, and takes no token that the gateway has; its operators must set " +
			"token_file or oauth."
	}
	text := "The server " + alias + " can't be reached."
	if ended, is := errors.AsType[*upstream.EndedError](why); is && ended.LastWords != "" {
		text += " The last words of its program: " + ended.LastWords
	}
	return text
}

// undeclared reports whether the agent's file denies every call of a
// tool: it is not declared, or an allow-list doesn't name it.
func undeclared(plan *resolve.Plan, alias, name string) bool {
	d := plan.Decide(&resolve.Call{Kind: resolve.MCPTool, Server: alias, Tool: name})
	return d.Outcome == resolve.Deny && slices.ContainsFunc(d.Reasons, func(r resolve.Reason) bool {
		return r.Code == resolve.NotAllowed || r.Code == resolve.NotDeclared
	})
}

// unknown is what a name stands for that no list has: a tool that can't
// be called if it belongs to a server whose tools were never listed, and
// else nothing.
func (g *Gateway) unknown(name string) *tool {
	listed, failed := g.tools.last()
	alias := g.cfg.Naming.AliasOf(name, slices.Collect(maps.Keys(g.servers)))
	if failed[alias] == nil || len(listed[alias].Tools) > 0 {
		return nil
	}
	return &tool{server: alias, withheld: textDown(alias, failed[alias])}
}
