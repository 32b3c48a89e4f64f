package posture

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// framed is one aspect of the agent as a whole, by name.
type framed map[string]piece

type piece struct {
	protection Protection
	at         *Position
}

// frame compares the aspects of the agent as a whole.
func (c *comparer) frame() {
	c.compareFramed(aspectAllowList, allowLists, true)
	c.compareFramed(aspectTarget, behinds, true)
	c.compareFramed(aspectDelegation, edges, false)
	c.compareFramed(aspectPolicyRef, references, false)
	c.compareFramed(aspectSuppression, suppressions, false)
	c.compareFramed(aspectTightenOnly, tightenOnly, false)
	c.compareFramed(aspectLimit, limits, false)
	c.compareFramed(aspectSemantics, semantics, false)
	c.compareFramed(aspectTrusted, trusted, false)
	c.compareFramed(aspectCase, caseSensitive, false)
	c.compareFramed(aspectDerived, derived, false)
	c.compareFramed(aspectIgnored, ignored, false)
	c.compareFramed(aspectRegistry, registries, false)
	c.compareFramed(aspectFiles, sources, true)
	c.compareFramed(aspectID, ids, false)
	c.compareFramed(aspectOwners, c.owners, false)
	c.people()
}

// compareFramed compares one aspect. An entry that one side lacks counts as the zero Protection
// there. If shared is set, only entries that both sides have are compared, because changes of
// outcomes report the others.
func (c *comparer) compareFramed(name string, of func(Side) framed, shared bool) {
	a := aspect(name)
	old, new := of(c.old), of(c.new)
	names := maps.Clone(old)
	maps.Copy(names, new)
	for _, key := range slices.Sorted(maps.Keys(names)) {
		was, had := old[key]
		is, has := new[key]
		if shared && !(had && has) {
			continue
		}
		if !had && name == aspectPolicyRef {
			was.protection.Step = stepAbsent
		}
		if !has && name == aspectPolicyRef {
			is.protection.Step = stepAbsent
		}
		order := a.compare(was.protection, is.protection)
		if order == Same {
			continue
		}
		change := Change{
			Kind:   "agent",
			Aspect: name,
			From:   labelled(key, a.show(was.protection)),
			To:     labelled(key, a.show(is.protection)),
			Old:    was.at,
			New:    is.at,
		}
		change.Effect, change.Why = effectOf(order)
		c.changes = append(c.changes, c.judged(change, name, key))
	}
}

// judged corrects the effect that the order alone gives.
//
// A new reference to a policy tightens nothing by itself, because what the policy adds is compared
// call by call. Making an advisory reference required tightens: without the policy every call is
// denied. Removing a reference loosens, because the next version of the policy would not apply.
func (c *comparer) judged(change Change, aspect, key string) Change {
	switch {
	case aspect == aspectPolicyRef && change.Effect == Tightens && strings.HasSuffix(change.From, ": absent"):
		change.Effect = Changes
	case aspect == aspectID:
		change.Effect, change.Why = Changes, ""
	case aspect == aspectPeople && change.Effect == Undecided:
		change.Why = "each side has people, or names of them, that the other has not"
	case change.Effect == Undecided:
		change.Why = "what may be done there is not known from these files"
		switch aspect {
		case aspectAllowList:
			change.Why = "each side lists names that the other does not"
		case aspectDerived:
			change.Why = "conditions find other facts, or none, so what they ask about can't be compared"
		case aspectFiles:
			change.Why = "each side was read from another file, and which one a service reads is not known"
		}
	}

	if kind, alias, ok := strings.Cut(key, " "); ok && aspect != aspectSuppression {
		switch resolve.Kind(kind) {
		case resolve.Tool:
			change.Kind, change.Tool = kind, alias
		case resolve.MCPTool:
			change.Kind, change.Server = kind, alias
		case resolve.Skill, resolve.Delegation:
			change.Kind, change.Agent = kind, alias
		}
	}

	return change
}

// labelled adds the key to the value if the aspect has several entries.
func labelled(key, value string) string {
	if key == "" {
		return value
	}
	return key + ": " + value
}

func at(s Side, r diag.Range) *Position {
	return &Position{File: s.Plan.Agent().File, Line: r.Start.Line, Column: r.Start.Column}
}

