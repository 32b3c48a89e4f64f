package schema

import (
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/template"
)

// ParseApproval reads the value of an `approval` field, whose condition may have the operators of
// a language. It returns nil if n is nil. It expects a
// node that satisfies the JSON Schema and treats any other as an approval that always asks, so that
// a mistake never loosens. It returns the findings of its template and its condition.
func ParseApproval(n *yamldoc.Node, operators condition.Language) (*Approval, []diag.Finding) {
	if n == nil {
		return nil, nil
	}
	a := &Approval{Node: n, Range: n.Range}
	if n.Kind == yamldoc.Bool && !n.Bool {
		a.Form = Never
	}
	var findings []diag.Finding
	if text := n.Get("message_template"); isText(text) {
		a.Template, findings = parseTemplate(text)
	}
	if cond := n.Get("condition"); cond != nil {
		expr, fs := condition.Parse(cond, operators)
		findings = append(findings, fs...)
		if expr != nil {
			a.Form, a.Condition = Conditional, expr
		}
	}

	return a, findings
}

// parseTemplate reads a message template; its problems become findings
// at their exact places.
func parseTemplate(n *yamldoc.Node) (*Template, []diag.Finding) {
	parsed, problems := template.Parse(n.Text)
	var findings []diag.Finding
	for _, p := range problems {
		findings = append(findings, diag.Finding{
			Rule:     p.Code,
			Severity: p.Severity,
			Range:    n.At(p.Offset, p.Length),
			Message:  p.Message,
			Expected: p.Expected,
		})
	}

	return &Template{Text: n.Text, Parsed: parsed, Node: n}, findings
}
