package gateway

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// decider decides on calls: by the rules, by session grants, or by asking the user.
type decider struct {
	*base
	grants *grantBook
}

// judgment is a call with the current decision of the rules.
type judgment struct {
	op   *operation
	plan *resolve.Plan
	call *resolve.Call
	resolve.Decision
	binding string
}

// verdict returns what the approval service needs to know. Its expiry is at most within, even
// if the rules require none.
func (j *judgment) verdict(within time.Duration) hold.Verdict {
	v := hold.Verdict{Decision: j.Decision, Call: j.call}
	var require policy.Require
	if v.Require != nil {
		require = *v.Require
	}
	require.Within = lowerOf(within, v.Require)
	v.Require = &require

	return v
}

// judge validates a call and evaluates the rules. If the call must not run, it returns nil and
// the reason.
func (d *decider) judge(ctx context.Context, r *record) (*judgment, string) {
	c := &r.Part
	op := d.ops[c.Operation]
	if op == nil {
		name, _ := cutText(safetext.Line(c.Operation), maxLabel)
		return nil, "unknown operation " + name + "; fetch the toolset again"
	}
	if err := op.tool.CheckArguments(r.Args()); err != nil {
		return nil, "the arguments do not fit the operation's schema: " + err.Error()
	}
	plan, err := d.cfg.Plan(ctx)
	if err != nil || plan == nil {
		d.refuse(ctx, "the rules could not be read", err, r)
		return nil, "the rules could not be read; nothing was run"
	}
	j := &judgment{op: op, plan: plan, call: d.present(r, op)}
	j.Decision = plan.DecideAt(j.call, d.now())
	if d.cfg.Ask == AskApprovers { // the service knows the past calls
		j.Decision = hold.Decide(plan, j.call, d.now())
	}
	if j.Outcome == resolve.Deny {
		return nil, "denied by the rules: " + j.Message
	}
	if j.binding, err = plan.Bind(j.call); err != nil {
		return nil, "the arguments can't be bound to a decision"
	}
	return j, ""
}

// present returns the call as the rules see it. The session contains the caller, because
// sessions of different callers are unrelated even if they have the same name. Of the
// annotations, only the one that tightens the decision is passed on.
func (d *decider) present(r *record, op *operation) *resolve.Call {
	c := &r.Part
	call := &resolve.Call{
		Kind:           resolve.Tool,
		Tool:           c.Operation,
		Args:           r.Args(),
		Principal:      c.User,
		Session:        sessionName(c.Caller, c.root()),
		ToolDefinition: op.digest,
		Declared:       resolve.DeclaredIn(op.InputSchema),
	}
	if d.cfg.MCPServer != "" {
		call.Kind, call.Server = resolve.MCPTool, d.cfg.MCPServer
	}
	if op.Destructive {
		call.Annotations = map[string]bool{"destructiveHint": true}
	}
	return call
}

// sessionName names a thread of a caller. Names of different callers and threads never collide.
func sessionName(caller, thread string) string { return url.PathEscape(caller) + "/" + thread }

func (j *judgment) ground() ground {
	g := ground{Binding: j.binding, Plan: j.plan.Version(), Tool: j.op.digest}
	for _, r := range j.Reasons {
		g.Rules = append(g.Rules, fmt.Sprintf("%s/%s/%s", r.Source, r.Policy, r.Rule))
	}
	slices.Sort(g.Rules)
	g.Rules = slices.Compact(g.Rules)
	return g
}

// decide returns what has to happen before a call may run. It is called when the call arrives,
// after our approvers or the user allowed it, and right before it runs.
func (d *decider) decide(ctx context.Context, r *record) (durable.Ruling, error) {
	c := &r.Part
	j, why := d.judge(ctx, r)
	d.heard(ctx, r, j)
	switch {
	case j == nil:
		return refused(why), nil
	case c.By != "": // approved by everyone who has to
		if j.binding != c.Ground.Binding || c.By == byRules && j.Outcome != resolve.Allow {
			return refused(textChanged), nil
		}
		return d.proceed(r, j, c.By), nil
	case r.Approval != nil:
		return d.decideApproved(ctx, r, j)
	}

	c.Ground = j.ground()
	switch {
	case j.Outcome == resolve.Allow:
		return d.proceed(r, j, byRules), nil
	case d.cfg.Ask != AskUser:
		within := lowerOf(d.cfg.Within, j.Require)
		return durable.Ruling{
			Do:      durable.Approve,
			Verdict: j.verdict(within),
			Within:  within,
		}, nil
	}

	if why := hold.UserMay(j.Require); why != "" {
		return failed(why + "; nothing was run"), nil
	}
	return d.decideByUser(ctx, r, j, byGrant)
}

const textChanged = "the rules or the operation changed since the call was decided; nothing was run"

func refused(why string) durable.Ruling {
	return durable.Ruling{Ending: durable.Ending{Why: durable.Refused, Reason: why}}
}

func failed(why string) durable.Ruling {
	return durable.Ruling{Ending: durable.Ending{Why: whyFailed, Reason: why}}
}

// proceed lets a call run and records who or what allowed it.
func (d *decider) proceed(r *record, j *judgment, by string) durable.Ruling {
	r.Part.By = by
	r.Part.Verdict = verdictAllow
	return durable.Ruling{Do: durable.Proceed, Verdict: j.verdict(d.cfg.Within)}
}

// decideApproved continues with a call that our approvers approved. If they edited the
// arguments, the rules decide on the new ones.
func (d *decider) decideApproved(ctx context.Context, r *record, j *judgment) (durable.Ruling, error) {
	if !r.Approval.Edited && j.binding != r.Part.Ground.Binding || j.Outcome != resolve.Ask {
		return refused(textChanged), nil
	}
	r.Part.Ground = j.ground()
	if d.cfg.Ask == AskBoth {
		return d.decideByUser(ctx, r, j, byBoth)
	}
	return d.proceed(r, j, byApprovers), nil
}

// decideByUser asks the runtime's user, unless one of their session grants covers the call.
func (d *decider) decideByUser(ctx context.Context, r *record, j *judgment, by string) (durable.Ruling, error) {
	grant, err := d.grants.useGrant(ctx, r, j)
	if err != nil {
		return durable.Ruling{}, err
	}
	if grant == "" {
		d.await(r, j)
		return durable.Ruling{Do: durable.Wait}, nil
	}
	r.Part.Grant = grant
	return d.proceed(r, j, by), nil
}

// heard records the first decision about a call in the ledger.
func (d *decider) heard(ctx context.Context, r *record, j *judgment) {
	if r.Part.Heard {
		return
	}
	r.Part.Heard = true
	decision := "deny"
	if j != nil {
		decision = j.Outcome.String()
	}
	_ = d.record(ctx, "rap_call_received", r, map[string]any{"decision": decision})
}
