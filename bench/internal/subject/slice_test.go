package subject

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/bench/internal/model"
	"github.com/assent-dev/assent/resolve"
)

// TestSliceEqualsEverything: whatever the selectors, deciding with
// every policy in the registry gives the very decision of deciding with
// just those whose selector admits the agent and the tool, and both
// give the rules that the model's evaluator finds by looking at all of
// them. Only the binding differs: it names the plan.
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

// slice keeps the agent's own rules, which its file holds, and the
// policies that concern the tool.
func slice(w *model.Workload, tool string) []model.Rule {
	var rules []model.Rule
	for _, r := range w.Rules {
		if r.Agent || r.Admits(&w.Agent, tool) {
			rules = append(rules, r)
		}
	}
	return rules
}

// sawEvery holds the true reasons of a decision against the evaluator
// that slices nothing. A rule may also ask because an argument is
// missing, which the model knows nothing of.
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
