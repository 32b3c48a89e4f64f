package lint

import (
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// Pass is the input of a rule for one file. Exactly one of Agent and Policy is set.
type Pass struct {
	Agent    *schema.Agent
	Policy   *policy.Policy
	Registry policy.Registry // the policies that were given; nil when none were
	Graph    *schema.Graph   // the agent with its sub-agents; nil when they could not be read
	Fleet    *Fleet          // the agents of the run; nil when there are none
	People   People          // who is in the groups that policies name; nil when no directory was given

	file    string
	prefix  string         // prefix of a file's name before its path in the graph
	found   []diag.Finding // of validity
	partial bool           // what is looked at is left of a file that does not load
	left    int            // of the budget for questions about conditions
	worker  *Worker
	rule    *Rule
	sites   []Site
	reports []diag.Finding
}

// Report adds a finding of the running rule. Rule and File are filled
// in; the severity is the rule's own, unless the finding brings a lower
// one with Soften.
func (p *Pass) Report(at diag.Range, message string, more ...func(*diag.Finding)) {
	f := diag.Finding{
		Rule:     p.rule.ID,
		Severity: p.rule.Severity,
		File:     p.file,
		Range:    at,
		Message:  message,
	}
	for _, m := range more {
		m(&f)
	}
	p.reports = append(p.reports, f)
	if p.rule.Replaces != "" {
		p.replace(f)
	}
}

// Expected says how to fix the finding.
func Expected(text string) func(*diag.Finding) { return func(f *diag.Finding) { f.Expected = text } }

// Nearest names the nearest right name, if there is one.
func Nearest(name string, known []string) func(*diag.Finding) {
	return Meant(diag.Nearest(name, known))
}

// Meant names the most likely intention. An empty name adds nothing.
func Meant(name string) func(*diag.Finding) { return func(f *diag.Finding) { f.Nearest = name } }

// Related points to another place in the same file.
func Related(at diag.Range, message string) func(*diag.Finding) {
	return func(f *diag.Finding) {
		f.Related = append(f.Related, diag.Related{Range: at, Message: message})
	}
}

// Elsewhere points to a place in the file of another member of the graph.
func (p *Pass) Elsewhere(m *schema.Member, at diag.Range, message string) func(*diag.Finding) {
	return Within(p.prefix+m.Path, at, message)
}

// Within points to a place in another file.
func Within(file string, at diag.Range, message string) func(*diag.Finding) {
	return func(f *diag.Finding) {
		f.Related = append(f.Related, diag.Related{File: file, Range: at, Message: message})
	}
}

// Soften lowers the severity of one finding.
func Soften(to diag.Severity) func(*diag.Finding) {
	return func(f *diag.Finding) { f.Severity = min(f.Severity, to) }
}

// longestWitness is the longest witness that fits on a line next to the sentence.
const longestWitness = 120

// Witness returns the arguments that prove a finding, as in `, for example {"amount":0}`, or an
// empty string if they are too long.
func Witness(v value.Value) string {
	text := v.AppendJSON(nil)
	if len(text) > longestWitness {
		return ""
	}
	return ", for example " + string(text)
}

// WholeTexts reports whether, by the owner's choice, patterns match whole texts.
func (p *Pass) WholeTexts() bool {
	return p.worker.linter.opt.Semantics.Conditions.Anchor == condition.Full
}

// UnknownField is a field that the format does not know, with the keys
// that lead to it.
type UnknownField struct {
	Key  *yamldoc.Node
	In   *yamldoc.Node // the mapping that contains it
	Path []string      // keys from the top to that mapping; list items leave no trace
}

// UnknownFields lists the fields of the agent that validity reported as
// unknown. (A policy with one does not load.)
func (p *Pass) UnknownFields() []UnknownField {
	places := map[diag.Position]bool{}
	for _, f := range p.found {
		if f.Rule == schema.UnknownField {
			places[f.Range.Start] = true
		}
	}
	if len(places) == 0 {
		return nil
	}
	w := unknownWalk{places: places}
	w.visit(p.Agent.Doc.Root, nil)
	return w.fields
}

type unknownWalk struct {
	places map[diag.Position]bool
	fields []UnknownField
}

func (w *unknownWalk) visit(n *yamldoc.Node, path []string) {
	for _, item := range n.Items {
		w.visit(item, path)
	}
	for _, f := range n.Fields {
		if w.places[f.Key.Range.Start] {
			w.fields = append(w.fields, UnknownField{Key: f.Key, In: n, Path: path})
			continue
		}

		w.visit(f.Value, append(path[:len(path):len(path)], f.Key.Text))
	}
}
