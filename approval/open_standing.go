package approval

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval/quorum"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// ask looks for an answer that stands already, the strictest first,
// before it asks anew.
func (o *opening) ask(tx Tx) error {
	if o.coolsDown() {
		o.out.Request, o.out.Decision = o.last, o.s.coolingDecision(o.last)
		o.out.Decision.Configuration = o.c.Plan.Configuration()
		return o.deny(tx, "cooling_down")
	}
	if done, err := o.granted(tx); done || err != nil {
		return err
	}
	if o.own != nil && o.own.State.Open() {
		return o.share(tx, o.own)
	}
	if o.last != nil && o.last.sharedWith(o.in.Asker) {
		return o.share(tx, o.last)
	}
	return o.create(tx)
}

// sharedWith reports whether an identical call of the asker is answered
// with this request. What people approved is only for the callers that
// they were shown, so that any other caller asks anew.
func (r *Request) sharedWith(who Asker) bool {
	return r.State == Pending || r.State.Open() && r.AskedBy(who)
}

// coolsDown reports whether a person said no to this very call a moment
// ago, be it after others had approved.
func (o *opening) coolsDown() bool {
	r := o.last
	return r != nil && (r.State == Denied || r.Cause == ByLateDeny) &&
		o.now.Before(r.Closed.Add(o.s.cfg.CoolDown))
}

// FromAnswer and CodeCoolingDown are the reason why a call that was
// just denied is denied again.
const (
	FromAnswer      resolve.Source = "answer"
	CodeCoolingDown resolve.Code   = "cooling_down"
)

// coolingDecision repeats what a person said to this very call a moment ago.
func (s *Service) coolingDecision(r *Request) resolve.Decision {
	who, said := r.By, "denied this very call"
	if who == "" {
		who = "somebody"
	}
	words := r.Reason
	if r.Answer != "" {
		said, words = "answered this very call instead of letting it run", r.Answer
	}
	detail := who + " " + said
	if words != "" {
		detail += ": " + strings.TrimRight(words, ".")
	}
	detail += ". It is not asked again before " + clockWords(r.Closed.Add(s.cfg.CoolDown))

	return resolve.Decision{
		Outcome: resolve.Deny,
		Message: detail,
		Reasons: []resolve.Reason{{Source: FromAnswer, Code: CodeCoolingDown, Detail: detail}},
	}
}

// granted uses a standing approval that covers the call, if there is one.
func (o *opening) granted(tx Tx) (bool, error) {
	live, err := tx.Live(o.c.Agent.ID, o.call.Target(), o.now)
	if err != nil {
		return false, err
	}
	for _, g := range live {
		if !o.covered(g) {
			continue
		}
		g.Uses++
		tx.SaveGrant(g)
		o.out.Outcome = resolve.Allow
		o.out.Grant = g
		o.remember(tx, Memory{Grant: g.ID})
		e := g.event(EventGrantUsed, o.in.Asker.Token, map[string]any{
			"binding":   o.binding,
			"plan":      o.c.Plan.Version(),
			"principal": o.call.Principal,
			"session":   o.call.Session,
			"person":    o.in.Asker.Person,
			"owners":    list(o.owners),
			"rules":     rulesOf(&o.d).facts(),
			"stages":    stageFacts(o.stages()),
		})
		return true, o.record(tx, nil, o.s.cfg.sealArgs(e, string(o.call.Args)))
	}

	return false, nil
}

// covered reports whether a standing approval lets this call run: it is
// this asker's, its bounds hold the call, and what it fulfilled is all
// that the rules ask for now.
func (o *opening) covered(g *Grant) bool {
	barred := slices.Concat(o.askers, o.owners)

	return among(g.Runtimes, g.RuntimePeople, o.in.Asker) &&
		!slices.ContainsFunc(g.By, func(id string) bool { return slices.Contains(barred, id) }) &&
		g.fulfils(rulesOf(&o.d), o.stages()) &&
		g.Covers(&o.call, o.c.Plan.Version(), require(&o.d).Grants, o.now)
}

// stages are what the approval of this call takes.
func (o *opening) stages() []policy.Stage {
	return quorum.Stages(require(&o.d).Stages, o.unknown)
}

// share answers with an open request for this very call.
func (o *opening) share(tx Tx, r *Request) error {
	o.out.Outcome = resolve.Ask
	o.out.Request = r
	o.out.Shared = true
	o.tellPermitAge()
	o.remember(tx, Memory{Request: r.ID})
	var facts map[string]any
	if o.joins(r) {
		r.join(o.in.Asker)
		o.touch(r)
		facts = map[string]any{
			"joined":     true,
			"person":     o.in.Asker.Person,
			"on_timeout": string(r.OnTimeout),
		}
	}

	return o.record(tx, r, r.event(EventShared, o.in.Asker.Token, facts))
}

// mostAlso is how many further runtimes may share one request.
const mostAlso = 50

// joins reports whether the runtime becomes one of those who ask.
func (o *opening) joins(r *Request) bool {
	return r.State == Pending && !r.AskedBy(o.in.Asker) && len(r.Requester.Also) < mostAlso
}

// join adds a caller. Approvals given before don't count any more, since
// their givers were not shown this caller (see Counts), and for the same
// reason the call is no longer approved by a timeout.
func (r *Request) join(who Asker) {
	r.Requester.Also = append(r.Requester.Also, who.Token)
	r.Requester.AlsoOf = append(r.Requester.AlsoOf, who.Person)
	if r.OnTimeout == policy.TimeoutApprove {
		r.OnTimeout = policy.TimeoutDeny
	}
}
