package policytest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/policy/quorum"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// defaultToken is the token that asks unless the test sets another.
const defaultToken = "runtime"

// WhyReason refuses an approval without the reason that the rules require.
const WhyReason = "the reason that the rules require is missing"

// The outcomes of a request.
const (
	pending  = "pending"
	approved = "approved"
	denied   = "denied"
	expired  = "expired"
)

func (t *PeopleTest) run(b *Built) Result {
	p := play{test: t, built: b, state: pending}
	p.play()
	if why := b.unoffered(b.Plan, t.Call, nil, p.decision.Outcome == resolve.Deny); why != "" {
		p.failures = append(p.failures, noCall(t.node, why))
	}

	return Result{Name: t.Name, Range: t.node.Get("name").Range, Failures: p.failures}
}

// play lets people answer a request.
type play struct {
	test     *PeopleTest
	built    *Built
	decision resolve.Decision
	request  quorum.Answering
	calls    []policy.Escalation // whom escalation calls in
	reason   policy.Reason       // that an approval needs
	deadline quorum.Deadline     // Within 0: the service's own, which a test does not know
	state    string
	passed   []string // what time did
	seatings []people.Seating
	failures []Failure
}

func (p *play) fail(what string, at *yamldoc.Node, expected, got string, fix *edit) {
	p.failures = append(p.failures, Failure{
		What:     what,
		Range:    at.Range,
		Expected: expected,
		Got:      got,
		Rules:    append(rules(p.decision.Reasons), p.passed...),
		fix:      fix,
	})
}

// play has people vote one after another, and time pass between them,
// as the test says.
func (p *play) play() {
	p.decision = p.built.Plan.Decide(p.test.Call)
	if p.decision.Outcome != resolve.Ask {
		at := p.test.node.Get("call")
		p.fail("call", at, "a call that asks", "outcome "+p.decision.Outcome.String(), nil)
		return
	}
	p.open()
	for i := range p.test.Votes {
		p.vote(i, &p.test.Votes[i])
	}
	p.until()
	if expected := p.test.Expect.Outcome; p.state != expected {
		at := p.test.node.Get("expect").Get("outcome")
		p.fail("outcome", at, expected, p.state, &edit{at: at, text: p.state})
		last := &p.failures[len(p.failures)-1]
		last.Rules = append(last.Rules, p.missing()...)
	}
}

// until waits until the test ends.
func (p *play) until() {
	at := p.test.node.Get("until")
	switch {
	case at == nil:
	case p.deadline.Within == 0 && p.state == pending:
		p.fail("until", at, "a deadline", "none: no rule says within, so the service's own counts", nil)
	default:
		p.wait(p.test.Until)
	}
}

// wait lets time pass, as far as some time after the call was asked.
func (p *play) wait(to time.Duration) {
	now := p.request.Asked.Add(to)
	for p.state == pending && p.deadline.Within > 0 && !now.Before(p.deadline.At) {
		p.end(p.deadline.At.Sub(p.request.Asked))
	}
	if p.state == pending {
		p.callIn(to)
	}
}

// end lets the deadline pass.
func (p *play) end(at time.Duration) {
	p.callIn(at)
	text := "nobody decided within " + policy.FormatDuration(at) + ": "
	switch p.deadline.Pass(p.request.Called) {
	case quorum.GoesOn:
		called := strings.Join(p.request.Called, ", ")
		text += "on_timeout: escalate, so " + called + " have " + policy.FormatDuration(p.deadline.Within) + " more"
	case quorum.Approves:
		p.state = approved
		text += "on_timeout: approve"
	default:
		p.state = expired
		text += "it expired"
	}

	p.passed = append(p.passed, text)
}

