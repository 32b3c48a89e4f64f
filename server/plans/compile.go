package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

// generation is one state of all files: what is in force, and the problems.
type generation struct {
	agents   map[string]*approval.Compiled
	unusable map[string]*UnusableError // by agent id
	nameless []*UnusableError          // of files without a readable id
	problems []Problem
	digest   string // of the agents in force
	policies ruleset
	choice   *choice
	errors   []diag.Finding // see Plans.Errors
	past     *approval.PastRules
	// counting are the agents in force, and the last plans of those that can't be used now.
	counting map[string]*approval.Compiled

	files   map[string]bool
	members map[string]*member // by path
	paths   map[string]string  // by agent id: the file that decides about the agent
}

// compile makes the plans. An agent's plan depends on the plans of all agents that delegate
// to it, each of which is used once.
func (l *loader) compile() *generation {
	g := &generation{
		agents:   map[string]*approval.Compiled{},
		unusable: map[string]*UnusableError{},
		paths:    map[string]string{},
		policies: l.policies,
		choice:   l.choice,
		files:    l.files,
		members:  l.members,
		digest:   l.agentsDigest(),
	}
	firm := l.parents(func(m *member) []string { return m.edges })
	perhaps := l.parents(func(m *member) []string { return slices.Concat(m.edges, m.doubts) })
	for _, name := range slices.Sorted(maps.Keys(l.members)) {
		m := l.members[name]
		compiled, why := l.compileMember(m, ancestors(name, firm), ancestors(name, perhaps))
		if compiled == nil {
			g.refuse(m, why)
		} else {
			g.agents[m.id], g.paths[m.id] = compiled, name
		}
		switch {
		case compiled == nil:
			l.problem(Problem{Part: Agents, Agent: m.id, File: name, Why: why})
		case len(m.broken) > 0:
			l.problem(Problem{
				Part:  Agents,
				Agent: m.id,
				File:  name,
				Why:   m.broken,
				Kept:  true,
			})
		}
	}

	g.problems = l.problems
	for _, name := range slices.Sorted(maps.Keys(l.members)) {
		g.errors = append(g.errors, l.members[name].errors...)
	}
	g.errors = append(g.errors, l.policies.errors...)
	for _, p := range l.problems {
		if p.Part == Agents && !p.Kept && l.members[p.File] == nil {
			g.nameless = append(g.nameless, &UnusableError{File: p.File, Why: p.Why})
		}
	}
	g.counting = maps.Clone(g.agents)
	if len(g.unusable)+len(g.nameless) > 0 { // their rules count what other agents do in the meantime
		for id, c := range l.before.counting {
			if g.counting[id] == nil {
				g.counting[id] = c
			}
		}
	}
	g.past = approval.NewPastRules(g.counting)
	return g
}

// refuse records why a file gives no plan. If two files share an id, only the first one is
// recorded, and its reason names the other.
func (g *generation) refuse(m *member, why []string) {
	switch {
	case m.id == "":
		g.nameless = append(g.nameless, &UnusableError{File: m.root.path(), Why: why})
	case g.unusable[m.id] == nil:
		g.unusable[m.id] = &UnusableError{Agent: m.id, File: m.root.path(), Why: why}
	}
}

// parents returns for each file the files that delegate to it.
func (l *loader) parents(children func(*member) []string) map[string][]string {
	out := map[string][]string{}
	for _, from := range slices.Sorted(maps.Keys(l.members)) {
		for _, to := range children(l.members[from]) {
			out[to] = append(out[to], from)
		}
	}
	return out
}

// ancestors lists the files that delegate to a file, directly or not, outermost first.
func ancestors(name string, parents map[string][]string) []string {
	var out []string
	seen := map[string]bool{name: true}
	var visit func(string)
	visit = func(n string) {
		for _, p := range parents[n] {
			if !seen[p] {
				seen[p] = true
				visit(p)
				out = append(out, p)
			}
		}
	}
	visit(name)
	return out
}

// compileMember makes the plan of a file. If a file is broken, its requirements for the
// files that it names are unknown, so those get no plan either, unless they were in force
// before: then they keep their plans.
func (l *loader) compileMember(m *member, firm, perhaps []string) (*approval.Compiled, []string) {
	if m.agent == nil {
		return nil, m.broken
	}
	for _, name := range perhaps {
		if a := l.members[name]; len(a.broken) > 0 && !slices.Contains(firm, name) && !l.wasInForce(m) {
			return nil, []string{fmt.Sprintf("%s delegates to it and can't be used: %s", name, a.broken[0])}
		}
	}
	var plan *resolve.Plan
	for _, name := range append(firm, m.root.path()) {
		opt := l.choice.options
		opt.Parent, opt.AgentAlias = plan, ""
		var err error
		if plan, err = resolve.Compile(l.members[name].agent, l.policies.registry, opt); err != nil {
			return nil, []string{name + ": " + err.Error() + l.hint(err)}
		}
	}

	meta := &m.agent.Metadata
	return &approval.Compiled{
		Agent: approval.Agent{
			ID:          meta.ID,
			Version:     meta.Version,
			Name:        meta.Name,
			Description: meta.Description,
		},
		Owners: people.Owners(meta.Labels["owner"]),
		Plan:   plan,
	}, nil
}

// hint returns what to do if an agent names policies and none were given.
func (l *loader) hint(err error) string {
	unresolved, ok := errors.AsType[*resolve.UnresolvedError](err)
	if !ok || len(unresolved.Refs) == 0 || len(l.choice.from.Policies) > 0 ||
		l.choice.from.Registry != nil {
		return ""
	}
	return "; no policies are given: name their directory with --policies, or policies in the configuration"
}

// agentsDigest returns the digest of the agents that decide, including last good copies.
func (l *loader) agentsDigest() string {
	var dirs []string
	for _, p := range l.cfg.Agents {
		dir := p
		if l.files[p] {
			dir = filepath.Dir(p)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}

	texts := make([]map[string]sum, len(dirs))
	for _, m := range l.members {
		i := slices.Index(dirs, m.root.dir)
		if m.agent == nil || i < 0 {
			continue
		}
		if texts[i] == nil {
			texts[i] = map[string]sum{}
		}
		texts[i][m.root.file] = m.digest
	}

	return digestOf(texts)
}

// digestOf returns the digest of files, by directory and by path below it: the digest of
// the lines that sha256sum prints about them, in order.
func digestOf(dirs []map[string]sum) string {
	h := sha256.New()
	for _, files := range dirs {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(h, "%x  %s\n", files[name], name)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
