package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
)

// enquiry runs a question and its model in parallel.
type enquiry struct {
	trial
	groups []string
	user   string          // a name of the principal; empty if there is none
	said   map[string]bool // person and answer of every stored answer
	answer *int
	by     string
	ended  bool
	events int // number of answer events
}

func newEnquiry(t *rapid.T) *enquiry {
	d := &town{
		names:  map[string]string{"token": "p1", "owner@file": "p2"},
		holds:  map[string]map[string]bool{},
		owners: []string{"p3"},
	}
	for i := range somePeople {
		d.names[person(i)], d.names["alias-"+person(i)] = person(i), person(i)
		d.holds[person(i)] = map[string]bool{}
		for g := range someGroups {
			d.holds[person(i)][group(g)] = rapid.Bool().Draw(t, "holds")
		}
		maps.DeleteFunc(d.holds[person(i)], func(_ string, holds bool) bool { return !holds })
	}

	x := &enquiry{said: map[string]bool{},
		groups: rapid.SampledFrom([][]string{nil, nil, {"g0"}, {"g0", "g1"}}).Draw(t, "groups"),
		user:   rapid.SampledFrom([]string{"", "p0", "alias-p0", "p1", "p2", "nobody"}).Draw(t, "user"),
		trial:  trial{t: t, town: d, cfg: Config{}.withDefaults(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	x.s = &Service{people: d, cfg: x.cfg, random: seeded(1)}
	call := resolve.Call{Kind: resolve.Tool, Tool: "write", Args: resolve.Raw(`{}`), Principal: x.user}
	choices := rapid.IntRange(1, 4).Draw(t, "choices")
	x.r = &Request{
		ID:      "qst_1",
		Tenant:  "t",
		Version: 1,
		Agent:   Agent{ID: "agent"},
		Question: &Question{
			Asker:   "files",
			Choices: make([]string, choices),
			Default: rapid.IntRange(0, choices-1).Draw(t, "default"),
			Groups:  x.groups,
		},
		Requester: Requester{Runtime: "token", Principal: x.user, Owners: []string{"owner@file"}},
		Within:    time.Hour,
		Revisions: []Revision{{Call: call, Binding: binding(0), Plan: "plan", At: x.now}},
	}
	x.tell(x.r.ask(x.now, x.cfg))
	return x
}

// tell audits the events, and counts those about an answer.
func (x *enquiry) tell(events []Event) {
	x.record(events)
	for _, e := range events {
		if e.Type == EventAnswered {
			x.events++
		}
	}
}

// may implements the rule independently: the runtime may never answer. If there are groups, their
// members may unless they are excluded. Otherwise the user may, or any approver if there is no
// user.
func (x *enquiry) may(id string) bool {
	is := func(name string) bool { return x.town.names[name] == id }
	switch {
	case !is(id) || is("token"):
		return false
	case len(x.groups) > 0:
		return !is("owner@file") && !is("p3") && !is(x.user) &&
			slices.ContainsFunc(x.groups, func(g string) bool {
				return x.town.holds[id][g]
			})
	case x.user == "":
		return true
	}

	return is(x.user)
}

func (x *enquiry) Pick(t *rapid.T) {
	x.t = t
	x.pass()
	id := person(rapid.IntRange(0, somePeople).Draw(t, "person")) // may be a person that the directory does not contain
	in := VoteInput{
		Verdict: rapid.SampledFrom([]Verdict{Choose, Choose, Dismiss}).Draw(t, "verdict"),
		Full:    rapid.IntRange(0, 9).Draw(t, "full") > 0,
	}
	if in.Verdict == Choose {
		n := rapid.IntRange(0, len(x.r.Question.Choices)-1).Draw(t, "choice")
		in.Choice = &n
	}
	voter, known, err := x.s.known(context.Background(), "t", id)
	if err != nil || in.fits(x.r) != nil {
		t.Fatal(err, in.fits(x.r))
	}
	if !known {
		voter = Person{ID: id}
	}
	a := x.r.answering()
	w, err := x.s.standing(context.Background(), x.r.Tenant, &a, x.now, voter)
	must.Do(t, err)
	if !known {
		delete(w.People, id)
	}
	v := Vote{
		Person:  voter.ID,
		Verdict: in.Verdict,
		Binding: x.r.Binding(),
		Channel: "test",
		Groups:  voter.Groups,
		Full:    in.Full,
		Chosen:  in.chosen(x.r),
		At:      x.now,
	}
	said := fmt.Sprint(voter.ID, v.Verdict, *v.Chosen)
	want, refused := VoteAnswered, error(nil)
	switch {
	case !x.may(voter.ID):
		want = VoteNotEligible
	case x.said[said]:
		want = VoteDuplicate
	case x.ended:
		want, x.said[said] = VoteLate, true
	case v.Verdict == Choose && !v.Full:
		want, refused = "", ErrNotShown
	default:
		x.said[said] = true
		x.ended = true
		x.answer = v.Chosen
		x.by = voter.ID
	}

	got, events, err := x.r.vote(v, "", w, x.now, x.cfg)
	if got != want || !errors.Is(err, refused) {
		t.Fatalf("%s by %s: got %q, %v, want %q", v.Verdict, voter.ID, got, err, want)
	}
	x.tell(events)
}

// pass applies the effects of time, as the service does before every input.
func (x *enquiry) pass() {
	events, _ := x.s.due(x.r, x.now)
	x.tell(events)
	x.ended = x.ended || !x.now.Before(x.r.Deadline)
}

func (x *enquiry) Time(t *rapid.T) {
	x.t = t
	x.now = x.now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 10, 29, 31}).Draw(t, "minutes")) * time.Minute)
	x.pass()
}

func (x *enquiry) Withdraw(t *rapid.T) {
	x.t = t
	if x.pass(); x.r.State.Open() && rapid.IntRange(0, 5).Draw(t, "seldom") == 0 {
		x.tell([]Event{x.r.withdraw(ByRequester, "token", "", x.now)})
		x.ended = true
	}
}

func (x *enquiry) Check(t *rapid.T) {
	r := x.r
	if (r.State == Answered) != (x.answer != nil) || (r.Chosen != nil) != (x.answer != nil) ||
		x.ended != (r.State != Pending) ||
		x.events > 1 {
		t.Fatalf("got %+v after an answer %v", r, x.answer)
	}
	if x.answer != nil && (*r.Chosen != *x.answer || r.By != x.by || x.events != 1 || r.Permit != nil) {
		t.Fatalf("got %d by %s, want %d by %s", *r.Chosen, r.By, *x.answer, x.by)
	}
	if r.State.Open() != (r.Due != nil) || !slices.Contains([]State{Pending, Answered, Expired, Cancelled}, r.State) {
		t.Fatalf("%s, due %v", r.State, r.Due)
	}
	if a := x.auditor.requests[r.ID]; a.state != r.State || len(a.votes) != x.events {
		t.Fatalf("the ledger tells %+v of %+v", a, r)
	}
	copyOf(t, r)
}

// TestQuestionsAgreeWithTheModel: there is at most one answer, by a person who may answer, and
// never after the end.
func TestQuestionsAgreeWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newEnquiry(t)
		move := func(t *rapid.T) { x.Move(t) }
		t.Repeat(map[string]func(*rapid.T){
			"pick":       x.Pick,
			"pick again": x.Pick,
			"time":       x.Time,
			"move":       move,
			"withdraw":   x.Withdraw,
			"":           x.Check,
		})
	})
}
