package approval_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
)

// TestAQuorumNobodyCanFillIsTold: a quorum that can't be filled is reported before any vote. People
// who may not answer are not counted; people who may be called in later are.
func TestAQuorumNobodyCanFillIsTold(t *testing.T) {
	h := newHarness(t)
	h.people.set(func(d *directory) {
		d.groups = map[string][]string{
			"ann":  {"risk"},
			"pat":  {"risk", "support"},
			"olga": {"risk"},
			"cy":   {"support"},
		}
	})
	short := func(r *approval.Request) []approval.Shortage {
		t.Helper()
		got, err := h.s.Shortages(t.Context(), r)
		must(t, err)
		return got
	}

	trade := h.asked(tool("trade", `{}`)) // two of risk, but the agent acts for pat, and olga owns it
	if got := short(trade); !reflect.DeepEqual(got, []approval.Shortage{{Group: "risk", Need: 2, Have: 1}}) {
		t.Errorf("got %+v", got)
	}

	if got := short(h.asked(tool("pay", `{}`))); got != nil {
		t.Errorf("anybody may approve this: %+v", got)
	}
	glance := h.asked(tool("glance", `{}`))
	nudge := h.asked(tool("nudge", `{}`))
	h.people.set(func(d *directory) { d.groups = map[string][]string{"dee": {"leads"}} })
	if got := short(glance); len(got) != 1 {
		t.Errorf("those who look fill no seat: %+v", got)
	}
	if got := short(nudge); got != nil {
		t.Errorf("those who are called in later may fill it: %+v", got)
	}
	h.pass(time.Hour)
	h.tick(3)
	if got := short(h.request(trade.ID)); got != nil {
		t.Errorf("what has ended lacks nobody: %+v", got)
	}
}

// TestShortagesAgreeWithSeatingEverybody: looking at as many members of a group as there are seats
// gives the same result as looking at all members.
func TestShortagesAgreeWithSeatingEverybody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stages []policy.Stage
		for g := range rapid.IntRange(1, 3).Draw(t, "stages") {
			stages = append(
				stages,
				policy.Stage{Group: fmt.Sprint("g", g), People: rapid.IntRange(1, 3).Draw(t, "people")},
			)
		}

		excluded := map[string]string{"p0": "asks"}
		var all []approval.Person
		for i := range rapid.IntRange(0, 12).Draw(t, "directory") {
			p := approval.Person{ID: fmt.Sprint("p", i)}
			for _, s := range stages {
				if rapid.Bool().Draw(t, "holds") {
					p.Groups = append(p.Groups, s.Group)
				}
			}
			all = append(all, p)
		}

		members := func(group string) ([]approval.Person, error) {
			var out []approval.Person
			for _, p := range all {
				if p.Holds(group) {
					out = append(out, p)
				}
			}
			return out, nil
		}

		got, err := people.FindShortages(stages, excluded, members)
		must(t, err)
		var may []approval.Person
		for _, p := range all {
			if excluded[p.ID] == "" {
				may = append(may, p)
			}
		}
		if _, met := people.Seat(stages, may); met != (len(got) == 0) {
			t.Fatalf("seated %v, short %+v", met, got)
		}
	})
}
