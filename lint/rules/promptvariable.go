package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/template"
)

// promptVariable reports variables of a prompt template that are not input fields.
func promptVariable(p *lint.Pass) {
	if p.Agent.Policy.React == nil || p.Agent.Policy.React.UserPromptTemplate == nil {
		return
	}
	t := p.Agent.Policy.React.UserPromptTemplate
	reportTags(p, t)
	declared := lint.Properties(p.Agent.Interface.Input)
	if declared == nil {
		return
	}
	known := lint.Names(declared)
	for _, ref := range t.Parsed.Refs() {
		name, _, _ := strings.Cut(ref.Name, ".")
		if declared.Get(name) != nil {
			continue
		}
		message := fmt.Sprintf("{{%s}} names no field of interface.input", ref.Name)
		near := diag.Nearest(name, known)
		if field, ok := strings.CutPrefix(ref.Name, "parent.input."); ok && declared.Get(field) != nil {
			message, near = fmt.Sprintf(
				"{{%s}} is a variable of approvals; a prompt names the field alone",
				ref.Name,
			), field
		}

		p.Report(
			t.Node.At(ref.Offset, ref.Length),
			message,
			lint.Expected("one of "+strings.Join(known, ", ")),
			lint.Meant(near),
		)
	}
}

// reportTags reports tags that are not variables.
func reportTags(p *lint.Pass, t *schema.Template) {
	_, problems := template.Parse(t.Text)
	for _, problem := range problems {
		if problem.Severity == diag.Error && problem.Length > 0 && len(t.Text) <= template.MaxLength {
			tag := t.Text[problem.Offset : problem.Offset+problem.Length]
			p.Report(
				t.Node.At(problem.Offset, problem.Length),
				fmt.Sprintf("%q is no plain variable, and prompts know nothing else", tag),
				lint.Expected("{{field}}"),
			)
		}
	}
}
