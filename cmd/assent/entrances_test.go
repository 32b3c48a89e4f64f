package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// exclusion is a person who must not approve a call that mara's token asks about on behalf of zoe.
type exclusion struct {
	name string
	who  string
	why  *regexp.Regexp // what they are told, by whatever way
	// ofCalls: not for administrative acts, which have no principal and whose agent has no file.
	ofCalls bool
	// ofPrincipal: only for calls that name a principal.
	ofPrincipal bool
}

// exclusions lists everyone who must not approve. The remaining rules are about the number of
// approvals: no person fills two seats (testSecondSeat), and a call with an unknown principal needs
// one more approval (testUnknownPrincipal).
func exclusions() []exclusion {
	return []exclusion{
		{
			name: "the person of the asking token",
			who:  "mara",
			why:  regexp.MustCompile(`the token that asks is (this person's|yours)`),
		},
		{
			name:    "the principal, by another name",
			who:     "zoe",
			why:     regexp.MustCompile(`the agent acts for (this person|you)`),
			ofCalls: true,

			ofPrincipal: true,
		},
		{
			name: "an owner by the directory",
			who:  "olga",
			why:  regexp.MustCompile(`an owner of the agent|you own the agent`),
		},
		{
			name:    "an owner by the agent's file",
			who:     "otto",
			why:     regexp.MustCompile(`an owner of the agent|you own the agent`),
			ofCalls: true,
		},
		{
			name: "somebody outside of the group",
			who:  "wes",
			// they may not read it either: for them it does not exist
			why: regexp.MustCompile(`in none of the groups that are asked|not found|not_found|There is no such thing`),
		},
		{
			name: "somebody whom the directory doesn't know",
			who:  "gone",
			why: regexp.MustCompile(
				`not in the directory|directory of people doesn't know you|not mapped to anybody|` +
					`the directory does not know the token's person`,
			),
		},
	}
}

// editRefused matches the message for people who may not edit. The ledger has the reason.
var editRefused = regexp.MustCompile(`not found|not_found|There is no such thing|this person may not answer|the directory does not know the token's person`)

// TestExclusionsHoldAtEveryWayToAsk: for every way to ask, an excluded person can't approve and
// another person can.
func TestExclusionsHoldAtEveryWayToAsk(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	vote := waysToAnswer()[0]
	for _, way := range waysToAsk() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			ends := approval.Approved
			if way.question {
				ends = approval.Answered
			}
			r := w.testExclusions(t, way, vote, w.asks(t, way, aliasOfZoe, 1), ends)
			if !way.question && !way.administers {
				testMisspeltGate(t, r)
			}
			by := approval.Asker{Token: way.token, Person: "mara", Principal: aliasOfZoe}
			if way.administers || way.unnamed {
				by.Principal = ""
			}
			q := r.Requester
			if got := (approval.Asker{Token: q.Runtime, Person: q.Person, Principal: q.Principal}); got != by {
				t.Errorf("asked by %+v, want %+v", got, by)
			}

			if !way.question && !way.single {
				w.testSecondSeat(t, vote, w.asks(t, way, aliasOfZoe, 2))
			}
			if !way.question && !way.administers && !way.unnamed {
				w.testUnknownPrincipal(t, vote, w.asks(t, way, stranger, 1))
			}
		})
	}
}

// TestExclusionsHoldAtEveryWayToAnswer: for every way to answer, the answer of an excluded person
// doesn't count, and that of another person does.
func TestExclusionsHoldAtEveryWayToAnswer(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	request, question := waysToAsk()[0], waysToAsk()[1]
	text := waysToAsk()[2]
	for _, way := range waysToAnswer() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			asking := request
			if way.ends == approval.Answered {
				asking = question
			}
			if way.text {
				asking = text
			}
			one := w.asks(t, asking, aliasOfZoe, 1)
			if way.ends != approval.Approved {
				w.testExclusions(t, asking, way, one, way.ends)
				return
			}
			two, unknown := w.asks(t, asking, aliasOfZoe, 2), w.asks(t, asking, stranger, 1)
			w.look(t, way, two, "ben")
			w.look(t, way, unknown, "ben")
			w.testExclusions(t, asking, way, one, way.ends)
			w.testSecondSeat(t, way, two)
			w.testUnknownPrincipal(t, way, unknown)
		})
	}
}

// TestOnlyTheAskerTakesTheRunAtEveryEntrance: before the approval no asker can take the run. After
// it only the original asker can, once, and no other asker of the same person.
func TestOnlyTheAskerTakesTheRunAtEveryEntrance(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	for _, way := range waysToTake() {
		c := w.call(aliasOfZoe, 1)
		way.asks.ask(t, w, c)
		r := w.asked(t, c)
		if err := way.take(t, w, c, r, false); err == nil {
			t.Errorf("%s: it is taken before anybody agreed", way.name)
		}
		w.counts(t, r, "ben", approval.Approved, votesOverHTTP(t, w, "ben", r))
		if err := way.take(t, w, c, r, true); err == nil {
			t.Errorf("%s: another asker takes it", way.name)
		}
		if err := way.take(t, w, c, r, false); err != nil {
			t.Errorf("%s: who asked can't take it: %v", way.name, err)
		}
		if err := way.take(t, w, c, r, false); err == nil {
			t.Errorf("%s: it is taken twice", way.name)
		}
	}
}

