package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
)

// destructiveWithoutGate reports destructive tools that run without approval.
func destructiveWithoutGate(p *lint.Pass) {
	space := &p.Agent.ActionSpace
	if tools, known := p.Catalogs().Local(space); known {
		for _, l := range space.LocalTools {
			if t := lint.LocalTool(tools, &l); t != nil && open(l.Approval) {
				judgeDestructiveWithoutGate(p, t, policy.Tool, l.Alias, "", l.AliasRange)
			}
		}
	}

	for _, s := range space.MCPServers {
		tools, _ := p.Catalogs().Server(space, s.Alias)
		if s.AllowedTools == nil && open(s.Approval) {
			for _, t := range tools {
				judgeDestructiveWithoutGate(p, t, policy.MCPTool, t.Name, s.Alias, s.AliasRange)
			}
		}

		for _, e := range lint.Entries(s.AllowedTools) {
			if t := lint.Tool(tools, e.Name); t != nil && openEntry(&s, e.Name) {
				judgeDestructiveWithoutGate(p, t, policy.MCPTool, t.Name, s.Alias, e.NameRange)
			}
		}
	}
}

// open reports whether an approval lets every call through.
func open(a *schema.Approval) bool { return a == nil || a.Form == schema.Never }

// openEntry reports whether a tool on an allow-list has no gate in the file. It returns false
// for a tool that is exempt from its server's approval, because another rule reports that.
func openEntry(s *schema.MCPServer, name string) bool {
	for _, e := range lint.Entries(s.AllowedTools) {
		if e.Name == name && !open(e.Approval) {
			return false
		}
	}
	return open(s.Approval)
}

func judgeDestructiveWithoutGate(
	p *lint.Pass, t *catalog.Tool, kind policy.Kind, name, server string, at diag.Range,
) {
	why := destructive(p, t.Name, server, t)
	if why == "" || governed(p, t, kind, name, server) {
		return
	}
	more := []func(*diag.Finding){
		lint.Expected("an approval of the tool, or a policy that asks about it"),
		lint.Declared(t),
	}
	message := fmt.Sprintf("%q %s, and nobody is asked before it runs", t.Name, why)
	if policiesMissing(p) {
		message = fmt.Sprintf("%q %s, and no approval of this file gates it; the policies that it names were not given",
			t.Name, why)
		more = append(more, lint.Soften(diag.Info))
	}
	p.Report(at, message, more...)
}

// policiesMissing reports whether the run has no registry although the agent names policies, or
// may name some in a part that could not be read.
func policiesMissing(p *lint.Pass) bool {
	names := len(p.Agent.Constraints.Policies) > 0 || p.Agent.Cut["constraints"]
	return p.Registry == nil && names
}

// governed reports whether a policy of the agent asks about some calls of a tool, or denies
// them.
func governed(p *lint.Pass, t *catalog.Tool, kind policy.Kind, name, server string) bool {
	hints := map[string]bool{}
	if t != nil && t.Hints.Destructive != nil {
		hints["destructiveHint"] = *t.Hints.Destructive
	}
	if t != nil && t.Hints.ReadOnly != nil {
		hints["readOnlyHint"] = *t.Hints.ReadOnly
	}
	called := policy.Called{Kind: kind, Target: name, Server: server}
	for i := range p.Agent.ActionSpace.MCPServers {
		if s := &p.Agent.ActionSpace.MCPServers[i]; kind == policy.MCPTool && s.Alias == server {
			called.ServerRef = s.ServerRef
		}
	}
	excepted := func(r *policy.Rule, c policy.Called) bool {
		e := r.Match.Except
		if e == nil || len(e.Takes) > 0 || !e.Agents.Match(&p.Agent.Metadata) || !e.Match().Target(c) {
			return false
		}
		return len(e.Annotations) == 0 || (server == "" || p.Trusts(server)) && e.Match().Exempts(hints)
	}
	for _, pol := range p.Policies() {
		if slices.ContainsFunc(pol.Rules, func(r policy.Rule) bool {
			return r.Match.Target(called) && r.Match.Annotated(hints, p.Trusts(server)) && !excepted(&r, called)
		}) {
			return true
		}
	}

	return false
}

// destructive returns the reason why a tool counts as destructive: its catalogue says so, or
// its name does. It returns "" if there is no reason. A hint that a tool is harmless is
// believed only from the program's own tools, whose server is "", and from trusted servers. t
// is nil if no catalogue lists the tool.
func destructive(p *lint.Pass, name, server string, t *catalog.Tool) string {
	harmless := false
	if t != nil {
		hints := t.Hints
		if hints.Destructive != nil && *hints.Destructive {
			return "says that it is destructive"
		}
		harmless = hints.Destructive != nil || hints.ReadOnly != nil && *hints.ReadOnly
	}

	if harmless && (server == "" || p.Trusts(server)) {
		return ""
	}

	for _, w := range words.FindAllString(name, -1) {
		if slices.Contains(destroying, strings.ToLower(w)) {
			return fmt.Sprintf("sounds destructive (%s)", strings.ToLower(w))
		}
	}
	return ""
}

// destroying lists words in the names of tools whose effects can't be undone. The pages of both
// rules list the same words.
var destroying = strings.Fields(
	"delete del destroy drop erase kill purge remove reset revoke rm terminate truncate uninstall unlink wipe",
)
