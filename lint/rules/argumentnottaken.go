package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/policy"
)

// argumentNotTaken reports conditions and messages that name an argument that none of their
// tools takes.
func argumentNotTaken(p *lint.Pass) {
	for _, g := range p.Gates() {
		for m := range matchersOf(p, &g) {
			if !taken(&g, m.Key) {
				reportArgumentNotTaken(p, &g, m.KeyRange, m.Key, "so this test is never certain"+through(p, &g))
			}
		}

		if g.Approval.Template == nil {
			continue
		}
		node := g.Approval.Template.Node
		for _, ref := range g.Approval.Template.Parsed.Refs() {
			if name, ok := strings.CutPrefix(ref.Name, "tool_args."); ok && !taken(&g, name) {
				reportArgumentNotTaken(
					p,
					&g,
					node.At(ref.Offset, ref.Length),
					name,
					"so the message shows nothing there",
					lint.Soften(diag.Warning),
				)
			}
		}
	}
}

// redactsNothing reports arguments that a policy rule hides from approvers although none of its
// tools takes them. In that case the value that the author wanted to hide is shown.
func redactsNothing(p *lint.Pass) {
	argumentNotTaken(p)
	for i, n := range p.Policy.Doc.Root.Get("rules").Items {
		tools := p.Guarded(&p.Policy.Rules[i])
		if len(tools) == 0 {
			continue
		}
		g := &lint.Gate{Site: lint.Site{Use: condition.ToolArgs}, Tools: tools}
		for _, path := range items(n.Get("require").Get("arguments").Get("redact")) {
			hidden := policy.Arguments{Redact: []string{path.Text}}.Redaction()
			if !strings.HasPrefix(path.Text, "parent.") && !slices.ContainsFunc(tools, func(t *catalog.Tool) bool {
				return reaches(hidden, &t.Args)
			}) {
				reportArgumentNotTaken(p, g, path.Range, path.Text, "so nothing is hidden",
					unlessMeant(g, path.Text)...)
			}
		}
	}
}

// unlessMeant softens the finding about a pattern with **, which may be meant
// for tools that come later, unless a name is almost the one of an argument.
func unlessMeant(g *lint.Gate, pattern string) []func(*diag.Finding) {
	if !strings.Contains(pattern, "**") {
		return nil
	}
	last := func(path string) string { return path[strings.LastIndex(path, ".")+1:] }
	var known []string
	for _, t := range g.Tools {
		for _, name := range t.Args.Names() {
			known = append(known, last(name))
		}
	}
	near := diag.Nearest(last(pattern), known)
	if near == "" {
		return []func(*diag.Finding){lint.Soften(diag.Info)}
	}
	return []func(*diag.Finding){lint.Soften(diag.Warning),
		lint.Meant(strings.TrimSuffix(pattern, last(pattern)) + near)}
}

// reaches reports whether a redaction may hide a value of a type.
func reaches(r policy.Redaction, t *catalog.Type) bool {
	if t.Open() {
		return true
	}
	return slices.ContainsFunc(t.Fields, func(f catalog.Field) bool {
		below, hidden := r.Step(f.Name)
		return hidden || below.Hides() && reaches(below, &f.Type)
	})
}

func reportArgumentNotTaken(
	p *lint.Pass, g *lint.Gate, at diag.Range, name, consequence string, more ...func(*diag.Finding),
) {
	var known []string
	for _, t := range g.Tools {
		known = append(known, t.Args.Names()...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	expected := "no such test: " + offered(g) + " takes no arguments"
	if len(known) > 0 {
		expected = "one of " + strings.Join(known[:min(len(known), 20)], ", ")
	}
	usual := []func(*diag.Finding){lint.Expected(expected), lint.Nearest(name, known), lint.Declared(g.Tools[0])}
	message := fmt.Sprintf("%s takes no argument %q, %s", offered(g), name, consequence)
	p.Report(at, message, append(usual, more...)...)
}

// matchersOf iterates over the matchers in a gate's condition that test arguments of its tools.
func matchersOf(p *lint.Pass, g *lint.Gate) func(func(*condition.Matcher) bool) {
	return func(yield func(*condition.Matcher) bool) {
		if g.Approval.Condition == nil {
			return
		}
		for i := range g.Approval.Condition.Groups {
			for j := range g.Approval.Condition.Groups[i].Matchers {
				m := &g.Approval.Condition.Groups[i].Matchers[j]
				if !m.IsFact() && !p.Fact(m.Key) && !yield(m) {
					return
				}
			}
		}
	}
}

// taken reports whether one of the tools takes an argument, as far as is known.
func taken(g *lint.Gate, key string) bool {
	return slices.ContainsFunc(g.Tools, func(t *catalog.Tool) bool {
		_, has := lint.Typed(t, g.Use, key)
		return has
	})
}

// offered names the tools of a gate.
func offered(g *lint.Gate) string {
	if len(g.Tools) == 1 {
		return fmt.Sprintf("%q", g.Tools[0].Name)
	}
	return fmt.Sprintf("none of %d tools, such as %q,", len(g.Tools), g.Tools[0].Name)
}

// through returns the end of a message about the calls of a gate whose tools are known. It says
// that every call asks, or that some are let through, with an example. It returns "" if the
// analysis is undecided.
func through(p *lint.Pass, g *lint.Gate) string {
	all := true
	for _, t := range g.Tools {
		bounds := lint.Bounds(t, g.Use, g.Approval.Condition)
		switch verdict, witness := p.Analyzer(g.Use).Within(bounds).CanBeFalse(g.Approval.Condition); verdict {
		case condition.Yes:
			return ", and calls are let through" + lint.Witness(witness)
		case condition.Undecided:
			all = false
		}
	}

	if all {
		return ": every call asks"
	}
	return ""
}

// typesOf returns the types that the tools of a gate declare for an argument: one type for each
// tool that has the argument. ok is false if a tool has the argument without a type, or if none
// of them has it.
func typesOf(g *lint.Gate, key string) (types []*catalog.Type, ok bool) {
	for _, t := range g.Tools {
		typ, has := lint.Typed(t, g.Use, key)
		switch {
		case typ != nil:
			types = append(types, typ)
		case has:
			return nil, false
		}
	}

	return types, len(types) > 0
}

// all reports whether a claim is true of each type.
func all(types []*catalog.Type, claim func(*catalog.Type) bool) bool {
	return !slices.ContainsFunc(types, func(t *catalog.Type) bool { return !claim(t) })
}
