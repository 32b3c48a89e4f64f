package approval

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/quorum"
	"github.com/assent-dev/assent/resolve"
)

// ask looks for an existing answer, the strictest kind first, before it creates a new request.
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

// sharedWith reports whether an identical call of the asker is answered with this request. An
// approval is only for the callers that the approvers were shown, so a new caller needs a new
// request.
func (r *Request) sharedWith(who Asker) bool {
	return r.State == Pending || r.State.Open() && r.AskedBy(who)
}

// coolsDown reports whether a person denied this call within the cool-down time, even if others had
// approved it before.
func (o *opening) coolsDown() bool {
	r := o.last
	return r != nil && (r.State == Denied || r.Cause == ByLateDeny) &&
		o.now.Before(r.Closed.Add(o.s.cfg.CoolDown))
}

// FromAnswer and CodeCoolingDown are the reason for denying a call that was just denied by a
// person.
const (
	FromAnswer      resolve.Source = "answer"
	CodeCoolingDown resolve.Code   = "cooling_down"
)

// coolingDecision returns a denial that repeats what a person answered to the same call a moment
// ago.
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

// granted uses a standing approval that covers the call. It reports whether there is one.
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
		if err := o.saveRun(tx, Memory{Grant: g.ID}); err != nil {
			return false, err
		}
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
		if anyOf := require(&o.d).AnyOf; len(anyOf) > 0 {
			e.Facts["any_of"] = anyOfFacts(anyOf)
		}
		e = e.sealing("history", figuresText(&o.d))
		return true, o.record(tx, nil, o.s.cfg.sealArgs(e, string(o.call.Args)))
	}

	return false, nil
}

// covered reports whether a standing approval lets this call run: it belongs to this asker, the
// call is within its bounds, and it fulfils everything that the rules require now.
func (o *opening) covered(g *Grant) bool {
	barred := slices.Concat(o.askers, o.owners)

	return among(g.Runtimes, g.RuntimePeople, o.in.Asker) &&
		!slices.ContainsFunc(g.By, func(id string) bool { return slices.Contains(barred, id) }) &&
		g.fulfils(rulesOf(&o.d), o.stages(), require(&o.d).AnyOf) &&
		g.Covers(&o.call, o.c.Plan.Version(), require(&o.d).Grants, o.now)
}

// stages returns the stages that an approval of this call needs.
func (o *opening) stages() []policy.Stage {
	q := require(&o.d)
	return quorum.Stages(q.Stages, q.AnyOf, o.unknown)
}

// share answers with an open request for the same call.
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

// mostAlso limits how many further runtimes may share one request.
const mostAlso = 50

// joins reports whether the runtime must be added to the askers of the request.
func (o *opening) joins(r *Request) bool {
	return r.State == Pending && !r.AskedBy(o.in.Asker) && len(r.Requester.Also) < mostAlso
}

// join adds a caller. Earlier approvals no longer count, because their givers were not shown this
// caller (see Counts). For the same reason the call can no longer be approved by a timeout.
func (r *Request) join(who Asker) {
	r.Requester.Also = append(r.Requester.Also, who.Token)
	r.Requester.AlsoOf = append(r.Requester.AlsoOf, who.Person)
	if r.OnTimeout == policy.TimeoutApprove {
		r.OnTimeout = policy.TimeoutDeny
	}
}
