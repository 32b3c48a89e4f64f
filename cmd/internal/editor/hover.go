package editor

import (
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// hover describes a field. For a gate, or the name of a guarded target, it also describes which
// calls are asked about.
func (d *document) hover(set *Settings, p placed) (any, error) {
	at := d.place(p.Position)
	s, ok := d.spot(at)
	if !ok {
		return nil, nil
	}
	var parts []string
	if s.key {
		f := d.format()
		if text := f.meaning(f.at(s.path)); text != "" {
			parts = append(parts, text)
		}
	}

	if gate := d.gate(set, s, at); gate != "" {
		parts = append(parts, gate)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return hover{
		Contents: markup{Kind: "plaintext", Value: strings.Join(parts, "\n\n")},
		Range:    d.span(s.node.Range),
	}, nil
}

// gate describes the approval at a position. It returns an empty string if there is none.
func (d *document) gate(set *Settings, s spot, at diag.Position) string {
	onGate := s.key &&
		(s.field == "approval" || s.field == "condition" || s.field == "args_match")
	for _, site := range d.sites() {
		inside := within(site.Approval.Range, at) ||
			s.key && s.field == "approval" && follows(site.Approval.Range, s)
		if onGate && inside || !s.key && within(site.Range, at) {
			return words(&site, set)
		}
	}

	return ""
}

// follows reports whether a range begins directly after a field's name.
func follows(r diag.Range, s spot) bool {
	end := s.node.Range.End
	return r.Start.Line == end.Line && r.Start.Column > end.Column || r.Start.Line == end.Line+1
}

// sites returns the approvals of a document that can be read.
func (d *document) sites() []lint.Site {
	var pass lint.Pass
	switch d.content {
	case lint.AgentContent:
		pass.Agent, _ = schema.ParseParts("", d.src)
	case lint.PolicyContent:
		pass.Policy, _ = policy.ParseParts("", d.src)
	}

	if pass.Agent == nil && pass.Policy == nil {
		return nil
	}
	return pass.Sites()
}

// words describes when a gate asks, with an example of such arguments.
func words(site *lint.Site, set *Settings) string {
	switch site.Approval.Form {
	case schema.Never:
		return site.Name + ": nobody is asked, unless a policy asks"
	case schema.Always:
		return site.Name + ": every call asks"
	}

	expr := site.Approval.Condition
	if expr == nil || len(expr.Groups) == 0 {
		return site.Name + ": every call asks"
	}

	var groups []string
	for i := range expr.Groups {
		groups = append(groups, group(&expr.Groups[i]))
	}
	text := site.Name + ": a call asks when " + strings.Join(groups, "\nor when ") +
		"\nand when an argument that is tested is missing or of another type"
	a := condition.NewAnalyzer(site.Use, set.Options.Semantics.Conditions, 0)
	if found, witness := a.Satisfiable(expr); found == condition.Yes {
		text += "\n" + example(witness)
	}
	return text
}

func example(v value.Value) string { return strings.TrimPrefix(lint.Witness(v), ", ") }

// group describes one group of a condition.
func group(g *condition.Group) string {
	if len(g.Matchers) == 0 {
		return "anything is called"
	}
	var all []string
	for i := range g.Matchers {
		all = append(all, matcher(&g.Matchers[i])...)
	}
	return strings.Join(all, " and ")
}

// matcher describes the tests of one argument.
func matcher(m *condition.Matcher) (all []string) {
	switch {
	case m.History != nil:
		return []string{"the past calls are such that " + m.FactText()}
	case m.Time != nil:
		return []string{"the call is " + m.Time.String()}
	case len(m.Tests) == 0:
		return []string{m.Key + " is anything"}
	}
	for i := range m.Tests {
		all = append(all, m.Key+" "+m.Tests[i].String())
	}
	return all
}
