package subject

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/assent-dev/assent/bench/internal/model"
)

// OPA translates the rules to one module with a partial set of ids, a rule for each group, and
// a prepared query. The conditions have forms that the rule index of OPA can use.
func OPA(w *model.Workload, scope Scope) ([]*Subject, error) {
	ctx := context.Background()
	byTool := map[string]rego.PreparedEvalQuery{}
	for tool, rules := range rulesByTool(w, scope) {
		query, err := rego.New(
			rego.Query("data.bench.ask"),
			rego.Module("bench.rego", opaModule(rules, scope)),
		).PrepareForEval(ctx)
		if err != nil {
			return nil, fmt.Errorf("opa: %w", err)
		}
		byTool[tool] = query
	}

	subject := func(input Input, option func(c *model.Call, i int) rego.EvalOption) *Subject {
		var last []any
		return &Subject{
			Engine: "opa",
			Input:  input,
			Scope:  scope,
			Decide: func(i int) int {
				c := &w.Calls[i]
				results, err := byTool[c.Tool].Eval(ctx, option(c, i))
				must(err)
				last = results[0].Expressions[0].Value.([]any)
				return len(last)
			},
			Reasons: func() []string {
				ids := make([]string, len(last))
				for i := range last {
					ids[i] = last[i].(string)
				}
				return ids
			},
		}
	}
	inputs := newOPAInputs(w)
	return []*Subject{
		subject(
			Native,
			func(_ *model.Call, i int) rego.EvalOption { return rego.EvalParsedInput(inputs.native[i]) },
		),
		subject(Decoded, func(_ *model.Call, i int) rego.EvalOption { return rego.EvalInput(inputs.decoded[i]) }),
		subject(Raw, func(c *model.Call, _ int) rego.EvalOption {
			args, err := ast.ValueFromReader(bytes.NewReader(c.Raw))
			must(err)
			return rego.EvalParsedInput(inputs.envelope(c.Tool, args))
		}),
	}, nil
}

// opaInputs builds the objects that contain the arguments. The parts that do not change between
// calls are built once.
type opaInputs struct {
	keys    [3]*ast.Term // tool, labels, args
	tools   map[string]*ast.Term
	labels  *ast.Term
	native  []ast.Value
	decoded []any
}

func newOPAInputs(w *model.Workload) *opaInputs {
	in := &opaInputs{
		keys:   [3]*ast.Term{ast.StringTerm("tool"), ast.StringTerm("labels"), ast.StringTerm("args")},
		tools:  map[string]*ast.Term{},
		labels: ast.NewTerm(ast.MustInterfaceToValue(labelMap(&w.Agent))),
	}
	for _, tool := range w.Agent.Tools {
		in.tools[tool] = ast.StringTerm(tool)
	}
	labels := map[string]any{}
	for _, l := range w.Agent.Labels {
		labels[l.Key] = l.Value
	}
	for i := range w.Calls {
		c := &w.Calls[i]
		in.native = append(in.native, in.envelope(c.Tool, ast.MustInterfaceToValue(c.Args)))
		in.decoded = append(in.decoded, map[string]any{
			"tool":   c.Tool,
			"labels": labels,
			"args":   c.Args,
		})
	}

	return in
}

func (in *opaInputs) envelope(tool string, args ast.Value) ast.Value {
	return ast.NewObject(
		ast.Item(in.keys[0], in.tools[tool]),
		ast.Item(in.keys[1], in.labels),
		ast.Item(in.keys[2], ast.NewTerm(args)),
	)
}

func opaModule(rules []model.Rule, scope Scope) string {
	var b strings.Builder
	b.WriteString("package bench\n\n")
	for i := range rules {
		for _, g := range rules[i].Groups {
			fmt.Fprintf(&b, "ask contains %q if {\n", rules[i].ID)
			if scope == Own {
				b.WriteString(opaSelector(&rules[i]))
			}
			for _, m := range g {
				b.WriteString("\t" + opaLanguage().test(m, "input.args."+m.Key) + "\n")
			}
			b.WriteString("}\n\n")
		}
	}

	return b.String()
}

func opaSelector(r *model.Rule) string {
	out := ""
	if r.Tool != "" {
		out += fmt.Sprintf("\tinput.tool == %q\n", r.Tool)
	}
	for _, l := range r.Labels {
		out += fmt.Sprintf("\tinput.labels.%s == %q\n", l.Key, l.Value)
	}
	return out
}

func opaLanguage() language {
	return language{
		number: "%d",
		in:     "%s in {%s}",
		notIn:  "%[1]s\n\tnot %[1]s in {%[2]s}", // a bare reference first: "not" of an undefined value would match
		prefix: "startswith(%s, %q)",
		suffix: "endswith(%s, %q)",
		regex:  "regex.match(%[2]q, %[1]s)",
	}
}
