package subject

import (
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/bench/internal/model"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Plan is the engine of assent with the agent and policies of a workload, as an author would
// write them.
type Plan struct {
	agent *schema.Agent
	set   *policy.Set
	plan  *resolve.Plan
}

// NewPlan writes the workload as one .agf.yaml and one .policy.yaml for each policy, reads
// them, and compiles the plan. One option differs from the default: the plan trusts decoded
// values, since encoding/json made them. All peers trust them too.
func NewPlan(w *model.Workload) (*Plan, error) {
	agent, err := assentAgent(w)
	if err != nil {
		return nil, err
	}
	set, err := assentPolicies(w.Rules)
	if err != nil {
		return nil, err
	}
	p := &Plan{agent: agent, set: set}
	return p, p.Compile()
}

// Compile compiles the plan again. The benchmark reports its time as "compile".
func (p *Plan) Compile() (err error) {
	if p.plan, err = resolve.Compile(p.agent, p.set, resolve.Options{TrustValues: true}); err != nil {
		return fmt.Errorf("assent: %w", err)
	}
	return nil
}

// Decide answers one call from its raw bytes.
func (p *Plan) Decide(c *model.Call) resolve.Decision {
	return p.plan.Decide(&resolve.Call{Kind: resolve.Tool, Tool: c.Tool, Args: c.Raw})
}

// Assent uses the product: plan.Decide on raw and on decoded arguments. It selects the rules by
// itself. If it requires approval, it also writes the message, the observations of every
// reason, and the binding. No other subject does that.
func Assent(w *model.Workload) ([]*Subject, error) {
	p, err := NewPlan(w)
	if err != nil {
		return nil, err
	}
	subject := func(input Input, fill func(dst *resolve.Call, c *model.Call)) *Subject {
		var last resolve.Decision
		call := resolve.Call{Kind: resolve.Tool}
		return &Subject{
			Engine: "assent",
			Input:  input,
			Scope:  Own,
			Decide: func(i int) int {
				c := &w.Calls[i]
				call.Tool = c.Tool
				fill(&call, c)
				last = p.plan.Decide(&call)
				return len(last.Reasons)
			},
			Reasons: func() []string { return AssentReasons(&last) },
		}
	}
	return []*Subject{
		subject(Raw, func(dst *resolve.Call, c *model.Call) { dst.Args = c.Raw }),
		subject(Decoded, func(dst *resolve.Call, c *model.Call) { dst.Values = c.Args }),
	}, nil
}

// AssentReasons returns the rules of a decision under their names in the model. A reason that
// is not a matching rule keeps its code, so that it agrees with no rule.
func AssentReasons(d *resolve.Decision) []string {
	var ids []string
	for _, r := range d.Reasons {
		switch {
		case d.Outcome != resolve.Ask || r.Code != resolve.ConditionTrue:
			ids = append(ids, fmt.Sprintf("%s: %s: %s", d.Outcome, r.Code, r.Detail))
		case r.Source == resolve.FromPolicy:
			ids = append(ids, r.Policy)
		default:
			ids = append(ids, strings.TrimPrefix(r.Rule, "local_tools."))
		}
	}

	return ids
}

func assentAgent(w *model.Workload) (*schema.Agent, error) {
	agent, findings := schema.Parse("fleet.agf.yaml", []byte(AgentText(w)))
	if err := firstError(findings); err != nil {
		return nil, fmt.Errorf("assent: %w", err)
	}
	return agent, nil
}

func assentPolicies(rules []model.Rule) (*policy.Set, error) {
	var policies []*policy.Policy
	for i := range rules {
		if rules[i].Agent {
			continue
		}
		p, findings := policy.Parse(rules[i].ID+".policy.yaml", []byte(PolicyText(&rules[i])))
		if err := firstError(findings); err != nil {
			return nil, fmt.Errorf("assent: %w", err)
		}
		policies = append(policies, p)
	}

	set, findings := policy.NewSet(policies...)
	return set, firstError(findings)
}

func firstError(findings []diag.Finding) error {
	for _, f := range findings {
		if f.Severity == diag.Error {
			return errors.New(f.Rule + ": " + f.Message)
		}
	}
	return nil
}

// AgentText returns the file of the agent.
func AgentText(w *model.Workload) string {
	var b strings.Builder
	b.WriteString(`schema_version: "1.0.0"
metadata:
  id: fleet-agent
  name: Fleet agent
  version: 1.0.0
  description: Calls the tools of the benchmark.
  labels:
`)
	for _, l := range w.Agent.Labels {
		fmt.Fprintf(&b, "    %s: %s\n", l.Key, l.Value)
	}
	b.WriteString(`interface:
  input: {type: object}
  output: {type: object}
execution_policy:
  id: agf.react
  config: {model: small-2, instructions: "Do what is asked, with the tools."}
action_space:
  local_tools:
`)
	approvals := map[string]string{}
	for i := range w.Rules {
		if r := &w.Rules[i]; r.Agent {
			approvals[r.Tool] = "      approval:\n" + approvalText(r, "        ")
		}
	}
	for _, tool := range w.Agent.Tools {
		fmt.Fprintf(&b, "    - alias: %s\n%s", tool, approvals[tool])
	}
	return b.String()
}

// PolicyText returns the file of one policy with one rule.
func PolicyText(r *model.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "schema_version: \"1.0.0\"\npolicy_ref: %s\napplies: implicit\n", r.ID)
	if len(r.Labels) > 0 {
		b.WriteString("agents:\n  labels:\n")
		for _, l := range r.Labels {
			fmt.Fprintf(&b, "    %s: %s\n", l.Key, l.Value)
		}
	}

	b.WriteString("rules:\n  - id: r1\n")
	if r.Tool != "" {
		fmt.Fprintf(&b, "    match: {kinds: [tool], targets: [%s]}\n", r.Tool)
	}
	fmt.Fprintf(&b, "    approval:\n%s", approvalText(r, "      "))
	return b.String()
}

func approvalText(r *model.Rule, indent string) string {
	template := ""
	if r.Agent {
		template = indent + `message_template: "Pay {{tool_args.amount}} {{tool_args.currency}} from ` +
			`{{tool_args.account}}?"` + "\n"
	}
	if len(r.Groups) == 1 {
		return template + indent + "condition: " + groupText(r.Groups[0]) + "\n"
	}
	text := template + indent + "condition:\n"
	for _, g := range r.Groups {
		text += indent + "  - " + groupText(g) + "\n"
	}
	return text
}

func groupText(g model.Group) string {
	return "{args_match: {" + join(g, ", ", func(m model.Matcher) string {
		return fmt.Sprintf("%q: %s", m.Key, matcherText(m))
	}) + "}}"
}

func matcherText(m model.Matcher) string {
	switch m.Op {
	case model.Eq:
		return literal(m, "%d")
	case model.Ne:
		return "{ne: " + literal(m, "%d") + "}"
	case model.In:
		return "{in: [" + quoted(m.List) + "]}"
	case model.NotIn:
		return "{not_in: [" + quoted(m.List) + "]}"
	case model.Pattern:
		return fmt.Sprintf("{pattern: %q}", m.Regexp.Source)
	default:
		name := map[model.Op]string{
			model.Gt:  "gt",
			model.Gte: "gte",
			model.Lt:  "lt",
			model.Lte: "lte",
		}[m.Op]
		return fmt.Sprintf("{%s: %d}", name, m.Num)
	}
}
