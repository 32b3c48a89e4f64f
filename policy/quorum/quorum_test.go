package quorum

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
)

const directory = `schema_version: "1.0.0"
people:
  - {id: ann, groups: [risk]}
  - {id: ben, also: [b.ruiz], groups: [risk]}
  - {id: cy, groups: [leads]}
  - {id: eve}
  - {id: olga, groups: [risk], owns: [desk]}
`

// stand calls Stand for a request at some time after it was opened.
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

// TestQuestionsToTheUser: only the principal may answer, even if they own the agent and the token.
// Without a principal, any approver may. If the directory does not contain the principal, no answer
// is accepted.
func TestQuestionsToTheUser(t *testing.T) {
	all := Eligibility{Answer: true, Approve: true, Waiting: true}
	for _, tt := range []struct {
		principal, id string
		answered      []string
		want          Eligibility
	}{
		{"B.Ruiz", "ben", nil, all},
		{"B.Ruiz", "ben", []string{"ben"}, Eligibility{Answer: true, Approve: true}},
		{"B.Ruiz", "cy", nil, Eligibility{Why: WhyNotTheUser}},
		{"B.Ruiz", "zed", nil, Eligibility{Why: WhyUnknown}},
		{"olga", "olga", nil, all},
		{"ann", "ann", nil, Eligibility{Why: WhyToken}},
		{"", "ben", nil, all},
		{"", "eve", nil, Eligibility{Why: WhyNotAsked}},
		{"nobody", "ben", nil, Eligibility{Why: WhyNotTheUser}},
	} {
		a := &Answering{
			Agent:     "desk",
			Stages:    []policy.Stage{{Group: "risk", People: 1}},
			ToUser:    true,
			Principal: tt.principal,
			Tokens:    []string{"ann"},
			People:    []string{"ben"},
			Owners:    []string{"ben"},
			Answered:  tt.answered,
		}
		if got := stand(t, a, 0).Eligibility(a, tt.id); got != tt.want {
			t.Errorf("%s for %q: %+v, expected %+v", tt.id, tt.principal, got, tt.want)
		}
	}
}

// TestExcluded: the askers and the agent's owners may not answer under any of their names.
func TestExcluded(t *testing.T) {
	a := &Answering{
		Agent:  "desk",
		Stages: []policy.Stage{{Group: "risk", People: 1}},
		Tokens: []string{"ann", "runner"},
		People: []string{"b.ruiz"},
		Owners: []string{"CY"},
	}
	w := stand(t, a, 0)
	want := map[string]string{"ann": WhyToken, "runner": WhyToken, "ben": WhyTokens, "cy": WhyOwner, "olga": WhyOwner}
	if !maps.Equal(w.Excluded, want) {
		t.Errorf("excluded are %v, expected %v", w.Excluded, want)
	}
}

// TestWaiting: a request waits for the people who have not answered and whose approval would fill an
// empty seat.
func TestWaiting(t *testing.T) {
	a := &Answering{
		Agent: "other",
		Stages: []policy.Stage{
			{Group: "risk", People: 1},
			{Group: "leads", People: 1},
		},
		Called:   []string{"called"},
		Approved: []string{"ann"},
		Answered: []string{"ann", "eli"},
	}
	for id, want := range map[string]Eligibility{
		"ann": {Answer: true, Approve: true},
		"ben": {Answer: true, Approve: true}, // the group's seat is already filled
		"cy":  {Answer: true, Approve: true, Waiting: true},
		"dan": {Answer: true, Waiting: true, Why: WhyLooks},
		"eli": {Answer: true, Why: WhyLooks},
		"eve": {Why: WhyNotAsked},
	} {
		w := stand(t, a, 0)
		w.People["dan"] = people.Person{ID: "dan", Groups: []string{"called"}}
		w.People["eli"] = people.Person{ID: "eli", Groups: []string{"called"}}
		if got := w.Eligibility(a, id); got != want {
			t.Errorf("%s: %+v, expected %+v", id, got, want)
		}
	}
}

