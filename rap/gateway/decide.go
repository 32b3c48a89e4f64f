package gateway

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/rap/internal/kept"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/template"
)

// judged is a call as the rules saw it now.
type judged struct {
	op   *operation
	plan *resolve.Plan
	call *resolve.Call
	resolve.Decision
	binding string
}

// verdict is what the desk is told: that nobody waits longer than so long either, whether or not the rules demand anything.
func (j *judged) verdict(within time.Duration) hold.Verdict {
	v := hold.Verdict{Decision: j.Decision, Call: j.call}
	var require policy.Require
	if v.Require != nil {
		require = *v.Require
	}
	require.Within = lowerOf(within, v.Require)
	v.Require = &require

	return v
}

// judge validates a call (I11) and asks the rules. The words say why it is not to run.
func (g *Gateway) judge(ctx context.Context, c *call) (*judged, string) {
	op := g.ops[c.Operation]
	if op == nil {
		name, _ := cutText(template.Escape(c.Operation), maxLabel)
		return nil, "unknown operation " + name + "; fetch the toolset again"
	}
	if err := op.tool.CheckArguments(c.Args); err != nil {
		return nil, "the arguments do not fit the operation's schema: " + err.Error()
	}
	plan, err := g.cfg.Plan(ctx)
	if err != nil || plan == nil {
		g.refuse(ctx, "the rules could not be had", err, c)
		return nil, "the rules could not be read; nothing was run"
	}
	j := &judged{op: op, plan: plan, call: g.present(c, op)}
	j.Decision = plan.Decide(j.call)
	if j.Outcome == resolve.Deny {
		return nil, "denied by the rules: " + j.Message
	}
	if j.binding, err = plan.Bind(j.call); err != nil {
		return nil, "the arguments can't be bound to a decision"
	}
	return j, ""
}

// present is a call as rules know it. The caller stands in the session: sessions of two callers have nothing in common, whatever they call them
// (T19). Of the annotations only what tightens is told.
func (g *Gateway) present(c *call, op *operation) *resolve.Call {
	call := &resolve.Call{
		Kind: resolve.Tool, Tool: c.Operation, Args: c.Args,
		Principal: c.User, Session: below(c.Caller, c.root()), ToolDefinition: op.digest,
	}
	if g.cfg.MCPServer != "" {
		call.Kind, call.Server = resolve.MCPTool, g.cfg.MCPServer
	}
	if op.Destructive {
		call.Annotations = map[string]bool{"destructiveHint": true}
	}
	return call
}

// below names a thread of a caller. No two callers make the same name, whatever they and their threads are called.
func below(caller, thread string) string { return url.PathEscape(caller) + "/" + thread }

func (j *judged) ground() ground {
	g := ground{Binding: j.binding, Plan: j.plan.Version(), Tool: j.op.digest}
	for _, r := range j.Reasons {
		g.Rules = append(g.Rules, fmt.Sprintf("%s/%s/%s", r.Source, r.Policy, r.Rule))
	}
	slices.Sort(g.Rules)
	g.Rules = slices.Compact(g.Rules)
	return g
}

// decide takes a call that was acknowledged to whoever has the next word (U1).
func (g *Gateway) decide(ctx context.Context, d *kept.Doc[call]) (bool, error) {
	c := &d.Body
	j, why := g.judge(ctx, c)
	if j == nil {
		g.heard(ctx, c, "deny")
		return true, g.settle(ctx, d, verdictDeny, why)
	}
	g.heard(ctx, c, j.Outcome.String())
	c.Ground = j.ground()
	if j.Outcome == resolve.Allow {
		return true, g.allow(ctx, d, byRules)
	}
	if g.cfg.Ask != AskUser {
		return g.hold(ctx, d, j)
	}
	return true, g.askAlone(ctx, d, j)
}

// askAlone asks the runtime's user, where that is enough.
func (g *Gateway) askAlone(ctx context.Context, d *kept.Doc[call], j *judged) error {
	if why := userMay(j.Require); why != "" {
		return g.settle(ctx, d, verdictFailed, why+"; nothing was run")
	}
	return g.askToo(ctx, d, j, byGrant)
}

// askToo asks the runtime's user, where no session grant of theirs covers the call.
func (g *Gateway) askToo(ctx context.Context, d *kept.Doc[call], j *judged, by string) error {
	grant, err := g.useGrant(ctx, &d.Body, j)
	if err != nil {
		return err
	}
	if grant == "" {
		return g.await(ctx, d, j)
	}
	d.Body.Grant = grant
	return g.allow(ctx, d, by)
}

// heard records what was decided first about a call, once where the desk has to be reached again.
func (g *Gateway) heard(ctx context.Context, c *call, decision string) {
	if c.Tries == 0 {
		_ = g.record(ctx, "rap_call_received", c, map[string]any{"decision": decision})
	}
}

// allow says that a call may run, and why. It is stored before anything runs.
func (g *Gateway) allow(ctx context.Context, d *kept.Doc[call], by string) error {
	d.Body.Phase, d.Body.By, d.Body.Verdict, d.Body.Tries, d.Due = phaseDecided, by, verdictAllow, 0, g.now()
	return g.calls.Put(ctx, d)
}

// userMay tells why the runtime's user alone can't answer; "" when the user can.
func userMay(r *policy.Require) string {
	switch {
	case r == nil:
		return ""
	case len(r.Stages) > 0 || len(r.Escalate) > 0:
		return "the rules want an approval of other people than the user, who can't be asked here"
	case len(r.Arguments.Redact) > 0:
		return "the rules hide arguments, so the user can't be asked about them"
	}
	return ""
}
