package schema

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// references checks the aliases and paths in an execution policy.
type references struct {
	*reader
	agent  *Agent
	locals names
	remote map[string]diag.Range
}

func (c *references) policy(p *ExecutionPolicy) {
	switch p.ID {
	case PolicySequential, PolicyLoop:
		c.sequence(p)
	case PolicyParallel:
		for _, step := range p.Steps {
			c.local(step.Agent)
			c.mappings(step.Input, sources{note: "agents of agf.parallel run at the same time"}, false)
		}

		c.output(p)
	case PolicyBatch:
		c.batch(p.Batch)
	case PolicyConditional:
		c.conditional(p)
	}
}

// sequence checks the steps of agf.sequential and agf.loop: a path may
// read what ran before.
func (c *references) sequence(p *ExecutionPolicy) {
	var earlier names
	for _, step := range p.Steps {
		c.local(step.Agent)
		c.mappings(step.Input, sources{steps: earlier, note: "a path reads earlier steps only"}, false)
		earlier.add(step.Agent.Alias, step.Agent.Range)
	}

	c.condition(p.ExitCondition, sources{steps: earlier, note: "an exit condition reads the steps of the loop"})
	c.output(p)
}

func (c *references) batch(b *Batch) {
	c.local(b.Agent)
	c.mappings(b.Input, sources{note: "agf.batch has no earlier steps"}, true)
}

func (c *references) conditional(p *ExecutionPolicy) {
	src := sources{note: "agf.conditional has no earlier steps"}
	for _, route := range p.Routes {
		c.condition(route.When, src)
		c.local(route.Agent)
		c.mappings(route.Input, src, false)
	}
	if p.DefaultAgent != nil {
		c.local(*p.DefaultAgent)
	}
}

// local reports an alias that local_agents does not have.
func (c *references) local(ref AgentRef) bool {
	if c.locals.has(ref.Alias) {
		return true
	}
	f := yamldoc.Fail(
		ruleUnknownAgent,
		ref.Range,
		fmt.Sprintf("%q is no alias of local_agents", ref.Alias),
		"an entry of action_space.local_agents with this alias",
	)
	f.Nearest = c.locals.nearest(ref.Alias)
	if len(c.locals.list) > 0 {
		f.Expected = oneOf(c.locals.list)
	}
	if at, ok := c.remote[ref.Alias]; ok {
		f.Message = fmt.Sprintf("%q is a remote agent; an execution policy runs local agents only", ref.Alias)
		f.Related = []diag.Related{{Range: at, Message: "declared as remote here"}}
	}

	c.add(f)
	return false
}

// output checks output_from against the local agents and the steps that run.
func (c *references) output(p *ExecutionPolicy) {
	out := p.Output
	if out.Strategy != "" && out.Range != (diag.Range{}) {
		c.keywordClash(out)
	}
	if out.Agent == nil {
		return
	}
	if !c.local(*out.Agent) {
		c.orStrategy(&c.findings[len(c.findings)-1], out.Agent.Alias)
		return
	}
	if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Agent.Alias == out.Agent.Alias }) {
		c.add(yamldoc.Fail(
			ruleIdleOutput,
			out.Agent.Range,
			fmt.Sprintf("output_from takes the output of %q, which no step runs", out.Agent.Alias),
			"the alias of a step, "+oneOf(collect(p.Steps, func(s Step) string { return s.Agent.Alias })),
		))
	}
}

// orStrategy adds to a finding about an unknown alias that a bare
// output_from may be a strategy too.
func (c *references) orStrategy(f *diag.Finding, name string) {
	if !isText(c.agent.Policy.Config.Get("output_from")) {
		return
	}
	f.Expected += ", or the strategy last, first or merge"
	if f.Nearest == "" {
		f.Nearest = diag.Nearest(name, []string{"last", "first", "merge"})
	}
}

// keywordClash reports a bare last, first or merge if an agent of that name is declared too. The
// object form is unambiguous.
func (c *references) keywordClash(out Output) {
	if !isText(c.agent.Policy.Config.Get("output_from")) {
		return
	}
	if at, ok := c.locals.at[out.Strategy]; ok {
		f := yamldoc.Warn(
			ruleKeywordClash,
			out.Range,
			fmt.Sprintf("%q is read as the strategy, not as the agent of that alias", out.Strategy),
			fmt.Sprintf("{agent: %s} or {strategy: %s}", out.Strategy, out.Strategy),
		)
		f.Related = []diag.Related{{Range: at, Message: "the agent is declared here"}}
		c.add(f)
	}
}

// sources lists what a path may read besides the parent's input.
type sources struct {
	steps names
	note  string // why no others
}

// mappings checks the paths of an input_mapping. In a batch at least
// one must walk a list.
func (c *references) mappings(mappings []Mapping, src sources, batch bool) {
	iterates, readable := false, true
	for _, m := range mappings {
		path, ok := c.path(m.Node.At, text(m.Node), src)
		readable = readable && ok
		iterates = iterates || path.iterates()
		if !batch && path.iterates() {
			c.add(yamldoc.Warn(
				ruleStrayIteration,
				m.Node.Range,
				"[] walks the items of a list, which only agf.batch does",
				"a path without [], or the execution policy agf.batch",
			))
		}
	}

	if batch && readable && !iterates {
		c.add(yamldoc.Fail(
			ruleBatchIteration,
			c.agent.Policy.Config.Field("input_mapping").Key.Range,
			"no path of the batch walks a list, so there are no items to run",
			"at least one path with [], such as parent.input.items.[].value",
		))
	}
}

// condition checks the keys of an exit condition or a route, which are
// paths too.
func (c *references) condition(e *condition.Expr, src sources) {
	if e == nil {
		return
	}
	for _, g := range e.Groups {
		for _, m := range g.Matchers {
			path, ok := c.path(func(int, int) diag.Range { return m.KeyRange }, m.Key, src)
			if ok && path.iterates() {
				c.add(yamldoc.Fail(
					ruleStrayIteration,
					m.KeyRange,
					"a condition can't walk the items of a list",
					"a path without []",
				))
			}
		}
	}
}

// path checks one path; at gives the place of a stretch of its text.
func (c *references) path(at func(offset, length int) diag.Range, text string, src sources) (Path, bool) {
	p, bad := parsePath(text)
	if bad != nil {
		f := yamldoc.Fail(ruleInvalidPath, at(bad.offset, bad.length), bad.message, bad.expected)
		if isName(text) { // most likely a field of the input
			f.Nearest = parent + ".input." + text
		}
		c.add(f)
		return p, false
	}

	if f, ok := src.check(p); !ok {
		f.Range = at(0, len(p.Source))
		c.add(f)
		return p, false
	}
	return p, true
}

// check reports whether a path reads something that exists when it is read.
func (s sources) check(p Path) (diag.Finding, bool) {
	f := yamldoc.Fail(ruleUnknownSource, diag.Range{}, "", "")
	switch {
	case s.steps.has(p.Source), p.Source == parent && p.Direction == "input":
		return f, true
	case p.Source == parent:
		f.Message, f.Expected = "parent.output does not exist before the run has ended", "parent.input"
	default:
		f.Message = fmt.Sprintf("the path reads from %q, but %s", p.Source, s.note)
		f.Expected, f.Nearest = parent, s.steps.nearest(p.Source)
		if len(s.steps.list) > 0 {
			f.Expected += " or " + oneOf(s.steps.list)
		}
	}

	return f, false
}
