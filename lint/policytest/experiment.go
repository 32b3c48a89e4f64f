package policytest

import (
	"cmp"
	"slices"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// experiment tries changes that are part of one entry of a file. Their common data is computed
// once.
type experiment struct {
	suites []*Suite
	whole  bool     // nothing is left out that a change can't touch
	stages []*stage // of each suite; nil: not made yet
}

// stage is the data for trying the changes of one entry with one suite.
type stage struct {
	parts *parts
	built *Built
	// root is the agent's document with only this entry. It is nil if the mutant's own document is
	// used.
	root  *yamldoc.Node
	tests []test // those that a change could touch, the likely ones first
}

// try runs the tests of every suite on one change.
func (x *experiment) try(m *Mutant) fate {
	if x.stages == nil {
		for _, s := range x.suites {
			x.stages = append(x.stages, s.stage(m, x.whole))
		}
	}
	out := fate{unusable: true, survivor: Survivor{Mutant: *m}}
	for _, s := range x.stages {
		built, ok := s.mutated(m)
		if !ok {
			continue
		}
		out.unusable = false
		if s.notices(built) {
			return fate{killed: true}
		}

		if out.survivor.Witness == "" {
			out.survivor.search(s, built)
		}
	}

	return out
}

// notices reports whether a test fails.
func (s *stage) notices(b *Built) bool {
	return slices.ContainsFunc(s.tests, func(t test) bool {
		r := t.run(b)
		return !r.Passed()
	})
}

// stage returns the stage for a mutant. If the change is in one entry of the only agent, it affects
// only the calls of its alias. The other entries are then removed, provided that the tests of these
// calls pass without them.
func (s *Suite) stage(m *Mutant, whole bool) *stage {
	read := s.parts
	out := &stage{parts: read, built: s.Built}
	for _, f := range s.Files {
		out.tests = append(out.tests, f.tests()...)
	}
	agent := slices.IndexFunc(read.agents, func(a *schema.Agent) bool { return a.File == m.File })
	if whole {
		return out
	}
	if agent >= 0 && m.entry != "" && len(read.agents) == 1 {
		if small := out.reduced(m); small != nil {
			return small
		}
	}
	var likely, others []test
	for _, t := range out.tests {
		if m.meets(s.Built.Plan, t.call) {
			likely = append(likely, t)
		} else {
			others = append(others, t)
		}
	}

	out.tests = append(likely, others...)

	return out
}

// meets reports whether the changed rule, or a rule of the changed file, applies to a target.
func (m *Mutant) meets(p *resolve.Plan, c *resolve.Call) bool {
	target := p.Target(c)
	return target != nil &&
		slices.ContainsFunc(target.Gates, func(g resolve.Gate) bool {
			return g.File == m.File && (g.Policy == "" || m.entry == "" || g.Rule == m.entry)
		})
}

// reduced returns the stage with only one entry, or nil if a test passes only with the others.
func (s *stage) reduced(m *Mutant) *stage {
	out := &stage{root: single(m.root, m.entry)}
	for _, t := range s.tests {
		if aliasOf(t.call) == m.entry {
			out.tests = append(out.tests, t)
		}
	}
	agent, _ := schema.Parse(m.File, appendJSON(nil, out.root))
	if agent == nil {
		return nil
	}
	parts := *s.parts
	parts.agents = []*schema.Agent{agent}
	out.parts = &parts
	var err error
	if out.built, err = parts.build(); err != nil {
		return nil
	}
	if out.notices(out.built) {
		return nil
	}

	return out
}

// aliasOf returns the alias in the action space to which a call goes.
func aliasOf(c *resolve.Call) string {
	switch c.Kind {
	case resolve.Tool:
		return c.Tool
	case resolve.MCPTool:
		return c.Server
	}

	return c.Agent
}

// single returns an agent's document without the entries of other aliases.
func single(root *yamldoc.Node, alias string) *yamldoc.Node {
	space := *root.Get("action_space")
	space.Fields = slices.Clone(space.Fields)
	for i, f := range space.Fields {
		list := *f.Value
		list.Items = slices.DeleteFunc(
			slices.Clone(list.Items),
			func(entry *yamldoc.Node) bool {
				name := entry.Get("alias")
				return name == nil || name.Text != alias
			},
		)
		space.Fields[i].Value = &list
	}

	return edited(root, root.Get("action_space"), &space)
}

// mutated builds the world with the change. It returns false if the change is not part of the
// world, or makes it unusable.
func (s *stage) mutated(m *Mutant) (*Built, bool) {
	root := m.root
	if s.root != nil {
		root = s.root
	}
	text := appendJSON(nil, edited(root, m.at, m.with))
	next := *s.parts
	next.agents = slices.Clone(next.agents)
	next.policies = slices.Clone(next.policies)
	changed, usable := false, true
	for i, a := range next.agents {
		if a.File == m.File {
			next.agents[i], _ = schema.Parse(m.File, text)
			changed = true
			usable = usable && next.agents[i] != nil
		}
	}

	for i, p := range next.policies {
		if p.File == m.File {
			next.policies[i], _ = policy.Parse(m.File, text)
			changed = true
			usable = usable && next.policies[i] != nil
		}
	}

	if !changed || !usable {
		return nil, false
	}
	built, err := next.build()

	return built, err == nil
}

// search looks for a call that the change decides differently, among the boundary calls of both
// versions. It prefers a call with another outcome.
func (s *Survivor) search(at *stage, after *Built) {
	touched := func(c *resolve.Call) bool {
		return s.entry == "" || at.root != nil || s.meets(at.built.Plan, c) ||
			s.meets(after.Plan, c)
	}
	before, open := boundaries(at.built, touched)
	changed, openAfter := boundaries(after, touched)
	s.Untried = cmp.Or(s.Untried, open, openAfter)
	for _, x := range append(before, changed...) {
		was, is := at.built.Plan.Decide(&x.Call), after.Plan.Decide(&x.Call)
		a, b := apart(was, is)
		if a == b || s.Witness != "" && was.Outcome == is.Outcome {
			continue
		}
		text, err := x.Call.JSON()
		if err != nil {
			continue
		}
		s.Witness = string(text)
		s.Before, s.After = a, b
		if was.Outcome != is.Outcome {
			return
		}
	}
}

// apart returns two decisions in the form that a test expects. It includes their messages if
// nothing else differs.
func apart(was, is resolve.Decision) (a, b string) {
	if a, b = expectation(was, false), expectation(is, false); a == b {
		a, b = expectation(was, true), expectation(is, true)
	}

	return a, b
}