// testMisspeltGate checks that people are also asked if the agent's file misspells the gate, at
// every entrance.
func testMisspeltGate(t *testing.T, r *approval.Request) {
	t.Helper()
	d := r.Revisions[0].Decision
	i := slices.IndexFunc(d.Reasons, func(x resolve.Reason) bool { return x.Code == resolve.ApprovalMisspelt })
	if i < 0 || d.Reasons[i].Line == 0 || !strings.Contains(d.Message, `"aproval"`) {
		t.Errorf("the misspelt gate is no reason: %s, %+v", d.Message, d.Reasons)
	}
}

// asks asks people about a new call, and returns the request.
func (w *entrances) asks(t *testing.T, way wayToAsk, principal string, seats int) *approval.Request {
	t.Helper()
	c := w.call(principal, seats)
	way.ask(t, w, c)

	return w.asked(t, c)
}

// testExclusions answers as everyone who must not, and then as ben, who may. It returns the ended
// request.
func (w *entrances) testExclusions(
	t *testing.T, asking wayToAsk, way wayToAnswer, r *approval.Request, ends approval.State,
) *approval.Request {
	t.Helper()
	tried := []string{"ben"}
	barred := exclusions()
	barred = slices.DeleteFunc(barred, func(e exclusion) bool {
		return asking.administers && e.ofCalls || asking.unnamed && e.ofPrincipal
	})
	for _, e := range barred {
		tried = append(tried, e.who)
	}
	w.look(t, way, r, tried...)

	for _, e := range barred {
		told := way.answer(t, w, e.who, r)
		if !e.why.MatchString(told) && !(way.edits && editRefused.MatchString(told)) {
			t.Errorf("%s is told %s", e.name, told)
		}
		if now := w.request(t, r.ID); now.State != approval.Pending || len(now.Votes) > 0 || len(now.Revisions) > 1 {
			t.Fatalf("%s answered: it is %s, with the answers %+v", e.name, now.State, now.Votes)
		}
	}

	return w.counts(t, r, "ben", ends, way.answer(t, w, "ben", r))
}

// testSecondSeat answers twice as ben a request that needs two people. His second answer fills no
// seat, but cleo's does.
func (w *entrances) testSecondSeat(t *testing.T, way wayToAnswer, r *approval.Request) {
	t.Helper()
	for range 2 {
		r = w.counts(t, r, "ben", approval.Pending, w.answers(t, way, "ben", r))
	}
	w.completes(t, way, r)
}

// testUnknownPrincipal answers as ben a call whose principal is not in the directory. One more
// approval is needed.
func (w *entrances) testUnknownPrincipal(t *testing.T, way wayToAnswer, r *approval.Request) {
	t.Helper()
	r = w.counts(t, r, "ben", approval.Pending, w.answers(t, way, "ben", r))
	w.completes(t, way, r)
}

// completes fills the last seat as cleo. An edit by her would void ben's approval, so she votes in
// that case.
func (w *entrances) completes(t *testing.T, way wayToAnswer, r *approval.Request) {
	t.Helper()
	if way.edits {
		way = waysToAnswer()[0]
	}
	w.counts(t, r, "cleo", approval.Approved, w.answers(t, way, "cleo", r))
}

// answers opens the current version of a request as a person, and answers it.
func (w *entrances) answers(t *testing.T, way wayToAnswer, who string, r *approval.Request) (told string) {
	t.Helper()
	w.look(t, way, r, who)

	return way.answer(t, w, who, r)
}

// look opens the page that people see before they answer, unless they have opened it. It does so
// for all of them first, because a page takes answers only after a moment.
func (w *entrances) look(t *testing.T, way wayToAnswer, r *approval.Request, people ...string) {
	t.Helper()
	people = slices.DeleteFunc(people, func(who string) bool { return w.seals.taken(who, r) != "" })
	for _, look := range way.looks {
		for _, who := range people {
			look(t, w, who, r)
		}
	}
}

// counts checks that a person's answer was counted and brought the request into a state. It returns
// the current request.
func (w *entrances) counts(
	t *testing.T, r *approval.Request, who string, state approval.State, told string,
) *approval.Request {
	t.Helper()
	now := w.request(t, r.ID)
	theirs := func(v approval.Vote) bool {
		return v.Person == who && v.Revision == now.Current().Number
	}
	became := now.State
	if became == approval.Consumed { // only what was approved is; its asker was quick to take the run
		became = approval.Approved
	}
	if became != state || !slices.ContainsFunc(now.Votes, theirs) {
		t.Fatalf("%s answered: it is %s, want %s, with the answers %+v\n%s", who, now.State, state, now.Votes, told)
	}

	return now
}
