package model

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestWorkloads checks the sizes that README.md promises for every workload.
func TestWorkloads(t *testing.T) {
	for _, tc := range []struct {
		w               *Workload
		rules, relevant int
		minArgs         int
		maxArgs         int
	}{
		{A(), 1, 1, 74, 86},
		{B(), 1, 1, 260, 300},
		{C(), 120, 5, 260, 300},
		{D(1_000), 1_100, 6, 260, 300},
		{D(10_000), 10_100, 6, 260, 300},
	} {
		t.Run(tc.w.Name, func(t *testing.T) {
			tool := tc.w.Calls[0].Tool
			if got := len(tc.w.Rules); got != tc.rules {
				t.Errorf("rules = %d, want %d", got, tc.rules)
			}
			if got := len(tc.w.Relevant(tool)); got != tc.relevant {
				t.Errorf("relevant rules = %d, want %d", got, tc.relevant)
			}
			hits, asked := map[string]int{}, 0
			for i := range tc.w.Calls {
				c := &tc.w.Calls[i]
				if n := len(c.Raw); n < tc.minArgs || n > tc.maxArgs {
					t.Errorf("call %d has %d bytes: %s", i, n, c.Raw)
				}
				ids := tc.w.Reference(c)
				if len(ids) > 0 {
					asked++
				}
				for _, id := range ids {
					hits[id]++
				}
			}

			if asked != CallsPerWorkload/2 {
				t.Errorf("%d of %d calls match", asked, len(tc.w.Calls))
			}
			for _, r := range tc.w.Relevant(tool) {
				if hits[r.ID] == 0 {
					t.Errorf("rule %s matches no call, so nothing shows that an engine evaluates it", r.ID)
				}
			}
		})
	}
}

// TestSameSlice checks that (d) with 10,000 policies has the same relevant rules and calls as
// with 1,000.
func TestSameSlice(t *testing.T) {
	small, large := D(1_000), D(10_000)
	if !reflect.DeepEqual(small.Relevant(Tool), large.Relevant(Tool)) {
		t.Error("the relevant rules differ")
	}
	if !reflect.DeepEqual(small.Calls, large.Calls) {
		t.Error("the calls differ")
	}
}

// TestReference checks the reference evaluator by hand on one call.
func TestReference(t *testing.T) {
	call := NewCall("x", `{"n":5,"s":"abc","o":{"n":7}}`)
	for _, tc := range []struct {
		m    Matcher
		want bool
	}{
		{Matcher{Key: "n", Op: Eq, Num: 5}, true},
		{Matcher{Key: "n", Op: Ne, Num: 5}, false},
		{Matcher{Key: "n", Op: Gt, Num: 5}, false},
		{Matcher{Key: "n", Op: Gte, Num: 5}, true},
		{Matcher{Key: "n", Op: Lt, Num: 6}, true},
		{Matcher{Key: "n", Op: Lte, Num: 4}, false},
		{Matcher{Key: "o.n", Op: Gt, Num: 6}, true},
		{Matcher{Key: "o.missing", Op: Ne, Num: 6}, false},
		{Matcher{Key: "missing", Op: NotIn, List: []string{"a"}}, false},
		{Matcher{Key: "s", Op: In, List: []string{"abc", "d"}}, true},
		{Matcher{Key: "s", Op: NotIn, List: []string{"abc", "d"}}, false},
		{Matcher{Key: "s", Op: Pattern, Regexp: Begins("ab")}, true},
		{Matcher{Key: "s", Op: Pattern, Regexp: Ends("ab")}, false},
	} {
		b, _ := json.Marshal(tc.m)
		rule := Rule{Groups: []Group{{tc.m}}}
		if got := rule.Matches(call.Args); got != tc.want {
			t.Errorf("%s: %v, want %v", b, got, tc.want)
		}
	}
}
