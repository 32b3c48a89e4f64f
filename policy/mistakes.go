package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

// mistakes finds, before the JSON Schema is applied, errors for which the schema's message would be
// too general. The document may have any shape.
func mistakes(root *yamldoc.Node) []diag.Finding {
	var found []diag.Finding
	for _, rule := range items(root.Get("rules")) {
		found = append(found, ruleMistakes(rule)...)
		require := rule.Get("require")
		found = append(found, durationMistake(require.Field("within"))...)
		found = append(found, durationMistake(require.Get("grants").Field("max_age"))...)
		for _, e := range items(require.Get("escalate")) {
			found = append(found, durationMistake(e.Field("after"))...)
		}
	}

	return found
}

// ruleMistakes reports a rule that can neither ask nor deny, or whose effect is written in an
// unreadable way.
func ruleMistakes(rule *yamldoc.Node) []diag.Finding {
	var found []diag.Finding
	approval, deny := rule.Get("approval"), rule.Get("deny")
	if rule.Kind == yamldoc.Mapping && approval == nil && deny == nil && !misspelt(rule) {
		found = append(
			found,
			yamldoc.Stop(
				ruleNoEffect,
				yamldoc.Head(rule),
				"the rule neither asks nor denies",
				`approval: true, or deny: "why"`,
			),
		)
	}

	if approval != nil && approval.Kind == yamldoc.Bool && !approval.Bool {
		found = append(found, yamldoc.Stop(
			ruleApprovalFalse,
			approval.Range,
			"approval: false could only loosen, which a policy can't",
			"approval: true, an object, or no rule",
		))
	}

	if deny != nil &&
		(deny.Kind == yamldoc.Bool || deny.Kind == yamldoc.String && strings.TrimSpace(deny.Text) == "") {
		found = append(found, yamldoc.Stop(
			ruleNoReason,
			deny.Range,
			"deny takes the reason that is given for refusing",
			`a sentence, such as deny: "Dropping tables is not delegated to agents."`,
		))
	}

	return found
}

// misspelt reports whether a rule has a field that is almost approval or deny. That field gets a
// finding of its own.
func misspelt(rule *yamldoc.Node) bool {
	return slices.ContainsFunc(rule.Fields, func(f yamldoc.Field) bool {
		return !strings.HasPrefix(f.Key.Text, "x-") &&
			diag.Nearest(f.Key.Text, []string{"approval", "deny"}) != ""
	})
}

// lacksEffect reports whether a finding says that a rule has neither approval nor deny.
func lacksEffect(f *diag.Finding) bool {
	return f.Rule == schema.MissingField &&
		(strings.HasSuffix(f.Message, `"approval"`) || strings.HasSuffix(f.Message, `"deny"`))
}

// followUps returns the positions of rules that lack a field only because it is misspelt.
func followUps(root *yamldoc.Node) map[diag.Position]bool {
	places := map[diag.Position]bool{}
	for _, rule := range items(root.Get("rules")) {
		if misspelt(rule) {
			places[yamldoc.Head(rule).Start] = true
		}
	}
	return places
}

func durationMistake(field *yamldoc.Field) []diag.Finding {
	if field == nil || field.Value.Kind == yamldoc.Null {
		return nil // absent, or reported by the JSON Schema
	}
	n := field.Value
	_, err := ParseDuration(n.Text)
	if n.Kind != yamldoc.String {
		err = errors.New("a duration needs its unit")
	}
	if err == nil {
		return nil
	}
	return []diag.Finding{
		yamldoc.Stop(ruleDuration, n.Range, fmt.Sprintf("%s: %v", field.Key.Text, err),
			`a time from 1s to 8760h with its unit, such as "30m", "1h30m" or "48h"`),
	}
}
