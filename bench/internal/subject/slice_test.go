package subject

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/bench/internal/model"
	"github.com/assent-dev/assent/resolve"
)

// TestSliceEqualsEverything checks two plans for all selectors. One has every policy in the
// registry, and the other has only the policies whose selector admits the agent and the tool.
// Both must make the same decision, and return the rules that the evaluator of the model finds
// among all rules. Only the binding differs, since it includes the plan.
func TestSliceEqualsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := model.Random(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 40).Draw(t, "policies"))
		everything, sliced := newPlan(t, w, w.Rules), map[string]*Plan{}
		for _, tool := range w.Agent.Tools {
			sliced[tool] = newPlan(t, w, slice(w, tool))
		}
		for i := range w.Calls {
			c := &w.Calls[i]
			got, want := sliced[c.Tool].Decide(c), everything.Decide(c)
			got.Binding, want.Binding = "", ""
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s %s:\nslice:      %+v\neverything: %+v", c.Tool, c.Raw, got, want)
			}
			sawEvery(t, w, c, &want)
		}
	})
}

// slice returns the rules in the agent file and the policies that apply to the tool.
func slice(w *model.Workload, tool string) []model.Rule {
	var rules []model.Rule
	for _, r := range w.Rules {
		if r.Agent || r.Admits(&w.Agent, tool) {
			rules = append(rules, r)
		}
	}
	return rules
}

// sawEvery compares the true reasons of a decision with the evaluator that examines all rules.
// A rule may also require approval because an argument is missing. The model does not include
// that.
func sawEvery(t *rapid.T, w *model.Workload, c *model.Call, d *resolve.Decision) {
	found := map[string]bool{}
	for i := range d.Reasons {
		if one := (&resolve.Decision{
			Outcome: d.Outcome,
			Reasons: d.Reasons[i : i+1],
		}); d.Reasons[i].Code == resolve.ConditionTrue {
			found[AssentReasons(one)[0]] = true
		}
	}

	want := map[string]bool{}
	for _, id := range w.Reference(c) {
		want[id] = true
	}
	if !reflect.DeepEqual(found, want) {
		t.Fatalf("%s %s: true rules %v, want %v", c.Tool, c.Raw, found, want)
	}
}

func newPlan(t *rapid.T, w *model.Workload, rules []model.Rule) *Plan {
	part := *w
	part.Rules = rules
	p, err := NewPlan(&part)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
