package subject

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/assent-dev/assent/bench/internal/model"
)

// Expr translates each rule to a typed program, and reuses one virtual machine.
func Expr(w *model.Workload, scope Scope) ([]*Subject, error) {
	type rule struct {
		id      string
		program *vm.Program
	}
	// A map loads faster than a struct, whose fields need reflection. Its values give the
	// types.
	types := map[string]any{
		"tool":   "",
		"labels": map[string]string{},
		"args":   map[string]any{},
	}
	byTool := map[string][]rule{}
	for tool, rules := range rulesByTool(w, scope) {
		for i := range rules {
			text := selected(&rules[i], scope, groupsText(&rules[i], exprMatcher))
			program, err := expr.Compile(text, expr.Env(types), expr.AsBool())
			if err != nil {
				return nil, fmt.Errorf("expr rule %s: %w", rules[i].ID, err)
			}
			byTool[tool] = append(byTool[tool], rule{rules[i].ID, program})
		}
	}

	labels := labelMap(&w.Agent)
	tools := map[string]any{} // boxed once
	for _, tool := range w.Agent.Tools {
		tools[tool] = tool
	}
	subject := func(input Input, args func(*model.Call) map[string]any) *Subject {
		var machine vm.VM
		env, reasons := map[string]any{"labels": labels}, make([]string, 0, 64)
		return &Subject{
			Engine: "expr",
			Input:  input,
			Scope:  scope,
			Decide: func(i int) int {
				c := &w.Calls[i]
				env["tool"], env["args"] = tools[c.Tool], args(c)
				reasons = reasons[:0]
				for _, r := range byTool[c.Tool] {
					out, err := machine.Run(r.program, env)
					must(err)
					if out == true {
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

// exprMatcher checks for nil, because ordered comparisons refuse nil. Equality, lists and
// patterns on the right type need this check only if a missing argument would match.
func exprMatcher(m model.Matcher) string {
	arg := "args." + strings.ReplaceAll(m.Key, ".", "?.")
	if m.Op == model.Eq || m.Op == model.In {
		return exprLanguage().test(m, arg)
	}
	return fmt.Sprintf("%s != nil && %s", arg, exprLanguage().test(m, arg))
}

func exprLanguage() language {
	return language{
		number: "%d",
		in:     "%s in [%s]",
		notIn:  "%s not in [%s]",
		prefix: "%s startsWith %q",
		suffix: "%s endsWith %q",
		regex:  "%s matches %q",
	}
}
