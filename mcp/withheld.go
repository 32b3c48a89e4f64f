package mcp

import (
	"errors"
	"maps"
	"slices"

	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/resolve"
)

// withhold removes a tool from the list if its server is not available or the configuration or the
// agent's file doesn't allow it at all.
func withhold(plan *resolve.Plan, s *Server, v *catalog.Verdict, down error) {
	switch {
	case down != nil:
		v.State, v.Reason = catalog.Withheld, textDown(s, down)
	case len(s.Include) > 0 && !slices.Contains(s.Include, v.Tool.Name), slices.Contains(s.Exclude, v.Tool.Name):
		v.State, v.Reason = catalog.Withheld, "The gateway's configuration leaves out this tool."
	case undeclared(plan, s.Alias, v.Tool.Name):
		v.State, v.Reason = catalog.Withheld, "The agent's file doesn't allow this tool."
	}
}

// textDown returns the answer to calls of a server whose tools are not known now.
func textDown(s *Server, why error) string {
	alias := s.Alias
	if errors.Is(why, errPins) {
		return "Nobody can say which definitions of the tools of " + alias + " were accepted; its operators must look at it."
	}
	if errors.Is(why, errNotYet) {
		return "The server " + alias + " has not listed its tools yet."
	}
	if errors.Is(why, upstream.ErrSignIn) {
		return textSignIn(s, why)
	}
	text := "The server " + alias + " can't be reached."
	if ended, is := errors.AsType[*upstream.EndedError](why); is && ended.LastWords != "" {
		text += " The last words of its program: " + ended.LastWords
	}
	return text
}

// undeclared reports whether the agent's file denies every call of a tool because it is not
// declared or an allow-list doesn't name it.
func undeclared(plan *resolve.Plan, alias, name string) bool {
	d := plan.Decide(&resolve.Call{Kind: resolve.MCPTool, Server: alias, Tool: name})
	return d.Outcome == resolve.Deny && slices.ContainsFunc(d.Reasons, func(r resolve.Reason) bool {
		return r.Code == resolve.NotAllowed || r.Code == resolve.NotDeclared
	})
}

// unknown returns the tool for a name that no list has. If the name belongs to a server whose tools
// were never listed, that is a tool whose calls are refused with the reason. Otherwise it returns
// nil.
func (l *lister) unknown(name string) *tool {
	listed, failed := l.tools.last()
	alias := l.cfg.Naming.AliasOf(name, slices.Collect(maps.Keys(l.servers)))
	if failed[alias] == nil || len(listed[alias].Tools) > 0 {
		return nil
	}
	return &tool{server: alias, withheld: textDown(l.servers[alias], failed[alias])}
}
