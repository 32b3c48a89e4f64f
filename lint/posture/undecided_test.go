package posture

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// manyKeys returns a condition with more dotted keys than a comparison distinguishes.
func manyKeys(last string) string {
	var keys []string
	for _, c := range "abcdefghijk" {
		keys = append(keys, "o."+string(c)+": 1")
	}
	return tools("{alias: t, approval: {condition: [{args_match: {" + strings.Join(keys, ", ") + ", z: " + last + "}}]}}")
}

// TestWhatIsTooLargeIsUndecided also checks the reason, and that the change counts as loosening.
func TestWhatIsTooLargeIsUndecided(t *testing.T) {
	denied := policyText("p", "{id: r, deny: \"no\"}")
	hard := func(pattern string) string {
		return tools("{alias: t, approval: {condition: [{args_match: {k: {pattern: '" + pattern + "'}}}]}}")
	}
	for name, c := range map[string]struct {
		old, new string
		policies []string // of the new side
		want     string
	}{
		"two gates": {manyKeys("1"), manyKeys("2"), nil,
			"tool t: outcome undecided: ask → allow [" + condition.WhyTooLarge + "]\n" +
				"tool t: outcome undecided: allow → ask [" + condition.WhyTooLarge + "]\n"},
		"a gate and a denial": {manyKeys("1"), tools("{alias: t}"), []string{denied},
			"tool t: outcome undecided: allow → deny [" + condition.WhyTooLarge + "]\n" +
				"tool t: outcome tightens: ask → deny: every call (with arguments that are no object)\n"},
		"a pattern": {hard("^[ab]*a[ab]{20}$"), hard("^[ab]*[a][ab]{20}$"), nil,
			"tool t: outcome undecided: ask → allow [" + condition.WhyTooHard + "]\n" +
				"tool t: outcome undecided: allow → ask [" + condition.WhyTooHard + "]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			report := NewReport(Compare(
				&Side{Plan: planOf(t, resolve.Options{}, c.old)},
				&Side{Plan: planOf(t, resolve.Options{}, c.new, c.policies...)},
			))
			if got := told(report.Changes); report.Verdict.Safe() || got != c.want {
				t.Errorf("%s\ngot:\n%swant:\n%s", report.Verdict, got, c.want)
			}
		})
	}
}

// TestAWitnessIsRun checks that a change is not reported if the plans decide its witness otherwise.
func TestAWitnessIsRun(t *testing.T) {
	s := Side{Plan: planOf(t, resolve.Options{}, tools("{alias: t, approval: true}"))}
	call := resolve.Call{Kind: resolve.Tool, Tool: "t"}
	p := pair{comparer: &comparer{old: s, new: s}, call: call, world: condition.Calls{NoParent: true}}
	change := Change{Effect: Loosens}
	p.tryWitness(&change, value.Value{Kind: value.Object}, func(old, new resolve.Decision) bool {
		return old.Outcome == resolve.Ask && new.Outcome == resolve.Allow
	})
	want := "the call that should show it was decided otherwise: ask before, ask now"
	if change.Effect != Undecided || change.Why != want || change.Witness != nil {
		t.Errorf("%+v", change)
	}
}

// TestWhoseMessageIsShown swaps the messages of two policies.
func TestWhoseMessageIsShown(t *testing.T) {
	rule := func(ref, text string) string {
		return policyText(ref, "{id: r, approval: {message_template: "+text+"}}")
	}
	space := tools("{alias: t}")
	report := NewReport(Compare(
		&Side{Plan: planOf(t, resolve.Options{}, space, rule("p", "one"), rule("q", "two"))},
		&Side{Plan: planOf(t, resolve.Options{}, space, rule("p", "two"), rule("q", "one"))},
	))
	want := "tool t: message changes: \"one\" → \"two\": every call\n"
	if report.Verdict != Equivalent || told(report.Changes) != want {
		t.Errorf("%s\n%s", report.Verdict, told(report.Changes))
	}
}
