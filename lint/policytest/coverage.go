package policytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Coverage counts which parts of the rules the calls of tests have exercised. The zero value is
// empty.
type Coverage struct {
	Parts []*Part // rule by rule, in the order of the files
	index map[partKey]*Part
	sem   condition.Semantics // of the world that is declared
}

// Part is a rule, a group of its condition, or a matcher of a group.
type Part struct {
	Level string     `json:"level"` // rule, group or matcher
	Name  string     `json:"name"`
	File  string     `json:"file"`
	Range diag.Range `json:"-"`
	// Seen counts the calls for each truth value of the part, and the calls for which the part
	// alone decided: without it the condition would have had another result.
	Seen map[string]int `json:"seen"`
	// Missing lists what some call could exercise and no call did.
	Missing []string `json:"missing,omitempty"`
	goals   []string
}

// These are the observations about a part.
const (
	seenTrue    = "true"
	seenFalse   = "false"
	seenUnknown = "unknown"
	seenAlone   = "alone"
)

type partKey struct {
	file       string
	at         diag.Position
	level      string
	group, key int
}

// Observe adds the rules of a world, and how the calls of a test file evaluate them.
func (c *Coverage) Observe(b *Built, f *File, picked func(name string) bool) {
	c.declare(b)
	for i := range f.Calls {
		if t := &f.Calls[i]; picked(t.Name) {
			c.call(b.Plan.Trace(t.Call))
		}
	}
	for i := range f.Cases {
		if t := &f.Cases[i]; picked(t.Name) {
			c.call(b.Plan.Trace(t.Call))
		}
	}
}

// declare adds every rule of the agents and of the policies that govern
// them.
func (c *Coverage) declare(b *Built) {
	if c.index == nil {
		c.index = map[partKey]*Part{}
	}
	c.sem = b.Semantics
	for _, a := range b.Agents {
		for _, g := range gates(a) {
			if g.approval.Form != schema.Never {
				c.rule(a.File, g.name, g.approval.Range, g.use, conditionOf(g.approval))
			}
		}
	}
	for _, p := range b.Policies {
		for i := range p.Rules {
			r := &p.Rules[i]
			e := r.Condition()
			if r.Denies {
				e = r.When
			}
			if len(r.Match.Takes) > 0 {
				e = condition.And(condition.Takes(r.Match.Takes), e)
			}
			c.rule(p.File, p.Ref+" "+r.ID, r.Range, lint.UseOf(&r.Match), e)
		}
	}
}

// rule adds a rule with the parts of its condition. It sets no goal that no call can reach,
// according to the analyser. The condition is nil if the rule has none.
func (c *Coverage) rule(file, name string, at diag.Range, use condition.Use, e *condition.Expr) {
	key := partKey{file: file, at: at.Start, level: "rule"}
	if c.index[key] != nil {
		return
	}
	if e == nil {
		c.part(key, name, at, []string{seenTrue})
		return
	}

	c.part(key, name, at, c.goals(use, e))
	for i := range e.Groups {
		g := &e.Groups[i]
		key.level, key.group = "group", i
		goals := c.goals(use, &condition.Expr{Groups: []condition.Group{*g}})
		if len(e.Groups) > 1 {
			goals = append(goals, seenAlone)
		}
		c.part(key, fmt.Sprintf("%s, group %d", name, i+1), g.Range, goals)
		for j := range g.Matchers {
			m := &g.Matchers[j]
			key.level, key.key = "matcher", j
			goals := c.goals(use, alone(*m))
			if len(goals) > 1 {
				goals = append(goals, seenAlone)
			}
			c.part(key, fmt.Sprintf("%s, group %d, %s", name, i+1, describe(m)), m.Range, goals)
		}

		key.key = 0
	}
}

func conditionOf(ap *schema.Approval) *condition.Expr {
	if ap.Form != schema.Conditional {
		return nil
	}
	return ap.Condition
}

func (c *Coverage) part(key partKey, name string, at diag.Range, goals []string) {
	p := &Part{
		Level: key.level,
		Name:  name,
		File:  key.file,
		Range: at,
		Seen:  map[string]int{},
		goals: goals,
	}
	c.index[key] = p
	c.Parts = append(c.Parts, p)
}

// describe returns a matcher as written in a file.
func describe(m *condition.Matcher) string {
	switch {
	case m.Takes:
		return m.Key + " is given"
	case m.IsFact():
		return m.FactText()
	}
	tests := make([]string, len(m.Tests))
	for i := range m.Tests {
		tests[i] = m.Tests[i].String()
	}

	return strings.TrimSpace(m.Key + " " + strings.Join(tests, " and "))
}

