package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// Called returns the tool of a call. why is set if the catalogues show that its server has no such
// tool. Both are empty if nothing is known about the tool.
func (c Catalogs) Called(space *schema.ActionSpace, call *resolve.Call) (t *catalog.Tool, why string) {
	switch call.Kind {
	case resolve.Tool:
		tools, _ := c.Local(space)
		for i := range space.LocalTools {
			if l := &space.LocalTools[i]; l.Alias == call.Tool {
				return LocalTool(tools, l), ""
			}
		}
	case resolve.MCPTool:
		tools, known := c.Server(space, call.Server)
		if t = Tool(tools, call.Tool); t != nil || !known {
			return t, ""
		}
		var names []string
		for _, t := range tools {
			names = append(names, t.Name)
		}
		return nil, "the server offers no such tool" + didYouMean(call.Tool, names)
	}

	return nil, ""
}

// Unoffered explains why the catalogues show that no call like this can be
// made: the server has no such tool, or the tool takes no argument that the
// call or where names. It returns an empty string if nothing is known.
func (c Catalogs) Unoffered(plan *resolve.Plan, call *resolve.Call, where *condition.Expr) string {
	t, why := c.Called(&plan.Agent().ActionSpace, call)
	if t == nil {
		return why
	}
	lacks := func(key string) string {
		return fmt.Sprintf("%s takes no argument %q, so no call has it%s",
			call.Target(), key, didYouMean(key, t.Args.Names()))
	}
	fact := func(key string) bool {
		return slices.ContainsFunc(plan.Options().Derived, func(d resolve.Derived) bool {
			return strings.HasPrefix(key, d.As+".")
		})
	}
	if where != nil {
		for i := range where.Groups {
			for _, m := range where.Groups[i].Matchers {
				if _, has := Typed(t, condition.ToolArgs, m.Key); !has && !fact(m.Key) {
					return lacks(m.Key)
				}
			}
		}
	}
	args, err := value.Parse(call.Args, value.Limits{})
	if err != nil {
		return "" // the call has none, or none that can be read
	}
	for _, m := range args.Members {
		if values, _ := t.Args.At([]string{m.Key}); values.And(condition.AnyValue()).Empty() {
			return lacks(m.Key)
		}
	}

	return ""
}

func didYouMean(name string, known []string) string {
	if near := diag.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q", near)
	}
	return ""
}

// NoAgentOf lists the catalogues that concern none of these agents, so that nothing was compared
// with them.
func (c Catalogs) NoAgentOf(agents []*schema.Agent) Catalogs {
	var out Catalogs
	for _, list := range c {
		if !slices.ContainsFunc(agents, func(a *schema.Agent) bool {
			space := &a.ActionSpace
			if list.Server == "" {
				return list.MCP && len(space.MCPServers) > 0 || len(space.LocalTools) > 0
			}
			return slices.ContainsFunc(space.MCPServers,
				func(s schema.MCPServer) bool { return s.Alias == list.Server })
		}) {
			out = append(out, list)
		}
	}

	return out
}
