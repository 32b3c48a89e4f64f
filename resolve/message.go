package resolve

import (
	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// documents are the decoded values of a call, needed only to ask.
type documents struct {
	args   value.Value
	parent value.Value // Absent when not given
}

func (p *Plan) args(c *Call) (value.Value, error) {
	switch {
	case c.Args != nil:
		return value.Parse(c.Args, p.opt.Limits)
	case c.Values != nil:
		return value.FromGo(c.Values, p.opt.Limits)
	default:
		return value.Value{Kind: value.Object}, nil
	}
}

func (p *Plan) parentInput(c *Call) (value.Value, error) {
	if c.ParentInput == nil {
		return value.Value{}, nil
	}
	return value.Parse(c.ParentInput, p.opt.Limits)
}

// message renders the first template that asked: the agent's own before any policy's, the skill's or tool's before the
// delegation's or server's, policies by reference and position. Rules stand in that order already, gate by gate. from is
// whose template it is.
func (e *explanation) message() (text template.Message, from Source) {
	chosen := e.template()
	if chosen.rule == nil {
		at := e.gates.first // a skill call is shown as one, whichever of its gates asked
		return template.Message{Text: template.Default(contextOf(at.place), e.plan.facts(e.call, at, e.docs))}, FromDefault
	}
	text = chosen.rule.template.Render(contextOf(chosen.gate.place), e.plan.facts(e.call, chosen.gate, e.docs))

	return text, chosen.rule.source
}

func (e *explanation) template() asked {
	var chosen asked
	for _, a := range e.asked {
		switch {
		case a.rule.template == nil:
		case a.rule.source != FromPolicy:
			return a
		case chosen.rule == nil || before(a.rule, chosen.rule):
			chosen = a
		}
	}
	return chosen
}

// before orders the policy rules of two gates.
func before(a, b *rule) bool {
	if a.policy != b.policy {
		return a.policy < b.policy
	}
	if a.at.Start.Line != b.at.Start.Line {
		return a.at.Start.Line < b.at.Start.Line
	}
	return a.at.Start.Column < b.at.Start.Column
}

func contextOf(at place) template.Context {
	switch {
	case at.kind == MCPTool:
		return template.MCPTool
	case at.kind == Skill:
		return template.Skill
	case at.kind == Delegation && at.container != "":
		return template.RemoteDelegation
	case at.kind == Delegation:
		return template.LocalDelegation
	default:
		return template.LocalTool
	}
}

// facts gives a template its variables. agent_alias is the executing agent, but the called one in a delegation (Agent
// Format, variable catalog).
func (p *Plan) facts(c *Call, t *target, d documents) *template.Facts {
	f := &template.Facts{
		ToolName: c.Tool, MCPServer: c.Server, SkillID: c.Skill, AgentAlias: p.alias, AgentID: p.agent.Metadata.ID,
		Args: d.args, ParentInput: d.parent,
	}
	if c.Kind == Skill {
		f.RemoteAgent = c.Agent
	}
	if t.kind == Delegation {
		f.AgentAlias = c.Agent
		if t.container != "" {
			f.RemoteAgent = c.Agent
		}
	}
	return f
}