func TestPermits(t *testing.T) {
	for _, tt := range []struct {
		e              Eligibility
		approve, other bool
	}{
		{Eligibility{}, false, false},
		{Eligibility{Answer: true}, false, true},
		{Eligibility{Answer: true, Approve: true}, true, true},
	} {
		if tt.e.Permits(true) != tt.approve || tt.e.Permits(false) != tt.other {
			t.Errorf("%+v: %v and %v", tt.e, tt.e.Permits(true), tt.e.Permits(false))
		}
	}
}

// failing is a directory that returns an error for one name or agent.
type failing struct {
	*people.Directory
	name string
}

var errDown = errors.New("down")

func (f failing) Person(ctx context.Context, tenant, name string) (people.Person, bool, error) {
	if name == f.name {
		return people.Person{}, false, errDown
	}
	return f.Directory.Person(ctx, tenant, name)
}

func (f failing) Owners(ctx context.Context, tenant, agent string) ([]string, error) {
	if agent == f.name {
		return nil, errDown
	}
	return f.Directory.Owners(ctx, tenant, agent)
}

// TestStandFailsWithTheDirectory: an error of the directory is returned, because the person could
// be one who may not answer.
func TestStandFailsWithTheDirectory(t *testing.T) {
	d, _ := people.Parse("people.yaml", []byte(directory))
	for _, toUser := range []bool{false, true} {
		a := &Answering{
			Agent:     "desk",
			ToUser:    toUser,
			Principal: "ben",
			Tokens:    []string{"runner"},
			People:    []string{"cy"},
			Owners:    []string{"eve"},
			Answered:  []string{"ann"},
		}
		needed := map[string]bool{
			"ann": true, "ben": true, "runner": true, "cy": !toUser, "eve": !toUser, "desk": !toUser, "zed": false,
		}
		for name, want := range needed {
			_, err := Stand(context.Background(), failing{d, name}, "", a, a.Asked)
			if errors.Is(err, errDown) != want || (err != nil) != want {
				t.Errorf("to the user %v, without %s: %v", toUser, name, err)
			}
		}
	}
}

// TestStandLooksUpThoseWhoAnswered: an answer counts for the person with that canonical id, and
// people who are passed in are not looked up again.
func TestStandLooksUpThoseWhoAnswered(t *testing.T) {
	d, _ := people.Parse("people.yaml", []byte(directory))
	a := &Answering{Agent: "desk", Answered: []string{"ann", "b.ruiz", "zed", "given"}}
	given := people.Person{ID: "given", Groups: []string{"risk"}}
	w, err := Stand(context.Background(), failing{d, "given"}, "", a, a.Asked, given)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(w.People))
	if !slices.Equal(got, []string{"ann", "given"}) || !w.People["ann"].Holds("risk") {
		t.Errorf("people are %v: %+v", got, w.People)
	}
	if _, ok, err := Known(context.Background(), d, "", ""); ok || err != nil {
		t.Errorf("an empty name is known: %v, %v", ok, err)
	}
}

// TestMet: two different people are needed, a stand-in's approval counts from their time on, and
// an owner's never does.
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
		want     int // total number of people
	}{
		{nil, false, 1},
		{nil, true, 2},
		{[]policy.Stage{risk}, false, 2},
		{[]policy.Stage{risk}, true, 3},
		{[]policy.Stage{Anyone()}, true, 2},
		{[]policy.Stage{{People: 2}}, true, 3},
		{[]policy.Stage{Anyone(), risk}, true, 4},
	} {
		got := 0
		for _, s := range Stages(tt.required, nil, tt.unknown) {
			got += s.People
		}
		if got != tt.want {
			t.Errorf("%v, unknown %v: %d people, expected %d", tt.required, tt.unknown, got, tt.want)
		}
	}
}

func TestIsAnyone(t *testing.T) {
	for _, tt := range []struct {
		stages []policy.Stage
		want   bool
	}{
		{[]policy.Stage{Anyone()}, true},
		{nil, false},
		{[]policy.Stage{{People: 2}}, false},
		{[]policy.Stage{{Group: "risk", People: 1}}, false},
		{[]policy.Stage{Anyone(), Anyone()}, false},
	} {
		if got := IsAnyone(tt.stages); got != tt.want {
			t.Errorf("%v: %v", tt.stages, got)
		}
	}
}
