package policytest

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// stranger is a name that no file is expected to have.
const stranger = "not_in_the_file"

// mostTargets limits the targets for which tests are created.
const mostTargets = 2_000

// targets lists the calls that the agent may make: everything that its file names, one name that is
// missing from each list, and the targets of its policies' rules.
func targets(b *Built) []resolve.Call {
	t := &targetList{seen: map[string]bool{}}
	a := b.Agents[len(b.Agents)-1]
	t.declared(a, b.Catalogs)
	for _, p := range b.Policies {
		for i := range p.Rules {
			t.governed(a, &p.Rules[i].Match)
		}
	}

	return t.calls
}

type targetList struct {
	calls []resolve.Call
	seen  map[string]bool
}

func (t *targetList) add(c resolve.Call) {
	key := c.Target() + string('0'+rune(c.Remote))
	if !t.seen[key] && len(t.calls) < mostTargets {
		t.seen[key] = true
		t.calls = append(t.calls, c)
	}
}

func (t *targetList) declared(a *schema.Agent, catalogs lint.Catalogs) {
	space := &a.ActionSpace
	for _, l := range space.LocalTools {
		t.add(toolCall(l.Alias))
	}
	t.add(toolCall(stranger))
	for _, s := range space.MCPServers {
		list := names(s.AllowedTools)
		if s.AllowedTools == nil {
			offered, _ := catalogs.Server(space, s.Alias)
			for _, tool := range offered {
				list = append(list, tool.Name)
			}
		}
		for _, name := range append(list, stranger) {
			t.add(serverCall(s.Alias, name))
		}
	}
	for _, l := range space.LocalAgents {
		t.add(delegation(l.Alias, resolve.RemoteNo))
	}
	for _, r := range space.RemoteAgents {
		t.add(delegation(r.Alias, resolve.RemoteYes))
		for _, name := range append(names(r.AllowedSkills), stranger) {
			t.add(skillCall(r.Alias, name))
		}
	}
}

func names(list *[]schema.ToolRef) []string {
	var out []string
	for _, e := range lint.Entries(list) {
		out = append(out, e.Name)
	}

	return out
}

// governed adds calls to the targets of a policy's rule in every container, whether the rule
// matches there or not. Their names are the rule's globs with the stars replaced by a word.
func (t *targetList) governed(a *schema.Agent, m *policy.Match) {
	space := &a.ActionSpace
	for _, glob := range m.Targets {
		name := strings.ReplaceAll(glob, "*", "any")
		t.add(toolCall(name))
		for _, s := range space.MCPServers {
			t.add(serverCall(s.Alias, name))
		}
		for _, r := range space.RemoteAgents {
			t.add(skillCall(r.Alias, name))
		}
	}
}

// hints returns the annotations with which calls of a target are tried: none, and, for rules that
// read annotations, those that match and each of them inverted.
func hints(b *Built, c *resolve.Call) []map[string]bool {
	out := []map[string]bool{nil}
	for _, p := range b.Policies {
		for i := range p.Rules {
			m := &p.Rules[i].Match
			if e := m.Except; e != nil && len(e.Annotations) > 0 {
				out = append(out, e.Annotations)
			}
			if len(m.Annotations) == 0 || !m.Target(called(b, c)) {
				continue
			}
			out = append(out, m.Annotations)
			for _, name := range sortedKeys(m.Annotations) {
				other := map[string]bool{}
				for k, v := range m.Annotations {
					other[k] = v != (k == name)
				}
				out = append(out, other)
			}
		}
	}

	return out
}

// called returns what rules can match of a call.
func called(b *Built, c *resolve.Call) policy.Called {
	out := policy.Called{Kind: c.Kind, Target: nameOf(c), Server: c.Container()}
	for _, s := range b.Plan.Agent().ActionSpace.MCPServers {
		if c.Kind == resolve.MCPTool && s.Alias == c.Server {
			out.ServerRef = s.ServerRef
		}
	}

	return out
}

func nameOf(c *resolve.Call) string {
	switch c.Kind {
	case resolve.Tool, resolve.MCPTool:
		return c.Tool
	case resolve.Skill:
		return c.Skill
	}

	return c.Agent
}

func sortedKeys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)

	return out
}
