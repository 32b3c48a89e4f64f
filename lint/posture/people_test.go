package posture

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

// drawnPeople draws a people.yaml of up to five people in three groups.
func drawnPeople(t *rapid.T, label string) *people.Directory {
	var b strings.Builder
	b.WriteString("schema_version: \"1.0.0\"\npeople:\n")
	for i := range 5 {
		var groups []string
		for _, g := range []string{"a", "b", "c"} {
			if rapid.Bool().Draw(t, label+g) {
				groups = append(groups, g)
			}
		}
		if i == 0 || rapid.Bool().Draw(t, label+"there") {
			fmt.Fprintf(&b, "  - {id: p%d, name: P, groups: [%s]}\n", i, strings.Join(groups, ", "))
		}
	}

	return directoryOf(t, b.String())
}

func directoryOf(t rapid.TB, text string) *people.Directory {
	t.Helper()
	d, findings := people.Parse("people.yaml", []byte(text))
	if d == nil {
		t.Fatalf("%s\n%v", text, findings)
	}
	return d
}

func drawnStages(t *rapid.T, label string) policy.Require {
	var r policy.Require
	for _, g := range []string{"a", "b", "c"} {
		if n := rapid.IntRange(0, 2).Draw(t, label+g); n > 0 {
			r.Stages = append(r.Stages, policy.Stage{Group: g, People: n})
		}
	}
	if len(r.Stages) > 0 && rapid.Bool().Draw(t, label+"stand-in") {
		r.Stages[0].StandIns = []policy.StandIn{{Group: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label+"in")}}
	}
	return r
}

// approving lists every set of five people that may approve, as bits.
func approving(d *people.Directory, r policy.Require) map[int]bool {
	out := map[int]bool{}
	for set := range 1 << 5 {
		var there []people.Person
		for i := range 5 {
			p, ok, _ := d.Person(context.Background(), "", fmt.Sprintf("p%d", i))
			if ok && set>>i&1 == 1 {
				there = append(there, p)
			}
		}

		if _, met := people.Seat(stagesOf(r), there); met {
			out[set] = true
		}
	}

	return out
}

// TestCommitteesAgreeWithBruteForce compares the result with all sets of people who may approve.
func TestCommitteesAgreeWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := &Side{People: drawnPeople(t, "old")}
		new := &Side{People: drawnPeople(t, "new")}
		was, is := drawnStages(t, "was"), drawnStages(t, "is")
		within := func(a, b map[int]bool) bool {
			for set := range a {
				if !b[set] {
					return false
				}
			}
			return true
		}
		before, now := approving(old.People, was), approving(new.People, is)
		want := mutual(within(now, before), within(before, now))
		c := &comparer{old: *old, new: *new}
		got, why := c.committees(was, is)
		if got != want || got == Incomparable && !strings.Contains(why, "may approve now and might not before") {
			t.Fatalf("%v → %v: %s (%s), want %s", was.Stages, is.Stages, got, why, want)
		}
	})
}

const staff = `schema_version: "1.0.0"
people:
  - {id: alice, name: A, groups: [risk], also: ["slack:U1"]}
  - {id: bob, name: B, groups: [risk]}
  - {id: carol, name: C, groups: [desk], owns: [desk]}
`

// TestWhoMayAnswer compares each row in both directions. Each row loosens or has no order.
func TestWhoMayAnswer(t *testing.T) {
	replaced := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(staff) }
	listed := func(text, groups string) string { return text + "groups: {" + groups + "}\n" }
	asks := func(group string) string {
		return policyText("p",
			"{id: r, match: {targets: [t]}, approval: true, require: {stages: [{group: "+group+", people: 1}]}}")
	}
	for name, c := range map[string]struct {
		old, new, from, to string // people, and the group that is asked
		there, back        Verdict
	}{
		"nothing": {staff, staff, "risk", "risk", Equivalent, Equivalent},
		"one more": {staff, replaced("groups: [desk]", "groups: [desk, risk]"), "risk", "risk",
			VerdictLoosens, VerdictTightens},
		"one for another": {staff,
			replaced("groups: [desk]", "groups: [risk]", "id: bob, name: B, groups: [risk]",
				"id: bob, name: B, groups: []"), "risk", "risk", VerdictUndecided, VerdictUndecided},
		"a name more": {staff, replaced(`"slack:U1"`, `"slack:U1", al`), "risk", "risk", VerdictLoosens,
			VerdictTightens},
		"a name of another": {staff, replaced("slack:U1", "slack:U2"), "risk", "risk", VerdictUndecided,
			VerdictUndecided},
		"somebody who is not asked": {
			staff, replaced("groups: [desk]", "groups: [desk, other]"), "risk", "risk", Equivalent, Equivalent,
		},
		"an owner less":       {staff, replaced(", owns: [desk]", ""), "risk", "risk", VerdictLoosens, VerdictTightens},
		"a group for another": {staff, staff, "risk", "desk", VerdictUndecided, VerdictUndecided},
		"a group renamed":     {staff, replaced("[risk]", "[hazards]"), "risk", "hazards", Equivalent, Equivalent},
		"a wider group": {replaced("[risk]", "[risk, desk]"), replaced("[risk]", "[risk, desk]"), "risk",
			"desk", VerdictLoosens, VerdictTightens},
		"a group of sign-ins": {
			listed(staff, "risk: {}, desk: {}"),
			listed(replaced("groups: [desk]", "groups: [risk, desk]"), "risk: {}, desk: {}"), "desk", "risk",
			VerdictUndecided, VerdictUndecided,
		},
		"sign-ins may bring it": {listed(staff, "desk: {}, risk: {}, x: {}"), staff, "x", "risk", VerdictUndecided,
			VerdictUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			side := func(text, group string) *Side {
				s := sideText(t, resolve.Options{}, agentText(tools("{alias: t}")), asks(group))
				s.People = directoryOf(t, text)
				return s
			}
			old, new := side(c.old, c.from), side(c.new, c.to)
			if there := NewReport(Compare(old, new)); there.Verdict != c.there {
				t.Errorf("%s, want %s\n%s", there.Verdict, c.there, told(there.Changes))
			}
			if back := NewReport(Compare(new, old)); back.Verdict != c.back {
				t.Errorf("back: %s, want %s\n%s", back.Verdict, c.back, told(back.Changes))
			}
		})
	}
}

// TestTooManyCommittees checks that a large number of people is undecided, with the reason.
func TestTooManyCommittees(t *testing.T) {
	var b strings.Builder
	b.WriteString("schema_version: \"1.0.0\"\npeople:\n")
	var old, new policy.Require
	for i := range 12 {
		old.Stages = append(old.Stages, policy.Stage{Group: fmt.Sprintf("o%02d", i), People: 2})
		new.Stages = append(new.Stages, policy.Stage{Group: fmt.Sprintf("n%02d", i), People: 2})
	}
	for i := range 60 {
		fmt.Fprintf(&b, "  - {id: p%d, name: P, groups: [n%02d, n%02d, o%02d, o%02d, o%02d]}\n", i, i%12,
			(i*5+1)%12, i%12, (i*7+3)%12, (i*5+1)%12)
	}
	d := directoryOf(t, b.String())
	c := &comparer{old: Side{People: d}, new: Side{People: d}}
	if order, why := c.committees(old, new); order != Incomparable || !strings.Contains(why, "too many sets") {
		t.Errorf("%s: %s", order, why)
	}
}
