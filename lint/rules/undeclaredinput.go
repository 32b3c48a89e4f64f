package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
)

// undeclaredInput reports paths into the agent's input that the interface doesn't declare.
func undeclaredInput(p *lint.Pass) {
	r := reader{p, p.Agent.Interface.Input}
	if lint.Properties(r.input) == nil {
		return
	}
	for c, m := range p.Matchers() {
		if c.Use != condition.ToolArgs && c.Use != condition.SkillArgs {
			r.path(m.Key, m.KeyRange)
		}
	}

	for _, s := range p.Sites() {
		if t := s.Approval.Template; t != nil && s.Use == condition.Delegation {
			for _, ref := range t.Parsed.Refs() {
				r.path(ref.Name, t.Node.At(ref.Offset, ref.Length))
			}
		}
	}

	r.mappings(&p.Agent.Policy)
}

type reader struct {
	*lint.Pass
	input *yamldoc.Node
}

func (r reader) mappings(policy *schema.ExecutionPolicy) {
	var all []schema.Mapping
	for _, s := range policy.Steps {
		all = append(all, s.Input...)
	}
	for _, route := range policy.Routes {
		all = append(all, route.Input...)
	}
	if policy.Batch != nil {
		all = append(all, policy.Batch.Input...)
	}
	for _, m := range all {
		r.path(m.Node.Text, m.Node.Range)
	}
}

// path follows a path through the fields that the interface declares, and reports the first
// undeclared field.
func (r reader) path(path string, at diag.Range) {
	rest, ok := strings.CutPrefix(path, "parent.input.")
	if !ok {
		return
	}
	n, walked := r.input, "parent.input"
	for _, name := range strings.Split(rest, ".") {
		if name == "[]" {
			n = n.Get("items")
			continue
		}
		declared := lint.Properties(n)
		if declared == nil {
			return
		}
		if n = declared.Get(name); n == nil {
			known := lint.Names(declared)
			near := diag.Nearest(name, known)
			if near != "" {
				near = walked + "." + near
			}
			r.Report(
				at,
				fmt.Sprintf(
					"interface.input declares no %q",
					strings.TrimPrefix(walked+"."+name, "parent.input."),
				),
				lint.Expected("one of "+strings.Join(known, ", ")+", or its declaration"),
				lint.Meant(near),
			)
			return
		}

		walked += "." + name
	}
}
