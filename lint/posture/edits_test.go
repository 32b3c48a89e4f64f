package posture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

// TestEditsNameTheRulesThatCauseChanges checks that each change is in an edit, and that the edit
// names the edited rules and not those that decide as before.
func TestEditsNameTheRulesThatCauseChanges(t *testing.T) {
	const (
		large  = "{id: large, match: {targets: [pay]}, approval: {condition: [{args_match: {amount: {gt: 5000}}}]}}"
		night  = "{id: night, match: {targets: [pay]}, approval: {condition: [{args_match: {hour: {gt: 20}, to: x}}]}}"
		twoOf  = "{id: two, match: {targets: [pay]}, approval: true, require: {stages: [{group: g, people: %d}]}}"
		denied = "{id: no, match: {targets: [%s]}, deny: never}"
	)
	edit := func(rule string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(rule) }
	rules := func(list ...string) []string { return []string{policyText("p", list...)} }
	gated := func(bound string) string {
		return tools("{alias: pay, approval: {condition: [{args_match: {amount: {gt: " + bound + "}}}]}}")
	}
	plain := tools("{alias: pay}")
	for name, c := range map[string]struct {
		oldSpace, newSpace string
		old, new           []string
		oldOpt, newOpt     string
		want               string // one line for each edit
	}{
		"a bound": {
			old: rules(large, night), new: rules(edit(large, "5000", "12345.5"), night),
			want: "loosens p/large condition: amount above 5,000 → above 12345.5\n",
		},
		"a bound that tightens, and a test that is gone": {
			old: rules(large, night), new: rules(edit(large, "5000", "1e3"),
				edit(night, "{hour: {gt: 20}, to: x}", "{hour: {gt: 20}}")),
			want: "tightens p/large condition: amount above 5,000 → above 1e3\n" +
				"tightens p/night condition: hour above 20 and to is \"x\" → hour above 20\n",
		},
		"a rule less, and one more": {
			old: rules(large), new: rules(night),
			want: "loosens p/large rule: asks for amount above 5,000 → absent\n" +
				"tightens p/night rule: absent → asks for hour above 20 and to is \"x\"\n",
		},
		"a target less": {
			old: rules(edit(large, "[pay]", "[pay, wire]")), new: rules(edit(large, "[pay]", "[wire]")),
			want: "loosens p/large targets: pay, wire → wire\n",
		},
		"a target more than this one": {old: rules(large), new: rules(edit(large, "[pay]", "[pay, wire]"))},
		"who approves": {
			old: rules(large, fmt.Sprintf(twoOf, 2)), new: rules(large, fmt.Sprintf(twoOf, 1)),
			want: "loosens p/two stages: 2 of g → 1 of g\n",
		},
		"a rule that denies": {
			old: rules(large, fmt.Sprintf(denied, "pay")), new: rules(large, fmt.Sprintf(denied, "other")),
			want: "loosens p/no targets: pay → other\n",
		},
		"a rule that asks now instead of denying": {
			old: rules(fmt.Sprintf(denied, "pay")), new: rules("{id: no, match: {targets: [pay]}, approval: true}"),
			want: "loosens p/no rule: denies → asks for every call\n",
		},
		"an approval of the agent's file": {
			oldSpace: gated("5"), newSpace: gated("8"), old: rules(night), new: rules(night),
			want: "loosens local_tools.pay condition: amount above 5 → above 8\n",
		},
		"a tool that is new": {oldSpace: tools("{alias: x}"), newSpace: tools("{alias: x}, {alias: pay}"),
			old: rules(large), new: rules(large), want: "loosens\n"},
		"what the owner chose": {
			old: rules(large), new: rules(large), newOpt: "{semantics: {on_missing: no_match}}",
			want: "loosens decisions.yaml on_missing: ask → no_match\n",
		},
		"what the owner chose, and a bound": {
			old: rules(large), new: rules(edit(large, "5000", "9000")), newOpt: "{semantics: {on_missing: no_match}}",
			want: "loosens decisions.yaml on_missing: ask → no_match\n" +
				"loosens p/large condition: amount above 5,000 → above 9,000\n",
		},
		"what is not declared": {
			oldSpace: tools("{alias: x}"), newSpace: tools("{alias: x}"), old: rules(large),
			new:    rules(edit(large, "5000", "9000")),
			newOpt: "{undeclared: ask}", want: "loosens decisions.yaml undeclared: deny → ask\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			side := func(space, opt string, policies []string) *Side {
				if space == "" {
					space = plain
				}
				options := resolve.Options{}
				if opt != "" {
					options = config(t, opt).Options()
				}
				return &Side{Plan: planOf(t, options, space, policies...)}
			}
			report := NewReport(Compare(side(c.oldSpace, c.oldOpt, c.old), side(c.newSpace, c.newOpt, c.new)))
			got, seen := "", map[int]int{}
			for _, e := range report.Edits {
				got += string(e.Verdict)
				if r := e.EditedRule; r != nil {
					got += " " + strings.TrimPrefix(r.Policy+"/"+r.Rule, "/")
					for _, p := range r.Parts {
						got += " " + p.Aspect + ": " + p.From + " → " + p.To
					}
				}
				got += "\n"
				for _, i := range e.Changes {
					seen[i]++
				}
			}
			if got != c.want {
				t.Errorf("got:\n%swant:\n%s%s", got, c.want, told(report.Changes))
			}
			for i := range report.Changes {
				if seen[i] == 0 {
					t.Errorf("change %d is in no edit", i)
				}
			}
		})
	}
}

// TestEditedTextsAreBounded checks that a long list is shown as a short text.
func TestEditedTextsAreBounded(t *testing.T) {
	long := strings.Repeat("a_long_word, ", 10_000)
	rule := func(list string) string {
		return policyText("p", "{id: r, match: {targets: [pay]}, approval: {condition: [{args_match: {to: {in: ["+
			list+"b]}}}]}}")
	}
	old := &Side{Plan: planOf(t, resolve.Options{}, tools("{alias: pay}"), rule(""))}
	new := &Side{Plan: planOf(t, resolve.Options{}, tools("{alias: pay}"), rule(long))}
	report := NewReport(Compare(old, new))
	if n := len(report.Edits[0].Parts[0].To); n > 4*mostEditWords {
		t.Errorf("%d bytes", n)
	}
}