// open sets the state of the request as the service does when it is asked.
func (p *play) open() {
	meta := &p.agent().Metadata
	t := p.test
	required := policy.Require{}
	if p.decision.Require != nil {
		required = *p.decision.Require
	}
	principal := t.Call.Principal
	_, known, _ := quorum.Known(context.Background(), p.built.People, "", principal) // a file answers without fail
	p.calls, p.reason = required.Escalate, required.Reason
	p.request = quorum.Answering{
		Agent:     meta.ID,
		Stages:    quorum.Stages(required.Stages, required.AnyOf, principal != "" && !known),
		AnyOf:     required.AnyOf,
		Principal: principal,
		Tokens:    []string{cmp.Or(t.AskedBy.Token, defaultToken)},
		Owners:    people.Owners(meta.Labels["owner"]),
	}
	p.deadline = quorum.Deadline{
		At:        p.request.Asked.Add(required.Within),
		Within:    required.Within,
		OnTimeout: required.Fallback(),
	}
	if t.AskedBy.Person != "" {
		p.request.People = []string{t.AskedBy.Person}
	}
}

// vote counts one answer as the service does: it first checks whether the person may answer. One no
// denies, and a yes approves if it fills the last seat.
func (p *play) vote(i int, v *Vote) {
	what := fmt.Sprintf("votes[%d]", i)
	p.wait(v.After)
	if p.state != pending {
		p.fail(what, v.node, "a request that still waits", "one that is over: "+p.state, nil)
		return
	}
	voter, standing := p.stand(v)
	e := standing.Eligibility(&p.request, voter.ID)
	why := ""
	if !e.Permits(v.Vote == "approve") {
		why = e.Why
	} else if v.Vote == "approve" && !p.reason.Accepts(v.Reason) {
		why = WhyReason
	}
	p.refusal(what, v, why)
	if why != "" {
		return
	}

	p.request.Answered = append(p.request.Answered, voter.ID)
	if v.Vote == "deny" {
		p.state = denied
		return
	}
	p.request.Approved = append(p.request.Approved, voter.ID)
	met := false
	if p.seatings, met = standing.Met(&p.request); met {
		p.state = approved
	}
}

// refusal compares a vote with the refusal that the test expects.
func (p *play) refusal(what string, v *Vote, why string) {
	switch at := v.node.Get("refused"); {
	case why == v.Refused:
	case at == nil:
		p.fail(what, v.node, "a vote that counts", "refused: "+why, nil)
	case why == "":
		p.fail(what+".refused", at, v.Refused, "a vote that counts", nil)
	default:
		p.fail(what+".refused", at, v.Refused, why, &edit{at: at, text: plain(why)})
	}
}

// callIn calls in the groups to which the request has escalated by a time.
func (p *play) callIn(after time.Duration) {
	for _, e := range p.calls {
		if e.After <= after && !slices.Contains(p.request.Called, e.To) {
			p.request.Called = append(p.request.Called, e.To)
		}
	}
}

func (p *play) stand(v *Vote) (people.Person, quorum.Standing) {
	background := context.Background()
	voter, known, _ := quorum.Known(background, p.built.People, "", v.Person) // a file answers without fail
	if !known {
		voter = people.Person{ID: v.Person}
	}
	standing, _ := quorum.Stand(background, p.built.People, "", &p.request, p.request.Asked.Add(v.After), voter)
	if !known {
		delete(standing.People, voter.ID)
	}

	return voter, standing
}

// missing describes the seats that are not filled.
func (p *play) missing() []string {
	if p.state != pending {
		return nil
	}
	seatings := p.seatings
	if seatings == nil {
		_, seatings, _ = quorum.Standing{Now: p.request.Asked}.Nearest(&p.request)
	}
	var out []string
	for _, s := range seatings {
		if s.Missing > 0 {
			text := fmt.Sprintf("%d more of %s must agree", s.Missing, cmp.Or(s.Group, "all approvers"))
			if len(s.People) > 0 {
				text += " beside " + strings.Join(s.People, ", ")
			}
			out = append(out, text)
		}
	}

	return out
}

// agent is the one that asks.
func (p *play) agent() *schema.Agent { return p.built.Agents[len(p.built.Agents)-1] }
