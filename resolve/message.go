package resolve

import (
	"cmp"
	"slices"

	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// documents are the documents of a call.
type documents struct {
	args   document
	parent document // its tree is Absent when there is none
}

// document is the arguments of a call, or its parent's input, in the forms needed for binding and
// for a message. A long text is parsed as a tree only if a message shows it, since a tree takes
// many times the memory.
type document struct {
	canonical []byte
	text      []byte       // as it was given, nil of Go values
	limits    value.Limits // of text
	tree      value.Value  // of Go values
}

func (p *Plan) args(c *Call, t *target) (document, error) {
	switch {
	case c.Args != nil:
		return read(c.Args, t.limits)
	case c.Values != nil:
		v, err := value.FromGo(c.Values, t.limits)
		return tree(v), err
	default:
		return tree(value.Value{Kind: value.Object}), nil
	}
}

func (p *Plan) parentInput(c *Call) (document, error) {
	if c.ParentInput == nil {
		return tree(value.Value{}), nil
	}
	return read(c.ParentInput, p.parentLimits())
}

// smallText is the size in bytes up to which a text is parsed as a tree immediately, which is
// faster than reading it twice.
const smallText = 16 << 10

func read(text []byte, lim value.Limits) (document, error) {
	if len(text) <= smallText {
		v, err := value.Parse(text, lim)
		return tree(v), err
	}
	canonical, err := value.AppendCanonicalText(nil, text, lim)
	return document{canonical: canonical, text: text, limits: lim}, err
}

func tree(v value.Value) document { return document{canonical: v.AppendCanonical(nil), tree: v} }

// value returns the tree.
func (d document) value() value.Value {
	if d.text == nil {
		return d.tree
	}
	v, err := value.Parse(d.text, d.limits)
	if err != nil {
		return value.Value{} // it was changed since it was read: the message then shows nothing of it
	}
	return v
}

// message renders the template of the first rule that asked: the agent's own before any policy's,
// the skill's or tool's before the delegation's or server's, policies by reference and position.
// from is the source of that rule.
func (e *explanation) message() (text template.Message, from Source) {
	text, from = e.rendered()
	if i := slices.IndexFunc(e.asked, func(r *rule) bool { return r.code == ApprovalMisspelt }); i >= 0 {
		text.Text += "\nNote: " + e.asked[i].detail + "."
	}
	return text, from
}

// rendered returns the message as its template makes it.
func (e *explanation) rendered() (text template.Message, from Source) {
	chosen := e.template()
	if chosen == nil {
		at := &e.target.gates[0] // a skill call is shown as one, whichever of its gates asked
		return template.Message{
			Text: template.Default(contextOf(at), e.plan.facts(e.call, at, e.docs)),
		}, FromDefault
	}

	at := &e.target.gates[chosen.gate]

	return chosen.template.Render(contextOf(at), e.plan.facts(e.call, at, e.docs)), chosen.source
}

// template returns the rule whose template is shown, or nil if none has one. Rules are ordered by
// gate, with the agents' files first, but if a tool is listed twice, its server's rule may precede
// its own.
func (e *explanation) template() *rule {
	var own, governing *rule
	for _, r := range e.asked {
		switch {
		case r.template == nil:
		case r.source == FromPolicy:
			if governing == nil || before(r, governing) {
				governing = r
			}
		case own == nil, own.source == FromServer && r.source == FromAgent && r.layer == own.layer:
			own = r
		}
	}

	if own == nil {
		return governing
	}
	return own
}

// before orders the policy rules of two gates.
func before(a, b *rule) bool {
	return cmp.Or(
		cmp.Compare(a.policy, b.policy),
		cmp.Compare(a.at.Start.Line, b.at.Start.Line),
		cmp.Compare(a.at.Start.Column, b.at.Start.Column),
	) < 0
}

func contextOf(at *place) template.Context {
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

// facts gives a template its variables. agent_alias is the executing
// agent, but the called one in a delegation (Agent Format, variable
// catalog).
func (p *Plan) facts(c *Call, at *place, d documents) *template.Facts {
	f := &template.Facts{
		ToolName:    c.Tool,
		MCPServer:   c.Server,
		SkillID:     c.Skill,
		AgentAlias:  p.alias,
		AgentID:     p.agent.Metadata.ID,
		Args:        d.args.value(),
		ParentInput: d.parent.value(),
	}
	if c.Kind == Skill {
		f.RemoteAgent = c.Agent
	}
	if at.kind == Delegation {
		f.AgentAlias = c.Agent
		if at.container != "" {
			f.RemoteAgent = c.Agent
		}
	}

	return f
}