// goals returns the truth values that some call can produce.
func (c *Coverage) goals(use condition.Use, e *condition.Expr) []string {
	a := condition.NewAnalyzer(use, c.sem, 0)
	var goals []string
	if can, _ := a.Satisfiable(e); can != condition.No {
		goals = append(goals, seenTrue)
	}
	if can, _ := a.CanBeFalse(e); can != condition.No {
		goals = append(goals, seenFalse)
	}
	if can, _ := a.CanBeUnknown(e); can != condition.No {
		goals = append(goals, seenUnknown)
	}

	return goals
}

// call counts how one call evaluates each part.
func (c *Coverage) call(traces []resolve.Trace) {
	for _, t := range traces {
		key := partKey{file: t.File, at: t.Range.Start, level: "rule"}
		if c.index[key] == nil {
			continue // rules without a place in a file, such as for an undeclared tool
		}
		c.see(key, t.Truth.String())
		for i, g := range t.Groups {
			key.level = "group"
			key.group, key.key = i, 0
			c.see(key, g.Truth.String())
			if aloneGroup(t.Groups, i) {
				c.see(key, seenAlone)
			}
			for j, truth := range g.Matchers {
				key.level, key.key = "matcher", j
				c.see(key, truth.String())
				if aloneMatcher(t.Groups, i, j) {
					c.see(key, seenAlone)
				}
			}
		}
	}
}

func (c *Coverage) see(key partKey, what string) {
	if p := c.index[key]; p != nil {
		p.Seen[what]++
	}
}

// aloneGroup reports whether a group is the only one that asks.
func aloneGroup(groups []condition.GroupTruth, at int) bool {
	return asks(groups) && !asks(slices.Delete(slices.Clone(groups), at, at+1))
}

// aloneMatcher reports whether the result of the condition depends on this matcher: with another
// result of the matcher, the condition's result would differ.
func aloneMatcher(groups []condition.GroupTruth, at, matcher int) bool {
	other, truths := slices.Clone(groups), slices.Clone(groups[at].Matchers)
	if truths[matcher] == condition.False {
		truths[matcher] = condition.True
	} else {
		truths[matcher] = condition.False
	}
	other[at] = condition.GroupTruth{Truth: slices.Min(truths), Matchers: truths}

	return asks(groups) != asks(other)
}

// asks reports whether a condition of these groups asks.
func asks(groups []condition.GroupTruth) bool {
	return slices.ContainsFunc(groups, func(g condition.GroupTruth) bool { return g.Truth != condition.False })
}

// Finish sets the missing observations of each part, and returns how many goals were met, and how
// many there are.
func (c *Coverage) Finish() (met, all int) {
	for _, p := range c.Parts {
		p.Missing = nil
		for _, goal := range p.goals {
			if p.Seen[goal] == 0 {
				p.Missing = append(p.Missing, goal)
			}
		}
		all += len(p.goals)
		met += len(p.goals) - len(p.Missing)
	}

	return met, all
}

// Percent returns how many of the goals are met, as a percentage rounded down. Without goals it
// returns 100.
func Percent(met, all int) int {
	if all == 0 {
		return 100
	}

	return met * 100 / all
}

// gate is one approval of an agent's file.
type gate struct {
	name     string // its place in the action space, as reasons have it
	use      condition.Use
	approval *schema.Approval
}

// gates lists the approvals of an agent in the order of its file.
func gates(a *schema.Agent) []gate {
	var out []gate
	add := func(name string, use condition.Use, ap *schema.Approval) {
		if ap != nil {
			out = append(out, gate{name, use, ap})
		}
	}
	space := &a.ActionSpace
	for _, t := range space.LocalTools {
		add("local_tools."+t.Alias, condition.ToolArgs, t.Approval)
	}
	for _, s := range space.MCPServers {
		name := "mcp_servers." + s.Alias
		add(name, condition.ToolArgs, s.Approval)
		for _, t := range lint.Entries(s.AllowedTools) {
			add(name+"."+t.Name, condition.ToolArgs, t.Approval)
		}
	}

	for _, l := range space.LocalAgents {
		add("local_agents."+l.Alias, condition.Delegation, l.Approval)
	}
	for _, r := range space.RemoteAgents {
		name := "remote_agents." + r.Alias
		add(name, condition.Delegation, r.Approval)
		for _, s := range lint.Entries(r.AllowedSkills) {
			add(name+"."+s.Name, condition.SkillArgs, s.Approval)
		}
	}

	return out
}
