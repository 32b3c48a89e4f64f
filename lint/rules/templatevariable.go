package rules

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/template"
)

// templateVariable reports template variables that can't have a value in their template.
func templateVariable(p *lint.Pass) {
	for _, s := range p.Sites() {
		if t := s.Approval.Template; t != nil {
			for _, ref := range t.Parsed.Refs() {
				judgeTemplateVariable(p, s.Contexts, t.Node.At(ref.Offset, ref.Length), ref.Name)
			}
		}
	}
}

// judgeTemplateVariable reports a variable that fits none of the contexts. In a policy rule
// that meets several kinds of calls, one matching context is enough.
func judgeTemplateVariable(p *lint.Pass, contexts []template.Context, at diag.Range, name string) {
	best := template.Unknown
	for _, ctx := range contexts {
		best = max(best, template.Check(ctx, name))
	}
	if best == template.Known || len(contexts) == 0 {
		return
	}
	ctx := contexts[0]
	fix := []func(*diag.Finding){
		lint.Expected(strings.Join(template.Variables(ctx), ", ")), lint.Meant(template.Suggest(ctx, name)),
	}
	if best == template.WrongContext {
		p.Report(at, fmt.Sprintf("{{%s}} is always empty in the approval of a %s", name, ctx), fix...)
		return
	}
	p.Report(
		at,
		fmt.Sprintf("{{%s}} is no variable of the standard", name),
		append(fix, lint.Soften(diag.Warning))...)
}
