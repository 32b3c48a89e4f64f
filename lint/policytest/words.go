package policytest

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// theMessage is the name of a call that tries a message.
const theMessage = "the message"

// words tries the message of a rule: a call that the rule asks about,
// if that can be no other, with a value for each variable.
func (g *maker) words(t *resolve.Trace) {
	template := g.template(t)
	if template == "" {
		return
	}
	doc := g.quiet()
	if t.Condition != nil && len(t.Condition.Groups) > 0 {
		doc, _ = g.base(t.Condition, 0)
	}
	if doc.Kind != value.Object { // what can't be met has no message
		return
	}
	doc = clone(doc)
	for _, name := range variables(template) {
		g.fill(&doc, name)
	}
	g.add(doc, theMessage)
}

// quiet returns arguments that no condition asks about, if there are any.
func (g *maker) quiet() value.Value {
	if all := g.except(nil); len(all.Groups) > 0 {
		if can, doc := g.analyzer.CanBeFalse(all); can == condition.Yes {
			return doc
		}
	}

	return value.Value{Kind: value.Object}
}

// template returns the message of a rule. It is empty if the rule has none.
func (g *maker) template(t *resolve.Trace) string {
	gates := g.built.Plan.Target(&g.target).Gates
	i := slices.IndexFunc(gates, func(x resolve.Gate) bool { return x.File == t.File && x.Range == t.Range })
	if i < 0 {
		return ""
	}

	return gates[i].Template
}

// fill gives a variable a value, unless it has one.
func (g *maker) fill(doc *value.Value, name string) {
	for _, root := range []string{"tool_args.", "skill_args."} {
		name = strings.TrimPrefix(name, root)
	}
	places, _ := condition.Places(g.use, name)
	if len(places) == 0 || found(*doc, places).Kind != value.Absent {
		return
	}
	set(doc, places[len(places)-1], textOf(name[strings.LastIndex(name, ".")+1:]))
}

// variables returns the names in double braces in a message.
func variables(template string) []string {
	var out []string
	for {
		_, after, open := strings.Cut(template, "{{")
		name, rest, closed := strings.Cut(after, "}}")
		if !open || !closed {
			return out
		}
		out = append(out, strings.TrimSpace(name))
		template = rest
	}
}
