package people_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/assent-dev/assent/policy"
)

// TestAFileSaysWhichStagesItsPeopleCanFill: Short counts different people, including those in the
// groups of StandIns.
func TestAFileSaysWhichStagesItsPeopleCanFill(t *testing.T) {
	d := parse(t, `schema_version: "1.0.0"
people:
  - {id: mara@example.com, groups: [finance, heads]}
  - {id: omar@example.com, groups: [finance, heads]}
  - {id: ines@example.com, groups: [leads]}
`)
	leads := []policy.StandIn{{Group: "leads"}}
	for name, c := range map[string]struct {
		stages []policy.Stage
		want   map[string]int
	}{
		"none":     {},
		"enough":   {stages: []policy.Stage{{Group: "finance", People: 2}}},
		"too many": {[]policy.Stage{{Group: "finance", People: 9}}, map[string]int{"finance": 2}},
		"nobody":   {[]policy.Stage{{Group: "board", People: 1}}, map[string]int{"board": 0}},
		"the same two": {
			[]policy.Stage{{Group: "finance", People: 2}, {Group: "heads", People: 1}},
			map[string]int{"heads": 0},
		},
		"one stands in": {stages: []policy.Stage{{Group: "finance", People: 3, StandIns: leads}}},
		"too few to stand in": {[]policy.Stage{{
			Group:    "finance",
			People:   4,
			StandIns: leads,
		}}, map[string]int{"finance": 3}},
	} {
		if got := d.Short(c.stages, "", ""); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestGroupsOfAFile(t *testing.T) {
	const some = "schema_version: \"1.0.0\"\npeople: [{id: a@example.com, groups: [sre, leads]}, {id: " +
		"b@example.com, groups: [sre]}]\n"
	open, closed := parse(t, some), parse(t, some+"groups: {sre: {}, leads: {}, board: {}}\n")
	if got := open.Groups(); !slices.Equal(got, []string{"leads", "sre"}) || open.Lists("sre") {
		t.Errorf("without a list: got %v, lists sre %v", got, open.Lists("sre"))
	}
	if got := closed.Groups(); !slices.Equal(got, []string{"board", "leads", "sre"}) || !closed.Lists("board") ||
		closed.Lists("gone") {
		t.Errorf("with a list: got %v, lists board %v, gone %v", got, closed.Lists("board"), closed.Lists("gone"))
	}
}
