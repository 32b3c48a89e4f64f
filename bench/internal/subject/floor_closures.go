package subject

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/bench/internal/model"
)

// test is one compiled matcher, group or rule over decoded arguments.
type test func(args map[string]any) bool

type closureRule struct {
	index int32
	match test
}

// Closures is the floor from decoded arguments: a rule is a precompiled
// closure, the agent's labels are applied when it is compiled, the
// tool's name finds the rules that are left, and cheap tests run first.
func Closures(w *model.Workload) *Subject {
	byTool := map[string][]closureRule{}
	for _, tool := range w.Agent.Tools {
		for i := range w.Rules {
			if w.Rules[i].Admits(&w.Agent, tool) {
				byTool[tool] = append(byTool[tool], closureRule{int32(i), ruleTest(&w.Rules[i])})
			}
		}
	}

	calls, reasons := w.Calls, make([]int32, 0, 64)
	return &Subject{
		Engine: "closures",
		Input:  Decoded,
		Scope:  Floor,
		Decide: func(i int) int {
			c := &calls[i]
			reasons = reasons[:0]
			for _, r := range byTool[c.Tool] {
				if r.match(c.Args) {
					reasons = append(reasons, r.index)
				}
			}
			return len(reasons)
		},
		Reasons: func() []string { return idsAt(w.Rules, reasons) },
	}
}

func ruleTest(r *model.Rule) test {
	groups := make([]test, len(r.Groups))
	for i, g := range r.Groups {
		groups[i] = groupTest(g)
	}
	if len(groups) == 1 {
		return groups[0]
	}
	return func(args map[string]any) bool {
		for _, g := range groups {
			if g(args) {
				return true
			}
		}
		return false
	}
}

func groupTest(g model.Group) test {
	tests := make([]test, len(g))
	for i, m := range cheapFirst(g) {
		tests[i] = matcherTest(m)
	}
	return func(args map[string]any) bool {
		for _, t := range tests {
			if !t(args) {
				return false
			}
		}
		return true
	}
}

func matcherTest(m model.Matcher) test {
	key := m.Key
	num := float64(m.Num)
	text := m.Text
	switch m.Op {
	case model.Eq, model.Ne:
		equal := m.Op == model.Eq
		if text != "" {
			return onText(key, func(s string) bool { return (s == text) == equal })
		}
		return onNumber(key, func(n float64) bool { return (n == num) == equal })
	case model.Gt:
		return onNumber(key, func(n float64) bool { return n > num })
	case model.Gte:
		return onNumber(key, func(n float64) bool { return n >= num })
	case model.Lt:
		return onNumber(key, func(n float64) bool { return n < num })
	case model.Lte:
		return onNumber(key, func(n float64) bool { return n <= num })
	case model.In:
		return onText(key, func(s string) bool { return slices.Contains(m.List, s) })
	case model.NotIn:
		return onText(key, func(s string) bool { return !slices.Contains(m.List, s) })
	default:
		return onText(key, patternTest(m.Regexp))
	}
}

func patternTest(p model.Regexp) func(string) bool {
	if p.Literal {
		return func(s string) bool {
			return strings.HasPrefix(s, p.Prefix) && strings.HasSuffix(s, p.Suffix)
		}
	}
	return regexp.MustCompile(p.Source).MatchString
}

func onText(path string, f func(string) bool) test {
	get := getter(path)
	return func(args map[string]any) bool {
		s, ok := get(args).(string)
		return ok && f(s)
	}
}

func onNumber(path string, f func(float64) bool) test {
	get := getter(path)
	return func(args map[string]any) bool {
		n, ok := get(args).(float64)
		return ok && f(n)
	}
}

// getter splits the path once; nil where nothing is.
func getter(path string) func(args map[string]any) any {
	head, rest, nested := strings.Cut(path, ".")
	if !nested {
		return func(args map[string]any) any { return args[head] }
	}
	below := getter(rest)
	return func(args map[string]any) any {
		inner, _ := args[head].(map[string]any)
		return below(inner)
	}
}
