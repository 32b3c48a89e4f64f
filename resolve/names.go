package resolve

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/schema"
)

// quote prints a name from a call inside a sentence: short, and without
// characters that could disturb a reader.
func quote(name string) string {
	const most = 64
	if runes := []rune(name); len(runes) > most {
		return fmt.Sprintf("%+q…", string(runes[:most]))
	}
	return fmt.Sprintf("%+q", name)
}

// notDeclared says what the agent's file lacks, and what it has that is near.
func (b *builder) notDeclared(a *schema.Agent) string {
	what := "local tool"
	name := b.at.name
	known := []string(nil)
	space := &a.ActionSpace
	switch {
	case b.at.kind == Tool:
		for i := range space.LocalTools {
			known = append(known, space.LocalTools[i].Alias)
		}
	case b.at.kind == MCPTool:
		what, name = "MCP server", b.at.container
		for i := range space.MCPServers {
			known = append(known, space.MCPServers[i].Alias)
		}
	case b.at.container != "":
		what, name = "remote agent", b.at.container
		for i := range space.RemoteAgents {
			known = append(known, space.RemoteAgents[i].Alias)
		}
	default:
		what, known = "local agent", agentAliases(space)
	}

	return sentence(fmt.Sprintf("the agent's file declares no %s %s", what, quote(name)), name, known)
}

func agentAliases(space *schema.ActionSpace) []string {
	var known []string
	for i := range space.LocalAgents {
		known = append(known, space.LocalAgents[i].Alias)
	}
	for i := range space.RemoteAgents {
		known = append(known, space.RemoteAgents[i].Alias)
	}
	return known
}

// notAllowed says that an allow-list does not name the place.
func (b *builder) notAllowed(l list) string {
	var known []string
	for _, e := range *l.entries {
		known = append(known, e.Name)
	}
	text := fmt.Sprintf("allowed_%ss of %s does not name %s", l.what, l.alias, quote(b.at.name))
	if len(known) == 0 {
		return fmt.Sprintf("allowed_%ss of %s is empty, so no %s is allowed", l.what, l.alias, l.what)
	}
	return sentence(text, b.at.name, known)
}

func sentence(text, name string, known []string) string {
	if near := diag.Nearest(name, known); near != "" {
		return text + ", the nearest is " + near
	}
	if len(known) > 0 && len(known) <= 5 {
		return text + ", but " + strings.Join(known, ", ")
	}
	return text
}