// allowLists returns the lists of a side that restrict tools, skills and agents.
func allowLists(s Side) framed {
	out := framed{}
	space := &s.Plan.Agent().ActionSpace
	put := func(kind resolve.Kind, e *schema.Entry, list *[]schema.ToolRef, where diag.Range) {
		p := Protection{All: list == nil || len(*list) == 0 &&
			s.Plan.Options().Semantics.EmptyAllowList == resolve.EmptyIsAbsent}
		if list != nil && !p.All {
			for i := range *list {
				p.Names = append(p.Names, (*list)[i].Name)
			}
		}
		slices.Sort(p.Names)
		p.Names = slices.Compact(p.Names)
		if where == (diag.Range{}) {
			where = e.Range
		}
		out[string(kind)+" "+e.Alias] = piece{p, at(s, where)}
	}
	for i := range space.MCPServers {
		m := &space.MCPServers[i]
		put(resolve.MCPTool, &m.Entry, m.AllowedTools, m.AllowedRange)
	}
	for i := range space.RemoteAgents {
		r := &space.RemoteAgents[i]
		put(resolve.Skill, &r.Entry, r.AllowedSkills, r.AllowedRange)
	}

	return out
}

// behinds returns the names for which the aliases of tools and servers are used.
func behinds(s Side) framed {
	out := framed{}
	space := &s.Plan.Agent().ActionSpace
	for i := range space.LocalTools {
		t := &space.LocalTools[i]
		out[string(resolve.Tool)+" "+t.Alias] = piece{
			Protection{Word: t.Name},
			at(s, t.Range),
		}
	}

	for i := range space.MCPServers {
		m := &space.MCPServers[i]
		out[string(resolve.MCPTool)+" "+m.Alias] = piece{
			Protection{Word: m.ServerRef},
			at(s, m.Range),
		}
	}

	return out
}

// edges returns the agents to which the agent can delegate.
func edges(s Side) framed {
	out := framed{}
	space := &s.Plan.Agent().ActionSpace
	put := func(e *schema.Entry, word string) {
		key := string(resolve.Delegation) + " " + e.Alias
		if known, twice := out[key]; twice {
			word = known.protection.Word + " and " + word
		}
		out[key] = piece{Protection{Word: word}, at(s, e.Range)}
	}
	for i := range space.LocalAgents {
		l := &space.LocalAgents[i]
		source := l.Source
		if l.SourceType == "file" {
			source = path.Clean(source)
		}
		put(&l.Entry, l.SourceType+" "+source)
	}
	for i := range space.RemoteAgents {
		put(&space.RemoteAgents[i].Entry, "remote agent")
	}

	return out
}

// The steps of references.
const (
	stepRequired = iota
	stepAdvisory
	stepAbsent
)

func references(s Side) framed {
	out := framed{}
	for _, ref := range s.Plan.Agent().Constraints.Policies {
		p := reference(ref.Required)
		if known, twice := out[ref.Ref]; !twice || known.protection.Step > p.Step {
			out[ref.Ref] = piece{p, at(s, ref.RefRange)}
		}
	}

	return out
}

// reference returns the protection of a reference to a policy.
func reference(required bool) Protection {
	if required {
		return Protection{Word: "required", Step: stepRequired}
	}
	return Protection{Word: "advisory", Step: stepAdvisory}
}

// suppressions lists the suppressed findings by document and rule, one entry for each suppression.
func suppressions(s Side) framed {
	out := framed{}
	count := map[string]int{}
	for _, sup := range s.Suppressed {
		key := sup.Rule + " in " + sup.File
		if count[key]++; count[key] > 1 {
			key += " (" + strconv.Itoa(count[key]) + ")"
		}
		out[key] = piece{Protection{Names: []string{"silenced"}}, &sup.At}
	}

	return out
}

func tightenOnly(s Side) framed {
	c := &s.Plan.Agent().Constraints
	p := Protection{Word: "true"}
	if !c.TightenOnly {
		p = Protection{Word: "false", Step: 1}
	}
	return framed{"": {p, at(s, c.TightenOnlyRange)}}
}

