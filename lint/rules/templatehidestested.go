package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/template"
)

// templateHidesTested reports messages that show none of the arguments that decide whether to
// ask.
func templateHidesTested(p *lint.Pass) {
	for _, s := range p.Sites() {
		t := s.Approval.Template
		if t == nil || t.Parsed.Omitted() || s.Approval.Condition == nil {
			continue
		}
		tested := matchers(&s)
		hidden := true
		for i := range tested {
			for _, key := range p.Sources(tested[i].Key) {
				hidden = hidden && !shown(s.Use, key, t.Parsed)
			}
			tested[i].Key = p.Source(tested[i].Key)
		}
		if !hidden || !slices.ContainsFunc(tested, varies) {
			continue
		}
		p.Report(
			t.Node.Range,
			fmt.Sprintf("the message does not show %s, which the condition tests", names(tested)),
			lint.Expected("{{"+variable(s.Use, tested[0].Key)+"}} in the message"),
			lint.Related(tested[0].KeyRange, "tested here"),
		)
	}
}

// showable reports whether a message of the site can show the argument. The message for a
// skill, for example, can't show the parent's input.
func showable(s *lint.Site, key string) bool {
	name := variable(s.Use, key)
	return slices.ContainsFunc(s.Contexts, func(ctx template.Context) bool {
		return template.Check(ctx, name) == template.Known ||
			template.Check(ctx, "skill_args") == template.Known && strings.HasPrefix(name, "tool_args.")
	})
}

// matchers lists the matchers of the condition that the message could show, one for each key.
func matchers(s *lint.Site) []condition.Matcher {
	var all []condition.Matcher
	for _, g := range s.Approval.Condition.Groups {
		for _, m := range g.Matchers {
			known := func(other condition.Matcher) bool { return other.Key == m.Key }
			if _, fault := condition.Places(s.Use, m.Key); fault == "" && !m.IsFact() && !lint.Idle(&m) &&
				showable(s, m.Key) &&
				!slices.ContainsFunc(all, known) {
				all = append(all, m)
			}
		}
	}

	return all
}

// varies reports whether a matching argument can have several values. If it must equal a
// literal, the author of the message knows its value.
func varies(m condition.Matcher) bool { return !m.Literal }

// shown reports whether a variable shows the argument, a part of it, or a value that contains
// it.
func shown(use condition.Use, key string, t *template.Template) bool {
	want := variable(use, key)
	return slices.ContainsFunc(t.Refs(), func(ref template.Ref) bool {
		name := ref.Name
		if rest, ok := strings.CutPrefix(name, "skill_args"); ok &&
			(use == condition.ToolArgs || use == condition.Governance) {
			name = "tool_args" + rest // in a policy rule for tools and skills
		}
		return name == want || strings.HasPrefix(want, name+".") || strings.HasPrefix(name, want+".")
	})
}

// variable returns the name of the variable that shows the argument of a key.
func variable(use condition.Use, key string) string {
	_, fault := condition.Places(condition.Delegation, key)
	switch {
	case use == condition.Delegation, use == condition.Governance && fault == "":
		return key
	case use == condition.SkillArgs:
		return "skill_args." + key
	}

	return "tool_args." + key
}

func names(tested []condition.Matcher) string {
	var all []string
	for _, m := range tested {
		all = append(all, fmt.Sprintf("%q", m.Key))
	}
	if len(all) > 3 {
		all = append(all[:3], "…")
	}
	return strings.Join(all, " or ")
}
