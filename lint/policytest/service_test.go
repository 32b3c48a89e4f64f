package policytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testtier"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// TestVotesAreWhatTheServiceMakesOfThem lets random people answer at random times, and checks that
// a test passes if it expects the result of the service.
func TestVotesAreWhatTheServiceMakesOfThem(t *testing.T) {
	files := testWorld(t)
	served := fstest.MapFS{"agents/desk.agf.yaml": files["desk.agf.yaml"], "people.yaml": files["people.yaml"]}
	served["policies/trades.policy.yaml"] = files["policies/trades.policy.yaml"]
	a := assenttest.New(t, assenttest.Config{Files: served})
	random := rand.New(rand.NewPCG(1, 2))
	states := map[string]int{}
	refusals := map[string]int{}
	for n := range testtier.Count(150) {
		s := session{assent: a, random: random}
		text := s.play(t, n)
		f, b := prepared(t, "x.test.yaml", []byte(text), files)
		if r := f.Run(b, every)[0]; !r.Passed() {
			t.Fatalf("%+v\n%s", r.Failures, text)
		}
		states[f.Cases[0].Expect.Outcome]++
		for _, v := range f.Cases[0].Votes {
			refusals[v.Refused]++
		}
	}

	if len(states) < 4 || len(refusals) < 7 {
		t.Errorf("too little was tried: %v %v", states, refusals)
	}
}

// session is one request with random votes.
type session struct {
	assent *assenttest.Assent
	random *rand.Rand
}

func (s *session) pick(texts ...string) string { return texts[s.random.IntN(len(texts))] }

// play lets people answer, and returns the result as a test.
func (s *session) play(t *testing.T, n int) string {
	t.Helper()
	ctx := context.Background()
	line := fmt.Sprintf(`"tool":"trade","args":{"amount":%d}`, 1000+n)
	if s.random.IntN(4) == 0 {
		line = fmt.Sprintf(`"tool":"purge","args":{"n":%d}`, n)
	}
	if who := s.pick("", "", "b.ruiz", "stranger", "ann"); who != "" {
		line += fmt.Sprintf(`,"principal":%q`, who)
	}
	line = `{"kind":"tool",` + line + `}`
	call, err := resolve.ParseCall([]byte(line), value.Limits{})
	must.Do(t, err)
	asker := approval.Asker{Token: "runner", Person: s.pick("", "", "dot", "cy")}
	opened, err := s.assent.Service.Open(ctx, approval.OpenInput{
		Tenant: assenttest.Tenant,
		Asker:  asker,
		Agent:  "desk",
		Call:   call,
	})
	if err != nil || opened.Request == nil {
		t.Fatalf("%s: %v, %+v", line, err, opened)
	}

	var out strings.Builder
	fmt.Fprintf(&out, `schema_version: "1.0.0"
agent: desk.agf.yaml
policies: [policies]
people: people.yaml
people_cases:
  - name: random
    call: '%s'
    asked_by: {token: runner`, line)
	if asker.Person != "" {
		fmt.Fprintf(&out, ", person: %s", asker.Person)
	}
	out.WriteString("}\n    votes:\n")
	state, after := pending, time.Duration(0)
	for range 1 + s.random.IntN(5) {
		if state == pending {
			state = s.vote(t, &out, opened.Request.ID, &after)
		}
	}
	if state == pending || state == expired {
		until, left := after, []time.Duration{0, time.Minute, 25 * time.Minute, time.Hour}
		step := left[s.random.IntN(len(left))]
		s.assent.Later(step)
		r, err := s.assent.Service.Request(ctx, assenttest.Tenant, opened.Request.ID)
		state = s.ended(t, r, err)
		if !strings.Contains(line, "purge") {
			fmt.Fprintf(&out, "    until: %s\n", until+step)
		}
	}

	fmt.Fprintf(&out, "    expect: {outcome: %s}\n", state)

	return out.String()
}

// ended returns the final state of a request.
func (s *session) ended(t *testing.T, r *approval.Request, err error) string {
	t.Helper()
	must.Do(t, err)

	return string(r.State)
}

// vote lets some person answer at some time, and writes it down.
func (s *session) vote(t *testing.T, out *strings.Builder, id string, after *time.Duration) string {
	t.Helper()
	ctx := context.Background()
	step := time.Duration(s.random.IntN(5)) * 5 * time.Minute
	*after += step
	s.assent.Later(step)
	if r, err := s.assent.Service.Request(ctx, assenttest.Tenant, id); err != nil || r.State != approval.Pending {
		return s.ended(t, r, err)
	}
	who := s.pick("ann", "ben", "B.Ruiz", "cy", "dot", "olga", "zed")
	verdict := approval.Approve
	if s.random.IntN(5) == 0 {
		verdict = approval.Deny
	}
	r, err := s.assent.Service.Request(ctx, assenttest.Tenant, id)
	must.Do(t, err)
	e, err := s.assent.Service.Eligible(ctx, r, who)
	must.Do(t, err)
	outcome, err := s.assent.Vote(id, who, verdict, nil)
	must.Do(t, err)
	fmt.Fprintf(out, "      - {person: %s, vote: %s, after: %s", who, verdict, *after)
	if outcome == approval.VoteNotEligible {
		fmt.Fprintf(out, ", refused: %q", e.Why)
	}
	out.WriteString("}\n")
	if r, err = s.assent.Service.Request(ctx, assenttest.Tenant, id); err != nil {
		t.Fatal(err)
	}

	return string(r.State)
}
