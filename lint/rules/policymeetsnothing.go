package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

// policyMeetsNothing reports policies, and rules of policies, that meet no call of the given
// agents.
func policyMeetsNothing(p *lint.Pass) {
	subjects := p.Fleet.Governed(p.Policy)
	if len(subjects) == 0 {
		selector(p)
		return
	}
	j := judgePolicyMeetsNothing{Pass: p, subjects: subjects}
	for i := range subjects {
		targets, servers := subjects[i].Names()
		j.targets, j.servers = append(j.targets, targets...), append(j.servers, servers...)
	}
	for i, n := range p.Policy.Doc.Root.Get("rules").Items {
		j.rule(&p.Policy.Rules[i], n.Get("match"))
	}
}

// judgePolicyMeetsNothing checks the rules of a policy that applies to at least one agent.
type judgePolicyMeetsNothing struct {
	*lint.Pass
	subjects         []lint.Subject
	targets, servers []string // named in the agents' files
}

func (j *judgePolicyMeetsNothing) met(m policy.Match) bool {
	return slices.ContainsFunc(j.subjects, func(s lint.Subject) bool { return s.Meets(&m) })
}

// rule reports the names that keep a rule from meeting any call. In a rule that meets some
// calls, it reports names that are almost right.
func (j *judgePolicyMeetsNothing) rule(r *policy.Rule, match *yamldoc.Node) {
	m := r.Match
	kinds := policy.Match{Kinds: m.Kinds}
	if !j.met(kinds) {
		j.kinds(r, match)
		return // the names aren't the mistake
	}
	dead := !j.met(m)
	on := kinds
	on.Servers = m.Servers
	for _, n := range items(match.Get("targets")) {
		one := on
		one.Targets = []string{n.Text}
		if !j.met(one) && j.met(on) {
			j.name(r, n, j.targets, dead)
		}
	}

	for _, n := range items(match.Get("servers")) {
		one := kinds
		one.Servers = []string{n.Text}
		if !j.met(one) {
			j.name(r, n, j.servers, dead)
		}
	}
}

// kinds reports a rule for kinds of calls that no agent makes. It suggests the kind that has
// calls of these names. A denial without such a kind isn't reported, because it may be meant
// for later.
func (j *judgePolicyMeetsNothing) kinds(r *policy.Rule, match *yamldoc.Node) {
	n := match.Get("kinds")
	if n == nil {
		return
	}
	var near string
	for _, kind := range policy.Kinds() {
		other := r.Match
		other.Kinds = []policy.Kind{kind}
		if named := len(other.Targets)+len(other.Servers) > 0; named && j.met(other) {
			near = string(kind)
		}
	}
	if r.Denies && near == "" {
		return
	}
	var words []string
	for _, kind := range r.Match.Kinds {
		words = append(words, string(kind))
	}
	j.Report(
		n.Range,
		fmt.Sprintf("no agent checked here makes calls of kind %s, so rule %q meets nothing",
			strings.Join(words, " or "), r.ID),
		lint.Expected("a kind of call that an agent makes: tool for local tools, mcp_tool for those of MCP servers"),
		lint.Meant(near),
	)
}

func items(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// name reports one name that meets nothing.
func (j *judgePolicyMeetsNothing) name(r *policy.Rule, n *yamldoc.Node, known []string, dead bool) {
	pattern := strings.Contains(n.Text, "*")
	near := diag.Nearest(n.Text, known)
	switch {
	case r.Denies && pattern: // it may be meant for later
	case dead:
		j.Report(
			n.Range,
			fmt.Sprintf("no call of the agents checked here meets %q, so rule %q meets nothing", n.Text, r.ID),
			lint.Expected("a name of its agents' files"),
			lint.Meant(near),
		)
	case near != "" && !pattern:
		j.Report(n.Range, fmt.Sprintf("no call of the agents checked here meets %q", n.Text),
			lint.Expected("a name of its agents' files"), lint.Meant(near))
	}
}

// selector reports the parts of an implicit policy's selector that no agent meets.
func selector(p *lint.Pass) {
	if p.Policy.Applies != policy.Implicit {
		return // agents outside of this run may name it
	}
	found := false
	n := p.Policy.Doc.Root.Field("agents")
	if n == nil {
		return
	}
	for _, f := range n.Value.Fields {
		if f.Key.Text == "labels" {
			for _, label := range f.Value.Fields {
				found = field(
					p,
					label.Value,
					policy.Selector{Labels: map[string]string{label.Key.Text: label.Value.Text}},
					label.Key.Text,
				) ||
					found
			}

			continue
		}

		found = field(p, f.Value, only(p.Policy.Agents, f.Key.Text), f.Key.Text) || found
	}

	if !found {
		p.Report(
			n.Key.Range,
			"no agent checked here is selected by all of this",
			lint.Expected("a selector that an agent meets, or applies: referenced"),
		)
	}
}

// field reports a part of a selector that no agent meets.
func field(p *lint.Pass, n *yamldoc.Node, s policy.Selector, name string) bool {
	var known []string
	for _, agent := range p.Fleet.Subjects() {
		if s.Match(&agent.Metadata) {
			return false
		}
		known = append(known, values(&agent, name, s.Labels != nil))
	}

	text := n.Text
	if len(n.Items) > 0 {
		text = n.Items[0].Text
	}
	p.Report(
		n.Range,
		fmt.Sprintf(
			"no agent checked here has %s %q, so the policy applies to none",
			strings.TrimSuffix(name, "s"),
			text,
		),
		lint.Expected("a value of an agent's metadata"),
		lint.Nearest(text, known),
	)
	return true
}

// only returns the part of a selector under one key.
func only(s *policy.Selector, key string) policy.Selector {
	switch key {
	case "ids":
		return policy.Selector{IDs: s.IDs}
	case "namespaces":
		return policy.Selector{Namespaces: s.Namespaces}
	case "data_classifications":
		return policy.Selector{DataClassifications: s.DataClassifications}
	}

	return policy.Selector{}
}

// values returns an agent's value for a key of the selector, or for a label.
func values(s *lint.Subject, name string, label bool) string {
	switch {
	case label:
		return s.Metadata.Labels[name]
	case name == "ids":
		return s.Metadata.ID
	case name == "namespaces":
		return s.Metadata.Namespace
	}

	return s.Metadata.DataClassification
}