// These are the limits that decisions.yaml sets.
const (
	limitPermitAge    = "permit_age_seconds"
	limitRegistryKeep = "registry_keep_seconds"
)

// limits returns the limits of a side: budgets, steps, and how long an approval may be used.
func limits(s Side) framed {
	budget, lim := s.Plan.Limits()
	where := s.Plan.Agent().Doc.Root.Range
	if n := s.Plan.Agent().Doc.Root.Get("constraints"); n != nil {
		where = n.Range
	}
	out := framed{}
	for name, n := range map[string]*int64{
		"max_token_usage":      budget.MaxTokenUsage,
		"max_duration_seconds": budget.MaxDurationSeconds,
		"max_llm_calls":        lim.MaxLLMCalls,
		"max_tool_calls":       lim.MaxToolCalls,
		"max_delegation_depth": lim.MaxDelegationDepth,
	} {
		out[name] = piece{Protection{Limit: n}, at(s, where)}
	}

	if s.PermitAge > 0 {
		seconds := int64(s.PermitAge / time.Second)
		out[limitPermitAge] = piece{protection: Protection{Limit: &seconds}}
	}
	if s.RegistryKeep > 0 {
		seconds := int64(s.RegistryKeep / time.Second)
		out[limitRegistryKeep] = piece{protection: Protection{Limit: &seconds}}
	}

	return out
}

// ids returns the id of the agent.
func ids(s Side) framed {
	meta := &s.Plan.Agent().Metadata
	return framed{"": {Protection{Word: meta.ID}, at(s, meta.Range)}}
}

// semantics returns the readings that decisions.yaml can choose.
func semantics(s Side) framed {
	opt := s.Plan.Options()
	c := opt.Semantics.Conditions
	choose := func(step int, first, other string) piece {
		return piece{protection: Protection{Word: []string{first, other}[min(step, 1)], Step: step}}
	}
	on := map[bool]int{true: 1}

	return framed{
		"on_missing":          choose(int(c.OnMissing), "ask", "no_match"),
		"on_mismatch":         choose(int(c.OnMismatch), "ask", "no_match"),
		"anchor":              choose(int(c.Anchor), "unanchored", "full"),
		"trim":                choose(int(c.Trim), "raw_and_trimmed", "raw_only"),
		"undeclared":          choose(int(opt.Semantics.Undeclared), "deny", "ask"),
		"empty_allow_list":    choose(int(opt.Semantics.EmptyAllowList), "allows_none", "as_absent"),
		"remote_approval":     choose(int(opt.Semantics.RemoteApproval), "two_gates", "skill_replaces"),
		"approve_on_timeout":  choose(on[opt.AllowTimeoutApprove], "false", "true"),
		"replace_permissions": choose(on[opt.ReplacePermissions], "false", "true"),
	}
}

func trusted(s Side) framed { return framed{"": {protection: setOf(s.Plan.Options().TrustedServers)}} }

func caseSensitive(s Side) framed {
	return framed{"": {protection: setOf(s.Plan.Options().CaseSensitive)}}
}

// derived returns the facts that decisions.yaml derives from arguments, by target.
func derived(s Side) framed {
	out := framed{}
	for _, d := range s.Plan.Options().Derived {
		word := d.As + " from " + d.From
		if len(d.Listed) > 0 {
			word += ", listed " + strings.Join(slices.Compact(slices.Sorted(slices.Values(d.Listed))), ", ")
		}
		out[d.Target] = piece{protection: Protection{Word: word}}
	}

	return out
}

// ignored returns the arguments that standing approvals do not compare, by target.
func ignored(s Side) framed {
	out := framed{}
	for _, g := range s.Plan.Options().Grants {
		out[g.Target] = piece{protection: setOf(g.Ignored)}
	}

	return out
}

func registries(s Side) framed {
	return framed{"": {protection: Protection{Word: s.PolicyRegistry}}}
}

// sources returns the locations of the other files that decide, by role.
func sources(s Side) framed {
	out := framed{}
	for role, file := range s.Sources {
		out[role] = piece{protection: Protection{Word: file}}
	}
	return out
}

func setOf(names []string) Protection {
	return Protection{Names: slices.Compact(slices.Sorted(slices.Values(names)))}
}
