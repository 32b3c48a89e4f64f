package subject

import (
	"fmt"
	"iter"
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/bench/internal/model"
)

// cedarSlice is the iterator that a host passes to Cedar after it has selected the policies.
type cedarSlice []cedarPolicy

type cedarPolicy struct {
	id     cedar.PolicyID
	policy *cedar.Policy
}

func (s cedarSlice) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, p := range s {
			if !yield(p.id, p.policy) {
				return
			}
		}
	}
}

// Cedar translates each rule to a permit policy: tools are actions, labels are groups of the
// principal, and arguments are the context. The reasons of an allowed request are the matching
// rules.
func Cedar(w *model.Workload, scope Scope) ([]*Subject, error) {
	byTool := map[string]cedar.PolicyIterator{}
	for tool, rules := range rulesByTool(w, scope) {
		policies, err := cedarPolicies(rules, scope)
		if err != nil {
			return nil, err
		}
		byTool[tool] = policies
	}

	entities := cedarEntities(&w.Agent)
	principal := cedar.NewEntityUID("Agent", "agent")
	resource := cedar.NewEntityUID("Resource", "tool")
	actions := map[string]cedar.EntityUID{}
	for _, tool := range w.Agent.Tools {
		actions[tool] = cedar.NewEntityUID("Action", cedar.String(tool))
	}
	subject := func(input Input, context func(c *model.Call, i int) cedar.Record) *Subject {
		var last cedar.Diagnostic
		return &Subject{
			Engine: "cedar",
			Input:  input,
			Scope:  scope,
			Decide: func(i int) int {
				c := &w.Calls[i]
				_, last = cedar.Authorize(byTool[c.Tool], entities, cedar.Request{
					Principal: principal,
					Action:    actions[c.Tool],
					Resource:  resource,
					Context:   context(c, i),
				})
				return len(last.Reasons)
			},
			Reasons: func() []string {
				ids := make([]string, len(last.Reasons))
				for i, r := range last.Reasons {
					ids[i] = string(r.PolicyID)
				}
				return ids
			},
		}
	}
	native := make([]cedar.Record, len(w.Calls))
	for i := range native {
		native[i] = cedarRecord(w.Calls[i].Args)
	}
	return []*Subject{
		subject(Native, func(_ *model.Call, i int) cedar.Record { return native[i] }),
		subject(Decoded, func(c *model.Call, _ int) cedar.Record { return cedarRecord(c.Args) }),
		subject(Raw, func(c *model.Call, _ int) (r cedar.Record) {
			must(r.UnmarshalJSON(c.Raw))
			return r
		}),
	}, nil
}

func cedarPolicies(rules []model.Rule, scope Scope) (cedar.PolicyIterator, error) {
	var slice cedarSlice
	set := cedar.NewPolicySet()
	for i := range rules {
		var p cedar.Policy
		if err := p.UnmarshalCedar([]byte(cedarText(&rules[i], scope))); err != nil {
			return nil, fmt.Errorf("cedar rule %s: %w", rules[i].ID, err)
		}
		id := cedar.PolicyID(rules[i].ID)
		slice = append(slice, cedarPolicy{id, &p})
		set.Add(id, &p)
	}

	if scope == Sliced {
		return slice, nil
	}
	return set, nil
}

// cedarText writes a rule. A sliced rule needs no scope, since the host has applied it.
func cedarText(r *model.Rule, scope Scope) string {
	condition := groupsText(r, cedarMatcher)
	if scope == Sliced {
		return "permit(principal, action, resource) when { " + condition + " };"
	}
	principal, action := "principal", "action"
	labels := slices.Clone(r.Labels)
	if len(labels) > 0 {
		principal = "principal in " + cedarLabel(labels[0])
		labels = labels[1:]
	}
	if r.Tool != "" {
		action = fmt.Sprintf("action == Action::%q", r.Tool)
	}
	rest := ""
	for _, l := range labels {
		rest += " when { principal in " + cedarLabel(l) + " }"
	}
	return fmt.Sprintf("permit(%s, %s, resource)%s when { %s };", principal, action, rest, condition)
}

func cedarLabel(l model.Label) string { return fmt.Sprintf("Label::%q", l.Key+"="+l.Value) }

func cedarMatcher(m model.Matcher) string {
	arg := "context." + m.Key
	has := "context has " + m.Key + " && "
	if m.Op == model.Pattern {
		return has + fmt.Sprintf("%s like %q", arg, m.Regexp.Like)
	}
	return has + cedarLanguage().test(m, arg)
}

func cedarLanguage() language {
	return language{number: "%d", in: "[%[2]s].contains(%[1]s)", notIn: "!([%[2]s].contains(%[1]s))"}
}

func cedarEntities(a *model.Agent) cedar.EntityMap {
	entities := cedar.EntityMap{}
	var parents []cedar.EntityUID
	for _, l := range a.Labels {
		uid := cedar.NewEntityUID("Label", cedar.String(l.Key+"="+l.Value))
		entities[uid] = cedar.Entity{UID: uid}
		parents = append(parents, uid)
	}
	uid := cedar.NewEntityUID("Agent", "agent")
	entities[uid] = cedar.Entity{UID: uid, Parents: cedar.NewEntityUIDSet(parents...)}
	return entities
}

func cedarRecord(args map[string]any) cedar.Record {
	m := make(cedar.RecordMap, len(args))
	for k, v := range args {
		m[cedar.String(k)] = cedarValue(v)
	}
	return cedar.NewRecord(m)
}

func cedarValue(v any) types.Value {
	switch v := v.(type) {
	case string:
		return cedar.String(v)
	case float64:
		return cedar.Long(v)
	case bool:
		return cedar.Boolean(v)
	case map[string]any:
		return cedarRecord(v)
	case []any:
		items := make([]types.Value, len(v))
		for i := range v {
			items[i] = cedarValue(v[i])
		}
		return cedar.NewSet(items...)
	default:
		panic(fmt.Sprintf("cedar has no value for %T", v))
	}
}
