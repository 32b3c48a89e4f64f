package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/people"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
)

const directory = `schema_version: "1.0.0"
people:
  - {id: ann, groups: [risk]}
  - {id: ben, also: [b.ruiz], groups: [risk]}
  - {id: cy, groups: [leads]}
  - {id: eve}
  - {id: olga, groups: [risk], owns: [desk]}
`

// stand is the standing of a request as of some time after it was asked.
func stand(t *testing.T, a *Answering, after time.Duration) Standing {
	t.Helper()
	d, findings := people.Parse("people.yaml", []byte(directory))
	if d == nil {
		t.Fatal(findings)
	}
	var all []people.Person
	for _, id := range []string{"ann", "ben", "cy", "eve", "olga"} {
		p, _, err := Known(context.Background(), d, "", id)
		must.Do(t, err)
		all = append(all, p)
	}

	w, err := Stand(context.Background(), d, "", a, a.Asked.Add(after), all...)
	must.Do(t, err)

	return w
}

func TestEligibility(t *testing.T) {
	a := &Answering{
		Agent: "desk",
		Stages: []policy.Stage{{
			Group:    "risk",
			People:   2,
			StandIns: []policy.StandIn{{Group: "leads", After: time.Minute}},
		}},
		Principal: "B.Ruiz",
		Tokens:    []string{"runner"},
	}
	for _, tt := range []struct {
		id    string
		after time.Duration
		want  Eligibility
	}{
		{"ann", 0, Eligibility{Answer: true, Approve: true, Waiting: true}},
		{"ben", 0, Eligibility{Why: WhyPrincipal}},
		{"cy", 59 * time.Second, Eligibility{Why: WhyNotAsked}},
		{"cy", time.Minute, Eligibility{Answer: true, Approve: true, Waiting: true}},
		{"eve", time.Hour, Eligibility{Why: WhyNotAsked}},
		{"olga", 0, Eligibility{Why: WhyOwner}},
		{"zed", 0, Eligibility{Why: WhyUnknown}},
	} {
		if got := stand(t, a, tt.after).Eligibility(a, tt.id); got != tt.want {
			t.Errorf("%s after %s: %+v, expected %+v", tt.id, tt.after, got, tt.want)
		}
	}
}

// TestMet: two different people, whoever stands in counts from their
// time on, and an owner's yes never does.
func TestMet(t *testing.T) {
	for _, tt := range []struct {
		approved []string
		after    time.Duration
		want     bool
	}{
		{nil, 0, false},
		{[]string{"ann"}, 0, false},
		{[]string{"ann", "ann"}, 0, false},
		{[]string{"ann", "ben"}, 0, true},
		{[]string{"ann", "olga"}, 0, false},
		{[]string{"ann", "cy"}, 0, false},
		{[]string{"ann", "cy"}, time.Minute, true},
	} {
		a := &Answering{
			Agent: "desk",
			Stages: []policy.Stage{{
				Group:    "risk",
				People:   2,
				StandIns: []policy.StandIn{{Group: "leads", After: time.Minute}},
			}},
			Tokens:   []string{"runner"},
			Approved: tt.approved,
			Answered: tt.approved,
		}
		if _, met := stand(t, a, tt.after).Met(a); met != tt.want {
			t.Errorf("%v after %s: met is %v", tt.approved, tt.after, met)
		}
	}
}

func TestStages(t *testing.T) {
	risk := policy.Stage{Group: "risk", People: 2}
	for _, tt := range []struct {
		required []policy.Stage
		unknown  bool
		want     int // people in all
	}{
		{nil, false, 1},
		{nil, true, 2},
		{[]policy.Stage{risk}, false, 2},
		{[]policy.Stage{risk}, true, 3},
		{[]policy.Stage{Anyone()}, true, 2},
	} {
		got := 0
		for _, s := range Stages(tt.required, tt.unknown) {
			got += s.People
		}
		if got != tt.want {
			t.Errorf("%v, unknown %v: %d people, expected %d", tt.required, tt.unknown, got, tt.want)
		}
	}
}
