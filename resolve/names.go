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

// notDeclared returns the reason for an undeclared target: its name, and a similar declared one.
func (b *builder) notDeclared(a *schema.Agent) string {
	key, name := "local_agents", b.at.name
	switch {
	case b.at.kind == Tool:
		key = "local_tools"
	case b.at.kind == MCPTool:
		key, name = "mcp_servers", b.at.container
	case b.at.container != "":
		key, name = "remote_agents", b.at.container
	}

	var what string
	var known []string
	for _, list := range a.ActionSpace.Lists() {
		if list.Key == key {
			what = list.What
		}
		if list.Key == key || key == "local_agents" && list.Key == "remote_agents" {
			for _, e := range list.Entries {
				known = append(known, e.Alias)
			}
		}
	}

	return sentence(fmt.Sprintf("the agent's file declares no %s %s", what, quote(name)), name, known)
}

// notAllowed returns the reason for a target that an allow-list does not name.
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
