package rules

import (
	"fmt"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// groupWithoutArgsMatch reports condition groups without args_match. It never reports a policy,
// because the JSON Schema of policies requires args_match.
func groupWithoutArgsMatch(p *lint.Pass) {
	for _, c := range p.Conditions() {
		for _, g := range c.Groups {
			if g.NoArgsMatch {
				reportGroupWithoutArgsMatch(p, &g)
			}
		}
	}
}

// reportGroupWithoutArgsMatch points at the field that is written instead of args_match, if
// there is one.
func reportGroupWithoutArgsMatch(p *lint.Pass, g *condition.Group) {
	var keys []*yamldoc.Node
	for _, f := range p.UnknownFields() {
		if f.In.Range == g.Range {
			keys = append(keys, f.Key)
		}
	}
	const form = "args_match: {argument: test}"
	if len(keys) == 0 {
		p.Report(g.Range, "this group has no args_match and so tests nothing", lint.Expected(form))
		return
	}
	known := []string{"args_match"}
	for _, key := range keys {
		if len(keys) == 1 || diag.Nearest(key.Text, known) != "" {
			p.Report(key.Range, fmt.Sprintf("%q is not args_match, so this group tests nothing", key.Text),
				lint.Expected(form), lint.Nearest(key.Text, known))
			return
		}
	}

	more := []func(*diag.Finding){lint.Expected(form)}
	for _, key := range keys[1:] {
		more = append(more, lint.Related(key.Range, "and this"))
	}
	p.Report(
		keys[0].Range,
		fmt.Sprintf("%q stands outside of args_match, so this group tests nothing", keys[0].Text),
		more...)
}
