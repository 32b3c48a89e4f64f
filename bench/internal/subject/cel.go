package subject

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/assent-dev/assent/bench/internal/model"
)

// celCall is the activation of one decision. It is reused, as in the admission code of
// Kubernetes.
type celCall struct {
	tool   string
	labels map[string]string
	args   map[string]any
}

func (c *celCall) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		return c.args, true
	case "tool":
		return c.tool, true
	case "labels":
		return c.labels, true
	}

	return nil, false
}

func (c *celCall) Parent() cel.Activation { return nil }

// CEL translates each rule to a type-checked, optimised program.
func CEL(w *model.Workload, scope Scope) ([]*Subject, error) {
	type rule struct {
		id      string
		program cel.Program
	}
	env, err := cel.NewEnv(
		cel.Variable("tool", cel.StringType),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
	)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	byTool := map[string][]rule{}
	for tool, rules := range rulesByTool(w, scope) {
		for i := range rules {
			program, err := celProgram(env, selected(&rules[i], scope, groupsText(&rules[i], celMatcher)))
			if err != nil {
				return nil, fmt.Errorf("cel rule %s: %w", rules[i].ID, err)
			}
			byTool[tool] = append(byTool[tool], rule{rules[i].ID, program})
		}
	}

	labels := labelMap(&w.Agent)
	subject := func(input Input, args func(*model.Call) map[string]any) *Subject {
		activation, reasons := &celCall{labels: labels}, make([]string, 0, 64)
		return &Subject{
			Engine: "cel",
			Input:  input,
			Scope:  scope,
			Decide: func(i int) int {
				c := &w.Calls[i]
				activation.tool, activation.args = c.Tool, args(c)
				reasons = reasons[:0]
				for _, r := range byTool[c.Tool] {
					out, _, err := r.program.Eval(activation)
					must(err)
					if out.Value() == true {
						reasons = append(reasons, r.id)
					}
				}

				return len(reasons)
			},
			Reasons: func() []string { return reasons },
		}
	}
	return []*Subject{
		subject(Decoded, func(c *model.Call) map[string]any { return c.Args }),
		subject(Raw, func(c *model.Call) map[string]any { return decode(c.Raw) }),
	}, nil
}

func celProgram(env *cel.Env, text string) (cel.Program, error) {
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	return env.Program(ast, cel.EvalOptions(cel.OptOptimize))
}

// celMatcher checks each step of the path before the test. It writes numbers as doubles,
// because encoding/json makes them doubles. The comparison then needs no conversion.
func celMatcher(m model.Matcher) string {
	var guards []string
	for i, c := range m.Key {
		if c == '.' {
			guards = append(guards, "has(args."+m.Key[:i]+")")
		}
	}
	guards = append(guards, "has(args."+m.Key+")", celLanguage().test(m, "args."+m.Key))
	return strings.Join(guards, " && ")
}

func celLanguage() language {
	return language{
		number: "%d.0",
		in:     "%s in [%s]",
		notIn:  "!(%s in [%s])",
		prefix: "%s.startsWith(%q)",
		suffix: "%s.endsWith(%q)",
		regex:  "%s.matches(%q)",
	}
}

func labelMap(a *model.Agent) map[string]string {
	out := map[string]string{}
	for _, l := range a.Labels {
		out[l.Key] = l.Value
	}
	return out
}
