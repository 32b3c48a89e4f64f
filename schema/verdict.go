package schema

import (
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// NewerOperators reports the operators of policies 1.1 in a condition of any form. expected says what
// they need.
func NewerOperators(cond *yamldoc.Node, expected string) []diag.Finding {
	var findings []diag.Finding
	for _, key := range condition.Newer(cond) {
		findings = append(findings, yamldoc.Stop(
			ruleUnknownOperator,
			key.Range,
			fmt.Sprintf("unknown operator %q", key.Text),
			expected,
		))
	}
	return findings
}

// Violations validates a document with a JSON Schema and returns the failures as findings at their
// positions; each stops the load. JSON has no non-finite numbers, so if the document contains some,
// only these are reported. Governance policies are validated by it too.
func Violations(root *yamldoc.Node, s *jsonschema.Schema) []diag.Finding {
	_, findings := violations(root, s)
	return findings
}

// violations is Violations with the underlying failures. Non-finite numbers have none.
func violations(
	root *yamldoc.Node,
	s *jsonschema.Schema,
) (failures []jsonschema.Failure, findings []diag.Finding) {
	if findings = notFinite(root, nil); len(findings) > 0 {
		return nil, findings
	}
	l := locator{root: root, index: map[*yamldoc.Node]map[string]int{}}
	failures = s.Validate(root.Any())
	for _, failure := range failures {
		findings = append(findings, l.violation(failure))
	}
	return failures, findings
}

// notFinite reports every .inf and .nan below n.
func notFinite(n *yamldoc.Node, findings []diag.Finding) []diag.Finding {
	if n.Kind == yamldoc.Number && !n.Finite {
		findings = append(findings, yamldoc.Stop(
			ruleNonFinite,
			n.Range,
			fmt.Sprintf("%s is no number that can be compared", n.Text),
			"a finite number",
		))
	}

	for _, item := range n.Items {
		findings = notFinite(item, findings)
	}
	for _, f := range n.Fields {
		findings = notFinite(f.Value, findings)
	}
	return findings
}

// violation converts a failure of the JSON Schema to a finding at its position.
func (l locator) violation(failure jsonschema.Failure) diag.Finding {
	at := l.locate(failure.Path)
	f := yamldoc.Stop(ruleInvalidValue, at.node.Range, failure.Message, failure.Expected)
	f.Nearest = failure.Nearest
	switch failure.Keyword {
	case "required":
		f.Rule = ruleMissingField
		f.Range = at.head()
		f.Nearest = ""
		if near := l.key(at.node, failure.Nearest); near != nil {
			f.Related = []diag.Related{
				{Range: near.Range, Message: fmt.Sprintf("%q is written here", near.Text)},
			}
		}
	case "type":
		f.Rule = ruleWrongType
		at.wrongType(&f)
	case "additionalProperties":
		f.Rule = ruleUnknownField
		if up := len(failure.Path) - 2; up >= 0 && failure.Path[up] == "args_match" {
			f.Rule, f.Message = ruleUnknownOperator, fmt.Sprintf("unknown operator %q", failure.Property)
			f.Expected += "; to test for equality write the value itself"
			if condition.Policy11.Has(condition.Op(failure.Property)) {
				f.Expected = `a rule of a policy, where it needs schema_version "1.1.0"; agents don't have it`
				f.Nearest = ""
			}
		}

		if key := l.key(at.node, failure.Property); key != nil {
			f.Range = key.Range
		}
	}

	if words := inWords(failure); words != "" {
		f.Expected = words
	}
	if failure.InKey && at.key != nil {
		f.Range = at.key.Range
	}
	f.Message = prefixed(failure.Path, f.Message)
	return f
}

// inWords describes what a pattern or an alternative of the JSON Schema requires. It returns an
// empty string if the schema's own message is clear.
func inWords(failure jsonschema.Failure) string {
	if len(failure.Path) == 0 {
		return ""
	}
	switch failure.Keyword + " " + failure.Path[len(failure.Path)-1] {
	case "pattern alias":
		return "letters, digits and _, no digit first"
	case "pattern id":
		return "lower-case letters, digits, _ and -, a letter or digit first"
	case "pattern namespace", "pattern policy_ref":
		return "lower-case letters, digits, _, - and dots, a letter or digit first"
	case "pattern group":
		return "a name with no space around it and no invisible character in it"
	case "pattern schema_version", "type schema_version":
		return `three numbers in quotes, such as "1.0.0"`
	case "oneOf output_from":
		return "exactly one of agent, strategy and custom_transform"
	}

	return ""
}

// wrongType describes two common mistakes in YAML: a key without a value, and text without quotes.
func (s spot) wrongType(f *diag.Finding) {
	switch {
	case s.node.Kind == yamldoc.Null && s.key != nil:
		f.Range, f.Message = s.key.Range, "the value is missing"
	case f.Expected == "text" && (s.node.Kind == yamldoc.Number || s.node.Kind == yamldoc.Bool):
		f.Expected = fmt.Sprintf("text, which here needs quotes: %q", s.node.Text)
	}
}

// prefixed adds the path before a message, in the usual notation:
// action_space.local_tools[0].alias.
func prefixed(path []string, message string) string {
	var places []place
	for _, p := range path {
		if _, err := strconv.Atoi(p); err == nil {
			p = "[" + p + "]"
		}
		places = append(places, place{step: p})
	}

	if len(places) == 0 {
		return message
	}
	return joinSteps(places) + ": " + message
}

// spot is a node and its key, which is nil for the root and for items of a list.
type spot struct {
	node, key *yamldoc.Node
}

// locator finds nodes by their paths. It indexes each mapping on the way, because there may be many
// failures.
type locator struct {
	root  *yamldoc.Node
	index map[*yamldoc.Node]map[string]int
}

// locate follows a path through the document, as far as it goes.
func (l locator) locate(path []string) spot {
	at := spot{node: l.root}
	for _, step := range path {
		if f := l.field(at.node, step); f != nil {
			at = spot{f.Value, f.Key}
			continue
		}
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(at.node.Items) {
			return at
		}
		at = spot{node: at.node.Items[i]}
	}

	return at
}

// field returns a mapping's field, or nil if there is none.
func (l locator) field(n *yamldoc.Node, name string) *yamldoc.Field {
	index, ok := l.index[n]
	if !ok {
		index = make(map[string]int, len(n.Fields))
		for i, f := range n.Fields {
			index[f.Key.Text] = i
		}
		l.index[n] = index
	}

	if i, ok := index[name]; ok {
		return &n.Fields[i]
	}
	return nil
}

// key returns the key of a mapping's field, or nil if there is none.
func (l locator) key(n *yamldoc.Node, name string) *yamldoc.Node {
	if f := l.field(n, name); f != nil {
		return f.Key
	}
	return nil
}

// head returns the range to show if a mapping lacks something: its key, or the first of its own
// keys.
func (s spot) head() diag.Range {
	switch {
	case s.key != nil:
		return s.key.Range
	case len(s.node.Fields) > 0:
		return s.node.Fields[0].Key.Range
	default:
		return s.node.Range
	}
}
